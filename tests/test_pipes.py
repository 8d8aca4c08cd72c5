"""A pipe that nobody uses, and a file without an end, are refused; none of them is waited for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from each import each

SOURCE = Path(__file__).resolve().parent.parent / "src"
IMPATIENT = """
import sys
from gpucheck.cli import main, preflight_history
from gpucheck.cli.commands import compat
from gpucheck.facts import streams
streams.WAIT = 0.2
compat._BATCH_LIMIT = preflight_history._LARGEST = 8 << 20
sys.argv[0] = "gpucheck"
main()
"""
pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(os.name != "posix", reason="pipes and devices of Unix"),
]


def run(*words: str, script: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a command that waits 0.2 s for the other end of a pipe and takes 8 MiB for large."""
    own = [sys.executable, "-c", IMPATIENT, *words]
    return subprocess.run(
        ["/bin/bash", "-c", script, *own] if script else own,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@each(
    "words",
    [
        ("recommend", "--like", "{}"),
        ("compat", "--facts", "{}"),
        ("compat", "--batch", "{}"),
        ("diff", "{}", "{}"),
        ("preflight", "--history", "{}"),
        ("preflight", "--device", "cpu", "--ranks", "1", "--require", "{}"),
        ("triage", "{}"),
    ],
)
def test_a_pipe_without_a_writer_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ran = run(*(word.format(pipe) for word in words))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "it is a pipe, and nothing was written to it for 0.2 s" in " ".join(ran.stderr.split())


def test_a_report_for_a_pipe_without_a_reader_is_printed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ran = run("explain", "gpu-slow", "-o", str(pipe))
    assert ran.returncode == 2
    assert ran.stdout.startswith("gpu-slow")
    assert "it is a pipe, and nobody read from it for 0.2 s. It was printed" in ran.stderr


def test_pipes_of_a_shell_are_read_and_written(tmp_path: Path) -> None:
    facts = json.dumps({"torch": "2.6.0", "driver": "470.82"})
    batch = json.dumps({"id": "a", "facts": json.loads(facts)})
    for given, words in ((facts, "compat --facts"), (batch, "compat --batch")):
        printed = run(script=f'"$0" "$@" {words} <(echo \'{given}\')').stdout
        assert "driver-too-old" in printed
        printed = run(script=f'echo \'{given}\' | "$0" "$@" {words} /dev/stdin').stdout
        assert "driver-too-old" in printed
    saved = tmp_path / "out"
    run(script=f'"$0" "$@" explain gpu-slow -o >(cat >{saved}); wait $!')
    assert saved.read_text(encoding="utf-8").startswith("gpu-slow")
    os.mkfifo(tmp_path / "named")
    printed = run(
        script=f'cd {tmp_path}; cat named & "$0" "$@" explain gpu-slow -o named; wait'
    ).stdout
    assert printed.startswith("gpu-slow")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a device of Unix")
@pytest.mark.parametrize("words", [("compat", "--batch"), ("preflight", "--history")])
def test_a_file_without_an_end_is_larger_than_allowed(words: tuple[str, ...]) -> None:
    ran = run(*words, "/dev/zero")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "is larger than 8 MiB" in ran.stderr


@each(
    "words",
    [
        ("--help",),
        ("--lang", "zh", "--help"),
        ("--version",),
        ("list",),
        ("list", "--format", "json"),
        ("explain", "driver-too-old"),
        ("compat", "driver=535.104.05", "torch=2.9.1", "gpu=4090"),
        ("schema",),
        ("tables", "show"),
        ("tables", "--help"),
    ],
)
def test_a_stdout_that_nobody_reads_is_no_finding(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "gpucheck", *words],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")
