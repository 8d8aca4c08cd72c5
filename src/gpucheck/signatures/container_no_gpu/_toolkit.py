"""Texts that point to container-no-gpu: the container toolkit and the runtimes that call it."""

from gpucheck.signatures.base import Signature

SIGNATURES = (
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
        name="cgroup",
        literal="cgroup subsystem devices not found",
        pattern=r"cgroup subsystem devices not found",
        weight=93,
        says="The container toolkit is too old for cgroup v2",
        sample=(
            "nvidia-container-cli: container error: cgroup subsystem devices not found: unknown."
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
        sample=("nvidia-container-cli: initialization error: cuda error: unknown error: unknown."),
        other="container-cli",
        unless=(
            "requirement error",
            "driver/library",
            "driver not loaded",
            "wsl environment",
        ),
    ),
    Signature(
        name="cdi-vendor",
        literal="no known gpu vendor found",
        pattern=r"failed to discover GPU vendor from CDI|no known GPU vendor found",
        weight=90,
        says="The container engine finds no CDI description of an NVIDIA GPU",
        sample="failed to discover GPU vendor from CDI: no known GPU vendor found",
        other="the GPU vendor was found",
    ),
)
