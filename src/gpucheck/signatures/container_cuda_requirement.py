"""Texts that point to container-cuda-requirement."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="container-cuda-requirement",
    zh="镜像要求的 CUDA/驱动版本高于宿主机",
    signatures=(
        Signature(
            name="unsatisfied",
            literal="unsatisfied condition",
            pattern=r"unsatisfied condition: (?P<condition>(?:cuda|driver|brand|arch)\S{0,40})",
            weight=95,
            says="The image requires {condition}, which the host's driver does not meet",
            sample=(
                "nvidia-container-cli: requirement error: unsatisfied condition: "
                "cuda>=11.6, please update your driver to a newer version"
            ),
            other="unsatisfied condition: x > 3",
            stands=True,
        ),
    ),
    cures=(
        Cure(
            text="Update the host's driver, or take an image with an older CUDA.",
            zh="升级宿主机驱动，或使用 CUDA 版本更低的镜像。",
            commands=("nvidia-smi",),
        ),
    ),
)
