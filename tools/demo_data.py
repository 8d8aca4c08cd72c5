#!/usr/bin/env python3
"""Makes what ``gpucheck demo`` shows, from machines of the tests and from a simulated job.

demo_data.py                   write ``src/gpucheck/programs/demo/data`` again
demo_data.py --machine NAME -o FILE.zip
                               write one test machine as a file for ``gpucheck --machine``
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "preflight" / "support")]

import machine_files  # noqa: E402  # the test machines are read by the tests
import simulated_job  # noqa: E402

from gpucheck.facts.preflight import Preflight  # noqa: E402
from gpucheck.machine import Recording  # noqa: E402
from gpucheck.machine.record_folder import HostRecord, place_in_folder  # noqa: E402
from gpucheck.output.json_text import json_text  # noqa: E402
from gpucheck.output.machine_folder import archived  # noqa: E402
from gpucheck.programs.commands.demo import (  # noqa: E402
    DATA,
    DEMOS,
    PREFLIGHT,
    machine_file,
)

_ANSWERS = ("nvml", "cuinit", "worker", "selftests")


def main() -> int:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--machine", metavar="NAME", help="a machine of tests/machines")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path)
    asked = parser.parse_args()
    if asked.machine:
        out = asked.output or Path(f"{asked.machine}.zip")
        out.write_bytes(as_archive(machine_files.load(asked.machine).recording))
        return 0
    for old in DATA.iterdir():
        old.unlink()
    for name, demo in DEMOS.items():
        if demo.machine:
            recording = machine_files.load(demo.machine).recording
            machine_file(name).write_bytes(as_archive(recording))
    PREFLIGHT.write_text(json_text(preflight(), indent=None), encoding="utf-8")
    return 0


def preflight() -> dict[str, Any]:
    """Return the snapshot that the simulated job has left. Every page of it says what it is."""
    snapshot = simulated_job.hang().report.snapshot
    notices = [DEMOS["preflight-hang"].origin]
    marked = msgspec.structs.replace(snapshot.get(Preflight), notices=notices)
    return {**snapshot.with_section(marked).as_json(), "origin": "recorded"}


def as_archive(recording: Recording) -> bytes:
    """Return a machine as ``baseline collect --record`` writes it."""
    names = HostRecord.__struct_fields__
    content = {
        "host.json": HostRecord(**{name: getattr(recording, name) for name in names}),
        "recorded.json": recording.made,
        "env.json": recording.env,
        "commands.json": recording.commands,
        "ranges.json": recording.ranges,
        **{f"{name}.json": getattr(recording, name) for name in _ANSWERS},
    }
    files = {name: msgspec.json.encode(part) for name, part in content.items() if part is not None}
    files |= {place_in_folder(path): data for path, data in recording.files.items()}
    files |= {
        place_in_folder(path, link=True): target.encode("utf-8", "surrogateescape")
        for path, target in recording.links.items()
    }
    return archived(files)


if __name__ == "__main__":
    sys.exit(main())
