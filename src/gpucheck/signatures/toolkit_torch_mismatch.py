"""Texts that point to toolkit-torch-mismatch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="toolkit-torch-mismatch",
    zh="nvcc 的 CUDA 版本与 PyTorch 编译时的不一致",
    signatures=(
        Signature(
            name="torch",
            literal="the detected cuda version",
            pattern=(
                r"the detected CUDA version \((?P<found>[\d.]{3,6})\)(?! has "
                r"a minor version mismatch)"
            ),
            weight=94,
            says="nvcc is CUDA {found}, PyTorch was built with another CUDA",
            sample=(
                "The detected CUDA version (12.2) mismatches the version that was used to compile"
            ),
            other=(
                "The detected CUDA version (11.7) has a minor version mismatch "
                "with the version that was used"
            ),
            stands=True,
        ),
        Signature(
            name="deepspeed",
            literal="does not match the version torch was compiled with",
            pattern=(
                r"(?:installed )?CUDA version (?P<found>[\d.]{3,6}) does not "
                r"match the version torch was compiled with (?P<built>[\d.]{3,6})"
            ),
            weight=94,
            says="The toolkit is CUDA {found}, PyTorch was built with {built}",
            sample=(
                "Installed CUDA version 12.4 does not match the version torch "
                "was compiled with 11.7"
            ),
            other="does not match the version",
            stands=True,
        ),
        Signature(
            name="apex",
            literal="does not match the version used to compile pytorch",
            pattern=r"does not match the version used to compile PyTorch",
            weight=94,
            says="The toolkit's CUDA is not the one PyTorch was built with",
            sample=(
                "RuntimeError: Cuda extensions are being compiled with a version "
                "of Cuda that does not match the version used to compile Pytorch "
                "binaries."
            ),
            other="the version used to compile PyTorch",
            stands=True,
        ),
        Signature(
            name="flash",
            literal="flashattention is only supported on cuda",
            pattern=r"FlashAttention is only supported on CUDA (?P<least>[\d.]{3,6}) and above",
            weight=80,
            says="nvcc is older than CUDA {least}, which FlashAttention needs",
            sample="RuntimeError: FlashAttention is only supported on CUDA 11.6 and above.",
            other="FlashAttention is supported",
        ),
        Signature(
            name="requires-nvcc",
            literal="requires cuda",
            pattern=(
                r"(?:requires?|needs?) (?:nvcc|CUDA|CUDA toolkit|CUDA nvcc) "
                r"(?:version )?(?:>= ?)?[\d.]{3,6}.{0,60}(?:nvcc|found|detected|"
                r"got)"
            ),
            weight=78,
            says="The toolkit is too old for this extension",
            sample="This extension requires CUDA 12.0 or newer but nvcc 11.8 was found",
            other="requires CUDA",
        ),
        Signature(
            name="words",
            literal="cuda",
            pattern=(
                r"(?:nvcc|toolkit).{0,60}(?:mismatch|does not match|doesn't "
                r"match|differs?|different)|mismatch.{0,40}(?:nvcc|cuda toolkit)"
            ),
            weight=62,
            says="The toolkit's CUDA is not the one PyTorch was built with",
            sample="nvcc mismatch: the cuda toolkit differs",
            other="cuda toolkit 12",
            beside=(
                "nvcc|toolkit",
                "mismatch|does not match|doesn't match|differ",
            ),
        ),
        Signature(
            name="running-cuda",
            literal="the current running cuda version is",
            pattern=r"the current running CUDA version is: (?P<found>\d[\d.]{1,9})",
            weight=90,
            says="The toolkit is CUDA {found}, PyTorch was built with another CUDA",
            sample="The current running CUDA version is: 10.2.89",
            other="The current running CUDA version is: None",
            beside=("pytorch is built with cuda version",),
            stands=True,
        ),
        Signature(
            name="said-by-a-build",
            literal="compiled with cuda",
            pattern=(
                r"\bCUDA (?:version )?(?:is )?\d\d?\.\d\b.{0,60}\b(?:while|but|whereas)\b.{0,30}"
                r"torch.{0,40}compiled with CUDA (?:version )?\d"
            ),
            weight=80,
            says="The toolkit's CUDA is not the one PyTorch was built with",
            sample="Your version of CUDA is 12.0 while PyTorch was compiled with CUDA 11.7.",
            other="PyTorch was compiled with CUDA 11.7",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Use the toolkit of torch's CUDA (same major at least), or "
                "a torch built for the toolkit's CUDA."
            ),
            zh="使用与 torch 相同（至少主版本相同）的工具包，或安装与工具包对应的 torch。",
            commands=(
                "nvcc --version",
                'python -c "import torch; print(torch.version.cuda)"',
            ),
        ),
    ),
)
