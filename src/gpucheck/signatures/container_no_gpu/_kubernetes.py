"""Texts that point to container-no-gpu: Kubernetes: no GPU is advertised, or the pod got none."""

from gpucheck.signatures.base import Cure, Signature

SIGNATURES = (
    Signature(
        name="insufficient",
        literal="insufficient nvidia.com/gpu",
        pattern=r"insufficient nvidia\.com/gpu",
        weight=88,
        says="Kubernetes has no free GPU to give: the device plugin does not advertise one",
        sample="0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        other="Insufficient cpu",
        stands=True,
    ),
    Signature(
        name="plugin-nvml",
        literal="nvml library",
        pattern=r"could not load NVML library",
        weight=86,
        says="The Kubernetes device plugin finds no NVML: its pods lack the NVIDIA runtime",
        sample="Failed to initialize NVML: could not load NVML library",
        other="the NVML library is loaded",
    ),
    Signature(
        name="plugin-platform",
        literal="incompatible",
        pattern=r"incompatible (?:platform|strategy) detected",
        weight=86,
        says="The Kubernetes device plugin finds no GPU: its pods lack the NVIDIA runtime",
        sample="Incompatible platform detected",
        other="incompatible versions detected",
    ),
    Signature(
        name="fact-pod",
        literal="pod",
        pattern=r"\bpods?\b",
        weight=54,
        says="The pod does not reach the GPU",
        sample="in the pod",
        other="podcast",
        beside=("fact:cuda_available=false",),
        unless=(
            "not compiled with cuda",
            "fact:built_for=cpu",
        ),
    ),
    Signature(
        name="operator",
        literal="device-plugin",
        pattern=r"device-plugin",
        weight=54,
        says="Kubernetes' parts for NVIDIA GPUs do not work",
        sample="nvidia-device-plugin pod is in CrashLoopBackOff",
        other="operator",
        beside=("crashloop|error|fail|0/|pending|not found|unable",),
        unless=("could not resolve linux kernel version",),
    ),
    Signature(
        name="no-default-runtime",
        literal='"runtimes"',
        pattern=r'"runtimes"\s{0,4}:',
        weight=74,
        says=(
            "Docker's default runtime is not nvidia: Kubernetes starts its containers without it"
        ),
        sample='    "runtimes": {',
        other="runtimes",
        beside=("nvidia-container-runtime", "kubectl|kubelet|kubernetes|k8s"),
        unless=("default-runtime",),
        cures=(
            Cure(
                text=(
                    "Make nvidia the default runtime of Docker (or containerd), or name a "
                    "RuntimeClass in the pod."
                ),
                zh="把 nvidia 设为 Docker 或 containerd 的默认运行时，或指定 RuntimeClass。",
                commands=(
                    "sudo nvidia-ctk runtime configure --runtime=docker --set-as-default",
                    "sudo systemctl restart docker",
                ),
            ),
        ),
    ),
    Signature(
        name="unhealthy",
        literal="nvidia.com/gpu, which is unexpected",
        pattern=r"cannot allocate unhealthy devices nvidia\.com/gpu",
        weight=84,
        says="Kubernetes has no healthy GPU to give to the pod",
        sample=(
            "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
            "nvidia.com/gpu, which is unexpected"
        ),
        other="nvidia.com/gpu, which is unexpected here",
    ),
    Signature(
        name="admission",
        literal="unexpectedadmissionerror",
        pattern=r"UnexpectedAdmissionError.{0,200}(?:nvidia\.com/gpu|requested number of devices)",
        weight=82,
        says="The node's device plugin could not give the pod its GPU",
        sample=(
            "UnexpectedAdmissionError  Allocate failed due to requested number of devices "
            "unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"
        ),
        other="UnexpectedAdmissionError of a volume",
    ),
    Signature(
        name="plugin-waits",
        literal="no devices found. waiting indefinitely",
        pattern=r"no devices found\. Waiting indefinitely",
        weight=84,
        says="The Kubernetes device plugin finds no GPU",
        sample="No devices found. Waiting indefinitely.",
        other="No devices were found",
    ),
)
