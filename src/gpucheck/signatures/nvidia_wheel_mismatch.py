"""Texts that point to nvidia-wheel-mismatch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="nvidia-wheel-mismatch",
    zh="nvidia-* 包与 torch 要求的版本不一致",
    signatures=(
        Signature(
            name="requires",
            literal="requires nvidia-",
            pattern=r"torch \S{1,40} requires nvidia-\S{1,60},? .{0,80}which is not installed",
            weight=76,
            says="pip says that torch needs another nvidia-* wheel",
            sample=(
                "torch 2.1.0 requires nvidia-cudnn-cu12==8.9.2.26; platform_system "
                '== "Linux", which is not installed.'
            ),
            other="foo requires nvidia-bar",
        ),
        Signature(
            name="requires-loose",
            literal="which is incompatible",
            pattern=(
                r"torch \S{1,40} requires nvidia-.{0,120}but you have nvidia-\S{1,60} "
                r"\S{1,20} which is incompatible"
            ),
            weight=74,
            says="pip says that torch needs another nvidia-* wheel",
            sample=(
                "torch 2.1.0 requires nvidia-nccl-cu12==2.18.1; platform_machine "
                '== "x86_64", but you have nvidia-nccl-cu12 2.20.5 which is '
                "incompatible."
            ),
            other="which is incompatible",
        ),
        Signature(
            name="pip-check",
            literal="has requirement nvidia-",
            pattern=r"torch \S{1,40} has requirement nvidia-.{0,160}but you(?:.ll)? have nvidia-",
            weight=76,
            says="pip says that torch needs another nvidia-* wheel",
            sample=(
                "torch 2.5.1 has requirement nvidia-nccl-cu12==2.21.5; platform_system == "
                '"Linux", but you have nvidia-nccl-cu12 2.18.1.'
            ),
            other="foo has requirement nvidia-bar",
        ),
        Signature(
            name="both-majors",
            literal="-cu11",
            pattern=r"nvidia-\w{1,24}-cu11\b",
            weight=78,
            says="nvidia-* wheels of CUDA 11 and of CUDA 12 are installed together",
            sample="nvidia-cublas-cu11 11.10.3.66",
            other="nvidia-cublas-cu12",
            beside=(
                "-cu12",
                "undefined symbol|error|cannot|failed|not found|mismatch",
            ),
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="resolver",
            literal="nvidia-",
            pattern=(
                r"(?:requires?|depends on|require) nvidia-[a-z-]{3,24}(?:-cu\d\d)?\s?(?:[<>=!~]="
                r"?=?)"
            ),
            weight=72,
            says="A package needs another nvidia-* wheel than torch pins",
            sample="simpletuner requires nvidia-cublas>=13.3.0.5",
            other="nvidia-smi is required",
            beside=("torch",),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Remove the nvidia-* wheels, then install torch anew, which "
                "brings the ones it pins."
            ),
            zh="卸载 nvidia-* 包后重新安装 torch，它会带上所需的版本。",
            commands=(
                "pip list | grep nvidia",
                "pip install --force-reinstall torch",
            ),
        ),
    ),
)
