"""``recommend`` and ``compat`` rest on the same tables, so they agree.

``benchmarks/agreement.py`` compares everything, which takes many minutes. Here it takes every 83rd
comparison of each kind: a prime, so that each driver, Python and build has its turn.
"""

import importlib
import itertools
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.exhaustive

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
EVERY = 83


@pytest.fixture(name="script")
def the_script(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401  # a module
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("agreement")


@pytest.mark.parametrize(
    ("question", "least"), [("proposals", 300), ("builds", 700), ("conda_proposals", 70)]
)
def test_both_answers_agree(script: Any, question: str, least: int) -> None:  # noqa: ANN401
    found = script.Found()
    for system, capability in itertools.product(script.SYSTEMS, script.capabilities()):
        found.add(getattr(script, question)(EVERY, system, capability))
    assert found.differences == []
    assert found.compared > least


def test_both_answers_agree_about_pythons_boards_and_names(script: Any) -> None:  # noqa: ANN401
    found = script.names()
    found.add(script.boards(EVERY))
    found.add(script.board_drivers(EVERY // 5))
    for system in script.SYSTEMS:
        found.add(script.releases(7, system, "9.0"))
        found.add(script.releases(7, system, "11.0"))
    assert found.differences == []
    assert found.compared > 250


def test_everything_is_described(script: Any) -> None:  # noqa: ANN401
    assert {"3.13t", "3.14t", "3.8"} <= set(script.pythons())
    assert {"3.5", "7.5", "8.7", "11.0", "12.1"} <= set(script.capabilities())
    assert {system.name for system in script.SYSTEMS} == {
        "linux x86_64", "linux aarch64", "windows", "wsl2",
    }  # fmt: skip
    given = script.drivers("linux")
    assert script.Driver("580") in given
    assert script.Driver("525.60.12") in given  # one before the first for CUDA 12


@pytest.mark.parametrize(
    ("system", "capability", "driver", "python", "build", "compat_says"),
    [
        ("linux x86_64", "9.0", "580", "3.13", "2.15.0+cu132", "healthy"),
        ("windows", "7.5", "450", "3.9", "2.6.0+cu118", "healthy"),
        ("linux aarch64", "11.0", "615.150", "3.5", "2.14.0+cu130",
         "broken torch-python-unsupported"),
        ("linux aarch64", "11.0", "615.150", "3.10", "2.9.1+cu130", "healthy"),
    ],
)  # fmt: skip
def test_where_they_once_differed(  # one argument for each fact
    script: Any,  # noqa: ANN401
    system: str,
    capability: str,
    driver: str,
    python: str,
    build: str,
    compat_says: str,
) -> None:
    where = next(known_system for known_system in script.SYSTEMS if known_system.name == system)
    given = script.Driver(driver)
    torch, _, kind = build.partition("+")
    assert script.verdict(where, capability, given, python, torch, kind) == compat_says
    asked = script.situation(where, capability, given, python, build)
    assert (script.recommender().recommend(asked).best is not None) is (compat_says == "healthy")


def test_a_gpu_of_a_board_makes_no_board_of_a_mac(script: Any) -> None:  # noqa: ANN401
    macos = script.Surroundings("macos", (("os", "macos"),), "macos_arm64", "linux")
    verdict = script.verdict(macos, "11.0", script.Driver("580.150"), "3.11", "2.2.2", "cu121")
    assert verdict != "healthy"
