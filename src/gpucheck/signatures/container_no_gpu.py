"""Texts that point to container-no-gpu."""

from gpucheck.signatures.base import Cure, Signature, Signs

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

SIGNS = Signs(
    slug="container-no-gpu",
    zh="容器没有获得 GPU",
    signatures=(
        Signature(
            name="device-driver",
            literal="could not select device driver",
            pattern=r"could not select device driver .{0,40}capabilities: \[\[",
            weight=94,
            says=(
                "Docker has no NVIDIA runtime: the NVIDIA container toolkit "
                "is missing or not configured"
            ),
            sample=(
                "docker: Error response from daemon: could not select device "
                'driver "" with capabilities: [[gpu]].'
            ),
            other="select a device driver in the list",
            stands=True,
        ),
        Signature(
            name="runtime-name",
            literal="runtime",
            pattern=r"unknown (?:or invalid )?runtime (?:specified|name).{0,6}nvidia",
            weight=94,
            says='Docker does not know the runtime "nvidia"',
            sample="docker: Error response from daemon: Unknown runtime specified nvidia.",
            other="unknown runtime error",
            stands=True,
        ),
        Signature(
            name="runtime-handler",
            literal="is configured",
            pattern=r"no runtime for \\?\"nvidia\\?\" is configured",
            weight=94,
            says='containerd has no runtime "nvidia"',
            sample='failed to get sandbox runtime: no runtime for "nvidia" is configured',
            other="the runtime nvidia is configured",
            stands=True,
        ),
        Signature(
            name="cdi",
            literal="cdi device",
            pattern=r"unresolvable CDI devices? .{0,60}nvidia\.com|failed to inject CDI device",
            weight=93,
            says="The CDI specification of the GPUs is missing or stale",
            sample="Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
            other="CDI devices are fine",
            stands=True,
        ),
        Signature(
            name="cli-ml",
            literal="libnvidia-ml.so",
            pattern=(
                r"nvidia-container-cli: initialization error: load library "
                r"failed: libnvidia-ml\.so"
            ),
            weight=82,
            says="The container toolkit finds no NVIDIA driver on the host",
            sample=(
                "nvidia-container-cli: initialization error: load library "
                "failed: libnvidia-ml.so.1: cannot open shared object file"
            ),
            other="libnvidia-ml.so.1 is loaded",
        ),
        Signature(
            name="ngc-banner",
            literal="nvidia driver was not detected",
            pattern=r"NVIDIA Driver was not detected",
            weight=84,
            says="The container was started without GPU access",
            sample=(
                "WARNING: The NVIDIA Driver was not detected.  GPU functionality "
                "will not be available."
            ),
            other="The NVIDIA driver was detected",
        ),
        Signature(
            name="hook",
            literal="nvidia-container-runtime",
            pattern=(
                r"nvidia-container-runtime(?:-hook)?\\?\"?: (?:executable file "
                r"not found|no such file)"
            ),
            weight=93,
            says="The NVIDIA container runtime is configured but not installed",
            sample='exec: "nvidia-container-runtime-hook": executable file not found in $PATH',
            other="nvidia-container-runtime version 1.14",
            stands=True,
        ),
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
            name="cgroup",
            literal="cgroup subsystem devices not found",
            pattern=r"cgroup subsystem devices not found",
            weight=93,
            says="The container toolkit is too old for cgroup v2",
            sample=(
                "nvidia-container-cli: container error: cgroup subsystem devices "
                "not found: unknown."
            ),
            other="cgroup subsystem cpu not found",
            stands=True,
        ),
        Signature(
            name="ldcache",
            literal="ldcache error",
            pattern=r"nvidia-container-cli: ldcache error",
            weight=90,
            says="The container toolkit cannot run ldconfig",
            sample=(
                "nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: "
                "no such file or directory: unknown."
            ),
            other="ldcache is fine",
            stands=True,
        ),
        Signature(
            name="mount",
            literal="nvidia-container-cli: mount error",
            pattern=r"nvidia-container-cli: mount error",
            weight=80,
            says="The container toolkit cannot mount the driver into the container",
            sample=(
                "nvidia-container-cli: mount error: failed to add device rules: "
                "unable to find any existing device filters attached to the "
                "cgroup"
            ),
            other="mount error of nfs",
        ),
        Signature(
            name="cli-device",
            literal="unknown device",
            pattern=(
                r"nvidia-container-cli: device error: .{0,80}(?:unknown device|"
                r"invalid device)"
            ),
            weight=86,
            says="The container asks for a GPU that is not there",
            sample="nvidia-container-cli: device error: 1: unknown device: unknown.",
            other="unknown device",
        ),
        Signature(
            name="hook-direct",
            literal="invoking the nvidia container runtime hook directly",
            pattern=r"invoking the NVIDIA Container Runtime Hook directly",
            weight=92,
            says="The container toolkit is in CDI mode and is called the old way",
            sample=(
                "error running hook #0: invoking the NVIDIA Container Runtime "
                "Hook directly (e.g. specifying the docker --gpus flag) is "
                "not supported. Please use the NVIDIA Container Runtime"
            ),
            other="the hook is fine",
            stands=True,
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
            name="libcuda-in",
            literal="libcuda.so",
            pattern=(
                r"""libcuda\.so(?:\.1)?['\"]?:? (?:cannot open shared object|"""
                r"not found|cannot found)"
            ),
            weight=74,
            says="libcuda is not in this container: it was started without GPU access",
            sample=(
                "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"
            ),
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
        ),
        Signature(
            name="nvidia-docker",
            literal="nvidia-docker",
            pattern=r"nvidia-docker.{0,120}(?:error|fail|not found|cannot|unable)",
            weight=56,
            says="The NVIDIA container runtime fails",
            sample="nvidia-docker: Error: cannot connect",
            other="nvidia-docker run",
            unless=(
                "uvm kernel module",
                "nvml: driver/library",
                "driver/library version mismatch",
            ),
        ),
        Signature(
            name="cli-any",
            literal="nvidia-container-cli",
            pattern=r"nvidia-container-cli: .{0,160}",
            weight=62,
            says="The NVIDIA container toolkit fails",
            sample=(
                "nvidia-container-cli: initialization error: cuda error: unknown error: unknown."
            ),
            other="container-cli",
            unless=(
                "requirement error",
                "driver/library",
                "driver not loaded",
                "wsl environment",
            ),
        ),
        Signature(
            name="no-default-runtime",
            literal='"runtimes"',
            pattern=r'"runtimes"\s{0,4}:',
            weight=74,
            says=(
                "Docker's default runtime is not nvidia: Kubernetes starts its containers without "
                "it"
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
