"""Probes of CUDA toolkits and host compilers."""
