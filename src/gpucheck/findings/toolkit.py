"""The CUDA toolkit that a build needs or would use."""

import re

from gpucheck.advice.cuda_libraries import ARCHIVE, ToolkitFixes
from gpucheck.derived import Gpus
from gpucheck.derived.extensions import NvccTargets
from gpucheck.derived.surroundings import Surroundings
from gpucheck.derived.torch_code import TorchCode, capabilities_of
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.libraries import Toolkit, Toolkits
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.compilers import NOTHING, Compiling, Reason
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, say
from gpucheck.tables.versions import capability_numbers, parse

TOOLKIT_MISSING = Rule(
    "toolkit-missing",
    page="""\
There is no CUDA toolkit, although CUDA code is to be compiled here.

PyTorch runs without a toolkit: the wheels bring every CUDA library they use. Only compiling needs
one, for example building flash-attn, apex or your own extension with ``torch.utils.cpp_extension``.

Symptoms: "CUDA_HOME environment variable is not set. Please set it to your CUDA install root", or
"nvcc: command not found".

When it is reported: only when you say so with ``--for build``, or when a package is installed that
compiles CUDA code at run time (deepspeed, deep-gemm, flashinfer without its compiled cache). In the
second case it is a warning, because gpucheck does not know whether you use the package.

The builder looks at CUDA_HOME, then CUDA_PATH, then for nvcc on PATH, then at /usr/local/cuda. It
does not find a toolkit anywhere else.

Fix: set CUDA_HOME to the toolkit that is there, or install a toolkit of the CUDA release that
PyTorch was built with.
""",
    title=say("no CUDA toolkit to compile with"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing",),
    compat_keys=("action", "nvcc"),
)

_VERIFY = "gpucheck --for build"


@TOOLKIT_MISSING.check
def check_toolkit_missing(
    compiling: Compiling,
    toolkits: Toolkits,
    torch: TorchBuild,
    interpreter: Interpreter,
    around: Surroundings,
    toolkit: ToolkitFixes,
) -> Judgement:
    """Look for the toolkit that a build would use, if something must be built."""
    why = compiling.cuda_code()
    if why is None:
        return NotApplicable(NOTHING)
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if known(torch.built_for, "torch.built_for") != "cuda":
        return NotApplicable(say("this torch was not built for CUDA"))
    selected = known(toolkits.selected, "toolkits.selected")
    if selected:
        return Fine(say("a build would use the toolkit at {selected}", selected=selected))
    usable = [toolkit for toolkit in toolkits.toolkits or () if toolkit.has_nvcc and toolkit.path]
    return Hit(
        headline=say("{reason}, but a build would find no CUDA toolkit", reason=why.words),
        evidence=(*why.facts, "toolkits.selected"),
        fixes=(
            *(_point_at(toolkit, around) for toolkit in usable),
            _install(torch.cuda or "", interpreter, toolkit),
        ),
        severity=why.severity,
        confidence=why.confidence,
        rows=why.rows,
    )


def _point_at(toolkit: Toolkit, around: Surroundings) -> Fix:
    return Fix(
        text=say(
            "Set CUDA_HOME to the toolkit that is installed here (CUDA {version}).",
            version=toolkit.version,
        )
        if toolkit.version
        else say("Set CUDA_HOME to the toolkit that is installed here."),
        commands=around.set("CUDA_HOME", toolkit.path or ""),
        verify=_VERIFY,
    )


def _install(cuda: str, interpreter: Interpreter, toolkit: ToolkitFixes) -> Fix:
    if cuda and interpreter.kind != "conda":
        return toolkit.of_torch(_VERIFY)
    if not cuda:
        text = say(
            "Install the toolkit of the CUDA release that PyTorch was built with: {archive}.",
            archive=ARCHIVE,
        )
    else:
        text = say(
            "Install the toolkit of CUDA {cuda}, which this PyTorch was built with: {archive}. In "
            "this conda environment it is the package cuda-toolkit of the channel nvidia, version "
            "{cuda}.",
            cuda=cuda,
            archive=ARCHIVE,
        )
    return Fix(text=text, verify=_VERIFY)


TOOLKIT_GPU_UNSUPPORTED = Rule(
    "toolkit-gpu-unsupported",
    page="""\
The CUDA toolkit that a build would use cannot compile for the GPU of this machine.

Each nvcc supports the GPU generations of its time: one that is older than the GPU does not know it
yet, and newer ones drop old generations (CUDA 13 dropped all before compute capability 7.5).

Symptoms when building: "nvcc fatal : Unsupported gpu architecture 'compute_89'".

When it is reported: PyTorch's extension builder compiles for the visible GPUs, but for none newer
than the code in PyTorch itself. If TORCH_CUDA_ARCH_LIST is set, it compiles for that list. gpucheck
compares exactly these targets with those of the toolkit's nvcc. PyTorch runs without a toolkit, so
this is judged only when something is to be compiled (``--for build``, or an installed package that
compiles at run time).

Fix: build with a toolkit that supports the GPU, of the CUDA major release that PyTorch was built
with. If nvcc is too old, code for an older GPU of the same generation works as well.
""",
    title=say("the CUDA toolkit does not know this GPU"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=(
        "torch-missing",
        "gpu-too-new-for-torch",
        "gpu-too-old-for-torch",
        "toolkit-torch-mismatch",
    ),
    compat_keys=("action", "nvcc"),
)

_LIST = "TORCH_CUDA_ARCH_LIST"
# An entry of TORCH_CUDA_ARCH_LIST, as torch.utils.cpp_extension takes it.
_ENTRY = r"([0-9]{1,2})\.([0-9])([af]?)(?:\+PTX)?"
_MOST_ENTRIES = 64  # chosen: no GPU code is built for more targets; a variable may have any length


@TOOLKIT_GPU_UNSUPPORTED.check
def check_toolkit_gpu_unsupported(  # noqa: PLR0913, PLR0917  # what is compiled for, with what, and what a fix needs
    compiling: Compiling,
    toolkits: Toolkits,
    torch: TorchBuild,
    environment: Environment,
    gpus: Gpus,
    code: TorchCode,
    nvcc: NvccTargets,
    around: Surroundings,
    install: ToolkitFixes,
) -> Judgement:
    """Compare the architectures to compile for with those that nvcc knows."""
    why = compiling.cuda_code()
    if why is None:
        return NotApplicable(NOTHING)
    if torch.built_for not in (None, "cuda"):
        return NotApplicable(say("this torch was not built for CUDA"))
    if toolkits.selected == "" and not toolkits.selected_version:
        return NotApplicable(say("a build would find no CUDA toolkit"))
    version = known(toolkits.selected_version, "toolkits.selected_version")
    wanted = _listed(environment) or _of_gpus(gpus, code)
    if not wanted:
        return NotApplicable(
            say("there is no GPU here to compile for, and TORCH_CUDA_ARCH_LIST names none")
        )
    refused = [
        (wanted_code, facts)
        for wanted_code, facts in wanted
        if nvcc.knows(version, wanted_code) is False
    ]
    if not refused:
        unknown = next(
            (wanted_code for wanted_code, _ in wanted if nvcc.knows(version, wanted_code) is None),
            None,
        )
        if unknown is not None:
            raise UnknownFactError(
                "toolkits.selected_version",
                say(
                    "the tables do not say whether CUDA {version} compiles for {capability}",
                    version=version,
                    capability=unknown,
                ),
            )
        return Fine(
            say(
                "CUDA {version} compiles for {capabilities}",
                version=version,
                capabilities=in_series([wanted_code for wanted_code, _ in wanted]),
            )
        )
    capability, facts = refused[0]
    return Hit(
        headline=say(
            "CUDA {version}, the toolkit that a build would use, cannot compile for compute "
            "capability {capability}{which}; {reason}",
            version=version,
            capability=capability,
            which=nvcc.why_not(version, capability),
            reason=why.words.within(),
        ),
        evidence=("toolkits.selected_version", *facts),
        fixes=_fixes(capability, nvcc, toolkits, torch, around, install, why),
        severity=why.severity,
        confidence=why.confidence,
    )


def _listed(environment: Environment) -> list[tuple[str, tuple[str, ...]]]:
    """Return what TORCH_CUDA_ARCH_LIST asks for, without names such as Ampere."""
    entries = re.split(r"[\s;,]+", environment.get(_LIST) or "")[:_MOST_ENTRIES]
    found = [match for entry in entries if (match := re.fullmatch(_ENTRY, entry))]
    return [(f"{m[1]}.{m[2]}{m[3]}", (f"environment.variables.{_LIST}",)) for m in found]


def _of_gpus(gpus: Gpus, code: TorchCode) -> list[tuple[str, tuple[str, ...]]]:
    """Return the capabilities of the visible GPUs, capped at the highest code in torch."""
    highest = _highest_code(code)
    found: dict[str, tuple[str, ...]] = {}
    for gpu in gpus.visible():
        capability = capability_numbers(gpu.compute_capability)
        if capability is None:
            raise UnknownFactError(
                gpu.facts[0], say("the compute capability of {gpu} is unknown", gpu=gpu.label)
            )
        taken = min(capability, highest) if highest is not None else capability
        found.setdefault(f"{taken[0]}.{taken[1]}", gpu.facts)
    return list(found.items())


def _highest_code(code: TorchCode) -> tuple[int, int] | None:
    try:
        codes = code.codes()
    except UnknownFactError:
        return None
    compiled = tuple(code for code in codes if code.startswith("sm_"))
    return max(capabilities_of(compiled), default=None)


def _fixes(
    capability: str,
    nvcc: NvccTargets,
    toolkits: Toolkits,
    torch: TorchBuild,
    around: Surroundings,
    install: ToolkitFixes,
    why: Reason,
) -> tuple[Fix, ...]:
    verify = "gpucheck --for build" if why.asked else "gpucheck"
    major = (torch.cuda or "").partition(".")[0]
    fixes = [
        Fix(
            text=say(
                "Build with the toolkit of CUDA {version} that is installed here.",
                version=toolkit.version,
            ),
            commands=around.set("CUDA_HOME", toolkit.path),
            verify=verify,
        )
        for toolkit in toolkits.toolkits or ()
        if toolkit.has_nvcc and toolkit.path and _fits(toolkit, major, capability, nvcc)
    ]
    if not fixes:
        if torch.cuda and nvcc.knows(torch.cuda, capability):
            fixes.append(install.of_torch(verify))
        else:
            fixes.append(Fix(text=_another(capability, nvcc, major), verify=verify))
    lower = nvcc.stand_in(toolkits.selected_version or "", capability)
    if lower:
        text = say(
            "Or compile for {lower}: that code runs on {capability}, too.",
            lower=lower,
            capability=capability,
        )
        fixes.append(Fix(text=text, commands=around.set(_LIST, lower), verify=verify))
    return tuple(fixes)


def _another(capability: str, nvcc: NvccTargets, major: str) -> str:
    if major:
        return say(
            "Install a toolkit of CUDA {version} that supports compute capability {capability} "
            "({archive}), and set CUDA_HOME to it.",
            version=major,
            capability=capability,
            archive=ARCHIVE,
        )
    return say(
        "Install a toolkit of CUDA {version} or newer, which supports compute capability "
        "{capability} ({archive}), and set CUDA_HOME to it.",
        version=nvcc.first(capability),
        capability=capability,
        archive=ARCHIVE,
    )


def _fits(toolkit: Toolkit, major: str, capability: str, nvcc: NvccTargets) -> bool:
    version = toolkit.version or ""
    return version.partition(".")[0] == major and bool(nvcc.knows(version, capability))


TOOLKIT_TORCH_MISMATCH = Rule(
    "toolkit-torch-mismatch",
    page="""\
The CUDA toolkit on this machine is of another release than the one PyTorch was built with.

PyTorch brings its own CUDA libraries. When it runs, it does not matter which toolkit is in
/usr/local/cuda or what ``nvcc --version`` says. When an extension is compiled, it does: code
compiled by a toolkit of another *major* release does not fit the PyTorch that loads it, and
PyTorch's builder refuses. For another minor release PyTorch only warns, and this usually works.

Symptoms when building: "The detected CUDA version (13.0) mismatches the version that was used to
compile PyTorch (12.8)".

When it is reported: it is an error if something is to be compiled here (``--for build``), and a
warning if a package is installed that compiles CUDA code at run time (such as deepspeed). Otherwise
it is for information, and you need not do anything.

Fix, if you compile: set CUDA_HOME to a toolkit of PyTorch's own CUDA release.
""",
    title=say("the toolkit is of another CUDA release than PyTorch"),
    severity=Severity.INFO,
    family="libraries",
    suppressed_by=(
        "torch-missing",
        "gpu-too-old-for-torch",
        "gpu-too-new-for-torch",
        "driver-too-old",
    ),
    compat_keys=("action", "nvcc"),
)


@TOOLKIT_TORCH_MISMATCH.check
def check_toolkit_torch_mismatch(
    compiling: Compiling,
    toolkits: Toolkits,
    torch: TorchBuild,
    around: Surroundings,
    install: ToolkitFixes,
) -> Judgement:
    """Compare the CUDA major version of the toolkit that a build would use with torch's."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if known(torch.built_for, "torch.built_for") != "cuda":
        return NotApplicable(say("this torch was not built for CUDA"))
    if not known(toolkits.selected, "toolkits.selected"):
        return NotApplicable(say("a build would find no CUDA toolkit"))
    version = known(toolkits.selected_version, "toolkits.selected_version")
    toolkit, built = parse(version), parse(known(torch.cuda, "torch.cuda"))
    if toolkit is None or built is None or toolkit[0] == built[0]:
        return Fine(
            say(
                "the toolkit is CUDA {version}, and torch was built with {cuda}",
                version=version,
                cuda=torch.cuda,
            )
        )
    why = compiling.cuda_code()
    return Hit(
        headline=_headline(toolkits.selected or "", version, torch.cuda or "", why),
        evidence=("toolkits.selected", "toolkits.selected_version", "torch.cuda"),
        fixes=_toolkit_torch_mismatch_fixes(toolkits, torch, around, install)
        if why
        else (_nothing(),),
        severity=why.severity if why else None,
    )


def _headline(selected: str, version: str, cuda: str, why: Reason | None) -> str:
    if why is None:
        return say(
            "The toolkit at {selected} is CUDA {version}, but this PyTorch was built with CUDA "
            "{cuda}; this matters only if you compile something",
            selected=selected,
            version=version,
            cuda=cuda,
        )
    return say(
        "The toolkit at {selected} is CUDA {version}, but this PyTorch was built with CUDA {cuda}, "
        "and {reason}",
        selected=selected,
        version=version,
        cuda=cuda,
        reason=why.words.within(),
    )


def _nothing() -> Fix:
    return Fix(text=say("Nothing needs to be done unless you compile CUDA extensions here."))


def _toolkit_torch_mismatch_fixes(
    toolkits: Toolkits, torch: TorchBuild, around: Surroundings, install: ToolkitFixes
) -> tuple[Fix, ...]:
    wanted = parse(torch.cuda) or (0,)
    fitting = [
        toolkit
        for toolkit in toolkits.toolkits or ()
        if toolkit.has_nvcc and toolkit.path and (parse(toolkit.version) or (0,))[0] == wanted[0]
    ]
    verify = "gpucheck --for build"
    point = tuple(
        Fix(
            text=say(
                "Build with the toolkit of CUDA {version} that is installed here.",
                version=toolkit.version,
            ),
            commands=around.set("CUDA_HOME", toolkit.path or ""),
            verify=verify,
        )
        for toolkit in fitting
    )
    return point or (install.of_torch(verify),)
