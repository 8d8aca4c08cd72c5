"""Probes of the target interpreter, its PyTorch and its packages."""
