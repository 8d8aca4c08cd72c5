"""There is no CUDA toolkit, although CUDA code is to be compiled here.

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
"""

from gpucheck.advice.cuda_libraries import ARCHIVE, ToolkitFixes
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.libraries import Toolkit, Toolkits
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.compiling import NOTHING, Compiling
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("no CUDA toolkit to compile with"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing",),
    compat_keys=("action", "nvcc"),
)

_VERIFY = "gpucheck --for build"


@RULE.check
def check(
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
