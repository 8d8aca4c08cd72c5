"""Real cures of real environments, and what interrupts them."""

import contextlib
import json
import os
import pty
import random
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import msgspec
import pytest
from fix_support import (
    RIGHT,
    TORCH,
    WRONG,
    Index,
    Lab,
    lab,
    running_index,
    template,
    vision_files,
    wheel,
)

from gpucheck.fixing import carrying_out
from gpucheck.fixing import journal as journals
from gpucheck.fixing.journal import Journal, JournalStep
from gpucheck.fixing.permitted import Place, runnable
from gpucheck.programs.schema import schema

pytestmark = pytest.mark.process

BROKEN = {"torch": TORCH, "torchvision": f"{WRONG}+cpu"}
CURED = {"torch": TORCH, "torchvision": f"{RIGHT}+cpu"}
SLOW = 20.0


@pytest.fixture(scope="session")
def template_of_lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template(tmp_path_factory.mktemp("template") / "venv")


@pytest.fixture
def index() -> Iterator[Index]:
    with running_index() as found:
        yield found


@pytest.fixture
def broken(template_of_lab: Path, tmp_path: Path, index: Index) -> Lab:
    """Return an environment whose torchvision does not belong to its torch; its path is hostile."""
    return lab(template_of_lab, tmp_path / "my env's $(x)", index)


