"""Compiled extensions that do not fit the PyTorch."""

from gpucheck.advice.extension_install import ExtensionFixes
from gpucheck.advice.target_python import COMPANIONS
from gpucheck.advice.torch_again import TorchAgain
from gpucheck.derived.extensions import CompiledPackage, ExtensionPackages
from gpucheck.derived.wheels import OtherCuda, WheelsOfPypi
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity, also, or_else
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.extension_faults import ExtensionFaults, Fault
from gpucheck.language import Sentence, in_series, say, say_many

EXTENSION_ABI_MISMATCH = Rule(
    "extension-abi-mismatch",
    page="""\
A compiled extension was built for another PyTorch, another CUDA or another Python.

Packages with C++ or CUDA code, such as flash-attn, xformers, vllm, detectron2, mmcv, bitsandbytes
or one of your own, fit the PyTorch release that they were compiled against. PyTorch does not keep
its binary interface (ABI) from release to release, unless a package uses only its stable interface.

Symptoms on import: "undefined symbol: _ZN3c10...", "libcudart.so.12: cannot open shared object
file", "libtorch_cuda.so: cannot open shared object file"; or the package continues without its
compiled code.

Causes:
- Only torch was upgraded.
- A wheel was installed that was made for another torch or CUDA (``--no-deps``, a file from a
  release page).
- An old build was left over.

When it is reported: gpucheck imports nothing. It compares the symbols and libraries that the files
need with those that the installed torch has. A package is reported only in these cases:

- A file needs symbols of PyTorch that neither a library of this torch nor one of its own package
  defines.
- A file needs a library of PyTorch that this build lacks, as a CPU build lacks
  ``libtorch_cuda.so``.
- A file needs the CUDA libraries of another major release, and the loader would not find them. If
  both releases are installed and found, nothing is wrong.
- No file was seen, as of a described machine, but the release is PyPI's, whose wheel is known to be
  for another major release of CUDA than this torch.
- A file needs a DLL of the Visual C++ runtime that is nowhere on this Windows machine.
- All files of the package have the tag of another Python in their names.

Some packages, such as bitsandbytes, have files for several CUDA releases side by side; one that
fits is enough. Packages that are not linked with PyTorch (CuPy, ONNX Runtime, TensorFlow ...) are
not reported here, because they load CUDA's libraries in their own way: library-cuda-mismatch judges
these. A package that is linked with PyTorch and loads them in its own way is not reported either.
If a package works without PyTorch, its PyTorch part is only mentioned. torchvision, torchaudio and
torchtext are judged by torch-companion-mismatch.

Fix: install the release of the package that was made for your torch, or compile it again.
""",
    title=say("a compiled extension was built for another PyTorch"),
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=("torch-missing", "torch-mixed-install", "torch-cpu-only", "torch-import-broken"),
    compat_keys=(
        "packages",
        "extension.name",
        "extension.built_with_cuda",
        "extension.code",
        "extension.cubins",
    ),
)

_ELSEWHERE = (*COMPANIONS, "torchtext")
_MOST_NAMED = 4  # chosen: each has a fix of its own, and one page must hold them


