"""Environments of the lab with PyTorch's own wheels, which are mended by what is printed, too.

Each takes half a minute and a gigabyte, so this is for a nightly run, from a folder of wheels:

    pip download --dest WHEELS torch==2.13.0
    pip download --dest WHEELS --no-deps typing-extensions==4.5.0
    GPUCHECK_LAB_WHEELS=WHEELS pytest -m gate tests/lab/test_lab_real.py
"""

import dataclasses
import os
import re
import shutil
import subprocess  # a virtual environment is made
import sys
from collections.abc import Iterator
from pathlib import Path

import broken
import pytest
from bench import Bench, ask
from index_server import Reply, index_of
from surroundings import broken_bench, settings, show

WHEELS = os.environ.get("GPUCHECK_LAB_WHEELS", "")
TORCH = "2.13.0"
CASES = (
    "package-gone", "init-gone", "compiled-module-gone", "library-gone", "libraries-gone",
    "library-empty", "library-cut", "compiled-module-cut", "pip-was-interrupted",
    "typing-extensions-gone", "typing-extensions-file-gone", "typing-extensions-removed",
    "sympy-gone", "metadata-of-two", "own-torch-py", "own-random-py", "zip-on-pythonpath",
    "late-library-gone", "constraint", "blanks-in-the-path",
)  # fmt: skip
_SHOWS = {
    # The real release imports it when an optimizer is made, the stand-in with torch.optim.
    "sympy-gone": "import torch; torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)",
}
_BY_NAME = {
    case.name: dataclasses.replace(case, shows=_SHOWS.get(case.name, case.shows))
    for case in broken.ALL
}

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(not WHEELS, reason="GPUCHECK_LAB_WHEELS names no folder of wheels"),
]


def _project(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _answer(path: str) -> Reply:
    """Answer pip for ``/simple`` and for the index of each build, which have the same files."""
    words = [word for word in path.replace("%2B", "+").partition("?")[0].split("/") if word]
    files = {wheel.name: wheel for wheel in Path(WHEELS).glob("*.whl")}
    if words[0] == "files":
        return 200, {}, files[words[-1]].read_bytes()
    found = [file for file in files if _project(file.partition("-")[0]) == _project(words[-1])]
    links = [f'<a href="/files/{file.replace("+", "%2B")}">{file}</a><br/>' for file in found]
    page = "\n".join(["<!DOCTYPE html>", *links]).encode()
    return (200, {"Content-Type": "text/html"}, page) if found else (404, {}, b"")


@pytest.fixture(scope="module", name="template")
def the_template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """An environment with PyTorch's wheel for the CPU, in which all is well."""
    with index_of(_answer) as served:
        address = served.address.removesuffix("/simple")
        bench = Bench(tmp_path_factory.mktemp("real") / "template", address)
        bench.home.mkdir(parents=True)
        bench.work.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(bench.prefix)], check=True)
        bench.pip("install", f"torch=={TORCH}", "--index-url", f"{address}/whl/cpu")
        yield bench


def test_all_is_well_before_it_is_broken(template: Bench) -> None:
    assert ask(template, "--gpus 0").causes == ("none",)


@pytest.mark.parametrize("name", CASES)
def test_what_is_printed_mends_the_real_one(name: str, template: Bench, tmp_path: Path) -> None:
    case = _BY_NAME[name]
    bench = broken_bench(case, template, tmp_path)
    assert "all-is-well" not in bench.shell(show(bench, case)).stdout

    printed = ask(bench, *case.options)
    assert printed.causes[:1] == (case.slug,), printed.text
    commands = printed.commands()
    done = bench.shell(*commands, show(bench, case, printed.new_python()), seconds=300)
    assert "all-is-well" in done.stdout, f"{printed.text}{done.stdout}"
    after = ask(bench, *case.options, after=settings(commands), python=printed.new_python())
    assert (after.status, after.causes) == (0, ("none",)), after.text
    shutil.rmtree(bench.folder)  # the next one needs the room
