"""Files, pipes and devices: each is opened once, and nobody waits for a writer who never comes."""

import gzip
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from each import each

import gpucheck
from gpucheck import triage
from gpucheck.facts import streams
from gpucheck.facts.streams import Rejoined
from gpucheck.ticket.batch import Batch
from gpucheck.ticket.given import Given, IntakeError, opened
from gpucheck.ticket.intake import WHOLE, Intake

TELLING = b"one\nFailed to initialize NVML: Driver/library version mismatch\n"
CAUSE = "driver-library-mismatch"
SOURCE = Path(gpucheck.__file__).parents[1]


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def written(path: Path, data: bytes, *, after: float = 0.0, pause: float = 0.0) -> threading.Thread:
    def write() -> None:
        time.sleep(after)
        with path.open("wb") as opened_pipe:
            time.sleep(pause)
            opened_pipe.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def shell(command: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = f"{sys.executable} -m gpucheck"
    return subprocess.run(
        ["/bin/bash", "-c", command.replace("GPUCHECK", program)],
        input=data,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        timeout=60,
        check=False,
    )


@pytest.mark.process
@pytest.mark.parametrize("size", [0, 5_000, 300_000])
def test_a_pipe_of_a_shell_is_read_once_and_whole(tmp_path: Path, size: int) -> None:
    file = tmp_path / "x.log"
    file.write_bytes(TELLING + b"an ordinary line\n" * (size // 17))
    found = shell(f"GPUCHECK triage <(cat {file})")
    assert (found.returncode, CAUSE.encode() in found.stdout) == (1, True), found.stderr
    assert b"line 2: " in found.stdout


@pytest.mark.process
def test_stdin_by_its_name() -> None:
    found = shell("cat | GPUCHECK triage /dev/stdin", TELLING)
    assert (found.returncode, CAUSE.encode() in found.stdout) == (1, True), found.stderr


@pytest.mark.process
def test_a_saved_report_from_a_pipe_is_judged_as_one(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(triage(TELLING).as_json()))
    found = shell(f"GPUCHECK triage --format json <(cat {file})")
    assert json.loads(found.stdout)["root_causes"] == [CAUSE]


@pytest.mark.process
def test_a_pipe_in_a_batch(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    file.write_bytes(TELLING)
    found = shell(f"GPUCHECK triage --batch <(cat {file}) {file}")
    assert [json.loads(line)["root_causes"] for line in found.stdout.splitlines()] == [[CAUSE]] * 2


@pytest.mark.process
def test_a_command_that_says_nothing_ends_at_once() -> None:
    begun = time.monotonic()
    found = shell("GPUCHECK triage <(true)")
    assert (found.returncode, b"is empty" in found.stderr) == (2, True)
    assert time.monotonic() - begun < streams.WAIT


@pytest.mark.parametrize(("after", "pause"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.5)])
def test_a_named_pipe_waits_for_its_writer(pipe: Path, after: float, pause: float) -> None:
    writer = written(pipe, TELLING * 5000, after=after, pause=pause)
    intake = Intake()
    intake.add_file(pipe)
    writer.join()
    assert len(intake.text().lines) == 10_000


def test_nobody_writes_into_a_named_pipe(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "WAIT", 0.2)
    with pytest.raises(IntakeError, match=r"pipe, and nothing was written to it for 0\.2 s"):
        Intake().add_file(pipe)
    (answer,) = Batch([pipe], "", 1).answers()
    assert "nothing was written" in answer["error"]


def test_somebody_opens_a_named_pipe_and_writes_nothing(pipe: Path) -> None:
    writer = written(pipe, b"", pause=0.2)
    with opened(pipe) as found:
        assert found.head == b""
    writer.join()


def test_a_text_from_a_pipe_is_kept_whole_up_to_the_same_size() -> None:
    lines = WHOLE // 40
    data = b"an ordinary line of forty characters...\n" * (lines - 1)
    for given_data in (data, gzip.compress(data)):
        intake = Intake()
        intake.add(Given(Rejoined(b"", io.BytesIO(given_data))))
        assert len(intake.text().lines) == lines - 1


@each("path", ["/dev/zero", "/nowhere", "/", "/dev/fd/9999", "a\0b"])
def test_what_is_no_text_is_one_sentence(path: str) -> None:
    with pytest.raises(IntakeError) as caught:
        Intake().add_file(Path(path))
    assert str(caught.value).endswith(".")


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    intake = Intake()
    intake.add_file(tmp_path / "empty")
    assert intake.text().lines == []
    with pytest.raises(IntakeError, match="empty"):
        intake.refuse_nothing()
