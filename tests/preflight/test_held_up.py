"""A real pre-flight in which ranks wait for one: its report has the seconds, and so its page."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpucheck.cluster.pages import rank_charts as durations
from gpucheck.facts.preflight import Preflight
from gpucheck.facts.snapshot import decode

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]


def test_the_seconds_of_ranks_that_wait_for_one_that_hangs(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    subprocess.run(
        (
            sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu", "--ranks", "3",
            "--drill", "hang:rank=2", "--timeout", "100", "--python", sys.executable,
            "--format", "json", "-o", str(file),
        ),
        timeout=160, check=False,
    )  # fmt: skip
    report = json.loads(file.read_bytes())
    assert [(one["slug"], one["rank"]) for one in report["culprits"]] == [("rank-hangs", 2)]
    held_up = [one["held_up"] for one in report["ranks"]]
    assert {one["step"] for one in held_up} == {1}
    assert [one["phase"] for one in held_up] == ["enter", "enter", "connect"]
    waited = [one["phase_seconds"][one["phase"]] for one in held_up]
    assert all(10 < seconds < 100 for seconds in waited), held_up
    preflight = decode(file.read_bytes()).get(Preflight)
    chart = durations.durations_chart(preflight.ranks or [], preflight.steps or [])
    assert chart is not None
    assert "Ranks 0-1 waited " in chart.caption
    assert " s for rank 2." in chart.caption
