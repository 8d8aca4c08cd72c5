"""The nvidia-* wheels are not the ones that this PyTorch requires, or their files are damaged.

PyTorch's wheels for Linux pin the wheels of CUDA, cuDNN and NCCL that they were tested with.

Symptoms: "undefined symbol: ncclCommResume" or "__nvJitLinkComplete_12_8" from ``import torch``, a
bus error there (a truncated file), libraries that are missing although their wheel is installed, or
single operations that fail.

Causes:
- Another package required other versions.
- Wheels for two CUDA releases write the same files (nvidia-cudnn-cu12 and -cu13, nvidia-nccl-cu12
  and -cu13). The one installed last has overwritten the other, and removing either removes the
  files of both.
- The disk was full, or an installation was interrupted.

Errors:
- A library that torch uses is missing or truncated although its wheel is installed.
- The wheel for another CUDA has overwritten a file of the pinned wheel.
- The wheel for another CUDA is installed in place of the pinned one.
- A wheel is of another major release.
- NCCL is older by a minor release.

Warnings:
- A wheel is older than the pin.
- A library has the right size and different content (checked only with ``-v``, because whole
  libraries must be read for it).
- Two wheels own one file, and the content is that of the pinned one.
- Triton, cuSPARSELt or NVSHMEM is of another version.

For information: a library has another size than the wheel's file; somebody may have stripped it.

Fine: a *newer* cuDNN, NCCL or CUDA library of the same major release, which PyTorch accepts and
whose makers keep it compatible; wheels for another CUDA that write none of these files; a pinned
wheel that is not installed if the loader finds its libraries elsewhere.

Fix: reinstall the pinned wheels; the command names them.
"""

import msgspec

from gpucheck.advice.nvidia_wheels import WheelFixes
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.loading import Loading
from gpucheck.facts.nvidia_wheels import DamagedLibrary, NvidiaWheels, PinnedWheel, SharedLibrary
from gpucheck.facts.packages import Packages
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.facts.wheel_hashes import WheelHashes
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.tables.cudnn_rules import CudnnRules
from gpucheck.tables.versions import at_least, compare, parse
from gpucheck.tables.wheel_names import cuda_of, is_kept_compatible, stem, wheel_of_file

RULE = Rule(
    __name__,
    title="nvidia-* wheels do not fit this PyTorch",
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=(
        "torch-missing",
        "torch-mixed-install",
        "cudnn-missing",
        "cudnn-version-mismatch",
        "nccl-missing",
        "nccl-version-mismatch",
        "cuda-library-missing",
        "cuda-library-conflict",
    ),
    compat_keys=("triton", "nvidia_packages"),
)

_NO_LIBRARIES = "cuda-"
"""cuda-toolkit has no files; cuda-bindings has Python code only."""
_NCCL, _CUDNN = "nvidia-nccl", "nvidia-cudnn"
_MOST_NAMES = 4
_SEVERITIES = tuple(Severity)


