"""Judges what a demo has recorded, and makes the page of it, as the commands do."""

from pathlib import Path
from typing import Any

import msgspec

from gpucheck.doctor.checking import CheckRequest
from gpucheck.doctor.commands.check import report_text
from gpucheck.doctor.run import diagnosed, open_tables
from gpucheck.programs.demo.catalogue import DEMOS, Demo

DATA = Path(__file__).parent / "data"
PREFLIGHT = DATA / "preflight-hang.json"


class ShownDemo(msgspec.Struct, frozen=True):
    """What a command prints, and the exit status with which it ends."""

    text: str
    status: int


def machine_file(name: str) -> Path:
    """Return where the machine of a demo is."""
    return DATA / f"{name}.zip"


def shown(name: str, options: dict[str, Any]) -> ShownDemo:
    """Return what gpucheck says of a demo, in the format that is asked for."""
    demo = DEMOS[name]
    return _preflight(options) if not demo.machine else _check(name, demo, options)


def _check(name: str, demo: Demo, options: dict[str, Any]) -> ShownDemo:
    wish = CheckRequest(machine=str(machine_file(name)), gpus=demo.gpus)
    of_this_machine = {"python": None, "sysroot": None}
    report = diagnosed({**options, **of_this_machine}, wish, open_tables(options["tables"]))
    return ShownDemo(report_text(report, options), report.exit_status("error"))


def _preflight(options: dict[str, Any]) -> ShownDemo:
    from gpucheck.cluster.judgement import judged  # noqa: PLC0415  # a check needs none of it
    from gpucheck.cluster.run_command import result_text  # noqa: PLC0415
    from gpucheck.facts.snapshot import load  # noqa: PLC0415

    result = judged(load(PREFLIGHT), open_tables(options["tables"]))
    return ShownDemo(result_text(result, options), result.ending.status)
