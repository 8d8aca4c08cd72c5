"""The same facts give the same command, whoever asks: check, compat, recommend, lint and triage.

Over the whole product of GPU, driver, platform, Python and installed build, also with facts left
out. `check` judges what `compat` describes, by the same rules: its fixes are those of `compat`.
"""

import itertools
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

import machine_files
import msgspec
import pytest
import test_machines

from gpucheck import compat, recommend, triage
from gpucheck.advice.recommender import Card, Recommender, Situation
from gpucheck.describe.files.complaint import FileTarget
from gpucheck.describe.files.lint import lint
from gpucheck.engine import Report
from gpucheck.facts.torch import Interpreter
from gpucheck.programs.results import CheckReport
from gpucheck.tables import Tables
from gpucheck.tables.torch import TorchBuilds

pytestmark = pytest.mark.exhaustive

Tool = Literal["pip", "uv", "conda"]

EVERY = 17
"""A prime: each value of each fact has its turn."""
GPUS = {
    "Tesla K80": "3.7", "Tesla P100-PCIE-16GB": "6.0", "Tesla V100-SXM2-16GB": "7.0",
    "Tesla T4": "7.5", "NVIDIA A100-SXM4-80GB": "8.0", "NVIDIA GeForce RTX 4090": "8.9",
    "NVIDIA H100 80GB HBM3": "9.0", "NVIDIA B200": "10.0", "NVIDIA GeForce RTX 5090": "12.0",
}  # fmt: skip
DRIVERS = (None, "470.256.02", "525.147.05", "550.144.03", "570.172.08", "580.95.05", "595.71.05")
PLATFORMS = (("linux", "x86_64"), ("linux", "aarch64"), ("windows", "x86_64"))
PYTHONS = (None, "3.9.18", "3.12.3", "3.14.0")
BUILDS = (
    "1.13.1+cu117", "2.4.0+cu121", "2.6.0+cu118", "2.8.0+cu129", "2.9.1+cu130", "2.15.0+cu132",
    "2.7.1+cpu",
)  # fmt: skip
INSTALLS = frozenset(
    ["driver-too-old", "gpu-too-new-for-torch", "gpu-too-old-for-torch", "torch-cpu-only"]
)


class Facts(NamedTuple):
    gpu: str
    driver: str | None
    platform: tuple[str, str]
    python: str | None
    torch: str


def product() -> list[Facts]:
    every = itertools.product(GPUS, DRIVERS, PLATFORMS, PYTHONS, BUILDS)
    return [Facts(*facts) for facts in itertools.islice(every, 0, None, EVERY)]


@cache
def tables() -> Tables:
    return Tables()


def described(facts: Facts) -> CheckReport:
    given = {"gpu": facts.gpu, "os": facts.platform[0], "arch": facts.platform[1]}
    optional = {"driver": facts.driver, "python": facts.python, "torch": facts.torch}
    return compat({**given, **{key: value for key, value in optional.items() if value}})


def pasted(facts: Facts) -> CheckReport:
    """Return what triage says of the same facts in collect_env's form."""
    _torch, _, build = facts.torch.partition("+")
    cuda = "None" if build == "cpu" else f"{build[2:-1]}.{build[-1]}"
    windows = facts.platform[0] == "windows"
    system = "Microsoft Windows 11 Pro" if windows else f"Ubuntu 22.04.4 LTS ({facts.platform[1]})"
    kernel = (
        "Windows-10-10.0.22631-SP0"
        if windows
        else (f"Linux-5.15.0-105-generic-{facts.platform[1]}-with-glibc2.35")
    )
    lines = [
        "Collecting environment information...",
        f"PyTorch version: {facts.torch}",
        f"CUDA used to build PyTorch: {'Could not collect' if cuda == 'None' else cuda}",
        f"OS: {system}",
        *(["Libc version: glibc-2.35"] if not windows else []),
        *([f"Python version: {facts.python} (main) (64-bit runtime)"] if facts.python else []),
        f"Python platform: {kernel}",
        "Is CUDA available: False",
        f"GPU models and configuration: GPU 0: {facts.gpu}",
        f"Nvidia driver version: {facts.driver or 'Could not collect'}",
    ]
    return triage("\n".join(lines) + "\n")


def installed(commands: Iterator[str] | list[str] | tuple[str, ...]) -> list[str] | None:
    """Return what pip is told to install of PyTorch, without how it is called; None if nothing."""
    for command in commands:
        words = shlex.split(command, posix=False)
        if "install" in words:
            arguments = words[words.index("install") + 1 :]
            if any(word.startswith("torch==") for word in arguments):
                return arguments
    return None


def advised(report: Report) -> tuple[str, list[list[str]]]:
    """Return the root cause, and what its fixes install, each once."""
    if not report.root_causes or report.root_causes[0] not in INSTALLS:
        return "", []
    cause = next(finding for finding in report.findings if finding.slug == report.root_causes[0])
    installs = (installed(fix.commands) for fix in cause.fixes)
    return cause.slug, [words for words in installs if words and not words[-1].endswith("/cpu")]


