import pytest
from each import each
from rules_machines import (
    NO_TORCH,
    PYTHON,
    UBUNTU,
    VENV,
    commands,
    fine,
    hit,
    not_applicable,
    torch_of,
)  # fmt: skip
from rules_support import ask
from wheel_facts import NCCL_PATH, claim, loads, nccl, torch_291, wheels

from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.libraries import LoadedLibrary
from gpucheck.facts.system import System
from gpucheck.facts.torch import NvidiaWheels, TorchBuild
from gpucheck.findings.form import Judgement

SLUG = "nccl-version-mismatch"
ARM = System(os="linux", machine="aarch64")


def judge(
    copy: LoadedLibrary | None,
    found: NvidiaWheels | None = None,
    torch: TorchBuild | None = None,
    machine: System = UBUNTU,
) -> Judgement:
    return ask(
        SLUG,
        torch or torch_291(),
        loads(*([copy] if copy else [])),
        found or wheels(),
        VENV,
        machine,
    )


def test_an_older_minor_release_that_lacks_functions() -> None:
    answer = hit(judge(nccl("2.21.5"), wheels(nccl_functions_missing=["ncclGroupSimulateEnd"])))
    assert answer.headline == (
        f"import torch fails: NCCL 2.21.5 from {NCCL_PATH} is older than 2.27.5, with which "
        "PyTorch 2.9.1+cu128 was built, and lacks ncclGroupSimulateEnd"
    )
    assert (answer.severity, answer.confidence) == (None, Confidence.CERTAIN)
    assert "nvidia_wheels.nccl_functions_missing" in answer.evidence
    assert commands(answer) == (
        f"{PYTHON} -m pip install --force-reinstall --no-deps nvidia-nccl-cu12==2.27.5",
    )


def test_an_older_minor_release_with_all_functions_is_a_warning() -> None:
    answer = hit(judge(nccl("2.26.2"), wheels(nccl_functions_missing=[])))
    assert answer.severity is Severity.WARNING


def test_where_the_functions_are_unknown_it_is_likely() -> None:
    answer = hit(judge(nccl("2.21.5")))
    assert (answer.severity, answer.confidence) == (None, Confidence.LIKELY)


@each("version", ["2.27.5", "2.27.3", "2.27.7", "2.28.9", "2.30.7"])
def test_the_same_or_a_newer_one_is_fine(version: str) -> None:
    fine(judge(nccl(version)))


def test_a_known_fault_of_a_newer_one_is_a_warning() -> None:
    answer = hit(judge(nccl("2.29.2"), machine=ARM))
    assert (answer.severity, answer.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert "ARM" in answer.headline
    assert "fixed in 2.29.3" in answer.headline
    assert "system.machine" in answer.evidence


def test_a_fault_of_other_machines_is_none_here() -> None:
    fine(judge(nccl("2.29.2")))


@each(
    ("version", "pinned"),
    [
        ("2.26.3", "2.26.2"),  # a hang over 80 ranks of NVL72
        ("2.28.3", "2.26.2"),  # buffers registered as symmetric
        ("2.28.7", "2.26.2"),  # many ranks
        ("2.23.4", "2.21.5"),  # ranks on different GPUs
    ],
)
def test_a_fault_whose_scope_one_machine_does_not_show_accuses_nobody(
    version: str, pinned: str
) -> None:
    fine(judge(nccl(version), torch=torch_291(nccl=pinned)))


def test_a_variable_that_puts_another_copy_first() -> None:
    copy = nccl("2.16.2", "/opt/nccl/lib/libnccl.so.2", found_via="LD_LIBRARY_PATH",
                variable_entry="/opt/nccl/lib")  # fmt: skip
    answer = hit(judge(copy, wheels(nccl_functions_missing=["ncclCommRegister"])))
    assert answer.fixes[0].text.startswith("Remove /opt/nccl/lib from LD_LIBRARY_PATH")


def test_an_overwritten_file_is_told_by_another_rule() -> None:
    shared = [claim(NCCL_PATH, "nvidia-nccl-cu12", "nvidia-nccl-cu13", owner="nvidia-nccl-cu13")]
    not_applicable(judge(nccl("2.21.5"), wheels(shared=shared)))


def test_not_applicable() -> None:
    not_applicable(judge(nccl(), torch=NO_TORCH))
    not_applicable(judge(nccl(), torch=torch_of("2.6.0+cpu")))
    not_applicable(judge(None))
    not_applicable(judge(nccl("2")))


def test_unknown() -> None:
    with pytest.raises(UnknownFactError, match="version"):
        judge(nccl(None))
    with pytest.raises(UnknownFactError, match=r"torch\.nccl"):
        judge(nccl(), torch=torch_291(nccl=None))
