"""Texts that point to container-no-gpu: what a container without a GPU shows from inside."""

from gpucheck.signatures.base import Cure, Signature

_IN_A_CONTAINER = (
    (
        "docker|container|kubernetes|k8s|kubectl|pod |podman|"
        "nvidia.com/gpu|singularity|apptainer|镜像|容器|microk8s|"
        "minikube|helm"
    ),
)

_NO_GPU_SEEN = (
    (
        "is_available()\nfalse|is_available() false|is_available())\nfalse|"
        "no gpu|gpu is not|gpus are not|not see|cannot find gpu|"
        "not detected|no devices|cuda is not available|cuda not "
        "available"
    ),
)

SIGNATURES = (
    Signature(
        name="ngc-banner",
        literal="nvidia driver was not detected",
        pattern=r"NVIDIA Driver was not detected",
        weight=84,
        says="The container was started without GPU access",
        sample=(
            "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available."
        ),
        other="The NVIDIA driver was detected",
    ),
    Signature(
        name="no-smi-in",
        literal="libnvidia-ml.so",
        pattern=r"couldn't find libnvidia-ml\.so",
        weight=76,
        says=(
            "The container has nvidia-smi but not the driver's libraries: "
            "they were not injected, or not found by the loader"
        ),
        sample="NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
        other="libnvidia-ml.so found",
        beside=_IN_A_CONTAINER,
    ),
    Signature(
        name="no-driver-in",
        literal="found no nvidia driver",
        pattern=r"found no nvidia driver on your system",
        weight=74,
        says="PyTorch finds no driver in this container: it was started without GPU access",
        sample="RuntimeError: Found no NVIDIA driver on your system. Please check",
        other="NVIDIA driver found",
        beside=_IN_A_CONTAINER,
    ),
    Signature(
        name="insufficient-in",
        literal="driver version is insufficient",
        pattern=r"driver version is insufficient for CUDA runtime version",
        weight=72,
        says="No driver reaches this container (CUDA words it as an old driver)",
        sample="CUDA driver version is insufficient for CUDA runtime version",
        other="the driver version",
        beside=_IN_A_CONTAINER,
    ),
    Signature(
        name="build-sees-none",
        literal="_get_cuda_arch_flags",
        pattern=r"_get_cuda_arch_flags",
        weight=76,
        says="A build of an image sees no GPU, so it has no architecture to compile for",
        sample="IndexError: list index out of range in _get_cuda_arch_flags",
        other="get_cuda_arch",
        beside=(
            "list index out of range",
            "dockerfile|docker build|failed to solve|buildkit|buildx|podman build|kaniko",
        ),
        unless=("error 802", "error 803", "error 804"),
        cures=(
            Cure(
                text="Name the architecture in the Dockerfile: an image is built without a GPU.",
                zh="在 Dockerfile 中指明架构：构建镜像时没有 GPU。",
                commands=('export TORCH_CUDA_ARCH_LIST="CAPABILITY"',),
            ),
        ),
    ),
    Signature(
        name="libcuda-in",
        literal="libcuda.so",
        pattern=(
            r"""libcuda\.so(?:\.1)?['\"]?:? (?:cannot open shared object|"""
            r"not found|cannot found)"
        ),
        weight=74,
        says="libcuda is not in this container: it was started without GPU access",
        sample=("OSError: libcuda.so.1: cannot open shared object file: No such file or directory"),
        other="libcuda.so.1 is loaded",
        beside=_IN_A_CONTAINER,
    ),
    Signature(
        name="smi-in",
        literal="nvidia-smi",
        pattern=(
            r"nvidia-smi: (?:command )?not found|nvidia-smi\\?\": executable "
            r"file not found"
        ),
        weight=70,
        says="nvidia-smi is not in this container: it was started without GPU access",
        sample='exec: "nvidia-smi": executable file not found in $PATH: unknown',
        other="nvidia-smi works",
        beside=_IN_A_CONTAINER,
    ),
    Signature(
        name="no-gpu-in",
        literal="no cuda",
        pattern=r"no CUDA(?:-capable device is detected| GPUs are available)",
        weight=62,
        says="This container sees no GPU",
        sample="RuntimeError: No CUDA GPUs are available",
        other="no CUDA needed",
        beside=_IN_A_CONTAINER,
        unless=("cuda_visible_devices=",),
    ),
    Signature(
        name="available-in",
        literal="is_available",
        pattern=(
            r"cuda\.is_available\(\)\)?\s{0,8}(?:->|:|=|is|return\w{0,2}|"
            r"gives)?\s{0,8}`?False"
        ),
        weight=56,
        says="CUDA is not available in this container",
        sample="torch.cuda.is_available() -> False",
        other="torch.cuda.is_available() True",
        beside=("docker run|docker-compose|docker compose|kubectl|--gpus|podman run|pod ",),
    ),
    Signature(
        name="tf-in",
        literal="no nvidia gpu device is present",
        pattern=r"no NVIDIA GPU device is present: /dev/nvidia0 does not exist",
        weight=60,
        says="There is no /dev/nvidia0 here",
        sample="no NVIDIA GPU device is present: /dev/nvidia0 does not exist",
        other="NVIDIA GPU device is present",
        beside=_IN_A_CONTAINER,
    ),
    Signature(
        name="context",
        literal="container",
        pattern=r"\b(?:docker|container|pod|kubernetes|k8s)\b",
        weight=44,
        says="The container does not reach the GPU",
        sample="in the container CUDA is not available",
        other="contain",
        beside=_NO_GPU_SEEN,
    ),
    Signature(
        name="context-docker",
        literal="docker",
        pattern=r"\bdocker\b",
        weight=44,
        says="The container does not reach the GPU",
        sample="in docker CUDA is not available",
        other="dock",
        beside=_NO_GPU_SEEN,
    ),
    Signature(
        name="smi-missing",
        literal="nvidia-smi",
        pattern=r"nvidia-smi.{0,60}(?:no such file|not found|executable file not found)",
        weight=60,
        says="nvidia-smi is not in this container",
        sample='nvidia-smi in the container: "no such file or directory"',
        other="nvidia-smi works",
        beside=_IN_A_CONTAINER,
    ),
    Signature(
        name="build",
        literal="docker build",
        pattern=r"docker build",
        weight=60,
        says="No GPU is there while an image is built",
        sample="docker build -t x .",
        other="docker run",
        beside=("cuda_home|no cuda|no gpu|is_available|arch list|torch_cuda_arch_list",),
        unless=("docker run",),
    ),
    Signature(
        name="gpus-flag",
        literal="--gpus",
        pattern=r"without.{0,20}--gpus|(?:no|missing|forgot).{0,20}--gpus",
        weight=58,
        says="The container was started without --gpus",
        sample="it was started without --gpus all",
        other="--gpus all",
    ),
    Signature(
        name="collect-env",
        literal="nvidia driver version",
        pattern=r"Nvidia driver version: (?:Could not collect|N/A)",
        weight=56,
        says="This container shows no driver: it was started without GPU access",
        sample="Nvidia driver version: Could not collect",
        other="Nvidia driver version: 535.54",
        beside=(
            "fact:cuda_available=false",
            "fact:built_for=cuda",
            "docker|kubernetes|container|k8s",
        ),
    ),
    Signature(
        name="fact",
        literal="docker",
        pattern=r"\b(?:docker|dockerfile|docker-compose)\b",
        weight=52,
        says="The container does not reach the GPU",
        sample="in docker",
        other="dock",
        beside=("fact:cuda_available=false",),
        unless=(
            "not compiled with cuda",
            "fact:built_for=cpu",
        ),
    ),
    Signature(
        name="fact-container",
        literal="container",
        pattern=r"\bcontainers?\b",
        weight=52,
        says="The container does not reach the GPU",
        sample="in the container",
        other="contain",
        beside=("fact:cuda_available=false",),
        unless=(
            "not compiled with cuda",
            "fact:built_for=cpu",
        ),
    ),
)
