"""Whatever somebody gives: bounded in time and memory, one sentence when it is not text."""

import gzip
import io
import random
import tarfile
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from each import each

from gpucheck import triage
from gpucheck.tables import Tables
from gpucheck.ticket.given import IntakeError
from gpucheck.ticket.intake import HEAD, TAIL, WHOLE, Intake
from gpucheck.ticket.judge import judge

TELLING = b"Failed to initialize NVML: Driver/library version mismatch\n"
CAUSE = ("driver-library-mismatch",)
TABLES = Tables()
MIB = 1024 * 1024
NEWLINE = b"\n"


def taken(data: bytes) -> Intake:
    intake = Intake()
    intake.add_bytes(data)
    return intake


def sources(data: bytes) -> list[str]:
    report = judge(taken(data).text(), TABLES)
    return [evidence.source for finding in report.findings for evidence in finding.evidence]


@each("ending", [b"\n", b"\r\n"])
def test_lines_keep_their_numbers(ending: bytes) -> None:
    assert sources((b"x" + ending) * 6 + TELLING) == ["line 7"]


@pytest.mark.hostile
def test_a_long_log_keeps_what_matters_with_its_number() -> None:
    filler = b"step 1 | loss 2.0 | an ordinary line of an ordinary log that says nothing\n"
    before = 2 * WHOLE // len(filler)
    data = filler * before + TELLING + filler * before
    text = taken(data).text()
    assert len(text.lines) < 20_000
    assert sources(data) == [f"line {before + 1}"]


