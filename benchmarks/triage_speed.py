"""How fast ``gpucheck triage`` is: many tickets of 1 to 50 kB on one core, and one log of 50 MB.

    PYTHON benchmarks/triage_speed.py [--tickets 400]

The tickets are made of the messages that gpucheck knows, between lines of ordinary logs; in
one mix most are short, in the other every length is as frequent. CPU time decides, since other
programs may share the core; wall time is shown beside it.
Budget: 200 tickets and 5 MB a second on one core after start-up; the log in 15 s and 300 MiB.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from gpucheck.log_patterns.form import compiled
from gpucheck.log_patterns.loading import all_messages
from gpucheck.tables import Tables
from gpucheck.ticket.intake import Intake
from gpucheck.ticket.judge import judge, triage

_RATE, _MEGABYTES = 200, 5.0
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
"""Share of the lines that hold a message that gpucheck knows."""
_MIXES = {
    "mostly short": (1_000, 2_000, 4_000, 8_000, 16_000, 50_000),
    "every length": tuple(range(1_000, 50_001, 1_000)),
}


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
    samples = [one.sample for finding in all_messages().values() for one in finding.messages]
    for finding in all_messages().values():
        for one in finding.messages:
            compiled(one.pattern)  # what a long batch compiles once
            triage(one.sample, tables)
    fine = [_mix(name, count, samples, tables) for name in _MIXES]
    return all(fine)


def _mix(name: str, count: int, samples: list[str], tables: Tables) -> bool:
    chance = random.Random(1)  # noqa: S311  # the same tickets every time
    tickets = [_ticket(chance, chance.choice(_MIXES[name]), samples) for _ in range(count)]
    size = sum(map(len, tickets)) / 1e6
    wall, cpu = time.perf_counter(), time.process_time()
    for ticket in tickets:
        triage(ticket, tables)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"{count} tickets, {name}: {count / cpu:.0f} and {size / cpu:.1f} MB a second of CPU time, "
        f"{count / wall:.0f} and {size / wall:.1f} MB a second of wall time"
    )
    return count / cpu >= _RATE and size / cpu >= _MEGABYTES


def _log(tables: Tables) -> bool:
    chance = random.Random(2)  # noqa: S311
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.log"
        with file.open("w", encoding="utf-8") as opened:
            while opened.tell() < _LOG_BYTES:
                opened.write("".join(_line(chance) + "\n" for _ in range(5000)))
            opened.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
        wall, cpu = time.perf_counter(), time.process_time()
        intake = Intake()
        intake.add_file(file)
        report = judge(intake.text(), tables)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"50 MB log: {cpu:.1f} s of CPU time, {wall:.1f} s of wall time, {peak:.0f} MiB at most, "
        f"{', '.join(report.root_causes)}"
    )
    return cpu <= _LOG_SECONDS and peak <= _LOG_MIB


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
