"""Probes of compiled extensions."""
