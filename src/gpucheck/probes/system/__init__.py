"""Probes of the operating system, the container, limits and the PCI bus."""
