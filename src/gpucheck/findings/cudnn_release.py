"""The release of the cuDNN that PyTorch would load."""

from gpucheck.advice.cuda_libraries import CopyFixes, WheelFixes
from gpucheck.derived import Gpu, Gpus
from gpucheck.derived.loaded import (
    Copy,
    Loaded,
    is_cudnn,
    is_cudnn_part,
    named,
    placed,
)
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, say
from gpucheck.tables.base import Row
from gpucheck.tables.cudnn import CudnnRules, CudnnSupport
from gpucheck.tables.versions import at_least, parse

_PROJECT = "nvidia-cudnn"


CUDNN_VERSION_MISMATCH = Rule(
    "cudnn-version-mismatch",
    page="""\
The cuDNN that PyTorch would load does not fit the one that it was compiled against.

Symptoms: "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (9, 8, 0) but
found runtime version (9, 1, 0)", at the first use of cuDNN; or
"CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH" if the parts of cuDNN come from two releases; or "cuDNN
version 91100 is not compatible with devices with SM < 7.5".

Causes:
- Another package installed an older nvidia-cudnn wheel.
- LD_LIBRARY_PATH or a conda package puts another cuDNN before the one that PyTorch brings.
- A newer wheel has dropped an old GPU.

When it is reported: gpucheck applies PyTorch's own rule. The major release must be the same. A
*newer* minor release is accepted, an older one is not, and the patch number does not count. The
cuDNN that PyTorch was *compiled* against decides; it may be older than the one that its wheel pins.
If only the pin is known, an older minor release stays an open question. So does a part of cuDNN if
only its major release is known. A cuDNN wheel that another wheel has overwritten is reported as
nvidia-wheel-mismatch.

PYTORCH_SKIP_CUDNN_COMPATIBILITY_CHECK=1 tells PyTorch not to compare minor releases. An older one
is then a warning: PyTorch refuses nothing, but functions that the older cuDNN lacks fail when they
are used.

In the self-test cudnn-convolution PyTorch makes the comparison itself. If the test passes, PyTorch
accepts this cuDNN, and this cuDNN supports the GPU. Its parts may still be of two releases, and
functions may be missing, because a convolution does not use all of cuDNN.

Fix: install the cuDNN that this PyTorch pins, or remove the other copy from the loader's search
path.
""",
    title=say("cuDNN is not the one that PyTorch was built for"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install", "cudnn-missing"),
    refuted_by=("cudnn-convolution",),
    compat_keys=("cudnn_compiled", "cudnn_runtime", "cudnn_soname_needed", "cudnn_sonames_found"),
)

_ON = "1"


@CUDNN_VERSION_MISMATCH.check
def check_cudnn_version_mismatch(  # a comparison of eight things
    torch: TorchBuild,
    environment: Environment,
    loaded: Loaded,
    advice: WheelFixes,
    copies: CopyFixes,
    rules: CudnnRules,
    support: CudnnSupport,
    gpus: Gpus,
) -> Judgement:
    """Compare the copy that would be loaded with what torch accepts."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if torch.built_for not in ("cuda", None):
        return NotApplicable(say("this torch was not built for CUDA"))
    copy = loaded.copy(is_cudnn)
    if copy is None:
        return NotApplicable(say("no cuDNN would be loaded"))
    if loaded.overwritten(copy, advice.pinned(_PROJECT)) is not None:
        return NotApplicable(say("two wheels contain its files: see nvidia-wheel-mismatch"))
    runtime = loaded.version(copy)
    parts = loaded.opened(is_cudnn_part)
    mixed = _mixed(copy, parts)
    if mixed is not None:
        return _of_two_releases(copy, mixed, advice, copies)
    compiled, fact = _compiled(torch, rules)
    accepted = rules.runtime_accepted(torch.version, compiled, runtime)
    if accepted is None and fact == "torch.cudnn" and _is_newer(runtime, compiled):
        accepted = True
    if accepted is False and not (fact == "torch.cudnn" and _same_major(runtime, compiled)):
        skipped = _comparison_is_off(torch, environment, rules)
        lenient = bool(skipped) and _same_major(runtime, compiled)
        return Hit(
            headline=_cudnn_version_mismatch_headline(
                torch, compiled, copy, skipped if lenient else ""
            ),
            evidence=(
                f"{copy.fact}.version",
                *dict.fromkeys((fact, "torch.version")),
                *((f"environment.variables.{skipped}",) if lenient else ()),
            ),
            fixes=_fixes(copy, advice, copies),
            severity=Severity.WARNING if lenient else None,
            refutable=not lenient,
            rows=_rows(torch, compiled, runtime, (f"{copy.fact}.version", fact), rules),
        )
    dropped = _dropped(torch, runtime, support, gpus)
    if dropped is not None:
        return Hit(
            headline=say(
                "{loaded} has dropped {gpu}, compute capability {compute_capability}; cuDNN "
                "{pinned}, which this PyTorch pins, supports it",
                loaded=placed(f"cuDNN {runtime}", copy),
                gpu=dropped.label,
                compute_capability=dropped.compute_capability,
                pinned=torch.cudnn,
            ),
            evidence=(f"{copy.fact}.version", "torch.cudnn", *dropped.facts),
            fixes=_fixes(copy, advice, copies),
            rows=tuple(
                (f"{copy.fact}.version", row)
                for row in support.excluding(
                    runtime,
                    (torch.cuda or "").partition(".")[0],
                    dropped.compute_capability or "",
                )
            ),
        )
    if not accepted:
        raise UnknownFactError(
            "torch.cudnn_compiled",
            say(
                "cuDNN {runtime} is older than {compiled}, which this PyTorch pins; it is unknown "
                "which cuDNN it was compiled against",
                runtime=runtime,
                compiled=compiled,
            ),
        )
    _all_known(parts)
    return Fine(say("torch accepts cuDNN {runtime}", runtime=runtime))


def _cudnn_version_mismatch_headline(
    torch: TorchBuild, compiled: str, copy: Copy, skipped: str
) -> Sentence:
    """Return what does not fit; ``skipped`` is the variable that makes torch accept it, or ""."""
    differ = say(
        "{torch} was compiled against cuDNN {compiled}, but would load {loaded}",
        torch=named(torch),
        compiled=compiled,
        loaded=placed(f"cuDNN {copy.library.version}", copy),
    )
    if not skipped:
        return differ
    return say(
        "{differ}; {variable}=1 allows this, but functions that the older cuDNN lacks fail",
        differ=differ,
        variable=skipped,
    )


def _all_known(parts: list[Copy]) -> None:
    """Make sure that the release of each part is known.

    Raises:
        UnknownFactError: of one only the major release is, which all of them share.
    """
    for part in parts:
        version = part.library.version
        if version is None or "." not in version:
            why = say(
                "the release of {library} is unknown", library=placed(part.library.soname, part)
            )
            raise UnknownFactError(f"{part.fact}.version", why)


def _compiled(torch: TorchBuild, rules: CudnnRules) -> tuple[str, str]:
    """Return the cuDNN torch was compiled against, else the pinned one: it is never older.

    Raises:
        UnknownFactError: neither is known.
    """
    if torch.cudnn_compiled:
        return torch.cudnn_compiled, "torch.cudnn_compiled"
    listed = rules.compiled(torch.version, torch.cuda) if torch.installer != "conda" else None
    if listed:
        return listed, "torch.version"
    pinned = known(torch.cudnn, "torch.cudnn")
    if not pinned:
        raise UnknownFactError("torch.cudnn", say("this torch names no cuDNN"))
    return pinned, "torch.cudnn"


def _rows(
    torch: TorchBuild, compiled: str, runtime: str, facts: tuple[str, str], rules: CudnnRules
) -> tuple[tuple[str, Row], ...]:
    """Return by which rule torch compares, and which row says what it was compiled against."""
    of_copy, of_torch = facts
    rule = ((of_copy, row) for row in rules.comparing(torch.version, compiled, runtime))
    listed = rules.compiled_row(torch.version, torch.cuda) if of_torch == "torch.version" else None
    return (*rule, *(((of_torch, listed),) if listed is not None else ()))


def _comparison_is_off(torch: TorchBuild, environment: Environment, rules: CudnnRules) -> str:
    """Return the variable that tells torch not to compare; "" where none does."""
    variable = rules.override(torch.version) if torch.version else None
    return variable if variable and environment.get(variable) == _ON else ""


def _is_newer(runtime: str, pinned: str) -> bool:
    loaded, required = parse(runtime), parse(pinned)
    return (
        loaded is not None
        and required is not None
        and loaded[0] == required[0]
        and at_least(loaded, required)
    )


def _same_major(runtime: str, compiled: str) -> bool:
    return runtime.partition(".")[0] == compiled.partition(".")[0]


def _mixed(copy: Copy, parts: list[Copy]) -> Copy | None:
    """Return a part of cuDNN whose release differs from that of its main library.

    Only what a part's own file says counts: a header beside it may be older than the libraries.
    """
    main = parse(copy.library.version)
    for part in parts:
        if part.library.source("version") != part.library.real_path:
            continue
        other = parse(part.library.version)
        if main and other and len(main) > 1 and len(other) > 1 and main[:2] != other[:2]:
            return part
    return None


def _dropped(torch: TorchBuild, runtime: str, support: CudnnSupport, gpus: Gpus) -> Gpu | None:
    """Return a visible GPU that torch's own cuDNN supports and the loaded one does not."""
    if not torch.cudnn or not torch.cuda:
        return None
    major = torch.cuda.partition(".")[0]
    try:
        visible = gpus.visible()
    except UnknownFactError:
        return None
    for gpu in visible:
        capability = gpu.compute_capability
        if not capability or support.supports(runtime, major, capability) is not False:
            continue
        if support.supports(torch.cudnn, major, capability) is not False:
            return gpu
    return None


def _of_two_releases(copy: Copy, part: Copy, advice: WheelFixes, copies: CopyFixes) -> Judgement:
    return Hit(
        headline=say(
            "cuDNN is mixed from two releases: {main_version} ({main}) and {part_version} ({part})",
            main=placed(copy.library.soname, copy),
            main_version=copy.library.version,
            part=placed(part.library.soname, part),
            part_version=part.library.version,
        ),
        evidence=(f"{copy.fact}.version", f"{part.fact}.version"),
        fixes=_fixes(part if part.library.variable_entry else copy, advice, copies),
        refutable=False,
    )


def _fixes(copy: Copy, advice: WheelFixes, copies: CopyFixes) -> tuple[Fix, ...]:
    project = advice.pinned(_PROJECT)
    if copy.library.variable_entry:
        return (copies.out_of_variable(copy.library, say("PyTorch brings its own cuDNN")),)
    if project:
        return (advice.reinstall([project]),)
    return (
        Fix(
            text=say(
                "Replace this copy with the cuDNN that this PyTorch was built with, or remove the "
                "copy from the loader's search path."
            ),
        ),
    )
