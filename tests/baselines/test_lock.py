"""Lock files, and ``recommend --like``."""

from pathlib import Path

import msgspec
import pytest
from each import each
from test_machines import TABLES, reported

from gpucheck.describe.recommend_options import RecommendRequest
from gpucheck.describe.recommending import Recommending
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch import Distribution, Interpreter, Packages, TorchBuild
from gpucheck.output import lock
from gpucheck.output.lock import LockError


def _environment(**packages: object) -> Snapshot:
    found: Snapshot = reported("selftest-passes").snapshot
    found = found.with_section(TorchBuild(installed=True, version="2.9.1", cuda="12.8"))
    found = found.with_section(Interpreter(version="3.12.3"))
    return found.with_section(Packages(**packages))  # type: ignore[arg-type]  # facts


DISTRIBUTIONS = [
    Distribution(project="torch", version="2.9.1+cu128"),
    Distribution(project="numpy", version="2.3.1"),
    Distribution(project="numpy", version="1.26.0"),  # hidden by the one before it
    Distribution(project="evil", version="1.0 --index-url=http://x"),
]


@each("tool", ["pip", "uv"])
def test_pins_are_what_an_import_takes(tool: lock.Tool) -> None:
    text = lock.text(_environment(distributions=DISTRIBUTIONS), tool)
    assert text.startswith("# gpucheck-lock/1 torch=2.9.1+cu128 python=3.12\n")
    assert [line for line in text.splitlines() if line[0] != "#"] == [
        "numpy==2.3.1",
        "torch==2.9.1",
    ]
    assert ("uv pip install" in text) == (tool == "uv")


def test_it_is_read_again() -> None:
    locked = lock.read(lock.text(_environment(distributions=DISTRIBUTIONS), "pip"))
    assert (locked.torch, locked.python) == ("2.9.1+cu128", "3.12")
    assert locked.pins == {"numpy": "2.3.1", "torch": "2.9.1"}


def test_conda_pins_builds() -> None:
    lines = ["pytorch 2.5.1 py3.12_cuda12.4_cudnn9.1.0_0 pytorch", "a;rm 1 2 3"]
    text = lock.text(_environment(distributions=[], conda_packages=lines), "conda")
    assert text.splitlines()[-1] == "pytorch=2.5.1=py3.12_cuda12.4_cudnn9.1.0_0"
    with pytest.raises(LockError, match="no packages of conda"):
        lock.text(_environment(distributions=DISTRIBUTIONS, conda_packages=[]), "conda")


def test_without_torch_or_packages_there_is_nothing_to_write() -> None:
    with pytest.raises(LockError, match="packages are unknown"):
        lock.text(_environment(), "pip")
    without = _environment(distributions=[]).with_section(TorchBuild(installed=False))
    with pytest.raises(LockError, match="no PyTorch"):
        lock.text(without, "pip")


INJECTED = "\n--index-url https://evil.example/simple\nevil-package==1.0\x1b[2J\n#"


@each("tool", ["pip", "uv", "conda"])
@each(
    ("torch", "cuda", "python"),
    [
        (f"2.9.1+cpu{INJECTED}", "12.8", "3.12.3"),
        ("2.9.1", f"12.8{INJECTED}", "3.12.3"),
        ("2.9.1", "12.8", f"3{INJECTED}.12"),
        ("2.9.1\n", "12.8", "3.12.3"),
        ("2.9.1", "12.8", "3.12\n.1"),
    ],
)
def test_no_line_of_a_foreign_report_gets_into_the_file(
    torch: str, cuda: str, python: str, tool: lock.Tool
) -> None:
    odd = _environment(distributions=DISTRIBUTIONS, conda_packages=["pytorch 2.5.1 py3.12"])
    odd = odd.with_section(TorchBuild(installed=True, version=torch, cuda=cuda))
    odd = odd.with_section(Interpreter(version=python))
    with pytest.raises(LockError, match="not those of a release") as refused:
        lock.text(odd, tool)
    assert str(refused.value).isprintable()


def test_a_package_whose_pin_is_none_is_left_out() -> None:
    odd = [
        Distribution(project=project, version=version)
        for project, version in (
            ("a", "+1"),
            ("b", "1\n-r x"),
            ("c\n-r", "1"),
            ("-r", "x"),
            ("d", "1.0-2"),
        )
    ]
    text = lock.text(_environment(distributions=odd), "pip")
    assert [line for line in text.splitlines() if line[0] != "#"] == ["d==1.0-2"]


@each("text", ["", "torch==2.9.1\n", "# gpucheck-lock/1 torch=$(id) python=3.12"])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(LockError, match="does not begin with"):
        lock.read(text)


@each("managed", [False, True])
def test_the_name_of_the_file_is_one_word_of_the_command(tmp_path: Path, managed: bool) -> None:  # noqa: FBT001
    file = tmp_path / "my lock;id.txt"
    file.write_text("# gpucheck-lock/1 torch=2.9.1+cu128 python=3.12\nnumpy==2.3.1\n")
    snapshot: Snapshot = reported("selftest-passes").snapshot
    target = msgspec.structs.replace(snapshot.get(Interpreter), externally_managed=managed)
    wish = RecommendRequest(like=str(file), gpu=(), driver="580.65.06")
    shown = Recommending(wish, TABLES, lambda: snapshot.with_section(target)).shown()
    named = [str(command) for command in (*shown.commands, *shown.notes) if "my lock" in command]
    assert len(named) == 1
    assert f"-r '{file}'" in named[0]
