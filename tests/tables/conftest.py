"""The tables of this checkout, opened once for all tests."""

import pytest

from gpucheck.tables import Tables


@pytest.fixture(scope="session")
def tables() -> Tables:
    return Tables()