def recommended(facts: Facts, release: str, tool: Tool = "pip") -> list[list[str]]:
    """Return what ``recommend`` says: one command, or one for each span of drivers."""
    found = recommend(
        torch=release,
        gpu=facts.gpu,
        driver=facts.driver,
        python_version=facts.python and ".".join(facts.python.split(".")[:2]),
        os=facts.platform[0],  # type: ignore[arg-type]
        arch=facts.platform[1],  # type: ignore[arg-type]
        glibc="2.35" if facts.platform[0] == "linux" else None,
        tool=tool,
    )
    several = [installed(choice.commands) for choice in found.choices]
    return [words for words in (installed(found.commands), *several) if words]


def linted(facts: Facts) -> tuple[str, list[str]]:
    """Return the first cause that lint finds in a file with this build, and what it says."""
    torch, _, build = facts.torch.partition("+")
    text = f"--index-url https://download.pytorch.org/whl/{build}\ntorch=={torch}\n"
    python = facts.python and ".".join(facts.python.split(".")[:2])
    target = FileTarget(gpus=(facts.gpu,), driver=facts.driver or "", python=python or "")
    found = lint("requirements.txt", text.encode(), target, tables()).complaints
    for complaint in found:
        if complaint.rule in INSTALLS:
            return complaint.rule, complaint.fix.partition(" Write: ")[2].split()
    return "", []


def without_index(words: list[str]) -> list[str]:
    """A described machine may install from PyPI; in a fix the index is always named."""
    return [word for word in words if word.startswith("torch==")]


def agrees(fixes: list[list[str]], answers: list[list[str]]) -> bool:
    if len(fixes) != len(answers):
        return False
    for fix, answer in zip(fixes, answers, strict=True):
        if without_index(fix) != without_index(answer):
            return False
        if "--index-url" in answer and fix != answer:
            return False
    return True


def test_compat_triage_and_recommend_give_the_same_command() -> None:
    differences, compared, in_files = [], 0, 0
    for facts in product():
        given, read = described(facts), pasted(facts)
        cause, fixes = advised(given)
        if not cause:
            continue
        compared += 1
        release = f"=={facts.torch.partition('+')[0]}"
        answers = recommended(facts, release) or recommended(facts, "")
        if fixes and fixes[0][0] == "--python":  # an environment with another Python
            whatever = recommended(facts._replace(python=None), "")
            if without_index(fixes[0]) not in map(without_index, whatever):
                differences.append(f"{facts}: compat {cause} {fixes}, recommend {whatever}")
        elif not agrees(fixes, answers):
            differences.append(f"{facts}: compat {cause} {fixes}, recommend {answers}")
        # Where compat installs nothing, the driver does not know the GPU. collect_env lists it by
        # this driver, which says the opposite.
        if (fixes or facts.driver is None) and advised(read) != (cause, fixes):
            differences.append(f"{facts}: compat {cause} {fixes}, triage {advised(read)}")
        # A file of requirements is judged for x86_64, and the Python is not part of what it asks.
        if facts.platform == ("linux", "x86_64") and facts.python is None and fixes:
            in_files += 1
            if linted(facts) != (cause, fixes[0]):
                differences.append(f"{facts}: compat {cause} {fixes}, lint {linted(facts)}")
    assert in_files > 5
    assert compared > 80
    assert differences == []


def test_each_step_of_an_answer_without_a_driver_is_the_answer_with_that_driver() -> None:
    recommender = Recommender(tables())
    capabilities = sorted(set(GPUS.values()))
    platforms = sorted({row.platform for row in tables().get(TorchBuilds).rows})
    steps = 0
    for platform, capability, python in itertools.product(
        platforms, capabilities, (None, "3.9", "3.12", "3.14t")
    ):
        asked = Situation(platform=platform, python=python, cards=(Card("GPU", capability),))
        for choice in recommender.recommend(asked).by_driver:
            steps += 1
            there = Situation(
                platform=platform, python=python, cards=asked.cards, driver=choice.driver
            )
            assert recommender.recommend(there).best == choice.offer, (asked, choice)
    assert steps > 60


def for_pip(words: list[str]) -> list[str]:
    """Return what another tool installs as pip is told it."""
    words = words[2:] if words[:1] == ["--python"] else words
    beside = ["--index-strategy", "unsafe-best-match", "--index"]
    if beside[0] in words:
        at = words.index(beside[0])
        words = [*words[:at], "--extra-index-url", *words[at + len(beside) :]]
    return ["--index-url" if word == "--default-index" else word for word in words]


def test_uv_is_told_to_install_what_pip_is() -> None:
    """Conda is told of conda-forge's own builds: tests/describe/test_conda_offers.py."""
    compared = 0
    for facts in product():
        release = f"=={facts.torch.partition('+')[0]}"
        wanted = recommended(facts, release)
        compared += bool(wanted)
        assert [for_pip(words) for words in recommended(facts, release, "uv")] == wanted, facts
    assert compared > 40


def test_check_tells_uv_to_install_what_it_tells_pip() -> None:
    compared = 0
    for name in machine_files.names():
        report = test_machines.reported(name)
        cause, by_pip = advised(report)
        python = report.snapshot.get(Interpreter)
        if not by_pip or python.kind in ("uv", "conda") or python.externally_managed:
            continue
        compared += 1
        by_another = msgspec.structs.replace(python, kind="uv", has_pip=False)
        again = test_machines.judged(report.snapshot.with_section(by_another))
        assert advised(again)[0] == cause, name
        for advised_words, words in zip(advised(again)[1], by_pip, strict=True):
            # uv does not read the index in pip's configuration, so it is named.
            assert for_pip(advised_words)[: len(words)] == words, name
    assert compared > 10
