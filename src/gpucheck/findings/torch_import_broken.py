"""``import torch`` fails because one of its files is missing, damaged or for another machine.

Symptoms: "ImportError: libtorch_cpu.so: cannot open shared object file", "file too short", "invalid
ELF header", "No module named 'torch._C'", on Windows "[WinError 126] ... Error loading fbgemm.dll
or one of its dependencies", or a bus error (the process dies without a message) if a library is
truncated.

Causes:
- The disk was full, or an installation or copy was interrupted.
- A virtual environment was moved from a machine with another processor, or is used with another
  Python.
- Files were fetched from git without their contents (git-lfs).
- libgomp or another library of the system is not installed.
- A library of ``torch/lib`` that the import does without is gone although the installation lists
  it; what loads it later fails. That is a warning.
- pip has torch on record, but its files are gone: a removal or an upgrade was interrupted.
- A Python package that PyTorch requires is gone, damaged or too old ("No module named
  'typing_extensions'"). Without typing_extensions the import itself fails. If it is too old, it is
  a warning, because it may have all that PyTorch uses. So it is for sympy, networkx, jinja2, fsspec
  and filelock, which PyTorch needs later: in optimizers and in torch.compile.

When it is reported: gpucheck follows the dynamic loader through everything that ``import torch``
loads, without loading it. Missing CUDA libraries have findings of their own, and so have damaged
files of nvidia-* wheels and a C or C++ library that is too old.

Fix: reinstall the same PyTorch, or install the missing library of the system.
"""

from collections.abc import Sequence

from gpucheck.advice.cuda_libraries import CopyFixes, WheelFixes
from gpucheck.advice.torch_again import TorchAgain
from gpucheck.derived.loaded import keeps_out
from gpucheck.derived.wheels import meets
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.libraries import Loading, MissingLibrary
from gpucheck.facts.selftests import SelfTest
from gpucheck.facts.torch import NeededPackage, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import and_more, in_series, say
from gpucheck.tables.packages import wheel_of_file

RULE = Rule(
    __name__,
    title=say("importing PyTorch fails"),
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=(
        "torch-missing",
        "torch-mixed-install",
        "torch-python-unsupported",
        "nvidia-wheel-mismatch",
        "numpy-abi-mismatch",
        "system-library-too-old",
        "cuda-library-missing",
        "cuda-library-conflict",
        "cudnn-missing",
        "host-out-of-memory",
    ),
)

_MODULE = "_C."
_MOST_NAMED = 3  # chosen: torch is installed again as a whole, whichever files are gone
_AT_IMPORT = ("typing-extensions",)
"""Of what torch requires, what ``import torch`` imports: looked up in sys.modules of torch 2.13."""
_TRY = "gpucheck selftest --tests import-torch"


@RULE.check
def check(
    torch: TorchBuild,
    loading: Loading,
    again: TorchAgain,
    wheels: WheelFixes,
    copies: CopyFixes,
    says: SelfTestSays,
) -> Judgement:
    """Report why import torch fails, if no missing CUDA library is the reason.

    What the files show comes first: it says more than the error that the import ends with.
    """
    if torch.is_half_removed:
        return _half_removed(torch, again)
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    unmet, import_failure = _unmet(torch), says.import_failure()
    if unmet and _ends_the_import(unmet[0][1], has_failed=import_failure is not None):
        return _without(unmet, torch, again, is_error=True)
    if found := _fatal(loading):
        at, first = found[0]
        return Hit(
            headline=say("import torch fails: {what}", what=_what(first)),
            evidence=(f"loading.missing.{at}",),
            fixes=(copies.past_damaged(first.path or "") or _fix(first, torch, again, wheels),),
        )
    if import_failure is not None:
        return _seen(*import_failure, again)
    if unmet:
        return _without(unmet, torch, again, is_error=False)
    if torch.lost_libraries:
        return _lost(torch.lost_libraries, again)
    known(loading.missing, "loading.missing")
    return Fine(
        say("the loader finds everything that import torch needs, and all files are intact")
    )


def _fatal(loading: Loading) -> list[tuple[int, MissingLibrary]]:
    """Return what ends the import, if no other finding is about it; [] if that is unknown."""
    return [
        (at, library)
        for at, library in enumerate(loading.missing or ())
        if library.fatal
        and not (
            (library.why == "not found" or keeps_out(library)) and wheel_of_file(library.soname)
        )
    ]


def _lost(names: Sequence[str], again: TorchAgain) -> Hit:
    """Judge files that are gone and that the import does without: something needs them later."""
    return Hit(
        headline=say(
            "PyTorch is incomplete: {files}, which its installation has put there, is gone from "
            "torch/lib",
            files=in_series(names[:_MOST_NAMED]),
        ),
        evidence=("torch.lost_libraries",),
        fixes=(again.same(),),
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
    )


