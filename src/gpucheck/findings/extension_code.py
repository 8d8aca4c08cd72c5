"""Compiled extensions without code for a GPU that PyTorch runs on."""

from typing import NamedTuple

from gpucheck.advice.extension_install import ExtensionFixes
from gpucheck.derived import Gpu
from gpucheck.derived.extensions import CompiledPackage, ExtensionPackages, ExtensionPtx
from gpucheck.derived.torch_code import TorchCode
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.torch import Packages
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, in_series, say
from gpucheck.tables.companions import ExtensionRow
from gpucheck.tables.companions import Extensions as ExtensionTable
from gpucheck.tables.compilers import CubinRules, Runs

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

If the files of a package are not there to be read, as in gpucheck compat, the table of releases
counts: flash-attn 2 needs compute capability 8.0. This is likely and not certain, and it is
reported only if all visible GPUs are older than that.

Two kinds of packages are only mentioned: those whose kernels are optional and exist for some GPUs
only (torchao, DeepGEMM, FlashMLA; xformers on older GPUs, where its attention is PyTorch's), and
those that are neither linked with PyTorch nor require it (ONNX Runtime, XGBoost), because gpucheck
does not know what they do without such code.

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
        "packages",
    ),
)


@EXTENSION_GPU_UNSUPPORTED.check
def check_extension_gpu_unsupported(
    code: TorchCode,
    packages: ExtensionPackages,
    installed: Packages,
    table: ExtensionTable,
    rules: CubinRules,
    advice: ExtensionFixes,
    ptx: ExtensionPtx,
) -> Judgement:
    """Compare the GPU code of each package with the GPUs that torch itself runs on."""
    if reason := code.nothing_to_judge():
        return NotApplicable(reason)
    needy = _needy(installed, table, packages)
    judged = [] if needy else [package for package in packages.all() if _has_code(package)]
    if not needy and not judged and not packages.left_out():
        return NotApplicable(say("no compiled extension with GPU code of its own is installed"))
    gpus = [judged_gpu.gpu for judged_gpu in code.on_gpus() if judged_gpu.trouble in ("", "cudnn")]
    if not gpus:
        return NotApplicable(say("torch has no code for any visible GPU"))
    if below := _below_all(needy, gpus, table, advice):
        return below
    judged = [package for package in packages.all() if _has_code(package)]
    found = [
        _Lacking(package, lacking, _is_optional(package, lacking, table))
        for package in judged
        if (lacking := _lacking(package, gpus, rules))
    ]
    if found:
        found.sort(key=lambda lacking: (lacking.optional, not lacking.package.for_torch))
        return _extension_gpu_unsupported_hit(found[0], gpus, advice)
    return _of_the_rest(judged, gpus, packages, rules, ptx)


class _Lacking(NamedTuple):
    """A package without code for some GPUs, and whether one can do without this code."""

    package: CompiledPackage
    gpus: list[Gpu]
    optional: bool


def _of_the_rest(
    judged: list[CompiledPackage],
    gpus: list[Gpu],
    packages: ExtensionPackages,
    rules: CubinRules,
    ptx: ExtensionPtx,
) -> Judgement:
    """Judge packages of which none is known to lack code."""
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
    if left_out := packages.left_out():
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


def _needy(
    installed: Packages, table: ExtensionTable, packages: ExtensionPackages
) -> list[tuple[str, ExtensionRow]]:
    """Return the extensions of torch whose rows name the lowest GPU, where no code was seen."""
    try:
        seen = {package.name for package in packages.all() if _has_code(package)}
    except UnknownFactError:
        seen = set()
    found = []
    for at, package in enumerate(installed.distributions or ()):
        row = table.release(package.project or "", package.version or "")
        if row is None or not row.capability_from or row.package in seen:
            continue
        if row.torch or row.built_for_torch:
            found.append((f"packages.distributions.{at}", row))
    return found


def _below_all(
    needy: list[tuple[str, ExtensionRow]],
    gpus: list[Gpu],
    table: ExtensionTable,
    advice: ExtensionFixes,
) -> Hit | None:
    """Return the first of these extensions that supports none of the GPUs."""
    capabilities = [gpu.compute_capability or "" for gpu in gpus]
    fact, row = next(
        (
            (fact, row)
            for fact, row in needy
            if all(table.serves_gpu(row.package, row.version, c) is False for c in capabilities)
        ),
        ("", None),
    )
    if row is None:
        return None
    package = CompiledPackage(name=row.package, version=row.version, files=())
    return Hit(
        headline=say(
            "{package} is not made for {gpus}: it needs {needed} or newer",
            package=package.title,
            needed=row.capability_from,
            gpus=_named(gpus),
        ),
        evidence=(fact, *(gpu_fact for gpu in gpus for gpu_fact in gpu.facts)),
        fixes=advice.for_gpus(package, gpus),
        confidence=Confidence.LIKELY,
        rows=((fact, row),),
    )


def _named(gpus: list[Gpu]) -> str:
    """Return GPUs with their compute capabilities."""
    return in_series(
        [
            say(
                "{gpu} with compute capability {compute_capability}",
                gpu=gpu.label,
                compute_capability=gpu.compute_capability,
            )
            for gpu in gpus
        ]
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


def _extension_gpu_unsupported_hit(found: _Lacking, gpus: list[Gpu], advice: ExtensionFixes) -> Hit:
    package, lacking, optional = found
    return Hit(
        headline=_headline(found, gpus),
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


def _headline(found: _Lacking, gpus: list[Gpu]) -> Sentence:
    package = found.package
    words = _no_code(package, found.gpus, gpus)
    if not package.for_torch:
        return say(
            "{no_code}. The package is not linked with PyTorch, so PyTorch is not affected",
            no_code=words,
        )
    if found.optional:
        return say(
            "{no_code}. Only its functions with kernels of their own need this code; the rest of "
            "the package does not",
            no_code=words,
        )
    return words


def _no_code(package: CompiledPackage, lacking: list[Gpu], gpus: list[Gpu]) -> Sentence:
    names = _named(lacking)
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


def _is_optional(package: CompiledPackage, lacking: list[Gpu], table: ExtensionTable) -> bool:
    """Whether a user of PyTorch can do without its GPU code."""
    without = table.does_without_own_code
    if all(without(package.name, package.version, g.compute_capability or "") for g in lacking):
        return True
    of_torch = [file.extension for file in package.files if file.extension.needs_torch]
    aside = bool(of_torch) and all(extension.optional for extension in of_torch)
    return package.for_some_gpus or not package.for_torch or aside


def _nothing() -> Fix:
    return Fix(
        text=say("Nothing needs to be done unless you use the functions that need this code.")
    )
