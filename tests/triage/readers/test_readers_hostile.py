"""The readers take whatever comes: broken, mixed, endless, hostile."""

import random
import time

import msgspec
import pytest
from each import each
from pasted_samples import COMMANDS, NEW, OF_2019, OF_2025, OLD, QUERY, SESSION
from readers_support import Read

from gpucheck.language import plain
from gpucheck.ticket.readers import all_readers

SAMPLES = (OF_2019, OF_2025, OLD, NEW, QUERY, SESSION, COMMANDS)
NOISE = ("\x1b[31m", "\u202e", "：", "\r", "> ", "[rank1]: ", "9" * 40, "\ufffd", "|", "==")  # noqa: RUF001  # noise
SECONDS = 1.0


def spoilt(chance: random.Random) -> str:
    """Return pieces of samples, cut anywhere, mixed and strewn with noise."""
    pieces = []
    for _ in range(chance.randrange(1, 6)):
        sample = chance.choice(SAMPLES)
        begin = chance.randrange(len(sample))
        piece = sample[begin : begin + chance.randrange(1, 900)]
        at = chance.randrange(len(piece) + 1)
        pieces.append(piece[:at] + chance.choice(NOISE) + piece[at:])
    return chance.choice(("", "\n", " ")).join(pieces)


def check(text: str) -> None:
    """A reader answers for any text, and every fact that it states is of its type."""
    for section in Read(text.replace("\0", "")).sections.values():
        data = msgspec.json.encode(section, enc_hook=plain)
        assert msgspec.json.decode(data, type=type(section)) == section


@pytest.mark.hostile
@each("seed", range(120), shards=4)
def test_spoilt_texts(seed: int) -> None:
    check(spoilt(random.Random(seed)))  # noqa: S311  # the same texts every time


@pytest.mark.hostile
@each(
    "unit",
    [
        "A", " ", "torch ", "GPU 0: ", "(", "+ torch==2.", "1.", "NVIDIA-SMI Driver Version: ",
        "| 0  A", "CUDA_VISIBLE_DEVICES=", "code=sm_", "%s ", "requires torch==", "-", "\t",
        "Requirement already satisfied: torch", "torch.__version__, ", "NVRM: Xid (PCI:", "[pip] ",
    ],
)  # fmt: skip
def test_long_lines_take_no_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    begun = time.process_time()
    check(text)
    check(text.replace(" ", "\n"))
    assert time.process_time() - begun < 10 * SECONDS


def test_marks_are_lower_case_and_names_differ() -> None:
    readers = all_readers()
    assert all(mark == mark.lower() for reader in readers for mark in reader.marks)
    assert len({reader.name for reader in readers}) == len(readers)


def test_several_formats_of_one_machine_are_put_together() -> None:
    read = Read(f"{OF_2025}\n{QUERY}\n{SESSION}\n{COMMANDS}")
    assert {"collect_env", "nvidia-smi -q", "Python session", "system commands"} <= {*read.formats}


@pytest.mark.hostile
def test_arbitrary_texts() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    strategies = pytest.importorskip("hypothesis.strategies")
    marks = [mark for reader in all_readers() for mark in reader.marks]
    pieces = strategies.one_of(
        strategies.sampled_from([*marks, *NOISE, "\n", ": ", "True", "None", "1.2.3", "cuda:0"]),
        strategies.sampled_from([line for sample in SAMPLES for line in sample.splitlines()]),
        strategies.text(max_size=30),
    )

    @hypothesis.settings(max_examples=50, deadline=None, database=None)  # type: ignore[untyped-decorator]
    @hypothesis.given(strategies.lists(pieces, max_size=25))  # type: ignore[untyped-decorator]
    def ask(parts: list[str]) -> None:
        check("".join(parts))

    ask()