def _half_removed(torch: TorchBuild, again: TorchAgain) -> Hit:
    return Hit(
        headline=say(
            "PyTorch is only partly there: pip has torch {version} on record, but its files are "
            "gone",
            version=torch.recorded[0],
        ),
        evidence=("torch.installed", "torch.leftovers"),
        fixes=(again.same(),),
    )


def _unmet(torch: TorchBuild) -> list[tuple[str, NeededPackage]]:
    """Return the required packages that are not there or too old, those of the import first."""
    found = [
        (f"torch.needs.{at}", need)
        for at, need in enumerate(torch.needs or ())
        if need.found is False
        or (need.found and need.version and meets(need.specifier or "", need.version) is False)
    ]
    return sorted(found, key=lambda numbered_need: numbered_need[1].project not in _AT_IMPORT)


def _ends_the_import(package: NeededPackage, *, has_failed: bool) -> bool:
    """Whether import torch fails without it. A release that is too old may have all it uses."""
    return package.project in _AT_IMPORT and (has_failed or not package.found)


def _without(
    unmet: list[tuple[str, NeededPackage]],
    torch: TorchBuild,
    again: TorchAgain,
    *,
    is_error: bool,
) -> Hit:
    """Judge the required packages that are not there, or too old."""
    package = unmet[0][1]
    return Hit(
        headline=and_more(_needs(package, torch), len(unmet) - 1),
        evidence=tuple(f"{path}.{of}" for path, _ in unmet for of in ("version", "found")),
        fixes=(again.needed([need for _, need in unmet]),),
        severity=None if is_error else Severity.WARNING,
        confidence=Confidence.CERTAIN if is_error and not package.found else Confidence.LIKELY,
    )


def _needs(package: NeededPackage, torch: TorchBuild) -> str:
    wanted = f"{package.project}{package.specifier}"
    if package.found:
        return say(
            "torch {version} requires {wanted}, but {installed} is installed",
            version=torch.version,
            wanted=wanted,
            installed=package.version,
        )
    if package.version:
        return say(
            "torch {version} requires {wanted}, whose files are gone although pip has it on record",
            version=torch.version,
            wanted=wanted,
        )
    return say(
        "torch {version} requires {wanted}, which is not installed",
        version=torch.version,
        wanted=wanted,
    )


def _seen(path: str, result: SelfTest, again: TorchAgain) -> Hit:
    """Judge how the import ended when it was tried; one that timed out may only be slow."""
    if result.status == "timed-out":
        return Hit(
            headline=say("import torch did not end: {detail}", detail=result.detail),
            evidence=(f"{path}.detail",),
            fixes=(
                Fix(
                    text=say(
                        "On a slow disk or a network disk the import may only be slow. Try once "
                        "more: the files are then in the cache."
                    ),
                    commands=(_TRY,),
                    verify=_TRY,
                ),
            ),
            severity=Severity.WARNING,
            confidence=Confidence.POSSIBLE,
        )
    return Hit(
        headline=say("import torch fails: {detail}", detail=result.detail),
        evidence=(f"{path}.detail",),
        fixes=(again.same(),),
        confidence=Confidence.LIKELY,
    )


def _what(lost: MissingLibrary) -> str:
    name = lost.soname.rpartition("/")[2]
    if name.startswith(_MODULE):
        return say(
            "torch has no compiled module {module} for this Python; {why}",
            module=name,
            why=lost.why,
        )
    if lost.why == "not found":
        return say(
            "the loader does not find {library}, which {needed_by} needs",
            library=name,
            needed_by=lost.needed_by,
        )
    return say("{library} cannot be loaded: {why}", library=lost.path or name, why=lost.why)


def _fix(lost: MissingLibrary, torch: TorchBuild, again: TorchAgain, wheels: WheelFixes) -> Fix:
    if keeps_out(lost):
        return wheels.readable(lost.path or "", lost.soname)
    base = wheel_of_file(lost.soname.rpartition("/")[2])
    project = wheels.pinned(base) if base else ""
    if project:
        return wheels.reinstall([project])
    name = lost.soname.rpartition("/")[2]
    inside = bool(torch.path and (lost.path or "").startswith(torch.path))
    carried = name.endswith(".dll") and not name.startswith(("vcruntime", "msvcp"))
    own = name.startswith((_MODULE, "libtorch", "libc10", "libcaffe2", "libshm"))
    if inside or base or own or carried:
        return again.same()
    return again.of_system(name)
