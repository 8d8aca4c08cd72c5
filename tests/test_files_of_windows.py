"""Files as Windows writes them: PowerShell 5.1 has UTF-16 for ``>``, and editors add a mark."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpucheck.cli import gpucheck
from gpucheck.describe.files import text as limits
from gpucheck.describe.files.text import UnreadableError, text_of
from gpucheck.facts.streams import in_utf_8

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
PINS = "torch==2.6.0\r\ntorchvision==0.20.0\r\n"
LOCK = "# gpucheck-lock/1 torch=2.6.0+cu124 python=3.12\r\ntorch==2.6.0\r\ntorchvision==0.21.0\r\n"
FACTS = {"torch": "2.6.0", "driver": "470.82"}
pytestmark = pytest.mark.parametrize("encoding", ENCODINGS)


def run(*words: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(gpucheck, words, input=stdin, env={"GPUCHECK_LANG": "en"})


def test_requirements_are_linted(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "requirements.txt"
    file.write_bytes(PINS.encode(encoding))
    done = run("lint", str(file))
    assert f"{file}:2: error torch-companion-mismatch" in done.stdout
    assert done.exit_code == 1


def test_a_lock_file_is_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "lock.txt"
    file.write_bytes(LOCK.encode(encoding))
    done = run(
        "recommend", "--like", str(file), "--gpu", "4090", "--driver", "580",
        "--python-version", "3.12", "--os", "windows",
    )  # fmt: skip
    assert "torch==2.6.0 torchvision==0.21.0" in done.stdout
    assert done.exit_code == 0


@pytest.mark.parametrize("by_stdin", [False, True])
def test_each_line_of_a_batch_is_judged(tmp_path: Path, encoding: str, *, by_stdin: bool) -> None:
    lines = "".join(
        json.dumps({"id": name, "facts": FACTS}, ensure_ascii=False) + "\r\n\r\n"
        for name in ("first", "\u0a0a\u0d0a", "last")  # their UTF-16 has bytes of ends of lines
    )
    file = tmp_path / "batch.jsonl"
    data = lines.encode(encoding)
    file.write_bytes(data)
    done = run("compat", "--batch", "-" if by_stdin else str(file), stdin=data)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == ["first", "\u0a0a\u0d0a", "last"]
    assert all(answer["root_causes"] == ["driver-too-old"] for answer in answers)


def test_described_facts_are_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "facts.json"
    file.write_bytes(json.dumps(FACTS).encode(encoding))
    assert "driver-too-old" in run("compat", "--facts", str(file)).stdout


def test_the_limits_of_a_file_hold(encoding: str) -> None:
    with pytest.raises(UnreadableError, match="larger than 2 MiB"):
        text_of(("x" * limits.LARGEST + "x").encode(encoding))
    with pytest.raises(UnreadableError, match="more than 100000 lines"):
        text_of(("\n" * limits.MOST_LINES).encode(encoding))


def test_a_binary_file_is_no_text(encoding: str) -> None:
    for data in ("a\0b".encode(encoding), b"MZ\x90\0\3\0\0\0", b"\0\0\1\0\1\0", b"\xff\xfe\0\xd8"):
        with pytest.raises(UnreadableError, match="not a text file"):
            text_of(data)
    assert in_utf_8(b"\0\0\1\0") == b"\0\0\1\0"


@pytest.mark.process  # the guard of a pre-flight
def test_the_requirements_of_a_preflight_are_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "wanted.txt"
    file.write_bytes("gpus-per-node=many\r\n".encode(encoding))
    done = run("preflight", "--device", "cpu", "--ranks", "1", "--require", str(file))
    assert "at `$.gpus-per-node`" in done.stderr
    assert done.exit_code == 2
