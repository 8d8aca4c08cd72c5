"""What the first line says of each test machine: "can use" only where it can."""

import pytest
from rules_support import TABLES
from test_machines import EACH, reported

from gpucheck.derived import DriverState
from gpucheck.derived.gpus import is_passed_on
from gpucheck.engine import supply
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.system import Pci
from gpucheck.facts.torch import TorchBuild
from gpucheck.output import terminal
from gpucheck.output.summary import verdict

pytestmark = pytest.mark.every_finding


@EACH
def test_can_use_is_said_only_where_build_driver_and_gpu_allow_it(name: str) -> None:
    report = reported(name)
    if "can use" not in verdict(report):
        return
    machine = report.snapshot
    driver: DriverState = supply(DriverState, machine, TABLES)
    passed_on = [is_passed_on(gpu) for gpu in machine.get(Pci).gpus or ()]
    assert machine.get(TorchBuild).built_for == "cuda"
    assert machine.get(SelfTests).results or driver.serves()
    assert not (passed_on and all(passed_on))


def test_a_gpu_for_virtual_machines_is_named_as_such() -> None:
    assert verdict(reported("vfio-passthrough-host")) == (
        "This host passes NVIDIA GeForce RTX 3090 through to virtual machines; "
        "PyTorch 2.9.1+cpu is a CPU build, which is right for this host."
    )


def test_a_note_that_waits_is_not_said_to_be_explained() -> None:
    report = reported("library-mismatch")
    waiting = [finding.slug for finding in report.findings if finding.silenced_by]
    assert waiting == ["driver-branch-end-of-life"]
    assert "This also explains" not in terminal.render(report, verbose=1)
    hangs = terminal.render(reported("nccl-p2p-hangs"), verbose=1)
    assert "This also explains: selftest" in hangs
