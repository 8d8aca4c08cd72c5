"""Windows gets commands that it has: those of every finding, as if the tests' machines ran it."""

import re

import machine_files
import msgspec
import pytest
import test_machines
from each import each

from gpucheck.advice.interruption import needs_administrator, on_windows
from gpucheck.doctor.collector import Collector
from gpucheck.engine import judge_machine
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.findings.form import Finding
from gpucheck.machine import RecordedHost, Recording
from gpucheck.machine.candidates import TargetWish
from gpucheck.tables import Tables

_OF_LINUX = (
    r"(?:^|[|;&] ?)(?:sudo|export|unset|rm|ps|kill|reboot|dmesg|grep|cat|ldconfig|modprobe|lspci"
    r"|journalctl|systemctl|ulimit|mv|sed) "
)


def _findings(snapshot: Snapshot) -> tuple[Finding, ...]:
    return judge_machine(snapshot, Tables()).findings


def _judged(recording: Recording) -> tuple[Finding, ...]:
    wish = TargetWish(python=None)
    asked = Collector(RecordedHost(recording), Tables(), wish=wish, request=Request())
    return _findings(asked.collect().snapshot)


def _fix(found: tuple[Finding, ...], slug: str) -> list[tuple[str, ...]]:
    (finding,) = (finding for finding in found if finding.slug == slug)
    return [fix.commands for fix in finding.fixes]


@pytest.mark.exhaustive
@each("name", test_machines.NAMES)
def test_no_command_is_of_linux_alone(name: str) -> None:
    snapshot = test_machines.reported(name).snapshot
    system = snapshot.get(System)
    windows = msgspec.structs.replace(
        system, os="windows", wsl=0, jetson="", package_manager=None, distribution=None
    )
    for finding in _findings(snapshot.with_section(windows)):
        for fix in finding.fixes:
            for command in (*fix.commands, fix.verify):
                assert not re.search(_OF_LINUX, command), (finding.slug, command)


@each(
    ("command", "there"),
    [
        ("sudo reboot", ("shutdown /r /t 0",)),
        ("ps -fp 31337,7", ('tasklist /FI "PID eq 31337"', 'tasklist /FI "PID eq 7"')),
        ("ps -o user,pid,lstart,args -p 52011", ('tasklist /FI "PID eq 52011"',)),
        ("kill 52011", ("taskkill /PID 52011",)),
        ("sudo nvidia-smi -i 0 -c DEFAULT", ("nvidia-smi -i 0 -c DEFAULT",)),
        ("sudo dmesg | grep -i xid", ()),
        ("sudo apt-get update", ()),
        ("unset LD_PRELOAD", ()),
        (r"C:\venv\Scripts\python.exe -m pip check", (r"C:\venv\Scripts\python.exe -m pip check",)),
        ("set CUDA_VISIBLE_DEVICES=", ("set CUDA_VISIBLE_DEVICES=",)),
    ],
)
def test_a_command_in_the_form_of_windows(command: str, there: tuple[str, ...]) -> None:
    assert on_windows(command) == there
    assert needs_administrator(command) == command.startswith("sudo nvidia-smi")


def test_a_variable_is_taken_away_in_both_shells() -> None:
    machine = machine_files.copied("windows-ok")
    machine.env["CUDA_VISIBLE_DEVICES"] = ""
    machine.cuinit = {**(machine.cuinit or {}), "init_code": 100, "device_count": 0, "devices": []}
    found = _judged(machine)
    assert _fix(found, "visible-devices-hides-gpus") == [
        ("Remove-Item Env:CUDA_VISIBLE_DEVICES", "set CUDA_VISIBLE_DEVICES=")
    ]
    assert "are for PowerShell, those with set for cmd" in found[0].fixes[0].text


@each(("code", "slug"), [(9, "kernel-module-not-loaded"), (18, "driver-library-mismatch")])
def test_a_driver_that_does_not_start_is_started_with_windows(code: int, slug: str) -> None:
    machine = machine_files.copied("windows-ok")
    machine.nvml = {"library_found": True, "init_code": code, "init_message": ""}
    machine.cuinit = {**(machine.cuinit or {}), "init_code": 100, "device_count": 0, "devices": []}
    assert _fix(_judged(machine), slug) == [("shutdown /r /t 0",)]