class _Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not fit: wheels to install ``again`` and wheels to ``remove``."""

    text: str
    facts: tuple[str, ...]
    again: tuple[str, ...]
    remove: tuple[str, ...] = ()
    severity: Severity = Severity.ERROR
    confidence: Confidence = Confidence.CERTAIN
    seen_with_v: bool = False
    """Whether only a run with ``-v`` can verify that it is mended."""


@RULE.check
def check(
    torch: TorchBuild,
    packages: Packages,
    wheels: NvidiaWheels,
    hashes: WheelHashes,
    loading: Loading,
    rules: CudnnRules,
    advice: WheelFixes,
) -> Judgement:
    """Collect what does not fit and report the worst; the fix covers all of that severity."""
    if torch.installed is False:
        return NotApplicable("torch is not installed")
    pins = known(wheels.pins, "nvidia_wheels.pins")
    if all((pin.project or "").startswith(_NO_LIBRARIES) for pin in pins):
        return NotApplicable("this torch requires no nvidia-* wheels")
    found = [
        *_damaged(wheels),
        *_altered(hashes, wheels),
        *_overwritten(wheels),
        *_in_place_of(wheels, packages, loading),
        *_other_versions(wheels, torch, loading, rules),
    ]
    if not found:
        open_pin = next((at for at, pin in enumerate(pins) if pin.state is None), None)
        if open_pin is not None:
            raise UnknownFactError(f"nvidia_wheels.pins.{open_pin}.state")
        return Fine(f"the wheels that torch requires are installed, and whole{_read(hashes)}")
    found.sort(key=lambda one: _SEVERITIES.index(one.severity))
    worst = [one for one in found if one.severity is found[0].severity]
    again = dict.fromkeys(project for one in worst for project in one.again)
    remove = dict.fromkeys(project for one in worst for project in one.remove)
    more = f" ({len(worst) - 1} more of this kind)" if len(worst) > 1 else ""
    fix = advice.reinstall(tuple(again), remove=tuple(remove))
    if any(one.seen_with_v for one in worst):
        fix = msgspec.structs.replace(fix, verify=f"{fix.verify} -v")
    return Hit(
        headline=f"{worst[0].text}{more}",
        evidence=tuple(dict.fromkeys(fact for one in worst for fact in one.facts)),
        fixes=(fix,),
        severity=worst[0].severity,
        confidence=worst[0].confidence,
    )


def _damaged(wheels: NvidiaWheels) -> list[_Complaint]:
    """Return libraries of pinned wheels that are missing, truncated or of another size."""
    found = []
    for at, one in enumerate(wheels.damaged or ()):
        project = one.project or ""
        if wheels.pinned(project) is None or not one.library:
            continue
        if one.state == "missing" and wheel_of_file(one.library) != stem(project):
            continue  # tools and variants that images leave out to save space
        found.append(
            _Complaint(
                text=_damage(one),
                facts=(f"nvidia_wheels.damaged.{at}",),
                again=(project,),
                severity=Severity.INFO if one.state == "changed" else Severity.ERROR,
            )
        )
    return found


def _damage(one: DamagedLibrary) -> str:
    of = f"{one.library} of {one.project} {one.version}"
    if one.state == "missing":
        return f"{of} is gone, although the wheel is installed"
    if one.state == "cut-off":
        return f"{of} was cut off: {one.size} of {one.recorded_size} bytes are there"
    return f"{of} has another size than its wheel brought: stripped, or replaced"


def _altered(hashes: WheelHashes, wheels: NvidiaWheels) -> list[_Complaint]:
    """Return libraries of pinned wheels that have the right size and the wrong content."""
    return [
        _Complaint(
            text=f"{one.library} of {one.project} {one.version} is not the file that its wheel "
            "brought: its size is the same, its content (SHA-256) is another",
            facts=(f"wheel_hashes.altered.{at}",),
            again=(one.project or "",),
            severity=Severity.WARNING,
            seen_with_v=True,
        )
        for at, one in enumerate(hashes.altered or ())
        if wheels.pinned(one.project or "") is not None
    ]


def _read(hashes: WheelHashes) -> str:
    """Say how much of their content was compared; "" if nothing was."""
    if not hashes.compared:
        return ""
    left = f"; {hashes.left_out}" if hashes.left_out else ""
    return f": the contents of {hashes.compared} libraries are as recorded{left}"


def _overwritten(wheels: NvidiaWheels) -> list[_Complaint]:
    """Return files of pinned wheels that another wheel owns as well."""
    by_projects: dict[tuple[str, ...], tuple[int, SharedLibrary]] = {}
    for at, one in enumerate(wheels.shared or ()):
        by_projects.setdefault((*(one.projects or ()), str(one.owner)), (at, one))
    return [
        complaint
        for at, one in by_projects.values()
        if (complaint := _claim(at, one, wheels)) is not None
    ]


def _claim(at: int, one: SharedLibrary, wheels: NvidiaWheels) -> _Complaint | None:
    pinned = next((p for p in one.projects or () if wheels.pinned(p) is not None), None)
    if pinned is None or not one.library:
        return None
    others = tuple(project for project in one.projects or () if project != pinned)
    claims = f"{' and '.join(others)} and {pinned}, which PyTorch requires, write the same files"
    if one.owner == pinned:
        text = f"{claims}: {pinned}'s are there now, and removing either takes them away"
    elif one.owner in others:
        text = f"{one.owner} has overwritten {one.library} of {pinned}, which PyTorch requires"
    else:
        text = f"{claims}, and whose {one.library} is there cannot be told"
    facts = [f"nvidia_wheels.shared.{at}"]
    other = one.owner in others
    lacking = wheels.nccl_functions_missing if other and stem(pinned) == _NCCL else None
    if lacking:
        more = f" and {len(lacking) - _MOST_NAMES} more" if len(lacking) > _MOST_NAMES else ""
        text += f"; what is there lacks {', '.join(lacking[:_MOST_NAMES])}{more}"
        facts.append("nvidia_wheels.nccl_functions_missing")
    return _Complaint(
        text=text,
        facts=tuple(facts),
        again=(pinned,),
        remove=others,
        severity=Severity.ERROR if other else Severity.WARNING,
        confidence=Confidence.LIKELY if other and not lacking else Confidence.CERTAIN,
    )


def _in_place_of(wheels: NvidiaWheels, packages: Packages, loading: Loading) -> list[_Complaint]:
    """Return pinned wheels that are not installed, unless the loader finds their libraries."""
    lost = {wheel_of_file(one.soname) for one in loading.missing or ()}
    found = []
    for at, pin in enumerate(wheels.pins or ()):
        project = pin.project or ""
        if pin.state != "missing" or not project.startswith("nvidia-"):
            continue
        variant = _variant(project, packages)
        if stem(project) in lost or (loading.missing is None and variant):
            instead = f"; {variant} is there, which is for another CUDA" if variant else ""
            found.append(
                _Complaint(
                    text=f"{project}, which PyTorch requires, is not installed{instead}",
                    facts=(f"nvidia_wheels.pins.{at}",),
                    again=(project,),
                    confidence=Confidence.CERTAIN if stem(project) in lost else Confidence.LIKELY,
                )
            )
    return found


def _variant(project: str, packages: Packages) -> str:
    """Return an installed wheel of the same library for another CUDA, "" if there is none."""
    return next(
        (
            f"{one.project} {one.version}"
            for one in packages.distributions or ()
            if one.project
            and one.project != project
            and stem(one.project) == stem(project)
            and cuda_of(one.project) != cuda_of(project)
        ),
        "",
    )


def _other_versions(
    wheels: NvidiaWheels, torch: TorchBuild, loading: Loading, rules: CudnnRules
) -> list[_Complaint]:
    found = []
    for at, pin in enumerate(wheels.pins or ()):
        if pin.state == "other-version" and not (pin.project or "").startswith(_NO_LIBRARIES):
            severity = _severity(pin, torch, loading, rules)
            if severity is not None:
                found.append(
                    _Complaint(
                        text=f"{pin.project} {pin.installed} is installed, and PyTorch requires "
                        f"{pin.specifier}",
                        facts=(f"nvidia_wheels.pins.{at}",),
                        again=(pin.project or "",),
                        severity=severity,
                    )
                )
    return found


def _severity(
    pin: PinnedWheel, torch: TorchBuild, loading: Loading, rules: CudnnRules
) -> Severity | None:
    """Return how bad another version is; None if it is known to work as well."""
    have, want = parse(pin.installed), parse(_lowest(pin.specifier or ""))
    base = stem(pin.project or "")
    if have is None or want is None or not is_kept_compatible(base):
        return Severity.WARNING
    if have[0] != want[0]:
        return Severity.ERROR
    if at_least(have, want):
        return None
    if base == _CUDNN and _refused(pin.installed or "", torch, rules):
        return Severity.ERROR
    if base == _NCCL and compare(have[:2], want[:2]) < 0 and loading.missing is None:
        return Severity.ERROR  # else nccl-version-mismatch judges
    return Severity.WARNING


def _refused(cudnn: str, torch: TorchBuild, rules: CudnnRules) -> bool:
    """Whether torch is known to refuse this cuDNN."""
    compiled = torch.cudnn_compiled or rules.compiled(torch.version, torch.cuda)
    if compiled is None:
        return False
    return rules.runtime_accepted(torch.version, compiled, cudnn) is False


def _lowest(specifier: str) -> str:
    """Return the lower bound of a specifier: 13.2.86 of ``<14,>=13.2.86``."""
    for part in specifier.split(","):
        if part.startswith(("==", ">=", "~=")):
            return part[2:].removesuffix(".*")
    return ""
