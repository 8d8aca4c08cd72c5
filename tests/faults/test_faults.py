"""Every fault of the table, made for real, and the command beside it."""

import contextlib
import json
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from fault_rows import FAULTS, Fault
from fault_stand import Stand
from fault_ways import changing
from left_behind import alive, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, links and limits of Unix")
_SLACK = 12.0
"""Seconds beyond its deadline that a command may take on a busy machine."""
_ROWS = 200
_END = 20_000
_INTERNAL = ("Traceback", "a fault of gpucheck itself")


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """Return a sound machine; whatever a fault leaves on purpose is ended afterwards."""
    made = Stand(tmp_path)
    yield made
    for pid in alive(made.mark):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    for path in tmp_path.rglob("*"):
        if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0:
            path.chmod(0o600)


@pytest.mark.hostile
def test_the_table_has_a_name_for_each_of_its_rows() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) >= _ROWS
    assert len(set(names)) == len(names)
    crossed, here = (
        [fault for fault in FAULTS if fault.crossed is there] for there in (True, False)
    )
    assert {fault.what for fault in crossed} <= {fault.what for fault in here}
    assert {fault.how for fault in crossed} <= {fault.how for fault in here}


@pytest.mark.hostile
def test_the_sound_machine_is_sound(stand: Stand) -> None:
    facts = _facts(stand)
    for fault in FAULTS:
        if fault.fact and not fault.what.startswith("rpm"):
            assert _outcome(facts, fault) == "sound", fault.name
    stand.use_rpm()
    facts = _facts(stand)
    assert {_outcome(facts, fault) for fault in FAULTS if fault.what == "rpm"} == {"sound"}


def _in_tier(fault: Fault) -> ParameterSet:
    tier = pytest.mark.gate if fault.crossed else pytest.mark.hostile
    return pytest.param(fault, id=fault.name, marks=tier)


@pytest.mark.parametrize("fault", [_in_tier(fault) for fault in FAULTS])
def test_no_fault_of_the_machine_is_a_fault_of_gpucheck(fault: Fault, stand: Stand) -> None:
    fault.make(stand)
    words = [word.format(folder=stand.folder, python=stand.python) for word in fault.command]
    words = words or stand.check("--timeout", str(fault.seconds), *fault.options)
    with changing(stand.file(fault.changes)) if fault.changes else contextlib.nullcontext():
        ended = stand.run(words, fault.start)
    printed = (ended.out[-_END:] + ended.err[-_END:]).decode(errors="replace")
    assert not any(word in printed for word in _INTERNAL), printed
    assert ended.status in fault.statuses, printed
    assert fault.says in printed
    assert ended.seconds < fault.seconds + _SLACK
    if fault.writes:
        _judge(fault, json.loads(ended.out))
    assert list(stand.temporary.iterdir()) == []
    assert fault.leaves or wait_until(lambda: not alive(stand.mark), 20), "processes are left"


def _judge(fault: Fault, report: dict[str, Any]) -> None:
    """Require that the report is right about the fact, and names no cause that is not there."""
    crashed = [
        run for run in report["probes"]
        if run["status"] == "crashed" and run["name"] not in fault.crashed
    ]  # fmt: skip
    assert crashed == []
    assert set(report["root_causes"]) <= fault.causes
    if fault.fact:
        assert _outcome(report["snapshot"]["facts"], fault) in fault.outcomes


def _facts(stand: Stand) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(stand.run(stand.check()).out)["snapshot"]["facts"]
    return facts


def _outcome(facts: dict[str, Any], fault: Fault) -> str:
    """Return what is known of the fact: "unknown", "sound", "absent", or the value itself."""
    at: Any = facts
    problem = ""
    for part in fault.fact.split("."):
        if isinstance(at, list):
            at = at[int(part)] if int(part) < len(at) else ""
            continue
        problems = at.get("problems", {})
        problem = problems.get(part) or problems.get("*") or problem
        at = at[part]
        if at is None:
            return "unknown" if problem else "unknown without a reason"
        if at in ("", []):
            break
    if at == fault.sound:
        return "sound"
    return "absent" if at in ("", []) else f"the value {at!r}"
