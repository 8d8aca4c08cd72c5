"""Every fix that gpucheck prints for a broken environment mends it, run as it stands.

Each environment is shown to be broken by a plain Python, named by gpucheck, mended by the printed
commands in one shell of the user, and shown to be well by a plain Python and by gpucheck. Then
``gpucheck fix`` mends those that it may change, also that in which gpucheck itself is installed.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import broken
import click
import kinds
import msgspec
import pynvml
import pytest
from _pytest.mark import ParameterSet
from bench import SHOW, Bench, ask, can_mount
from surroundings import broken_bench, folder_of_all, indexed, settings, show, template_of

import gpucheck
import packaging

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs cc"
)
_VARIANTS = frozenset((
    "init-gone", "compiled-module-gone", "libraries-gone", "library-empty", "compiled-module-cut",
    "typing-extensions-file-gone", "typing-extensions-removed", "jinja2-removed",
    "filelock-folder-gone", "pythonpath-of-two", "own-torch-folder", "own-typing-py",
    "own-logging-folder", "cc-nonsense", "cc-and-cxx", "conda-requirement-gone",
    "debian-requirement-gone", "uv-torch-missing", "torchaudio", "cudnn-wheel-removed",
    "cudnn-file-gone", "hidden-by-minus-one", "no-such-gpu", "triton-of-another-release",
    "python-3.8", "cudart-cut",
))  # fmt: skip
"""Environments much like another one: each takes seconds, so only ``pytest -m gate`` has them."""
_BY_FIX = (
    "package-gone", "init-gone", "compiled-module-gone", "library-gone", "library-empty",
    "pip-was-interrupted", "never-installed", "typing-extensions-gone", "typing-extensions-old",
    "sympy-gone", "two-removed", "torchvision-of-another-torch", "metadata-of-two",
    "late-library-gone", "no-setuptools", "blanks-in-the-path", "conda-package-gone",
    "uv-package-gone", "pip-missing", "constraint", "torchaudio", "xformers", "cudnn-wheel-gone",
    "cudart-removed", "triton-gone", "onnxruntime-over-gpu",
)  # fmt: skip
_CASES = [breakage for breakage in broken.ALL if breakage.name in _BY_FIX]


def _in_tier(case: broken.Broken) -> ParameterSet:
    tier = pytest.mark.gate if case.name in _VARIANTS else pytest.mark.process
    return pytest.param(case, id=case.name, marks=tier)


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an index with stand-ins for PyTorch's wheels."""
    with indexed(tmp_path_factory.mktemp("index")) as address:
        yield address


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of environments in which all is well, by kind; those that were asked for."""
    return folder_of_all(tmp_path_factory)


@pytest.mark.process
def test_each_kind_is_well_before_it_is_broken(index: str, templates: Path, tmp_path: Path) -> None:
    for kind in kinds.KINDS:
        bench = Bench.copy_of(template_of(kind, index, templates), tmp_path / kind)
        assert ask(bench, "--gpus 0").causes == ("none",), kind
        assert "2.9.1" in bench.shell(f'{bench.python} -c "{SHOW}"').stdout


@pytest.mark.process
def test_the_kernel_log_is_that_of_the_bench(index: str, templates: Path, tmp_path: Path) -> None:
    bench = Bench.copy_of(template_of("cpu", index, templates), tmp_path / "cpu")
    if not can_mount():
        pytest.skip("needs mount namespaces")
    seconds = Path("/proc/uptime").read_text().partition(".")[0]
    killed = "Out of memory: Killed process 41220 (python3) total-vm:91234120kB, anon-rss:602kB"
    bench.kernel_log = f"3,2,{seconds}000000,-;{killed}, UID:0 oom_score_adj:0\n"
    assert ask(bench, "--gpus 0").causes == ("host-out-of-memory",)


@pytest.mark.parametrize("case", [_in_tier(case) for case in broken.ALL])
def test_what_is_printed_mends_it(
    case: broken.Broken, index: str, templates: Path, tmp_path: Path
) -> None:
    bench = broken_bench(case, template_of(case.kind, index, templates), tmp_path)
    assert "all-is-well" not in bench.shell(show(bench, case)).stdout

    printed = ask(bench, *case.options)
    assert printed.causes[:1] == (case.slug,), printed.text
    commands = printed.commands()
    assert commands, printed.text

    done = bench.shell(*commands, show(bench, case, printed.new_python()))
    assert "all-is-well" in done.stdout, f"{printed.text}{done.stdout}"
    after = ask(bench, *case.options, after=settings(commands), python=printed.new_python())
    assert (after.status, after.causes) == (0, ("none",)), after.text


def fixed(bench: Bench, program: str, *options: str) -> str:
    """Let ``gpucheck fix`` work without asking; return what it said, and its status."""
    target = shlex.quote(str(bench.prefix))
    words = f"{program} fix --yes --python {target} --wheel-mirror {bench.index}/whl"
    return bench.shell(f"{words} {' '.join(options)}; echo status=$?").stdout


def test_twenty_are_mended_by_gpucheck_fix() -> None:
    assert len(_CASES) == len(_BY_FIX) >= 20


@pytest.mark.gate
@pytest.mark.parametrize("case", _CASES, ids=[case.name for case in _CASES])
def test_gpucheck_fix_mends_them(
    case: broken.Broken, index: str, templates: Path, tmp_path: Path
) -> None:
    bench = broken_bench(case, template_of(case.kind, index, templates), tmp_path)
    assert "all-is-well" not in bench.shell(show(bench, case)).stdout
    outcome = fixed(bench, "gpucheck", *case.options)
    assert outcome.endswith("status=0\n"), outcome
    assert "all-is-well" in bench.shell(show(bench, case)).stdout


@pytest.mark.gate
def test_gpucheck_fix_mends_the_environment_that_it_is_installed_in(
    index: str, templates: Path, tmp_path: Path
) -> None:
    case = next(breakage for breakage in broken.ALL if breakage.name == "typing-extensions-gone")
    bench = broken_bench(case, template_of(case.kind, index, templates), tmp_path)
    for module in (gpucheck, click, msgspec, packaging):
        folder = Path(module.__file__ or "").parent
        shutil.copytree(folder, bench.site / folder.name, copy_function=os.link)
    shutil.copy2(pynvml.__file__, bench.site)
    tables = Path(gpucheck.__file__).parents[2] / "compat_tables"
    program = f"GPUCHECK_TABLES={shlex.quote(str(tables))} {bench.python} -m gpucheck"
    outcome = fixed(bench, program, *case.options)
    assert outcome.endswith("status=0\n"), outcome
    assert "all-is-well" in bench.shell(show(bench, case)).stdout
    back = bench.shell(f"{program} fix --undo --python {bench.prefix}; echo status=$?").stdout
    assert back.endswith("status=0\n"), back
    assert "all-is-well" not in bench.shell(show(bench, case)).stdout
