"""What runs in the target interpreter: standard library and torch, nothing of gpucheck's.

The files are run by their path in the target (``bootstrap.py`` makes them the package
``gpucheck_worker`` there). From here only the headers of the self-tests are read.
"""
