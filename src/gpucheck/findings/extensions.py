"""Compiled extensions that do not fit the PyTorch or the GPU."""

from gpucheck.advice.extension_install import ExtensionFixes
from gpucheck.advice.target_python import COMPANIONS
from gpucheck.advice.torch_again import TorchAgain
from gpucheck.derived import Gpu
from gpucheck.derived.extensions import CompiledPackage, ExtensionPackages, ExtensionPtx
from gpucheck.derived.torch_code import TorchCode
from gpucheck.derived.wheels import OtherCuda, WheelsOfPypi
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity, also, or_else
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.extension_faults import ExtensionFaults, Fault
from gpucheck.language import Sentence, in_series, say, say_many
from gpucheck.tables.compilers import CubinRules, Runs

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


EXTENSION_GPU_UNSUPPORTED = Rule(
    "extension-gpu-unsupported",
    page="""\
A compiled extension has no code for a GPU that PyTorch itself runs on.

A package with its own CUDA kernels, such as flash-attn, xformers or bitsandbytes, contains machine
code for certain GPU generations, as PyTorch does. ``sm_80`` runs on compute capability 8.0 to 8.9,
but never on another major version. The driver can compile PTX (``compute_80``) for later GPUs.

Symptoms: PyTorch works, but the first call into the package fails: "CUDA error: no kernel image is
available for execution on the device", or the package says that it needs a newer GPU.

When it is reported: gpucheck reads the headers of the GPU code in the package's files and executes
nothing. A package is reported only if none of its files has code that runs on the GPU, all its code
could be read, and PyTorch has code for the GPU. A package without GPU code of its own is never
reported.

The driver refuses PTX of a newer CUDA than it supports. If the CUDA that made the PTX is known,
this is reported as driver-too-old; otherwise it stays an open question.

Two kinds of packages are only mentioned: those whose kernels are optional and exist for some GPUs
only (torchao, DeepGEMM, FlashMLA), and those that are neither linked with PyTorch nor require it
(ONNX Runtime, XGBoost), because gpucheck does not know what they do without such code.

Fix: install a release of the package that has code for the GPU, or compile the package here for it.
If the GPU is older than everything the package supports, use another package.
""",
    title=say("a compiled extension has no code for this GPU"),
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=(
        "ptx-jit-forced",
        "torch-mixed-install",
        "extension-abi-mismatch",
        "gpu-too-new-for-torch",
        "gpu-too-old-for-torch",
    ),
    needs_gpu=True,
    compat_keys=(
        "extension.name",
        "extension.built_with_cuda",
        "extension.code",
        "extension.cubins",
    ),
)


@EXTENSION_GPU_UNSUPPORTED.check
def check_extension_gpu_unsupported(
    code: TorchCode,
    packages: ExtensionPackages,
    rules: CubinRules,
    advice: ExtensionFixes,
    ptx: ExtensionPtx,
) -> Judgement:
    """Compare the GPU code of each package with the GPUs that torch itself runs on."""
    if reason := code.nothing_to_judge():
        return NotApplicable(reason)
    judged = [package for package in packages.all() if _has_code(package)]
    left_out = packages.left_out()
    if not judged and not left_out:
        return NotApplicable(say("no compiled extension with GPU code of its own is installed"))
    gpus = [judged_gpu.gpu for judged_gpu in code.on_gpus() if judged_gpu.trouble in ("", "cudnn")]
    if not gpus:
        return NotApplicable(say("torch has no code for any visible GPU"))
    found = [
        (package, lacking) for package in judged if (lacking := _lacking(package, gpus, rules))
    ]
    if found:
        found.sort(key=lambda pair: (_is_optional(pair[0]), not pair[0].for_torch))
        return _extension_gpu_unsupported_hit(*found[0], gpus, advice)
    unread = next(
        (
            package
            for package in judged
            if package.for_torch and not _is_read(package) and not _runs(package, gpus, rules)
        ),
        None,
    )
    if unread is not None:
        file = next(file for file in unread.files if file.extension.codes is None)
        raise UnknownFactError(f"{file.fact}.codes")
    for newer in ptx.newer():
        if newer.built_with:
            return NotApplicable(
                say(
                    "the driver refuses the PTX of {package}: see driver-too-old",
                    package=newer.package.title,
                )
            )
        raise UnknownFactError(
            next(fact for fact in newer.facts if fact.endswith(".built_with")),
            say(
                "{package} has only PTX for {gpu}. A driver that supports CUDA up to {cuda} "
                "compiles the PTX only if no newer CUDA made it, and the file does not say which "
                "CUDA did",
                package=newer.package.title,
                gpu=newer.gpus[0].label,
                cuda=newer.speaks,
            ),
        )
    if left_out:
        raise UnknownFactError("extensions.left_out", left_out)
    names = [package.title for package in judged if _is_read(package)]
    if not names:
        return NotApplicable(say("no GPU code of an extension of PyTorch is installed"))
    return Fine(
        say(
            "the code in {names} runs on every visible GPU that torch runs on",
            names=in_series(names),
        )
    )


