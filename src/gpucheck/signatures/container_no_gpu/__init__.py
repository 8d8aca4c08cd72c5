"""Texts that point to container-no-gpu, by subject."""

from gpucheck.signatures.base import Cure, Signs
from gpucheck.signatures.container_no_gpu import _inside, _kubernetes, _toolkit

SIGNS = Signs(
    slug="container-no-gpu",
    zh="容器没有获得 GPU",
    signatures=(
        *_toolkit.SIGNATURES,
        *_kubernetes.SIGNATURES,
        *_inside.SIGNATURES,
    ),
    cures=(
        Cure(
            text=(
                "Install and configure the NVIDIA container toolkit on the "
                "host, then start the container with GPU access."
            ),
            zh="在宿主机安装并配置 NVIDIA container toolkit，然后带 GPU 启动容器。",
            commands=(
                "sudo nvidia-ctk runtime configure --runtime=docker",
                "sudo systemctl restart docker",
                "docker run --rm --gpus all ubuntu nvidia-smi",
            ),
        ),
        Cure(
            text=(
                "In Kubernetes: the pod needs a limit nvidia.com/gpu and, "
                "where nvidia is not the default runtime, runtimeClassName: "
                "nvidia."
            ),
            zh=(
                "Kubernetes：Pod 需要 nvidia.com/gpu 限额；如果 nvidia 不是默认运行时，"
                "还需要 runtimeClassName: nvidia。"
            ),
        ),
    ),
)
