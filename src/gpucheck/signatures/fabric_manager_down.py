"""Texts that point to fabric-manager-down."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="fabric-manager-down",
    zh="NVSwitch 机器上 fabric manager 没有运行或版本不匹配",
    signatures=(
        Signature(
            name="fabric-state",
            literal="state",
            pattern=r"^\s{0,60}State\s{1,60}: (?:In Progress|Not Started)\s{0,4}$",
            weight=82,
            says="The GPU has not joined the NVLink fabric: the fabric manager has not set it up",
            sample="        State                             : In Progress",
            other="        State                             : Completed",
            beside=("word:fabric|fabricmanager",),
        ),
        Signature(
            name="802",
            literal="system not yet initialized",
            pattern=r"system not yet initialized",
            weight=93,
            says=(
                "CUDA error 802: the NVSwitch fabric is not set up, the fabric "
                "manager does not run or does not fit"
            ),
            sample="Error 802: system not yet initialized",
            other="the system is not initialized yet by the user",
            stands=True,
        ),
        Signature(
            name="802-name",
            literal="system_not_ready",
            pattern=r"CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady",
            weight=93,
            says="CUDA error 802: the fabric manager does not run",
            sample="cuInit failed: CUDA_ERROR_SYSTEM_NOT_READY",
            other="system_not_ready for updates",
            stands=True,
        ),
        Signature(
            name="802-camel",
            literal="cudaerrorsystemnotready",
            pattern=r"cudaErrorSystemNotReady",
            weight=93,
            says="CUDA error 802: the fabric manager does not run",
            sample="cudaErrorSystemNotReady at foo.cu:12",
            other="cudaErrorNoDevice",
            stands=True,
        ),
        Signature(
            name="failure-802",
            literal="cuda failure",
            pattern=r"cuda failure:? ?\(?802\b",
            weight=92,
            says="CUDA error 802: the fabric manager does not run",
            sample="NCCL WARN Cuda failure 802 'unknown error'",
            other="NCCL WARN Cuda failure 1 'invalid argument'",
            stands=True,
        ),
        Signature(
            name="error-802",
            literal="802",
            pattern=r"(?:cuda )?error:? ?\(?802\b",
            weight=90,
            says="CUDA error 802: the fabric manager does not run",
            sample="CUDA failed with error 802",
            other="port 8022",
            beside=("cuda|nvidia",),
        ),
        Signature(
            name="version",
            literal="don't match with driver version",
            pattern=r"fabric manager.{0,120}don't match with driver version",
            weight=96,
            says="The fabric manager is of another release than the driver",
            sample=(
                "fabric manager NVIDIA GPU driver interface version 535.54.03 "
                "don't match with driver version 535.86.10. Please update "
                "with matching NVIDIA driver package."
            ),
            other="versions match with driver version",
            stands=True,
        ),
        Signature(
            name="service",
            literal="fabricmanager",
            pattern=(
                r"(?:failed to start|failed|inactive|dead|not running|start "
                r"request|could not).{0,60}nvidia-fabricmanager|nvidia-fabricmanager.{0,80}(?:fa"
                r"iled|inactive|dead|not (?:running|found|active))"
            ),
            weight=90,
            says="The fabric manager does not run",
            sample=(
                "nvidia-fabricmanager.service: Main process exited, code=exited, "
                "status=1/FAILURE failed"
            ),
            other="nvidia-fabricmanager is active (running)",
        ),
        Signature(
            name="fm-words",
            literal="fabric manager",
            pattern=(
                r"fabric ?manager.{0,60}(?:not running|is down|failed|not start|"
                r"isn't running|version)|(?:without|missing|restart(?:ed|ing)?|"
                r"start) (?:the )?(?:nvidia )?fabric ?manager"
            ),
            weight=84,
            says="The fabric manager does not run or does not fit the driver",
            sample="Fabric Manager is not running on the host",
            other="the Fabric Manager guide",
        ),
        Signature(
            name="nvls",
            literal="transport/nvls.cc",
            pattern=(
                r"transport/nvls\.cc:\d{1,5} NCCL WARN Cuda failure.{0,10}'?(?:invalid "
                r"argument|system not|unknown|unhandled)"
            ),
            weight=66,
            says=(
                "NVLink SHARP set-up fails in the driver: the fabric manager "
                "was restarted or does not fit"
            ),
            sample="transport/nvls.cc:200 NCCL WARN Cuda failure 'invalid argument'",
            other="transport/nvls.cc:200 NCCL INFO ok",
        ),
        Signature(
            name="nvswitch",
            literal="nvswitch",
            pattern=r"NVSwitch",
            weight=50,
            says=(
                "An NVSwitch machine on which CUDA does not start: the fabric "
                "manager is the usual cause"
            ),
            sample="an NVSwitch machine on which CUDA fails",
            other="switch",
            beside=(
                (
                    "fact:cuda_available=false|cuda initialization|failed "
                    "to initialize|cudagetdevicecount"
                ),
            ),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install the fabric manager of exactly the driver's release "
                "and start it; restart what uses the GPUs."
            ),
            zh="安装与驱动版本完全一致的 fabric manager 并启动它，然后重启使用 GPU 的程序。",
            commands=(
                "sudo systemctl enable --now nvidia-fabricmanager",
                "systemctl status nvidia-fabricmanager",
                "nvidia-smi -q | grep -A3 Fabric",
            ),
        ),
    ),
)
