"""The tests for a machine with an NVIDIA GPU. Nothing here needs more than torch and pytest."""

import pytest
from gpu_runs import why_not


@pytest.fixture(scope="session", autouse=True)
def _on_a_gpu() -> None:
    """Skip every test where there is no GPU."""
    if why := why_not():
        pytest.skip(why)
