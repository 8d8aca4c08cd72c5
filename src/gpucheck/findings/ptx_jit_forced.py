"""CUDA_FORCE_PTX_JIT makes the driver ignore the code for GPUs in PyTorch, which has no other.

With CUDA_FORCE_PTX_JIT=1 the driver leaves out all machine code (cubins) of a program, and compiles
its PTX instead. The variable is meant for a test whether a program has PTX for future GPUs.
PyTorch's wheels have machine code for a list of GPUs, and no PTX. So no kernel is left for any GPU.

Symptoms: "CUDA error: no kernel image is available for execution on the device", and
"CUBLAS_STATUS_INTERNAL_ERROR when calling cublasCreate", on a GPU that this PyTorch supports.

When it is reported: if the variable is 1 and the build of PyTorch has no PTX for a visible GPU.

Fix: unset the variable. Another build of PyTorch changes nothing.
"""

from gpucheck.derived.surroundings import Surroundings
from gpucheck.derived.torch_code import TorchCode, build_name
from gpucheck.facts import known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("CUDA_FORCE_PTX_JIT leaves PyTorch without code for the GPU"),
    severity=Severity.ERROR,
    family="torch",
    refuted_by=("device-placement", "cublas-matmul", "cudnn-convolution"),
    suppressed_by=("torch-mixed-install", "torch-rocm-or-other-build"),
    needs_gpu=True,
)

_VARIABLE = "CUDA_FORCE_PTX_JIT"
_ON = ("1",)
"""The value that the driver takes for yes (CUDA's compatibility guides; seen on an H100)."""
_PTX = "compute_"


@RULE.check
def check(
    environment: Environment, torch: TorchBuild, code: TorchCode, around: Surroundings
) -> Judgement:
    """Look for the variable beside a build without PTX."""
    if reason := code.nothing_to_judge():
        return NotApplicable(reason)
    if known(environment.variables, "environment.variables").get(_VARIABLE) not in _ON:
        return Fine(say("{variable} is not set to 1", variable=_VARIABLE))
    if any(arch.startswith(_PTX) for arch in code.codes()):
        return Fine(say("this build of PyTorch has PTX"))
    return Hit(
        headline=say(
            "{variable}=1 makes the driver ignore all code for GPUs in {build}: this build has "
            "no PTX",
            variable=_VARIABLE,
            build=build_name(torch),
        ),
        evidence=(f"environment.variables.{_VARIABLE}", *code.facts()),
        fixes=(
            Fix(
                text=say(
                    "Unset {variable}. Also remove the line that sets it: in your shell's "
                    "startup file, or in your job script.",
                    variable=_VARIABLE,
                ),
                commands=around.unset(_VARIABLE),
            ),
        ),
    )
