import pytest
from language.running import Run, running


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run gpucheck in this process, without variables that name a language."""
    return running(capsys)
