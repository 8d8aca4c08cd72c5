"""standard-module-hidden: a file of the user that Python takes for a standard module."""

from pathlib import Path

import pytest
from each import each
from rule_facts import CPU_TORCH, LINUX, hit, quiet
from rules_support import ask

from gpucheck.facts.claims import Severity
from gpucheck.facts.torch import Interpreter
from gpucheck.findings.form import Judgement
from gpucheck.machine import LiveHost
from gpucheck.probes.interpreter import hiding_modules

SLUG = "standard-module-hidden"


def judge(*paths: str) -> Judgement:
    return ask(SLUG, LINUX, CPU_TORCH, Interpreter(status="ok", hiding_modules=list(paths)))


def test_a_file_that_hides_a_module() -> None:
    found = hit(judge("/work/random.py", "/work/logging"))
    assert "/work/random.py hides the standard module" in found.headline
    assert found.severity in (None, Severity.WARNING)
    assert found.fixes[0].commands == (
        "mv /work/random.py /work/my_random.py", "mv /work/logging /work/my_logging",
    )  # fmt: skip


def test_nothing_hides_one() -> None:
    quiet(judge())


def looked(folder: Path, monkeypatch: pytest.MonkeyPatch, *before: str) -> list[str]:
    monkeypatch.chdir(folder)
    found = hiding_modules(LiveHost(), [*before, str(folder), "/usr/lib/python3.11"]).value
    return [Path(path).name for path in found or ()]


def with_files(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_files_and_packages_beside_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_files(tmp_path, "train.py", "random.py", "logging/__init__.py", "json/data.txt")
    assert looked(folder, monkeypatch) == ["logging", "random.py"]


@each(
    "names",
    [
        ("random.py",),
        ("train.py", "random.py", "__init__.py"),
        ("train.py", "turtle.py", "utils.py", "types.txt"),
        ("train.py", "ast.py", "glob.py", "json.py", "random.py"),
    ],
    ids=["no other program", "a package", "other names", "a copy of the library"],
)
def test_what_is_fine(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert looked(with_files(tmp_path, *names), monkeypatch) == []


def test_a_folder_where_python_does_not_look_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_files(tmp_path, "train.py", "random.py")
    assert looked(folder, monkeypatch, "/usr/lib/python311.zip") == []