@pytest.mark.hostile
def test_the_beginning_and_the_end_of_a_long_log_are_kept() -> None:
    data = b"first\n" + b"nothing at all in this line\n" * (2 * WHOLE // 28) + b"last"
    lines = taken(data).text().lines
    assert lines[0].text == "first"
    assert lines[-1].text == "last"
    assert lines[-1].number == data.count(b"\n") + 1


@pytest.mark.hostile
def test_the_end_of_a_file_that_is_too_long_is_read_and_numbered(tmp_path: Path) -> None:
    file = tmp_path / "big.log"
    with file.open("wb") as opened:
        opened.write(b"a line of the beginning\n" * 1000)
        opened.seek(HEAD + 3 * TAIL)  # a hole: a terabyte would do as well
        opened.write(b"\n" * 10 + TELLING)
    intake = Intake()
    with pytest.raises(IntakeError):
        intake.add_file(tmp_path)
    intake.add_file(file, "big.log")
    assert "its last 16 MiB were read" in intake.notes[0]
    assert any(line.number == 1011 for line in intake.text().lines)


@pytest.mark.hostile
def test_a_line_without_end_costs_neither_time_nor_memory() -> None:
    data = b"a" * (100 * MIB) + b"\n" + TELLING
    begun = time.process_time()
    tracemalloc.start()
    report = triage(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.root_causes == CAUSE
    assert peak < 200 * MIB  # the 100 that were given included
    assert time.process_time() - begun < 20


@pytest.mark.hostile
def test_a_million_lines_are_bounded() -> None:
    text = taken(b"Is CUDA available: True\nNCCL WARN x\n" * 500_000).text()
    assert len(text.lines) <= 62_000


def test_gzip_is_unpacked_as_a_stream() -> None:
    assert triage(gzip.compress(b"x\n" * 1000 + TELLING)).root_causes == CAUSE


@pytest.mark.hostile
def test_a_gzip_bomb_is_cut_short() -> None:
    packed = gzip.compress(TELLING + b"\n" * (HEAD + 8 * MIB))
    intake = taken(packed)
    assert "only its first 64 MiB" in intake.notes[0]
    assert judge(intake.text(), TABLES).root_causes == CAUSE


def test_a_damaged_gzip_is_read_as_far_as_it_goes() -> None:
    noise = random.Random(3).randbytes(200_000).hex().encode()  # noqa: S311  # no secret
    packed = gzip.compress(TELLING * 40 + noise)
    intake = taken(packed[: len(packed) // 2])
    assert intake.notes[0].startswith("the text: ")
    assert "ends early" in intake.notes[0]
    assert judge(intake.text(), TABLES).root_causes == CAUSE


def test_an_archive_is_refused_in_one_sentence() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../evil", TELLING)
    with pytest.raises(IntakeError, match="unpack it"):
        triage(packed.getvalue())


@each("begins", [b"BZh91AY", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf"])
def test_what_is_packed_otherwise_is_refused_in_one_sentence(begins: bytes) -> None:
    with pytest.raises(IntakeError, match="unpack it"):
        triage(begins + b"rest")


def tarred() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("../../evil.log")
        member.size = len(TELLING)
        archive.addfile(member, io.BytesIO(TELLING))
    return packed.getvalue()


@each(
    ("inside", "why"),
    [
        (tarred(), "a tar archive"),
        (b"PK\x03\x04" + TELLING, "a zip archive"),
        (gzip.compress(TELLING), "packed with gzip twice"),
        (b"\x7fELF\0\0\0" + TELLING, "not text"),
        (b"\x89PNG\r\n\x1a\n\0\0" * 500, r"a picture \(PNG\)"),
    ],
    ids=["tar", "zip", "gzip", "elf", "png"],
)
def test_what_gzip_holds_is_looked_at_in_the_same_way(inside: bytes, why: str) -> None:
    with pytest.raises(IntakeError, match=why):
        triage(gzip.compress(inside))


def test_what_windows_writes_is_read_out_of_gzip() -> None:
    assert triage(gzip.compress(TELLING.decode().encode("utf-16"))).root_causes == CAUSE


@pytest.mark.hostile
@each("rain", [b"\n", b"x\n", b"x\ny\n", b"\r\n"])
def test_a_rain_of_short_lines_costs_little_and_keeps_the_numbers(rain: bytes) -> None:
    data = rain * (12 * MIB // len(rain)) + TELLING + rain * (MIB // len(rain))
    begun = time.process_time()
    tracemalloc.start()
    found = sources(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [f"line {12 * MIB // len(rain) * rain.count(NEWLINE) + 1}"]
    assert peak < 60 * MIB
    assert time.process_time() - begun < 8


def test_blank_lines_in_a_text_of_ordinary_size_are_kept() -> None:
    assert len(taken(b"a\n\n\n\nb\n" * 1000).text().lines) == 5000


@each("data", [b"\x7fELF\0\0\0\0", b"\0" * 100, b"text\0text"])
def test_binary_is_refused(data: bytes) -> None:
    with pytest.raises(IntakeError, match="not text"):
        triage(data)


@each("encoding", ["utf-16", "utf-8-sig"])
def test_what_windows_writes_is_read(encoding: str) -> None:
    assert triage(TELLING.decode().encode(encoding)).root_causes == CAUSE


def test_bytes_that_are_no_utf_8_hurt_nothing() -> None:
    assert triage(b"\xff\xfe\xfd\xc3(\n"[1:] + TELLING).root_causes == CAUSE


@pytest.mark.hostile
@each(
    "text",
    [
        "[" * 10_000,
        '{"a":' * 10_000,
        '{"schema": "gpucheck.report/2", "x": 1}',
        "<script>alert(1)</script>" * 100,
        "\x1b]0;title\x07" * 1000 + "x",
        "\x1b[" * 5000,
        ">" * 50_000,
        "| " * 50_000,
        "\u202e\u2066" * 1000 + "x",
        "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" * 5000 + " nvidia",
    ],
)
def test_hostile_text_is_unknown_and_quick(text: str) -> None:
    begun = time.process_time()
    assert triage(text).root_causes == ()
    assert time.process_time() - begun < 5


@each("schema", ["report", "snapshot"])
def test_a_report_that_cannot_be_read_is_one_sentence(schema: str) -> None:
    text = f'{{"schema": "gpucheck.{schema}/1", "snapshot": {"[" * 10_000}'
    with pytest.raises(IntakeError, match="not a readable"):
        triage(text)


@pytest.mark.hostile
def test_parts_of_telling_texts_never_crash() -> None:
    """Cut, doubled and mixed up: what a careless paste makes of output."""
    chance = random.Random(11)  # noqa: S311  # the same every time
    from gpucheck.log_patterns.loading import all_messages  # noqa: PLC0415

    samples = [
        message.sample for finding in all_messages().values() for message in finding.messages
    ]
    for _ in range(150):
        parts = [chance.choice(samples) for _ in range(chance.randrange(1, 12))]
        text = chance.choice(["\n", " ", "\r", "\n> ", "\t"]).join(parts)
        cut = chance.randrange(len(text))
        report = triage((text[cut:] + text[: chance.randrange(len(text))]).encode() + b"\xf0\x28")
        assert not [check for check in report.checks if check.outcome.value == "crashed"]
        assert (
            all(evidence.source for evidence in report.findings[0].evidence)
            if report.findings
            else True
        )


def test_a_text_of_short_lines_alone_is_not_empty() -> None:
    intake = Intake()
    intake.add_bytes(b"Killed\n" * 30_000)
    intake.refuse_nothing()
    assert intake.text().lines[0].text == "Killed"
