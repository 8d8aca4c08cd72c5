"""What a ticket from Windows is told to do: commands that exist there, or words alone."""

import re
from collections.abc import Iterator

import pytest

from gpucheck.facts.claims import Fix
from gpucheck.log_patterns.form import MessageFix
from gpucheck.log_patterns.loading import all_messages
from gpucheck.ticket.judge import triage

pytestmark = pytest.mark.every_finding

OF_LINUX = re.compile(
    r"^(?:sudo|ldconfig|unset|export|ls|dmesg|apt|ldd|df|ulimit|free|ss|getent|readelf|[A-Z_]+=)\b"
    r"|\| *(?:grep|tail|head)|(?<![\w:])\$(?!env:)[A-Z_]"
)
ONLY_ON_LINUX = {
    "container-no-gpu", "device-permission", "driver-library-mismatch",
    "fabric-manager-down", "forward-compat-unsupported", "kernel-module-not-loaded",
    "libcuda-stub-loaded", "memlock-too-low", "mig-misconfigured",
    "nccl-infiniband", "nccl-timeout", "nccl-transport-broken", "nccl-version-mismatch",
    "shm-too-small", "system-library-too-old", "wsl-driver-problem",
}  # fmt: skip
"""Findings about what Windows does not have: NCCL, modules of the kernel, containers, WSL."""
ALONE = {"torch-import-broken", "not-gpu-related", "torch-rocm-or-other-build"}
"""Findings with one such fix: LD_PRELOAD, the limit on open files, the device files of ROCm."""
REPORT = """PyTorch version: 2.9.1+cu128
Is debug build: False
CUDA used to build PyTorch: 12.8
OS: {os}
Python version: 3.11.9 (64-bit runtime)
Is CUDA available: True

Traceback (most recent call last):
  File "train.py", line 3, in <module>
{error}
"""
WINDOWS = "Microsoft Windows 11 Pro (10.0.26100 64-bit)"
UBUNTU = "Ubuntu 24.04 LTS (x86_64)"


def fixes() -> Iterator[tuple[str, MessageFix]]:
    for slug, finding in all_messages().items():
        of_messages = [fix for message in finding.messages for fix in message.fixes]
        for fix in (*finding.fixes, *finding.named_fixes, *of_messages):
            yield slug, fix


def is_of_linux(fix: Fix) -> bool:
    return any(OF_LINUX.search(command) for command in fix.commands)


def test_every_fix_that_windows_may_need_has_commands_for_it() -> None:
    linux = {slug for slug, fix in fixes() if is_of_linux(fix.plain(on_windows=True))}
    assert linux - ONLY_ON_LINUX - ALONE == set()
    assert ONLY_ON_LINUX - linux == set()
    assert sum(fix.windows is not None for _slug, fix in fixes()) > 25


@pytest.mark.parametrize(
    ("error", "slug"),
    [
        ("torch._inductor.exc.InductorError: RuntimeError: Compiler: cl is not found.",
         "compiler-missing"),
        ("RuntimeError: CUDA error: device-side assert triggered", "application-bug"),
    ],
)  # fmt: skip
def test_a_ticket_of_windows_and_of_linux(error: str, slug: str) -> None:
    there, here = (
        triage(REPORT.format(os=system, error=error).encode()) for system in (WINDOWS, UBUNTU)
    )
    assert there.root_causes == here.root_causes == (slug,)
    assert not any(is_of_linux(fix) for fix in there.findings[0].fixes)
    assert any(is_of_linux(fix) for fix in here.findings[0].fixes)


@pytest.mark.parametrize("words", ["I run it inside WSL2.", "docker run --gpus all my-image"])
def test_a_windows_that_may_hold_a_linux_gets_its_commands(words: str) -> None:
    text = REPORT.format(os=WINDOWS, error="RuntimeError: Failed to find C compiler.")
    found = triage(f"{text}\n{words}\n".encode())
    assert any(is_of_linux(fix) for fix in found.findings[0].fixes)


def test_wsl_is_linux() -> None:
    text = REPORT.format(os=UBUNTU, error="RuntimeError: Compiler: cl is not found.")
    found = triage(f"{text}\nLinux-5.15.153.1-microsoft-standard-WSL2 on Windows 11\n".encode())
    assert any(is_of_linux(fix) for fix in found.findings[0].fixes)
