"""PyTorch was built with NCCL, but the loader does not find it; or PyTorch was built without NCCL.

NCCL transfers the data between GPUs.

Symptoms: "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory"
from ``import torch``, even if only one GPU is used; or, with a build without NCCL, "Distributed
package doesn't have NCCL built in".

Causes: the nvidia-nccl wheel was removed, or pip removed its file along with another wheel that
owned it (nvidia-nccl-cu12 and -cu13 both own nvidia/nccl/lib/libnccl.so.2).

When it is reported: for a CUDA build on Linux, only what the loader would do counts; an NCCL from
conda or the system is fine. Windows and CPU builds never have NCCL, and nothing in the files of a
machine says that it is wanted. For those it is reported only if you say that it is wanted, for
example with ``nccl=none`` and several GPUs in ``gpucheck compat``.

Fix: reinstall the nvidia-nccl wheel that this PyTorch pins. If only permissions keep this user from
the library, the command changes them. On Windows, use the backend "gloo" instead.
"""

from gpucheck.advice.cuda_libraries import WheelFixes
from gpucheck.derived import Gpus
from gpucheck.derived.loaded import (
    Loaded,
    LostLibrary,
    is_nccl,
    keeps_out,
    named,
    needs_permission,
    placed,
)
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.system import System
from gpucheck.facts.torch import NvidiaWheels, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("NCCL cannot be found"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install", "torch-cpu-only"),
    named_by=("nccl",),
    compat_keys=("nccl",),
)

_PROJECT = "nvidia-nccl"
_SEVERAL = 2  # NCCL is for several GPUs


@RULE.check
def check(  # two reasons for having no NCCL
    torch: TorchBuild,
    system: System,
    gpus: Gpus,
    loaded: Loaded,
    wheels: NvidiaWheels,
    advice: WheelFixes,
) -> Judgement:
    """Ask the loader for NCCL; a build without NCCL matters only with several GPUs."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if known(torch.built_for, "torch.built_for") != "cuda":
        return NotApplicable(say("this torch was not built for CUDA"))
    if known(system.os, "system.os") != "linux":
        return NotApplicable(say("only builds for Linux have NCCL"))
    if torch.nccl == "":
        return _without(torch, gpus)
    lost = loaded.lost(is_nccl)
    if lost is not None:
        return _lost(lost, torch, wheels, advice)
    copy = loaded.copy(is_nccl)
    if copy is None:
        return NotApplicable(
            say("this torch loads no separate NCCL: NCCL is compiled in, or left out")
        )
    return Fine(say("{library} would be loaded", library=placed(copy.library.soname or "", copy)))


def _lost(
    lost: LostLibrary, torch: TorchBuild, wheels: NvidiaWheels, advice: WheelFixes
) -> Judgement:
    if keeps_out(lost.library):
        return Hit(
            headline=needs_permission(named(torch), lost.library),
            evidence=(lost.fact,),
            fixes=(advice.readable(lost.library.path or "", lost.library.soname),),
        )
    project = advice.pinned(_PROJECT)
    pin = wheels.pinned(project) if project else None
    facts = [lost.fact]
    headline = say(
        "{torch} needs {soname}, which the loader does not find",
        torch=named(torch),
        soname=lost.library.soname,
    )
    if pin is not None and pin.installed == "":
        facts.append(f"nvidia_wheels.pins.{(wheels.pins or []).index(pin)}")
        headline = say("{headline}: {wheel} is not installed", headline=headline, wheel=project)
    fix = (
        advice.reinstall([project])
        if project
        else Fix(
            text=say("Install the NCCL that this PyTorch was built with, such as that of conda.")
        )
    )
    return Hit(
        headline=headline,
        evidence=tuple(facts),
        fixes=(fix,),
    )


def _without(torch: TorchBuild, gpus: Gpus) -> Judgement:
    try:
        several = len(gpus.visible()) >= _SEVERAL
    except UnknownFactError:
        several = False
    if not several:
        return Fine(say("this build has no NCCL, which only several GPUs need"))
    return Hit(
        headline=say(
            "{torch} was built without NCCL, which several GPUs need to work together",
            torch=named(torch),
        ),
        evidence=("torch.nccl", "torch.version"),
        fixes=(
            Fix(
                text=say(
                    "Use a build of PyTorch with NCCL: PyTorch's own wheels for Linux have it. "
                    "Until then, {gloo} works, slowly.",
                    gloo="init_process_group('gloo')",
                )
            ),
        ),
    )
