"""Probes of the libraries that the target process would load."""
