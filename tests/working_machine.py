"""A whole machine on which PyTorch works, section by section, for tests that change one thing."""

from typing import Any

import msgspec
from rule_facts import (
    HOST,
    LINUX,
    NO_VARIABLES,
    cuda_sees,
    dev,
    loaded,
    nvml,
    on_bus,
)
from rules_support import TABLES, snapshot

from gpucheck.engine import Report, diagnose, make_report, open_questions
from gpucheck.facts import Section
from gpucheck.facts.driver import KernelLog, NvidiaSmi
from gpucheck.facts.request import Request
from gpucheck.facts.system import LimitsOfProcess
from gpucheck.facts.torch import Interpreter, Packages, TorchBuild, TorchInstall

SITE = "/home/ada/venv/lib/python3.12/site-packages"
VENV = Interpreter(
    status="ok",
    executable="/home/ada/venv/bin/python",
    version="3.12.3",
    implementation="cpython",
    bits=64,
    free_threaded=False,
    prefix="/home/ada/venv",
    base_prefix="/usr",
    kind="venv",
    has_pip=True,
    externally_managed=False,
    glibc="2.39",
    others=[],
)
UBUNTU = msgspec.structs.replace(
    LINUX, libc="glibc", glibc="2.39", glibcxx="3.4.33", under_slurm=False
)
CU128 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
GIB = 1024**3


def torch(version: str, cuda: str, arch_list: list[str], **more: Any) -> TorchBuild:  # noqa: ANN401  # fields of TorchBuild
    """Return one installed torch."""
    fields = {
        "installed": True,
        "path": f"{SITE}/torch",
        "version": version,
        "metadata_version": version,
        "built_for": "cuda" if cuda else "cpu",
        "cuda": cuda,
        "installer": "pip",
        "arch_list": arch_list,
        "wheel_tag": "cp312-cp312-manylinux_2_28_x86_64",
        "installs": [TorchInstall(path=f"{SITE}/torch", version=version, kind="package")],
        "leftovers": [],
    }
    return TorchBuild(**{**fields, **more})


CUDA_BUILD = torch("2.8.0+cu128", "12.8", CU128)
CPU_BUILD = torch("2.8.0+cpu", "", [])


def serving(
    *cards: tuple[str, str], release: str = "580.95.05", cuda: str = "13.0"
) -> tuple[Section, ...]:
    """Return the sections of a driver that serves these cards."""
    numbered = [f"/dev/nvidia{at}" for at in range(len(cards))]
    return (
        on_bus(*cards),
        nvml(*cards, release=release, cuda=cuda),
        msgspec.structs.replace(cuda_sees(*cards), cuda=cuda),
        loaded(release),
        dev("/dev/nvidiactl", "/dev/nvidia-uvm", *numbered),
    )


def report(*sections: Section) -> Report:
    """Diagnose a Linux host with a virtual environment; sections given here replace its own."""
    usual = (
        UBUNTU,
        HOST,
        NO_VARIABLES,
        VENV,
        CUDA_BUILD,
        Packages(distributions=[], conda_packages=[]),
        KernelLog(xids=[], nvrm=[], oom_kills=[], fallen_off_bus=[]),
        LimitsOfProcess(shm_total_bytes=8 * GIB, memlock_bytes=-1, infiniband_devices=[]),
        NvidiaSmi(found=True, message=""),
        Request(),
    )
    by_name = {section.name: section for section in (*usual, *sections)}
    described = snapshot(*by_name.values())
    questions = open_questions(described, TABLES)
    return make_report(diagnose(described, TABLES), described, questions)


def findings_and_fixes(found: Report) -> str:
    """Return every standing finding with its fixes, as one text."""
    return "\n".join(
        "\n".join((f"{finding.slug}: {finding.headline}", *(fix.text for fix in finding.fixes)))
        for finding in found.standing
    )


def commands(found: Report) -> str:
    """Return the commands of every fix, a line each."""
    return "\n".join(
        command for finding in found.standing for fix in finding.fixes for command in fix.commands
    )