def _has_code(package: CompiledPackage) -> bool:
    """Whether it has GPU code; a package without a version must be an extension of torch."""
    if not package.version and not any(file.extension.needs_torch for file in package.files):
        return False
    return any(file.extension.codes for file in package.files) or not _is_read(package)


def _is_read(package: CompiledPackage) -> bool:
    return all(file.extension.codes is not None or file.cannot_load for file in package.files)


def _codes(package: CompiledPackage) -> list[str]:
    return [code for file in package.files for code in file.extension.codes or ()]


def _lacking(package: CompiledPackage, gpus: list[Gpu], rules: CubinRules) -> list[Gpu]:
    """Return the GPUs on which none of its code runs; none if any code could not be read."""
    codes = _codes(package)
    if not codes or not _is_read(package):
        return []
    return [
        gpu for gpu in gpus if rules.covers(codes, gpu.compute_capability or "", None) is Runs.NO
    ]


def _runs(package: CompiledPackage, gpus: list[Gpu], rules: CubinRules) -> bool:
    codes = _codes(package)
    ways = (rules.covers(codes, gpu.compute_capability or "", None) for gpu in gpus)
    return bool(codes) and all(way in (Runs.CUBIN, Runs.PTX) for way in ways)


def _extension_gpu_unsupported_hit(
    package: CompiledPackage, lacking: list[Gpu], gpus: list[Gpu], advice: ExtensionFixes
) -> Hit:
    optional = _is_optional(package)
    return Hit(
        headline=_headline(package, lacking, gpus),
        evidence=(
            *(f"{file.fact}.codes" for file in package.files if file.extension.codes),
            *(fact for gpu in lacking for fact in gpu.facts),
        ),
        fixes=(_nothing(),) if optional else advice.for_gpus(package, lacking),
        severity=Severity.INFO
        if optional
        else Severity.ERROR
        if len(lacking) == len(gpus)
        else Severity.WARNING,
    )


def _headline(package: CompiledPackage, lacking: list[Gpu], gpus: list[Gpu]) -> Sentence:
    words = _no_code(package, lacking, gpus)
    if not package.for_torch:
        return say(
            "{no_code}. The package is not linked with PyTorch, so PyTorch is not affected",
            no_code=words,
        )
    if _is_optional(package):
        return say(
            "{no_code}. The other functions of the package do not need this code", no_code=words
        )
    return words


def _no_code(package: CompiledPackage, lacking: list[Gpu], gpus: list[Gpu]) -> Sentence:
    names = in_series(
        [
            say(
                "{gpu} with compute capability {compute_capability}",
                gpu=gpu.label,
                compute_capability=gpu.compute_capability,
            )
            for gpu in lacking
        ]
    )
    codes = in_series(list(dict.fromkeys(_codes(package))))
    if len(lacking) == len(gpus):
        return say(
            "{package} has no code for {gpus}, only for {codes}",
            package=package.title,
            gpus=names,
            codes=codes,
        )
    return say(
        "{package} has no code for {lacking} of {all} visible GPUs: {gpus}. It has code for "
        "{codes}",
        package=package.title,
        lacking=len(lacking),
        all=len(gpus),
        gpus=names,
        codes=codes,
    )


def _is_optional(package: CompiledPackage) -> bool:
    """Whether a user of PyTorch can do without its GPU code."""
    of_torch = [file.extension for file in package.files if file.extension.needs_torch]
    aside = bool(of_torch) and all(extension.optional for extension in of_torch)
    return package.for_some_gpus or not package.for_torch or aside


def _nothing() -> Fix:
    return Fix(
        text=say("Nothing needs to be done unless you use the functions that need this code.")
    )
