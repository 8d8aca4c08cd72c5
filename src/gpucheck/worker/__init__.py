"""What runs in the target interpreter: standard library and torch, nothing of gpucheck's.

The files are run by path, never imported from here; this package only carries them.
"""
