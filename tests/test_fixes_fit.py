"""No fix proposes a PyTorch that does not run here: ``compat`` judges every proposed command.

The facts are taken from the sections as they are, not from what the fixes made of them.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from each import each
from rules_machines import (
    A100,
    GB10,
    GTX_1080,
    H100,
    NO_VARIABLES,
    P100,
    RTX_4090,
    RTX_5090,
    UBUNTU,
    V100,
    VENV,
    nvml,
    packages,
    torch_of,
)
from rules_support import TABLES, snapshot
from test_compat import CASES
from test_machines import NAMES, reported

from gpucheck.advice.recommender import Recommender
from gpucheck.advice.situations import MachineFacts
from gpucheck.describe.judge import judge_described
from gpucheck.describe.keys import read_object
from gpucheck.engine import diagnose, supply
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import Driver, Nvml
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Environment, Pci, System
from gpucheck.facts.torch import Interpreter
from gpucheck.findings.form import Finding

pytestmark = pytest.mark.exhaustive

_TORCH = re.compile(r"(?:^|\s)torch==([0-9.]+)(?=\s|$)")
_BUILD = re.compile(
    r"--(?:default-index|index-url) https://download\.pytorch\.org/whl/([a-z0-9]+)(?=\s|$)"
)
_PYTHON = re.compile(r"(?:--python |python=)(3\.[0-9]+t?)(?=\s|$)")


def proposals(fix: Fix) -> Iterator[tuple[str, str, str]]:
    """Return the torch, the build ("" for PyPI's) and the Python ("" as it is) of each command."""
    python = next((found[1] for line in fix.commands if (found := _PYTHON.search(line))), "")
    for line in fix.commands:
        if torch := _TORCH.search(line):
            build = _BUILD.search(line)
            yield torch[1], build[1] if build else "", python


def described(machine: Snapshot, left_out: str) -> dict[str, Any]:
    """Return the machine as ``compat`` wants it, without the GPUs that a fix says it leaves out."""
    system, python = machine.get(System), machine.get(Interpreter)
    driver, gpus = machine.get(Nvml), machine.get(Nvml).gpus or machine.get(Pci).gpus or []
    capabilities = [gpu.compute_capability for gpu in gpus if gpu.compute_capability]
    codes = {capability: f"sm_{capability.replace('.', '')})" for capability in capabilities}
    version = ".".join((python.version or "").split(".")[:2])
    facts = {
        "os": "wsl2" if system.wsl else system.os,
        "arch": system.machine,
        "glibc": python.glibc or system.glibc if system.os == "linux" else None,
        "compute_capability": [
            capability for capability in capabilities if codes[capability] not in left_out
        ],
        "driver": driver.driver_release or machine.get(Driver).module_release,
        "driver_cuda": driver.cuda,
        "python": version + ("t" if python.free_threaded else ""),
    }
    return {key: value for key, value in facts.items() if value}


def judge_proposals(machine: Snapshot, findings: tuple[Finding, ...]) -> int:
    """Ask ``compat`` about every proposed torch, and return how many there were.

    It describes servers: what NVIDIA's index for boards has is none of PyTorch's builds.
    """
    if machine.get(System).jetson:
        return 0
    count = 0
    for finding in findings:
        for fix in finding.fixes:
            left_out = fix.text.partition("leaves out")[2]
            for torch, build, python in proposals(fix):
                facts = described(machine, left_out)
                facts["torch"] = f"{torch}+{build}" if build else torch
                facts["torch_source"] = "pytorch-index" if build else "pypi"
                facts.update({"python": python} if python else {})
                if build == "cpu":  # offered where no build for the GPU exists
                    facts.pop("compute_capability", None)
                report = judge_described(read_object(facts), TABLES).report
                assert report.verdict == "healthy", (finding.slug, fix, facts, report.root_causes)
                count += 1
    return count


def test_every_torch_proposed_to_a_recorded_machine_runs_there() -> None:
    counts = [judge_proposals(reported(name).snapshot, reported(name).findings) for name in NAMES]
    assert sum(counts) >= 15


def test_what_is_called_the_newest_is_the_newest() -> None:
    stated_newest = []
    for name in NAMES:
        report = reported(name)
        facts: MachineFacts = supply(MachineFacts, report.snapshot, TABLES)
        for finding in report.findings:
            for fix in finding.fixes:
                if "it is the newest that runs on" in fix.text:
                    situation = facts.situation()
                    assert situation is not None
                    newest = Recommender(TABLES).recommend(situation).best
                    assert newest is not None
                    assert f"PyTorch {newest.torch} " in fix.text
                    stated_newest.append(name)
                elif found := re.search(
                    r"the newest release that runs on it is torch ([0-9.]+)", fix.text
                ):
                    assert found[1] != next(proposals(fix))[0]
                    stated_newest.append(name)
    assert len(stated_newest) >= 3


def test_every_torch_proposed_to_a_described_machine_runs_there() -> None:
    counts = []
    for case in CASES:
        report = judge_described(read_object(case["facts"]), TABLES).report
        counts.append(judge_proposals(report.snapshot, report.findings))
    assert sum(counts) >= 40


DRIVEN = {
    ("470.57.02", "11.4"): (P100, GTX_1080, V100, A100),
    ("535.104.05", "12.2"): (P100, GTX_1080, V100, A100, RTX_4090, H100),
    ("580.95.05", "13.0"): (P100, GTX_1080, V100, A100, RTX_4090, H100, RTX_5090, GB10),
}


def no_kernel_modules_drive(pair: tuple[object, ...]) -> bool:
    """Whether one GPU needs the proprietary modules, and the other one the open ones."""
    return bool({P100, GTX_1080, V100}.intersection(pair) and {RTX_5090, GB10}.intersection(pair))


@each("driver", DRIVEN, ids=" CUDA ".join)
@each("version", ["3.9.19", "3.14.0"])
@each("glibc", ["2.17", "2.35"])
def test_every_pair_of_gpus_with_and_without_a_mask(
    driver: tuple[str, str], version: str, glibc: str
) -> None:
    python = msgspec.structs.replace(VENV, version=version, glibc=glibc)
    system = msgspec.structs.replace(UBUNTU, glibc=glibc)
    mask = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"}
    torch, found = torch_of("2.9.1+cpu"), packages()
    count = 0
    for environment in (NO_VARIABLES, Environment(variables=mask)):
        for pair in itertools.combinations(DRIVEN[driver], 2):
            if no_kernel_modules_drive(pair):
                continue
            gpus = nvml(*pair, driver=driver[0], cuda=driver[1])
            machine = snapshot(system, python, gpus, environment, torch, found)
            findings = diagnose(machine, TABLES, only=["torch-cpu-only"]).findings
            assert findings
            count += judge_proposals(machine, findings)
    # Where no wheel for Python 3.14 fits (they need glibc 2.28, and came after the last for CUDA
    # 11), an environment with another Python is proposed.
    assert count
