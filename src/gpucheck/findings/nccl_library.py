"""The NCCL that PyTorch would load."""

from gpucheck.advice.cuda_libraries import CopyFixes, WheelFixes
from gpucheck.derived import Gpus
from gpucheck.derived.loaded import (
    Copy,
    Loaded,
    LostLibrary,
    is_nccl,
    keeps_out,
    named,
    needs_permission,
    placed,
)
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.system import System
from gpucheck.facts.torch import NvidiaWheels, TorchBuild
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, phrase, say
from gpucheck.tables.nccl import Nccl, NcclIssueRow
from gpucheck.tables.versions import at_least, parse

NCCL_MISSING = Rule(
    "nccl-missing",
    page="""\
PyTorch was built with NCCL, but the loader does not find it; or PyTorch was built without NCCL.

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
""",
    title=say("NCCL cannot be found"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install", "torch-cpu-only"),
    named_by=("nccl",),
    compat_keys=("nccl",),
)

_PROJECT = "nvidia-nccl"
_SEVERAL = 2  # NCCL is for several GPUs


@NCCL_MISSING.check
def check_nccl_missing(  # two reasons for having no NCCL
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


NCCL_VERSION_MISMATCH = Rule(
    "nccl-version-mismatch",
    page="""\
PyTorch would load an NCCL that is older than the one it was built with, or that has a known bug.

Symptoms: "undefined symbol: ncclGroupSimulateEnd" (or ncclCommRegister, ncclCommResume ...) from
``import torch``, because each minor release of NCCL adds functions that PyTorch calls; or, with a
release that has a known bug, multi-GPU jobs that hang.

Causes: another package pulled in an older nvidia-nccl wheel; or LD_LIBRARY_PATH puts the NCCL of
the system or of an image before the one that PyTorch brings.

When it is reported: a newer NCCL than PyTorch pins is fine unless it has a known bug that the
pinned release does not have. An older *minor* release is an error if it is known to lack functions
or if gpucheck cannot determine this, otherwise a warning. An older patch release is fine unless it
has a known bug. An NCCL wheel that another wheel has overwritten is reported as
nvidia-wheel-mismatch. Different releases on the ranks of one job are an error as well: NCCL reports
them in a self-test, and ``gpucheck preflight`` names the hosts that differ.

Fix: install the NCCL that this PyTorch pins, or remove the other copy from the loader's search
path.
""",
    title=say("NCCL is not the one that PyTorch was built with"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install", "nccl-missing"),
    named_by=("nccl",),
    compat_keys=("nccl",),
    preflight=InPreflight(
        title=say("the ranks have different releases of NCCL"),
        fix=say(
            "Give every node the same environment: torch and the nvidia-nccl wheel of the same "
            "release, and no other NCCL in LD_LIBRARY_PATH."
        ),
        commands=("python -m pip list | grep -i -e torch -e nccl",),
    ),
)

_MOST_NAMES = 4  # chosen: one missing function is proof enough
_GRAVE = ("hang", "crash", "data corruption")


@NCCL_VERSION_MISMATCH.check
def check_nccl_version_mismatch(
    torch: TorchBuild,
    wheels: NvidiaWheels,
    loaded: Loaded,
    advice: WheelFixes,
    copies: CopyFixes,
    nccl: Nccl,
    system: System,
) -> Judgement:
    """Compare the copy that would be loaded with the release that torch pins."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if torch.built_for not in ("cuda", None):
        return NotApplicable(say("this torch was not built for CUDA"))
    copy = loaded.copy(is_nccl)
    if copy is None:
        return NotApplicable(say("no NCCL would be loaded"))
    if loaded.overwritten(copy, advice.pinned(_PROJECT)) is not None:
        return NotApplicable(say("two wheels contain its file: see nvidia-wheel-mismatch"))
    version = loaded.version(copy)
    pinned = known(torch.nccl, "torch.nccl")
    release, pinned_release = parse(version), parse(pinned)
    if release is None or pinned_release is None or min(len(release), len(pinned_release)) == 1:
        return NotApplicable(say("one of the two versions is not a full release number"))
    fix = _fix(copy, advice, copies)
    if at_least(release[:2], pinned_release[:2]):
        return _with_a_fault(copy, version, pinned, nccl, system, fix) or Fine(
            say(
                "NCCL {version} works with a PyTorch that was built with {pinned}",
                version=version,
                pinned=pinned,
            )
        )
    lacking = wheels.nccl_functions_missing
    works = lacking == []
    nccl_here = placed(f"NCCL {version}", copy)
    if lacking:
        headline = say(
            "import torch fails: {nccl} is older than {pinned}, with which {torch} was built, and "
            "lacks {functions}",
            nccl=nccl_here,
            pinned=pinned,
            torch=named(torch),
            functions=in_series(lacking[:_MOST_NAMES]),
        )
    else:
        headline = say(
            "{torch} was built with NCCL {pinned}, but would load the older {nccl}",
            torch=named(torch),
            pinned=pinned,
            nccl=nccl_here,
        )
    return Hit(
        headline=headline,
        evidence=(
            f"{copy.fact}.version",
            "torch.nccl",
            *(("nvidia_wheels.nccl_functions_missing",) if lacking is not None else ()),
        ),
        fixes=(fix,),
        severity=Severity.WARNING if works else None,
        confidence=Confidence.LIKELY if lacking is None else Confidence.CERTAIN,
    )


def _with_a_fault(  # what it would be told by, and of what
    copy: Copy, version: str, pinned: str, nccl: Nccl, system: System, fix: Fix
) -> Hit | None:
    """Return what is known to be wrong with a release that is not the pinned one."""
    if version == pinned:
        return None
    own = set(nccl.issues(pinned) or ())
    others = (issue for issue in nccl.issues(version) or () if issue not in own)
    issue = next((issue for issue in others if _counts(issue, system.machine)), None)
    if issue is None:
        return None
    headline = say(
        "{nccl} has a known fault that the NCCL {pinned} of this PyTorch does not have: {fault}",
        nccl=placed(f"NCCL {version}", copy),
        pinned=pinned,
        fault=phrase(issue.description),
    )
    if issue.fixed_in:
        headline = say("{headline}; fixed in {release}", headline=headline, release=issue.fixed_in)
    return Hit(
        headline=headline,
        evidence=(
            f"{copy.fact}.version",
            "torch.nccl",
            *(("system.machine",) if issue.machine else ()),
        ),
        fixes=(fix,),
        severity=Severity.WARNING,
        confidence=Confidence.POSSIBLE,
        rows=((f"{copy.fact}.version", issue),),
    )


def _counts(issue: NcclIssueRow, machine: str | None) -> bool:
    """Whether a fault is severe, of this kind of machine, and depends on nothing unknown."""
    return (
        issue.effect in _GRAVE
        and issue.machine in (None, machine)
        and not (issue.torch or issue.driver_branch or issue.scope)
    )


def _fix(copy: Copy, advice: WheelFixes, copies: CopyFixes) -> Fix:
    project = advice.pinned(_PROJECT)
    if copy.library.variable_entry:
        return copies.out_of_variable(copy.library, say("PyTorch brings its own NCCL"))
    if project:
        return advice.reinstall([project])
    return Fix(
        text=say("Install the NCCL that this PyTorch was built with in the place of this copy.")
    )
