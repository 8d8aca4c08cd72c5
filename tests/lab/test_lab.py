"""Every fix that gpucheck prints for a broken environment mends it, run as it stands.

Each environment is shown to be broken by a plain Python, named by gpucheck, mended by the printed
commands in one shell of the user, and shown to be well by a plain Python and by gpucheck.
"""

import shutil
import subprocess  # environments are made, and commands run as pasted
import sys
from collections.abc import Iterator
from pathlib import Path

import broken
import pytest
import stand_ins
from bench import SHOW, Bench, ask
from stand_ins import Index

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs cc"),
]
_INSTALLED, _NEWEST = "2.9.1", "2.15.0"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an index with stand-ins for PyTorch's wheels."""
    folder = tmp_path_factory.mktemp("index")
    made = Index(folder)
    libraries = tmp_path_factory.mktemp("libraries")
    for wheel in stand_ins.needed(libraries):
        made.add(wheel, "", "cpu")
    for version in (_INSTALLED, _NEWEST):
        made.add(stand_ins.torch(libraries, f"{version}+cpu"), "cpu")
    for version, torch in (("0.24.1", "2.9.1"), ("0.22.0", "2.7.0")):
        made.add(stand_ins.companion("torchvision", version, torch), "", "cpu")
    with stand_ins.served(made) as found:
        yield found.address.removesuffix("/simple")


@pytest.fixture(scope="module")
def template(index: str, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """An environment with torch 2.9.1 for the CPU, in which all is well."""
    bench = Bench(tmp_path_factory.mktemp("template"), index)
    bench.home.mkdir()
    bench.work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(bench.prefix)], check=True)
    bench.pip("install", f"torch=={_INSTALLED}", "--index-url", f"{index}/whl/cpu")
    return bench


def _show(bench: Bench, case: broken.Broken) -> str:
    """Return the line that runs a script of the user in the folder of the user's work."""
    (bench.work / "show.py").write_text(case.shows.replace("; ", "\n") + "\n")
    return f"{bench.python} show.py && echo all-is-well"


def test_the_environment_is_well_before_it_is_broken(template: Bench) -> None:
    assert ask(template, "--gpus 0").causes == ("none",)
    assert "2.9.1+cpu" in template.shell(f'{template.python} -c "{SHOW}"').stdout


@pytest.mark.parametrize("case", broken.ALL, ids=[case.name for case in broken.ALL])
def test_what_is_printed_mends_it(case: broken.Broken, template: Bench, tmp_path: Path) -> None:
    bench = Bench.copy_of(template, tmp_path / case.name)
    case.breaks(bench)
    show = _show(bench, case)
    assert "all-is-well" not in bench.shell(show).stdout

    printed = ask(bench, "--gpus 0")
    assert printed.causes[:1] == (case.slug,), printed.text
    commands = printed.commands()
    assert commands, printed.text

    done = bench.shell(*commands, show)
    assert "all-is-well" in done.stdout, f"{printed.text}{done.stdout}"
    settings = [line for line in commands if line.startswith(("export ", "unset "))]
    after = ask(bench, "--gpus 0", after=settings)
    assert (after.status, after.causes) == (0, ("none",)), after.text
