"""The cuDNN that PyTorch needs is missing, or a part of it."""

from gpucheck.advice.cuda_libraries import CopyFixes, WheelFixes
from gpucheck.derived.loaded import (
    Copy,
    Loaded,
    LostLibrary,
    is_cudnn,
    is_cudnn_part,
    keeps_out,
    named,
    needs_permission,
    placed,
)
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.torch import DamagedLibrary, NvidiaWheels, PinnedWheel, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, say
from gpucheck.tables.cudnn import CudnnSublibraries
from gpucheck.tables.versions import parse

CUDNN_MISSING = Rule(
    "cudnn-missing",
    page="""\
PyTorch needs cuDNN, but the dynamic loader finds no copy of it, or only some of its parts.

Symptoms on Linux: "ImportError: libcudnn.so.9: cannot open shared object file: No such file or
directory" from ``import torch``. If only a part of cuDNN is gone, the import still works and the
first convolution or RNN fails: "Unable to load any of {libcudnn_ops.so.9 ...}" and "Invalid handle.
Cannot load symbol cudnnCreateTensorDescriptor". On Windows: "Could not locate cudnn64_9.dll".

Causes:
- The nvidia-cudnn wheel was removed, or pip removed its files along with another wheel that owned
  them (nvidia-cudnn-cu12 and -cu13 share a folder).
- A wheel of another cuDNN major release was installed on top.
- An installation was interrupted.
- Another user installed the files, and this user may not read them. The loader says "No such file
  or directory" in this case too.

When it is reported: only what the loader would do counts. A PyTorch that gets its cuDNN from conda,
from the system or from torch's own folder is fine, and so is a machine without a system-wide cuDNN.
A cuDNN of another major release in the system does not help; the report names it.

A part of cuDNN counts only if this release of cuDNN is known to have it. If another complete
release replaced the one of the wheel, no part is missing, and cudnn-version-mismatch compares the
two. If the self-test cudnn-convolution passes, cuDNN is not missing as a whole. A part may still be
missing, because a convolution does not use every part.

Fix: reinstall the nvidia-cudnn wheel that this PyTorch pins; the command names it. If only
permissions are in the way, the command changes them.
""",
    title=say("cuDNN cannot be found"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install"),
    refuted_by=("cudnn-convolution",),
    compat_keys=("cudnn_runtime", "cudnn_soname_needed", "cudnn_sonames_found"),
)

_PROJECT = "nvidia-cudnn"


@CUDNN_MISSING.check
def check_cudnn_missing(
    torch: TorchBuild,
    loaded: Loaded,
    wheels: NvidiaWheels,
    advice: WheelFixes,
    copies: CopyFixes,
    sublibraries: CudnnSublibraries,
) -> Judgement:
    """Ask the loader for cuDNN's main library, then for its parts."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if torch.built_for not in ("cuda", None):
        return NotApplicable(say("this torch was not built for CUDA"))
    lost = loaded.lost(is_cudnn)
    if lost is not None:
        if keeps_out(lost.library):
            return _unreadable(named(torch), lost, advice)
        return _whole(lost, torch, wheels, advice, copies)
    part = loaded.lost(is_cudnn_part)
    if part is not None:
        if keeps_out(part.library):
            return _unreadable("cuDNN", part, advice)
        return _part(part.library.soname, part.fact, advice)
    needed = loaded.lost_by(is_cudnn_part)
    if needed is not None:
        return _cannot_open(needed)
    copy = loaded.copy(is_cudnn)
    gone = _gone(wheels, advice.pinned(_PROJECT), copy, sublibraries)
    if gone is not None:
        at = (wheels.damaged or []).index(gone)
        return _part(gone.library or "", f"nvidia_wheels.damaged.{at}", advice)
    if copy is None:
        return NotApplicable(say("this torch does not load cuDNN"))
    return Fine(say("torch loads {library}", library=placed(copy.library.soname, copy)))


def _whole(
    lost: LostLibrary,
    torch: TorchBuild,
    wheels: NvidiaWheels,
    advice: WheelFixes,
    copies: CopyFixes,
) -> Judgement:
    project = advice.pinned(_PROJECT)
    pin = wheels.pinned(project) if project else None
    facts = [lost.fact]
    if pin is not None:
        facts.append(f"nvidia_wheels.pins.{(wheels.pins or []).index(pin)}")
    return Hit(
        headline=_headline(named(torch), lost.library.soname, pin),
        evidence=tuple(facts),
        fixes=(copies.past_damaged(lost.library.path or "") or _fix(project, advice),),
    )


def _headline(torch: str, soname: str, pin: PinnedWheel | None) -> Sentence:
    finds_none = say(
        "{torch} needs {soname}, which the loader does not find", torch=torch, soname=soname
    )
    if pin is not None and pin.installed == "":
        return say(
            "{finds_none}: {project} is not installed", finds_none=finds_none, project=pin.project
        )
    if pin is not None and pin.state == "other-version":
        return say(
            "{finds_none}: {project} {installed} is installed, not {specifier}",
            finds_none=finds_none,
            project=pin.project,
            installed=pin.installed,
            specifier=pin.specifier,
        )
    return finds_none


def _unreadable(who: str, lost: LostLibrary, advice: WheelFixes) -> Judgement:
    return Hit(
        headline=needs_permission(who, lost.library),
        evidence=(lost.fact,),
        fixes=(advice.readable(lost.library.path or "", lost.library.soname),),
        refutable=lost.library.fatal is not False,
    )


def _cannot_open(lost: LostLibrary) -> Judgement:
    """Report a part that exists but cannot be opened, because a library it needs is missing."""
    part, soname = lost.library.needed_by, lost.library.soname
    return Hit(
        headline=say(
            "cuDNN's part {part} cannot be opened: it needs {soname}, which the loader does not "
            "find. Functions that need this part fail",
            part=part,
            soname=soname,
        ),
        evidence=(lost.fact,),
        fixes=(
            Fix(text=say("Install the package of this system that has {soname}.", soname=soname)),
        ),
        refutable=False,  # a convolution does not use every part
    )


def _part(soname: str, fact: str, advice: WheelFixes) -> Judgement:
    return Hit(
        headline=say(
            "cuDNN is incomplete: its part {soname} is missing. Functions that need this part fail",
            soname=soname,
        ),
        evidence=(fact,),
        fixes=(_fix(advice.pinned(_PROJECT), advice),),
        refutable=False,  # a convolution does not use every part
    )


def _gone(
    wheels: NvidiaWheels, project: str, copy: Copy | None, sublibraries: CudnnSublibraries
) -> DamagedLibrary | None:
    """Return a part of cuDNN that its wheel installed and that is gone."""
    gone = (d for d in wheels.damaged or () if d.project == project and d.state == "missing")
    parts = (library for library in gone if is_cudnn_part(library.library or ""))
    return next((part for part in parts if _belongs(part, copy, sublibraries)), None)


def _belongs(part: DamagedLibrary, copy: Copy | None, sublibraries: CudnnSublibraries) -> bool:
    """Whether the cuDNN that is loaded has such a part, from the wheel or from elsewhere."""
    brought, here = parse(part.version), parse(copy.library.version if copy is not None else None)
    if brought is None or here is None or brought[:3] == here[:3]:
        return True
    expected = sublibraries.expected(copy.library.version or "") if copy is not None else None
    return expected is None or part.library in expected


def _fix(project: str, advice: WheelFixes) -> Fix:
    if project:
        return advice.reinstall([project])
    return Fix(
        text=say(
            "Install the cuDNN that this PyTorch was built with, where the loader finds it. With "
            "conda, reinstall cudnn in this environment. If PyTorch has cuDNN in its own folder, "
            "reinstall PyTorch."
        )
    )
