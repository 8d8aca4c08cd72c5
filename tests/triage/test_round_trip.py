"""Every test machine as text: its saved report, and what other tools would have printed."""

import pytest
from as_pasted import collect_env, nvidia_smi
from each import each
from test_machines import NAMES, TABLES, reported

from gpucheck.output import json_text
from gpucheck.ticket.judge import triage

pytestmark = pytest.mark.exhaustive

ALSO_RIGHT = {
    "dropped-gpu-r590-gtx1080": "kernel-module-not-loaded",  # nvidia-smi says no more than that
    "windows-optimus-switched-off": "kernel-module-not-loaded",
    "forward-compat-on-geforce": "driver-too-old",  # nobody speaks of the cuda-compat library
    "torch-through-pythonpath": "torch-cpu-only",  # nor of the way by which this torch came
}
LEAST_SHOWN = 10


@each("name", NAMES, shards=4)
def test_the_saved_report_names_the_same_root_cause(name: str) -> None:
    report = reported(name)
    assert triage(json_text.render(report), TABLES).root_causes == report.root_causes


def as_text(name: str) -> str:
    snapshot = reported(name).snapshot
    return f"{collect_env(snapshot)}\n{nvidia_smi(snapshot, TABLES)}"


@each("name", NAMES, shards=4)
def test_the_text_of_other_tools_names_the_same_cause_or_none(name: str) -> None:
    found = triage(as_text(name), TABLES).root_causes
    right = {*reported(name).root_causes, ALSO_RIGHT.get(name, "")}
    assert not found or found[0] in right


def test_what_those_tools_can_show_is_named() -> None:
    shown = [
        name
        for name in NAMES
        if reported(name).root_causes
        and triage(as_text(name), TABLES).root_causes[:1] == reported(name).root_causes[:1]
    ]
    assert len(shown) >= LEAST_SHOWN
