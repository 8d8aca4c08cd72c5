"""PyTorch, or the Python that shall import it, does not start."""

from collections.abc import Sequence

from gpucheck.advice import Python
from gpucheck.advice.cuda_libraries import CopyFixes, WheelFixes
from gpucheck.advice.torch_again import TorchAgain
from gpucheck.derived.loaded import keeps_out
from gpucheck.derived.surroundings import Surroundings
from gpucheck.derived.wheels import meets
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.libraries import Loading, MissingLibrary
from gpucheck.facts.selftests import SelfTest
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Interpreter, NeededPackage, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import and_more, in_series, say
from gpucheck.tables.packages import wheel_of_file

TORCH_IMPORT_BROKEN = Rule(
    "torch-import-broken",
    page="""\
``import torch`` fails because one of its files is missing, damaged or for another machine.

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
""",
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


@TORCH_IMPORT_BROKEN.check
def check_torch_import_broken(
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


STANDARD_MODULE_HIDDEN = Rule(
    "standard-module-hidden",
    page="""\
A file of yours has the name of a standard module that PyTorch imports.

Python looks into the folder of a program first. A ``random.py``, ``typing.py`` or ``logging/`` in
it takes the place of the standard one for every package that is imported, PyTorch included.

Symptoms: "module 'random' has no attribute ...", "cannot import name ... from 'typing'", "partially
initialized module", from a line deep in PyTorch or in Python itself. The same program works in
another folder.

When it is reported: if the current folder has such a file, or such a folder with an
``__init__.py``, and another program beside it. Only the names of modules that ``import torch``
loads count. A folder that is itself a package is fine, because its modules have longer names. So is
a copy of the standard library.

Fix: rename the file, and adapt the code that imports it.
""",
    title=say("a file of yours hides a standard module"),
    severity=Severity.WARNING,
    family="torch",
    concern="code",
    suppressed_by=("torch-missing",),
)


@STANDARD_MODULE_HIDDEN.check
def check_standard_module_hidden(
    interpreter: Interpreter, torch: TorchBuild, system: System, python: Python
) -> Judgement:
    """Report what hides standard modules from a program in the current folder."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    found = known(interpreter.hiding_modules, "interpreter.hiding_modules")
    if not found:
        return Fine(say("no file of the current folder hides a standard module"))
    first = say(
        "{path} hides the standard module of this name from programs in its folder; import torch "
        "loads it",
        path=found[0],
    )
    return Hit(
        headline=and_more(first, len(found) - 1),
        evidence=tuple(f"interpreter.hiding_modules.{at}" for at, _ in enumerate(found)),
        fixes=(
            Fix(
                text=say("Rename this file, and change the code that imports it."),
                commands=tuple(_rename(path, system, python) for path in found),
                verify=python.verify(),
            ),
        ),
        confidence=Confidence.LIKELY,
    )


def _rename(path: str, system: System, python: Python) -> str:
    if system.os == "windows":
        return python.quoted(["ren", path, f"my_{path.rpartition(chr(92))[2]}"])
    folder, _, name = path.rpartition("/")
    return python.quoted(["mv", path, f"{folder}/my_{name}"])


PYTHON_DOES_NOT_START = Rule(
    "python-does-not-start",
    page="""\
The Python that is examined does not start, because PYTHONHOME leads it to another one.

PYTHONHOME says where a Python has its standard library. Whoever sets it for one Python breaks every
other: the library belongs to another version, or is not there.

Symptoms: "Fatal Python error: Failed to import encodings module", "ModuleNotFoundError: No module
named 'encodings'", "SRE module mismatch".

When it is reported: if the Python ends with an error, and starts without the variable. gpucheck's
own Python may be the one that does not start. Then no program in it can say so: ``env -u PYTHONHOME
gpucheck`` starts it.

Fix: unset the variable. No installation needs it.
""",
    title=say("PYTHONHOME keeps Python from starting"),
    severity=Severity.ERROR,
    family="torch",
)


@PYTHON_DOES_NOT_START.check
def check_python_does_not_start(
    interpreter: Interpreter, environment: Environment, around: Surroundings
) -> Judgement:
    """Report a variable without which the Python starts."""
    variable = interpreter.starts_without
    if not variable:
        return Fine(say("no variable is known to keep the Python from starting"))
    return Hit(
        headline=say(
            "{python} does not start: {variable}={value} leads it to the standard library of "
            "another Python",
            python=interpreter.executable,
            variable=variable,
            value=environment.get(variable),
        ),
        evidence=("interpreter.status", f"environment.variables.{variable}"),
        fixes=(
            Fix(
                text=say(
                    "Unset the variable. Also remove the line that sets it: in the file with which "
                    "your shell starts, or in your job script."
                ),
                commands=around.unset(variable),
            ),
        ),
    )
