"""Helpers of the probes in this folder: one module reads one kind of thing."""
