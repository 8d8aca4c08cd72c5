"""The nvidia-* wheels are not the ones that this PyTorch requires, or their files are damaged."""

import msgspec

from gpucheck.advice.cuda_libraries import WheelFixes
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.libraries import Loading
from gpucheck.facts.torch import (
    DamagedLibrary,
    NvidiaWheels,
    Packages,
    PinnedWheel,
    SharedLibrary,
    TorchBuild,
    WheelHashes,
)
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, in_series, say, say_many
from gpucheck.tables.cudnn import CudnnRules, RuleRow
from gpucheck.tables.packages import cuda_of, is_kept_compatible, stem, wheel_of_file
from gpucheck.tables.versions import at_least, compare, parse

RULE = Rule(
    "nvidia-wheel-mismatch",
    page="""\
The nvidia-* wheels are not the ones that this PyTorch requires, or their files are damaged.

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
- The wheel for another CUDA has overwritten a file of the pinned wheel. (If it is an NCCL that is
  not older, this is a warning: it has every function that torch calls.)
- The wheel for another CUDA is installed in place of the pinned one.
- A wheel is of another major release.
- NCCL is older by a minor release.

Warnings:
- A wheel is older than the pin.
- A library has the right size and different content (checked only with ``-v``, because whole
  libraries must be read for it).
- Two wheels own one file, and gpucheck cannot tell which one's content is there.
- Triton, cuSPARSELt or NVSHMEM is of another version, or Triton is not installed.

For information: a library has another size than the wheel's file (somebody may have stripped it);
or two wheels own one file, and the content is that of the pinned one.

Fine: a *newer* cuDNN, NCCL or CUDA library of the same major release, which PyTorch accepts and
whose makers keep it compatible; wheels for another CUDA that write none of these files; a pinned
wheel that is not installed if the loader finds its libraries elsewhere.

Fix: reinstall the pinned wheels; the command names them.
""",
    title=say("nvidia-* wheels do not fit this PyTorch"),
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
_TRITON = "triton"
_NCCL, _CUDNN = "nvidia-nccl", "nvidia-cudnn"
_MOST_NAMES = 4  # chosen: one missing function is proof enough
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
    works: bool = False
    """Whether nothing is wrong as long as nothing is changed."""
    rows: tuple[RuleRow, ...] = ()
    """The rules by which it does not fit, if a table has them."""


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
        return NotApplicable(say("torch is not installed"))
    pins = known(wheels.pins, "nvidia_wheels.pins")
    if all((pin.project or "").startswith(_NO_LIBRARIES) for pin in pins):
        return NotApplicable(say("this torch requires no nvidia-* wheels"))
    found = [
        *_damaged(wheels),
        *_altered(hashes, wheels),
        *_overwritten(wheels, packages),
        *_in_place_of(wheels, packages, loading),
        *_other_versions(wheels, torch, loading, rules),
    ]
    if not found:
        open_pin = next((at for at, pin in enumerate(pins) if pin.state is None), None)
        if open_pin is not None:
            raise UnknownFactError(f"nvidia_wheels.pins.{open_pin}.state")
        return Fine(_whole(hashes))
    found.sort(key=lambda complaint: _SEVERITIES.index(complaint.severity))
    worst = [complaint for complaint in found if complaint.severity is found[0].severity]
    again = dict.fromkeys(project for complaint in worst for project in complaint.again)
    remove = dict.fromkeys(project for complaint in worst for project in complaint.remove)
    headline, more = worst[0].text, len(worst) - 1
    if more:
        headline = say("{headline} ({more} more of this kind)", headline=headline, more=more)
    fix = advice.reinstall(tuple(again), remove=tuple(remove))
    if any(complaint.seen_with_v for complaint in worst):
        fix = msgspec.structs.replace(fix, verify=f"{fix.verify} -v")
    works = all(complaint.works for complaint in worst)
    leave = Fix(text=say("You need not do anything as long as both wheels stay installed."))
    return Hit(
        headline=headline,
        evidence=tuple(dict.fromkeys(fact for complaint in worst for fact in complaint.facts)),
        fixes=(leave, or_else(fix)) if works else (fix,),
        severity=worst[0].severity,
        confidence=worst[0].confidence,
        rows=tuple((complaint.facts[0], row) for complaint in worst for row in complaint.rows),
    )


def _damaged(wheels: NvidiaWheels) -> list[_Complaint]:
    """Return libraries of pinned wheels that are missing, truncated or of another size."""
    found = []
    for at, damaged in enumerate(wheels.damaged or ()):
        project = damaged.project or ""
        if wheels.pinned(project) is None or not damaged.library:
            continue
        if damaged.state == "missing" and wheel_of_file(damaged.library) != stem(project):
            continue  # tools and variants that images leave out to save space
        found.append(
            _Complaint(
                text=_damage(damaged),
                facts=(f"nvidia_wheels.damaged.{at}",),
                again=(project,),
                severity=Severity.INFO if damaged.state == "changed" else Severity.ERROR,
            )
        )
    return found


def _damage(damaged: DamagedLibrary) -> str:
    wheel = f"{damaged.project} {damaged.version}"
    if damaged.state == "missing":
        return say(
            "{library} of {wheel} is missing, although the wheel is installed",
            library=damaged.library,
            wheel=wheel,
        )
    if damaged.state == "cut-off":
        return say(
            "{library} of {wheel} is truncated: it has {size} of {whole} bytes",
            library=damaged.library,
            wheel=wheel,
            size=damaged.size,
            whole=damaged.recorded_size,
        )
    return say(
        "{library} of {wheel} has another size than in its wheel: it was stripped or replaced",
        library=damaged.library,
        wheel=wheel,
    )


def _altered(hashes: WheelHashes, wheels: NvidiaWheels) -> list[_Complaint]:
    """Return libraries of pinned wheels that have the right size and the wrong content."""
    return [
        _Complaint(
            text=say(
                "{library} of {wheel} is not the file that its wheel installed: its size is the "
                "same, but its content (SHA-256) is different",
                library=altered.library,
                wheel=f"{altered.project} {altered.version}",
            ),
            facts=(f"wheel_hashes.altered.{at}",),
            again=(altered.project or "",),
            severity=Severity.WARNING,
            seen_with_v=True,
        )
        for at, altered in enumerate(hashes.altered or ())
        if wheels.pinned(altered.project or "") is not None
    ]


def _whole(hashes: WheelHashes) -> str:
    """Say that all is well, and how much of the content was compared."""
    if not hashes.compared:
        return say("the wheels that torch requires are installed and complete")
    compared = say_many(
        hashes.compared,
        "the wheels that torch requires are installed and complete: the content of {count} library "
        "is as recorded",
        "the wheels that torch requires are installed and complete: the contents of {count} "
        "libraries are as recorded",
    )
    if not hashes.left_out:
        return compared
    return say("{compared}; {left_out}", compared=compared, left_out=hashes.left_out)


def _overwritten(wheels: NvidiaWheels, packages: Packages) -> list[_Complaint]:
    """Return files of pinned wheels that another wheel owns as well."""
    by_projects: dict[tuple[str, ...], tuple[int, SharedLibrary]] = {}
    for at, shared in enumerate(wheels.shared or ()):
        by_projects.setdefault((*(shared.projects or ()), str(shared.owner)), (at, shared))
    return [
        complaint
        for at, shared in by_projects.values()
        if (complaint := _claim(at, shared, wheels, packages)) is not None
    ]


def _claim(
    at: int, shared: SharedLibrary, wheels: NvidiaWheels, packages: Packages
) -> _Complaint | None:
    pinned = next((p for p in shared.projects or () if wheels.pinned(p) is not None), None)
    if pinned is None or not shared.library:
        return None
    others = tuple(project for project in shared.projects or () if project != pinned)
    if shared.owner in others:
        text = say(
            "{other} has overwritten {library} of {pinned}, which PyTorch requires",
            other=shared.owner,
            library=shared.library,
            pinned=pinned,
        )
    else:
        text = _same_files(others, pinned, shared)
    facts = [f"nvidia_wheels.shared.{at}"]
    other = shared.owner in others
    works = shared.owner == pinned
    severity = Severity.INFO if works else Severity.WARNING
    if other and not _is_newer_nccl(shared.owner or "", pinned, wheels, packages):
        severity = Severity.ERROR
    lacking = wheels.nccl_functions_missing if other and stem(pinned) == _NCCL else None
    if lacking:
        text = say(
            "{headline}; the installed file lacks {functions}",
            headline=text,
            functions=_functions(lacking),
        )
        facts.append("nvidia_wheels.nccl_functions_missing")
    return _Complaint(
        text=text,
        facts=tuple(facts),
        again=(pinned,),
        remove=others,
        severity=severity,
        confidence=Confidence.LIKELY if other and not lacking else Confidence.CERTAIN,
        works=works,
    )


def _is_newer_nccl(owner: str, pinned: str, wheels: NvidiaWheels, packages: Packages) -> bool:
    """Whether an NCCL for another CUDA, which has taken the place of the pinned one, is as new.

    It has a CUDA runtime inside and every function that torch calls.
    """
    pin, there = wheels.pinned(pinned), packages.find(owner)
    if stem(pinned) != _NCCL or pin is None or there is None:
        return False
    have, want = parse(there.version), parse(_lowest(pin.specifier or ""))
    return have is not None and want is not None and at_least(have, want)


def _same_files(others: tuple[str, ...], pinned: str, shared: SharedLibrary) -> Sentence:
    """Say that several wheels own the same files, and whose are there now."""
    if shared.owner == pinned:
        return say(
            "{others} and {pinned}, the one that PyTorch requires, write the same files: those of "
            "{pinned} are there now, and removing either wheel removes them",
            others=in_series(others),
            pinned=pinned,
        )
    return say(
        "{others} and {pinned}, the one that PyTorch requires, write the same files, and gpucheck "
        "cannot tell whose {library} is there",
        others=in_series(others),
        pinned=pinned,
        library=shared.library,
    )


def _functions(lacking: list[str]) -> str:
    named, more = in_series(lacking[:_MOST_NAMES]), len(lacking) - _MOST_NAMES
    return say("{names} and {more} more", names=named, more=more) if more > 0 else named


def _in_place_of(wheels: NvidiaWheels, packages: Packages, loading: Loading) -> list[_Complaint]:
    """Return pinned wheels that are not installed, unless the loader finds their libraries."""
    lost = {wheel_of_file(library.soname) for library in loading.missing or ()}
    found = []
    for at, pin in enumerate(wheels.pins or ()):
        project = pin.project or ""
        if pin.state == "missing" and project == _TRITON:
            found.append(
                _Complaint(
                    text=say(
                        "{wheel}, which PyTorch requires, is not installed: torch.compile fails on "
                        "a GPU",
                        wheel=project,
                    ),
                    facts=(f"nvidia_wheels.pins.{at}",),
                    again=(project,),
                    severity=Severity.WARNING,
                )
            )
        if pin.state != "missing" or not project.startswith("nvidia-"):
            continue
        variant = _variant(project, packages)
        if stem(project) in lost or (loading.missing is None and variant):
            found.append(
                _Complaint(
                    text=_not_installed(project, variant),
                    facts=(f"nvidia_wheels.pins.{at}",),
                    again=(project,),
                    confidence=Confidence.CERTAIN if stem(project) in lost else Confidence.LIKELY,
                )
            )
    return found


def _not_installed(project: str, variant: str) -> str:
    if not variant:
        return say("{wheel}, which PyTorch requires, is not installed", wheel=project)
    return say(
        "{wheel}, which PyTorch requires, is not installed; {other} is there, which is for another "
        "CUDA",
        wheel=project,
        other=variant,
    )


def _variant(project: str, packages: Packages) -> str:
    """Return an installed wheel of the same library for another CUDA, "" if there is none."""
    return next(
        (
            f"{distribution.project} {distribution.version}"
            for distribution in packages.distributions or ()
            if distribution.project
            and distribution.project != project
            and stem(distribution.project) == stem(project)
            and cuda_of(distribution.project) != cuda_of(project)
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
                        text=say(
                            "{wheel} {installed} is installed, but PyTorch requires {specifier}",
                            wheel=pin.project,
                            installed=pin.installed,
                            specifier=pin.specifier,
                        ),
                        facts=(f"nvidia_wheels.pins.{at}",),
                        again=(pin.project or "",),
                        severity=severity,
                        rows=_refusing(pin, torch, rules),
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
    if _refusing(pin, torch, rules):
        return Severity.ERROR
    if base == _NCCL and compare(have[:2], want[:2]) < 0 and loading.missing is None:
        return Severity.ERROR  # else nccl-version-mismatch judges
    return Severity.WARNING


def _refusing(pin: PinnedWheel, torch: TorchBuild, rules: CudnnRules) -> tuple[RuleRow, ...]:
    """Return the rule by which torch refuses this cuDNN; () if it is not known to."""
    compiled = torch.cudnn_compiled or rules.compiled(torch.version, torch.cuda)
    cudnn = pin.installed or ""
    if stem(pin.project or "") != _CUDNN or compiled is None:
        return ()
    refused = rules.runtime_accepted(torch.version, compiled, cudnn) is False
    return rules.comparing(torch.version, compiled, cudnn) if refused else ()


def _lowest(specifier: str) -> str:
    """Return the lower bound of a specifier: 13.2.86 of ``<14,>=13.2.86``."""
    for part in specifier.split(","):
        if part.startswith(("==", ">=", "~=")):
            return part[2:].removesuffix(".*")
    return ""
