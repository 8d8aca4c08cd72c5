from typing import Any

import msgspec
import pytest
from each import each
from rules_machines import (
    GTX_1080,
    NO_TORCH,
    NO_VARIABLES,
    ORIN,
    UBUNTU,
    VENV,
    WINDOWS,
    fine,
    hit,
    not_applicable,
    nvml,
    packages,
    torch_of,
)
from rules_support import TABLES, ask, snapshot

from gpucheck.engine import diagnose
from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.system import Pci
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Judgement

SLUG = "torch-python-unsupported"
NO_GPU = Pci(gpus=[], jetson_gpu="")


def python(**fields: Any) -> Interpreter:  # noqa: ANN401  # fields of Interpreter
    return msgspec.structs.replace(VENV, **fields)


def missing(interpreter: Interpreter, *more: Section) -> Judgement:
    return ask(SLUG, NO_TORCH, interpreter, NO_VARIABLES, packages(), *(more or (UBUNTU, NO_GPU)))


@each("version", ["3.8.20", "3.9.1", "3.12.3", "3.14.0", "3.15.0rc1"])
def test_a_python_with_wheels_of_some_release_is_fine(version: str) -> None:
    fine(missing(python(version=version)))


def test_a_free_threaded_python_counts_by_its_own_wheels() -> None:
    fine(missing(python(version="3.13.1", free_threaded=True)))
    hit(missing(python(version="3.12.1", free_threaded=True)))


def test_an_installed_torch_is_not_judged() -> None:
    fine(ask(SLUG, torch_of("2.6.0+cu124", "12.4"), python(version="3.16.0"), UBUNTU))


def test_a_python_that_is_too_new() -> None:
    answer = hit(missing(python(version="3.16.0")))
    assert "no wheel for Python 3.16; there are wheels for Python 3.6 to 3.15" in answer.headline
    assert answer.evidence == ("interpreter.version", "torch.installed")
    assert answer.confidence is Confidence.LIKELY
    make, install = answer.fixes[0].commands
    assert make == "uv venv --python 3.15 gpu-env"
    assert install == (
        "uv pip install --python gpu-env/bin/python torch==2.15.0 "
        "--index-url https://download.pytorch.org/whl/cpu"
    )
    assert answer.fixes[0].verify == "gpucheck --python gpu-env/bin/python"


def test_a_python_that_is_too_old() -> None:
    answer = hit(missing(python(version="3.5.9")))
    assert answer.confidence is Confidence.CERTAIN
    assert "--python 3.15 " in answer.fixes[0].commands[0]


def test_the_python_offered_serves_the_gpus() -> None:
    answer = hit(missing(python(version="3.16.0"), UBUNTU, nvml(GTX_1080)))
    make, install = answer.fixes[0].commands
    assert "--python 3.14 " in make
    assert "torch==2.14.1 --index-url https://download.pytorch.org/whl/cu126" in install


def test_without_a_known_driver_the_build_is_left_to_recommend() -> None:
    answer = hit(missing(python(version="3.16.0"), UBUNTU, Pci(problems={"*": "no /sys"})))
    assert answer.fixes[0].commands[1] == "gpucheck recommend --python gpu-env/bin/python"


@each(
    ("fields", "words"),
    [
        ({"bits": 32}, "a 32-bit Python"),
        ({"implementation": "pypy"}, "pypy"),
        ({"version": "3.5.9"}, "Python 3.5"),
    ],
)
def test_pythons_that_never_have_wheels(fields: dict[str, Any], words: str) -> None:
    answer = hit(missing(python(**fields), WINDOWS, NO_GPU))
    assert words in answer.headline
    assert answer.fixes


def test_conda_comes_first_in_a_conda_environment_and_windows_has_its_paths() -> None:
    answer = hit(missing(python(version="3.16.0", kind="conda")))
    assert answer.fixes[0].commands[0] == "conda create -y -p gpu-env python=3.15"
    assert answer.fixes[1].commands[0].startswith("uv venv ")
    on_windows = hit(missing(python(version="3.16.0"), WINDOWS, nvml(GTX_1080)))
    assert "gpu-env\\Scripts\\python.exe" in on_windows.fixes[0].commands[1]


def test_musl() -> None:
    alpine = msgspec.structs.replace(UBUNTU, libc="musl", glibc="", distribution="alpine")
    answer = hit(missing(VENV, alpine, NO_GPU))
    assert "musl" in answer.headline
    assert answer.fixes[0].commands == ()


def test_other_systems_are_not_judged() -> None:
    not_applicable(missing(python(version="3.6.9"), ORIN))
    power = msgspec.structs.replace(UBUNTU, machine="ppc64le")
    with pytest.raises(UnknownFactError, match="processor"):
        missing(VENV, power)


@each(
    ("machine", "version", "fits"),
    [
        ("arm64", "3.14.0", True),
        ("arm64", "3.16.0", False),
        ("x86_64", "3.12.0", True),
        ("x86_64", "3.13.0", False),
    ],
)
def test_macos_is_judged_by_its_wheels(machine: str, version: str, fits: bool) -> None:  # noqa: FBT001
    mac = msgspec.structs.replace(UBUNTU, os="macos", machine=machine, libc=None, glibc=None)
    answer = missing(python(version=version), mac)
    fine(answer) if fits else hit(answer)


@each(("torch", "fits"), [("2.9.1", True), ("2.6.0", False), ("2.12.1", False), ("2.7.0", True)])
def test_a_free_threaded_python_has_wheels_of_its_own(torch: str, fits: bool) -> None:  # noqa: FBT001
    target = python(version="3.13.5", free_threaded=True)
    answer = ask(SLUG, torch_of(torch, "12.6", path=None), UBUNTU, target)
    fine(answer) if fits else hit(answer)


def test_what_is_not_known_is_unknown() -> None:
    with pytest.raises(UnknownFactError):
        ask(SLUG)
    with pytest.raises(UnknownFactError):
        ask(SLUG, Interpreter(status="timed-out", problems={"*": "timed out"}))
    with pytest.raises(UnknownFactError):
        missing(Interpreter(status="ok"))


def test_a_wheel_that_is_only_described_is_judged_by_its_release() -> None:
    described = TorchBuild(installed=True, version="2.6.0", installer="pip")
    answer = hit(ask(SLUG, described, Interpreter(version="3.14"), UBUNTU))
    assert "torch 2.6.0 has no wheel for Python 3.14; it has wheels for Python 3.9 to 3.13" in (
        answer.headline
    )
    fine(ask(SLUG, described, Interpreter(version="3.12"), UBUNTU))
    for other in ({"installer": "conda"}, {"version": "2.6.0a0+git123"}, {"path": "/x/torch"}):
        fine(ask(SLUG, msgspec.structs.replace(described, **other), python(version="3.14"), UBUNTU))


def test_it_suppresses_torch_missing() -> None:
    target = python(version="3.16.0")
    found = diagnose(snapshot(NO_TORCH, target, NO_VARIABLES, packages(), UBUNTU, NO_GPU), TABLES)
    assert [finding.slug for finding in found.standing] == [SLUG]
    silenced = {f.slug: f.silenced_by for f in found.findings if f.silenced_by}
    assert silenced == {"torch-missing": SLUG}
