"""What runs in the target interpreter: the standard library and torch, nothing else of gpucheck.

The target runs these files by their path; ``bootstrap.py`` makes them the package
``gpucheck_worker`` there. gpucheck itself reads only the headers of the self-tests.
"""

from pathlib import Path

BOOTSTRAP = str(Path(__file__).with_name("bootstrap.py"))
"""The file that the target interpreter runs to become a worker."""