@EXTENSION_ABI_MISMATCH.check
def check_extension_abi_mismatch(
    torch: TorchBuild,
    interpreter: Interpreter,
    packages: ExtensionPackages,
    faults: ExtensionFaults,
    advice: ExtensionFixes,
    again: TorchAgain,
    named: WheelsOfPypi,
) -> Judgement:
    """Look at every compiled package except torch's companions."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if (wheel := named.for_other_cuda()) is not None:
        return _of_other_cuda(wheel, torch, advice)
    every = [package for package in packages.all() if package.name not in _ELSEWHERE]
    judged = [package for package in every if package.for_torch]
    found = [(package, fault) for package in every if (fault := faults.of(package)) is not None]
    if found:
        order = (Severity.ERROR, Severity.WARNING, Severity.INFO)
        found.sort(key=lambda pair: order.index(pair[1].severity))
    if found and found[0][1].severity is not Severity.INFO:
        return _hit(
            [faulty for faulty in found if faulty[1].severity is not Severity.INFO], advice, again
        )
    foreign = next((package for package in judged if package.foreign), None)
    if foreign is not None:
        return _of_other_python(foreign, interpreter, advice)
    if found:
        return _hit(found, advice, again)
    return _compatible(judged, every, packages, faults)


def _compatible(
    judged: list[CompiledPackage],
    every: list[CompiledPackage],
    packages: ExtensionPackages,
    faults: ExtensionFaults,
) -> Judgement:
    """Say what fits torch.

    Raises:
        UnknownFactError: not everything was examined.
    """
    if left_out := packages.left_out():
        raise UnknownFactError("extensions.left_out", left_out)
    for package in judged:
        if fact := faults.open_fact(package):
            raise UnknownFactError(fact, _why_open(package, fact))
    if not judged:
        none = say("no compiled extension of PyTorch is installed")
        return NotApplicable(_with_others(none, every))
    fits = say("compatible with torch and CUDA: {names}", names=_names(judged))
    return Fine(_with_others(fits, every))


def _of_other_cuda(wheel: OtherCuda, torch: TorchBuild, advice: ExtensionFixes) -> Hit:
    return Hit(
        headline=say(
            "{package} {version} of PyPI was built for CUDA {theirs}, but torch {torch} brings "
            "CUDA {cuda}",
            package=wheel.package,
            version=wheel.version,
            theirs=wheel.cuda,
            torch=torch.version,
            cuda=torch.cuda,
        ),
        evidence=(wheel.fact, "torch.cuda"),
        fixes=(advice.for_cuda(wheel.package, wheel.version, wheel.platform),),
        confidence=Confidence.LIKELY,
    )


def _why_open(package: CompiledPackage, fact: str) -> str:
    """Return why it is open; "" if the fact itself has the reason."""
    if not fact.endswith(".loads_missing"):
        return ""
    return say(
        "the loader alone does not find {library} for {package}, which may load it itself",
        library=next(iter(_not_found(package)), ""),
        package=package.title,
    )


def _with_others(words: Sentence, packages: list[CompiledPackage]) -> Sentence:
    """Add which needs the loader does not meet when that has nothing to do with PyTorch."""
    lacking = [
        (candidate, lost[0])
        for candidate in packages
        if not any(file.extension.needs_torch for file in candidate.files)
        and (lost := _not_found(candidate))
    ]
    for package, library in lacking[:_MOST_NAMED]:
        words = say(
            "{words}; {package} needs {library}, which the loader alone does not find: the package "
            "is not linked with PyTorch and may load the library itself",
            words=words,
            package=package.title,
            library=library,
        )
    return words


def _not_found(package: CompiledPackage) -> list[str]:
    return [lost for file in package.files for lost in file.extension.missing_libraries or ()]


def _hit(
    found: list[tuple[CompiledPackage, Fault]], advice: ExtensionFixes, again: TorchAgain
) -> Hit:
    first, fault = found[0]
    words = _blamed(first, fault, advice)
    if len(found) > 1:
        others = _names([package for package, _ in found[1:]])
        words = say("{fault}; the same is true of {others}", fault=words, others=others)
    return Hit(
        headline=words,
        evidence=(*fault.evidence, "torch.version"),
        fixes=_fixes(found[:_MOST_NAMED], fault, advice, again),
        severity=fault.severity,
        confidence=fault.confidence,
    )


def _blamed(package: CompiledPackage, fault: Fault, advice: ExtensionFixes) -> Sentence:
    """Return what is wrong; first what decides: no build of the package may serve the GPU."""
    if never := advice.never_served(package.name, package.version):
        return say(
            "{package} does not support compute capability {capabilities}; besides, it {fault}",
            package=package.title,
            capabilities=never,
            fault=fault.words,
        )
    return say("{package} {fault}", package=package.title, fault=fault.words)


def _fixes(
    found: list[tuple[CompiledPackage, Fault]],
    first: Fault,
    advice: ExtensionFixes,
    again: TorchAgain,
) -> tuple[Fix, ...]:
    """Return one fix for each package; first, for information, that none is needed."""
    own, *others = (
        again.of_system(why.of_system) if why.of_system else advice.refit(package)
        for package, why in found
    )
    if first.severity is not Severity.INFO:
        return (own, *map(also, others))
    aside = Fix(text=say("Nothing needs to be done unless the package fails when you use it."))
    return (aside, or_else(own), *map(also, others))


def _of_other_python(
    package: CompiledPackage, interpreter: Interpreter, advice: ExtensionFixes
) -> Hit:
    file = package.foreign[0]
    bound = file.extension.python or ""
    return Hit(
        headline=say(
            "{package} was compiled for CPython {wanted}, but this is {version}: its module cannot "
            "be imported",
            package=package.title,
            wanted=f"{bound[:1]}.{bound[1:]}",
            version=known(interpreter.version, "interpreter.version"),
        ),
        evidence=(f"{file.fact}.file", "interpreter.version"),
        fixes=(advice.refit(package),),
        confidence=Confidence.LIKELY,
    )


def _names(packages: list[CompiledPackage]) -> str:
    named = in_series([package.title for package in packages[:_MOST_NAMED]])
    left = len(packages) - _MOST_NAMED
    if left <= 0:
        return named
    return say_many(left, "{names} and {count} more", "{names} and {count} more", names=named)
