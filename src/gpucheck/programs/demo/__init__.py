"""Recorded machines, and a pre-flight, that ``gpucheck demo`` shows to whoever has no GPU at hand.

``tools/demo_data.py`` makes the files in ``data/`` from the machines of the tests.
"""
