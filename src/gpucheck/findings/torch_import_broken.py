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

When it is reported: gpucheck follows the dynamic loader through everything that ``import torch``
loads, without loading it. Missing CUDA libraries have findings of their own, and so have damaged
files of nvidia-* wheels and a C or C++ library that is too old.

Fix: reinstall the same PyTorch, or install the missing library of the system.
"""

from gpucheck.advice.nvidia_wheels import WheelFixes
from gpucheck.advice.torch_again import TorchAgain
from gpucheck.derived.loaded import keeps_out
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.loading import Loading, MissingLibrary
from gpucheck.facts.selftests import SelfTest
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import say
from gpucheck.tables.wheel_names import wheel_of_file

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
_TRY = "gpucheck selftest --tests import-torch"


@RULE.check
def check(
    torch: TorchBuild,
    loading: Loading,
    again: TorchAgain,
    wheels: WheelFixes,
    says: SelfTestSays,
) -> Judgement:
    """Report why import torch fails, if no missing CUDA library is the reason.

    What the files show comes first: it says more than the error that the import ends with.
    """
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    said = says.import_failure()
    if said is not None and loading.missing is None:
        return _seen(*said, again)
    missing = known(loading.missing, "loading.missing")
    found = [
        (at, one)
        for at, one in enumerate(missing)
        if one.fatal
        and not ((one.why == "not found" or keeps_out(one)) and wheel_of_file(one.soname))
    ]
    if not found and said is not None:
        return _seen(*said, again)
    if not found:
        return Fine(
            say("the loader finds everything that import torch needs, and all files are intact")
        )
    at, first = found[0]
    return Hit(
        headline=say("import torch fails: {what}", what=_what(first)),
        evidence=(f"loading.missing.{at}",),
        fixes=(_fix(first, torch, again, wheels),),
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
