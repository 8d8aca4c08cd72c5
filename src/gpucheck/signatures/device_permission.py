"""Texts that point to device-permission."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="device-permission",
    zh="当前用户或容器无权访问 /dev/nvidia*",
    signatures=(
        Signature(
            name="nvml-insufficient",
            literal="insufficient permissions",
            pattern=r"(?:NVML|nvidia).{0,60}insufficient permissions",
            weight=93,
            says="This user may not open the driver's device nodes",
            sample="Failed to initialize NVML: Insufficient Permissions",
            other="insufficient permissions for this bucket",
            stands=True,
        ),
        Signature(
            name="node-denied",
            literal="/dev/nvidia",
            pattern=(
                r"""/dev/nvidia[\w-]{0,20}['\"]?:? ?.{0,20}(?:permission denied|"""
                r"operation not permitted)"
            ),
            weight=92,
            says="This user or container may not open the driver's device nodes",
            sample="open /dev/nvidiactl: Operation not permitted",
            other="/dev/nvidia0 no such file or directory",
            stands=True,
        ),
        Signature(
            name="os-call",
            literal="os call failed or operation not supported",
            pattern=r"OS call failed or operation not supported on this OS",
            weight=64,
            says=(
                "The driver's system calls are refused: this user or container may not use the GPU"
            ),
            sample="RuntimeError: CUDA error: OS call failed or operation not supported on this OS",
            other="operation not supported on this OS",
            unless=("fact:os=windows", "word:wsl"),
        ),
        Signature(
            name="os-call-name",
            literal="erroroperatingsystem",
            pattern=r"\bcudaErrorOperatingSystem\b",
            weight=60,
            says=(
                "The driver's system calls are refused: this user or container may not use the GPU"
            ),
            sample="cudaGetDeviceCount failed: cudaErrorOperatingSystem",
            other="cudaErrorNoDevice",
            unless=("fact:os=windows", "word:wsl"),
        ),
        Signature(
            name="plain-user",
            literal="user",
            pattern=(
                r"^(?=.{0,600}?(?:gpu|cuda|nvidia)).{0,600}?(?:"
                r"\b(?:no|not|cannot|can.?t|fails?|failing|false|without|denied|invisible)\b.{0,80}"
                r"\b(?:as|for|by|with|under|from) (?:an? |the |my )?(?:non-?root|plain|normal|"
                r"regular|ordinary|unprivileged|non-?privileged|standard|non-?sudo|"
                r"non-?admin) user|"
                r"\b(?:non-?root|plain|normal|regular|ordinary|unprivileged|non-?privileged|"
                r"standard|non-?sudo|non-?admin) users?\b.{0,40}\b(?:no|not|cannot|can.?t|fails?|"
                r"false|doesn.?t|don.?t)\b)"
            ),
            weight=78,
            says="The GPU can be used by root, and not by another user",
            sample="in the container non-root users do not see a CUDA device",
            other="an ordinary user cannot write to site-packages",
            beside=("cuda|gpu|nvidia", "word:root|nonroot|sudo|privileged"),
            unless=("permission denied: '/home", "command not found"),
        ),
        Signature(
            name="nvml-unknown",
            literal="nvml: unknown error",
            pattern=r"initialize NVML: unknown error",
            weight=74,
            says="The container has lost its GPUs: its device cgroup was reset",
            sample="Failed to initialize NVML: Unknown Error",
            other="Failed to initialize NVML: Driver/library version mismatch",
        ),
        Signature(
            name="nvml-unknown-unable",
            literal="unknown error",
            pattern=r"unable to determine the device handle.{0,40}: unknown error",
            weight=70,
            says="The container or user has lost its device",
            sample="Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error",
            other="an unknown error came",
            beside=(
                (
                    "docker|container|kubernetes|k8s|kubectl|pod |podman|"
                    "nvidia.com/gpu|singularity|apptainer|镜像|容器|microk8s|"
                    "minikube|helm"
                ),
            ),
        ),
        Signature(
            name="unmapped-owner",
            literal="nobody",
            pattern=(
                r"crw\S{1,12}\s{1,8}(?:\?|\d{1,3})?\s{0,4}nobody\s{1,4}no\w{1,8}\s.{0,60}/dev/nvid"
                r"ia"
            ),
            weight=68,
            says="In a rootless container the device nodes belong to nobody here",
            sample="crw-rw-rw- 1 nobody nogroup 195, 0 Jan  1 10:00 /dev/nvidia0",
            other="crw-rw-rw- 1 root root 195, 0 Jan  1 10:00 /dev/nvidia0",
            beside=("rootless|normal user|non-root|podman",),
        ),
        Signature(
            name="only-root",
            literal="root",
            pattern=(
                r"\b(?:works?|runs?|succeeds?|available|true|fine)\b.{0,30}\b(?:only|just) "
                r"(?:as|with|for|under|when) (?:the )?(?:root|sudo)|\bonly works? .{0,20}root\b|"
                r"(?:unless|except) (?:as |with |for )?root\b"
            ),
            weight=66,
            says="The GPU can be used by root only",
            sample="CUDA works only as root",
            other="the root folder",
            beside=("cuda|gpu|nvidia",),
        ),
        Signature(
            name="sudo-works",
            literal="sudo it",
            pattern=r"\b(?:with|under|using) sudo it (?:works|runs|is fine|succeeds|sees)",
            weight=66,
            says="The GPU can be used by root only",
            sample="with sudo it works",
            other="with sudo it fails as well",
            beside=("cuda|gpu|nvidia",),
        ),
        Signature(
            name="only-sudo",
            literal="su",
            pattern=(
                r"\b(?:only|unless|except|just) (?:works? |run |i am |as |with |when |using |under "
                r"|if run )?(?:a |the )?(?:super ?user|sudo)\b|"
                r"\bwithout sudo\b.{0,40}\b(?:false|not|fails?|error|no)\b"
            ),
            weight=66,
            says="The GPU can be used by root only",
            sample="no CUDA unless superuser",
            other="sudo apt install",
            beside=("cuda|gpu|nvidia",),
        ),
    ),
    cures=(
        Cure(
            text=(
                "In a container: start it anew; to keep its GPUs after a systemctl "
                "daemon-reload let Docker use cgroupfs, or name the devices."
            ),
            zh=(
                "容器：重新启动容器；为避免 systemctl daemon-reload 之后丢失 "
                "GPU，可让 Docker 使用 cgroupfs 或显式传入设备。"
            ),
            commands=("docker run --gpus all --device /dev/nvidiactl --device /dev/nvidia0 IMAGE",),
        ),
        Cure(
            text="On the machine itself: look who may open the nodes, and join that group.",
            zh="在机器上：查看设备节点权限，并加入相应的用户组。",
            commands=(
                "ls -l /dev/nvidia*",
                "sudo usermod -aG video $USER",
            ),
        ),
    ),
)
