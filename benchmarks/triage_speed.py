"""How fast ``gpucheck triage`` is: many tickets of 1 to 50 kB on one core, and one log of 50 MB.

    PYTHON benchmarks/triage_speed.py [--tickets 400]

The tickets are made of the messages that the signatures know, between lines of ordinary logs.
Budget: 200 tickets and 5 MB a second on one core after start-up; the log in 15 s and 300 MiB.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from gpucheck.signatures import all_signs
from gpucheck.signatures.base import compiled
from gpucheck.tables import Tables
from gpucheck.ticket import triage
from gpucheck.ticket.intake import Intake
from gpucheck.ticket.judge import judge

_MOST_RATE, _MOST_MEGABYTES = 200, 5.0
_LOG_SECONDS, _LOG_MIB = 15.0, 300
_LOG_BYTES = 50_000_000
_FILLER = (
    "node1:3018453:3024011 [2] NCCL INFO Channel 01 : 2[1040] -> 0[1020] via P2P/CUMEM",
    "[rank3]: step {n} | loss 2.{n} | lr 3.0e-04 | grad norm 0.{n} | tokens per second {n}",
    "2026-03-14 10:{m:02}:{m:02},{n:03} INFO trainer: epoch {m}, batch {n} of 15625",
    '  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line {n}',
    "Downloading model-{n}.safetensors:  4%|#     | {n}M/4.9G [00:{m:02}<10:21, 7.6MB/s]",
)
_TELLING = 0.01
"""Share of the lines that hold a message which a signature knows."""
_SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 50_000)


def _line(chance: random.Random) -> str:
    return chance.choice(_FILLER).format(n=chance.randrange(1000), m=chance.randrange(60))


def _ticket(chance: random.Random, size: int, samples: list[str]) -> bytes:
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(chance.choice(samples) if chance.random() < _TELLING else _line(chance))
        length += len(lines[-1]) + 1
    lines.append(chance.choice(samples))
    return "\n".join(lines).encode()


def _many(count: int, tables: Tables) -> bool:
    chance = random.Random(1)  # noqa: S311  # the same tickets every time
    samples = [one.sample for signs in all_signs().values() for one in signs.signatures]
    tickets = [_ticket(chance, chance.choice(_SIZES), samples) for _ in range(count)]
    for signs in all_signs().values():
        for one in signs.signatures:
            compiled(one.pattern)  # what a long batch compiles once
            triage(one.sample, tables)
    begun = time.process_time()
    for ticket in tickets:
        triage(ticket, tables)
    seconds = time.process_time() - begun
    rate, megabytes = count / seconds, sum(map(len, tickets)) / seconds / 1e6
    print(f"{count} tickets: {rate:.0f} a second, {megabytes:.1f} MB a second on one core")
    return rate >= _MOST_RATE and megabytes >= _MOST_MEGABYTES


def _log(tables: Tables) -> bool:
    chance = random.Random(2)  # noqa: S311
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.log"
        with file.open("w", encoding="utf-8") as opened:
            while opened.tell() < _LOG_BYTES:
                opened.write("".join(_line(chance) + "\n" for _ in range(5000)))
            opened.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
        begun = time.perf_counter()
        intake = Intake()
        intake.add_file(file)
        report = judge(intake.text(), tables)
        seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"50 MB log: {seconds:.1f} s, {peak:.0f} MiB at most, {', '.join(report.root_causes)}")
    return seconds <= _LOG_SECONDS and peak <= _LOG_MIB


def main() -> int:
    """Measure both; the exit status is 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tickets", type=int, default=400)
    asked = parser.parse_args()
    tables = Tables()
    fine = _log(tables)
    return 0 if _many(asked.tickets, tables) and fine else 1


if __name__ == "__main__":
    sys.exit(main())