def test_a_cure_and_the_way_back(broken: Lab) -> None:
    before = broken.contents()
    ran = broken.fix("--yes", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    jsonschema.validate(document, schema("fix"))
    assert document["result"]["gone"] == ["torch-companion-mismatch"]
    assert [step["status"] for step in document["steps"]] == ["done"]
    assert broken.versions() == CURED
    assert broken.imports()
    state = Path(document["state"])
    pip = [str(broken.python), "-m", "pip", "freeze", "--all"]
    after = subprocess.run(pip, capture_output=True, text=True, check=True).stdout
    assert (state / "freeze-after.txt").read_text() == after
    ran = broken.fix("--undo")
    assert ran.returncode == 0, ran.stderr
    assert broken.contents() == before
    assert broken.imports()
    assert broken.fix("--undo").returncode == 2


def test_without_a_terminal_nothing_is_run(broken: Lab) -> None:
    before = broken.contents()
    ran = broken.fix()
    assert ran.returncode == 2
    assert "Nothing was run" in ran.stderr
    assert "torchvision==" in ran.stdout
    assert broken.contents() == before
    assert broken.states() == []


def test_a_pip_that_fails_half_way_is_taken_back_if_torch_was_lost(broken: Lab) -> None:
    # The step removes torchvision and installs another one, which brings a torch that is none.
    before = broken.contents()
    broken.index.wheels = {
        "torch-2.6.1+cpu-py3-none-any.whl": wheel(
            "torch", "2.6.1+cpu", {"torch/__init__.py": "raise ImportError('broken')\n"}
        ),
        f"torchvision-{RIGHT}+cpu-py3-none-any.whl": wheel(
            "torchvision", f"{RIGHT}+cpu", vision_files(RIGHT), "torch (==2.6.1)"
        ),
    }
    ran = broken.fix("--yes")
    assert "torch could be imported before, and now it cannot" in " ".join(ran.stdout.split())
    assert "Everything was put back" in ran.stdout
    assert ran.returncode == 1
    assert broken.contents() == before


def test_a_pip_that_fails_leaves_the_way_back(broken: Lab) -> None:
    before = broken.contents()
    broken.index.fails = True
    ran = broken.fix("--yes")
    assert ran.returncode == 0, ran.stdout  # without a torchvision nothing is wrong
    assert "Step 1 failed" in ran.stdout
    assert "--undo" in ran.stdout
    assert broken.versions() == {"torch": TORCH}
    assert broken.fix("--undo").returncode == 0
    assert broken.contents() == before


@contextlib.contextmanager
def at_a_terminal(lab: Lab, *words: str) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        lab.command(*words), env=lab.env(), stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield ours, process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(terminal: int, words: str) -> str:
    printed, end = "", time.monotonic() + SLOW
    while words not in printed and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                printed += os.read(terminal, 65536).decode()
            except OSError:  # the other side is closed
                break
    assert words in printed, printed
    return printed


def test_a_step_that_is_declined_is_not_run(broken: Lab) -> None:
    with at_a_terminal(broken) as (terminal, process):
        read_until(terminal, "[y/n/q]")
        os.write(terminal, b"n\n")
        assert process.wait(SLOW) == 1
    assert broken.versions() == BROKEN
    assert broken.states() == []


def test_a_finding_that_stays_is_told_and_the_way_back_offered(broken: Lab) -> None:
    before = broken.contents()
    name = f"torchvision-{RIGHT}+cpu-py3-none-any.whl"
    broken.index.wheels[name] = wheel(
        "torchvision", f"{RIGHT}+cpu", vision_files(RIGHT), "torch (>=2.1,!=2.5)"
    )
    with at_a_terminal(broken, "--only", "torch-missing") as (terminal, process):
        read_until(terminal, "[y/n/q]")
        broken.index.wheels[name] = wheel(
            "torchvision", f"{RIGHT}+cpu", vision_files(RIGHT), "torch (==2.6.0)"
        )
        os.write(terminal, b"y\n")
        # Somebody makes it wrong again before the second check.
        while broken.versions().get("torchvision") != f"{RIGHT}+cpu" and process.poll() is None:
            time.sleep(0.01)
        metadata = broken.site / f"torchvision-{RIGHT}+cpu.dist-info/METADATA"
        while "2.6.0" not in (metadata.read_text() if metadata.exists() else ""):
            time.sleep(0.01)
        text = metadata.read_text().replace("2.6.0", "2.1.0")
        metadata.write_text(text)
        printed = read_until(terminal, "[y/n]")
        assert "did not work out" in printed
        os.write(terminal, b"y\n")
        read_until(terminal, "Everything was put back")
        assert process.wait(SLOW) == 1
    assert broken.contents() == before


def test_ctrl_c_says_where_it_stopped_and_how_to_go_on(broken: Lab) -> None:
    broken.index.delay = 1.0
    process = subprocess.Popen(
        broken.command("--yes"), env=broken.env(), stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    end = time.monotonic() + SLOW
    while broken.versions() != {"torch": TORCH} and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _out, errors = process.communicate(timeout=SLOW)
    assert process.returncode == 130
    assert "interrupted in step 1" in errors
    assert "gpucheck fix --continue" in errors
    broken.index.delay = 0.0
    again = broken.fix("--yes")
    assert again.returncode == 2
    assert "gpucheck fix --undo" in again.stderr
    gone_on = broken.fix("--continue")
    assert gone_on.returncode == 0, gone_on.stderr
    assert broken.versions() == CURED
    assert broken.imports()


def journal_of(lab: Lab) -> Journal:
    """Return a plan as the command makes it."""
    place = Place(
        python=str(lab.python), prefix=str(lab.prefix), packages=(str(lab.site),),
        scripts=str(lab.prefix / "bin"), home=str(lab.prefix / ".gpucheck"), kind="venv",
    )  # fmt: skip
    texts = (
        shlex.join([str(lab.python), "-m", "pip", "uninstall", "-y", "torchvision"]),
        shlex.join([str(lab.python), "-m", "pip", "install", f"torchvision=={RIGHT}"]),
    )
    found = [runnable(text, place) for text in texts]
    commands = tuple(command for command in found if command is not None)
    return Journal(
        place=place, steps=[JournalStep(slugs=("x",), text="x", changes=(), commands=commands)]
    )


MOMENTS = [0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0, 1.2, 1.5]
"""Seconds after the state is kept: pip removes, then installs."""


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment(broken: Lab, tmp_path: Path, moment: float) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, content in broken.index.wheels.items():
        (wheels / name).write_bytes(content)
    before = broken.contents()
    plan = tmp_path / "plan.json"
    plan.write_bytes(msgspec.json.encode(journal_of(broken)))
    env = broken.env(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("one_run.py")), str(plan)],
        env=env, stdout=subprocess.PIPE, start_new_session=True, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    if moment:
        assert process.stdout.readline() == "kept\n"
    time.sleep(moment * random.uniform(0.9, 1.1))  # noqa: S311  # no secret
    process.kill()
    process.wait()
    process.stdout.close()
    place = journal_of(broken).place
    # A power cut ends pip as well; a kill of gpucheck lets it end by itself.
    if MOMENTS.index(moment) % 2:
        kill_those_in(broken.prefix)
    end = time.monotonic() + SLOW
    while (lock := carrying_out.lock_of(place)) is None and time.monotonic() < end:
        time.sleep(0.05)
    assert lock is not None
    found = journals.unfinished(place)
    if found is None:  # nothing was begun, or all was done
        assert broken.versions() in (BROKEN, CURED)
    elif MOMENTS.index(moment) % 3:
        carrying_out.go_back(*found)
        assert broken.contents() == before
    else:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            carrying_out.go_back(*found)
            carrying_out.start_again(*found)
            carrying_out.carry_out(*found, lock, None)
        assert broken.versions() == CURED
    lock.close()
    assert broken.imports()


def kill_those_in(prefix: Path) -> None:
    """Kill what runs with the Python of an environment."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if str(prefix).encode() in (entry / "cmdline").read_bytes().split(b"\0")[0]:
                os.kill(int(entry.name), signal.SIGKILL)
