"""What people and installers mention in passing."""

import pytest
from readers_support import Read

from gpucheck.probes.torch_build import TorchBuild

NOT_FOUND = "ERROR: No matching distribution found for torch==1.7.1"
NO_VERSION = (
    "ERROR: Could not find a version that satisfies the requirement torch==1.7.1+cu110 "
    "(from versions: 2.0.0, 2.0.1)"
)


def version(text: str) -> str | None:
    return Read(text, "free text").get(TorchBuild).version


@pytest.mark.parametrize(
    "text",
    [
        NOT_FOUND,
        NO_VERSION,
        f"$ pip install torch==1.7.1\n{NOT_FOUND}",
        f"I run `pip install torch==1.7.1+cu110` and get\n{NO_VERSION}",
    ],
)
def test_a_release_that_was_not_found_is_not_installed(text: str) -> None:
    assert version(text) is None


def test_another_release_beside_it_is() -> None:
    assert version(f"{NOT_FOUND}\nso I stay with torch 2.0.1") == "2.0.1"


@pytest.mark.parametrize(
    "text",
    ["torch==2.0.1", "torch.__version__: 2.0.1", "pytorch 2.0.1", "torch version 2.0.1",
     "torch v2.0.1", "torch: 2.0.1", "Torch `2.0.1`"],
)  # fmt: skip
def test_a_release_in_a_sentence(text: str) -> None:
    assert version(f"Here it is {text}, on a server.") == "2.0.1"
