"""Texts that point to gpu-fallen-off-bus."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="gpu-fallen-off-bus",
    zh="GPU 从总线上掉线（Xid 79）",
    signatures=(
        Signature(
            name="fallen",
            literal="fallen off the bus",
            pattern=r"fallen off the bus",
            weight=95,
            says="A GPU has fallen off the bus",
            sample="NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.",
            other="the wheels have fallen off the car",
            stands=True,
        ),
        Signature(
            name="lost",
            literal="gpu is lost",
            pattern=r"gpu is lost",
            weight=95,
            says="A GPU is lost",
            sample=(
                "Unable to determine the device handle for GPU 0000:02:00.0: "
                "GPU is lost. Reboot the system to recover this GPU"
            ),
            other="the signal of the GPU is not lost",
            stands=True,
        ),
        Signature(
            name="xid-79",
            literal="xid",
            pattern=r"Xid \([^)]{1,40}\): 79\b",
            weight=96,
            says="Xid 79: a GPU has fallen off the bus",
            sample="NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
            other="NVRM: Xid (PCI:0000:3b:00): 31, pid=1234",
            stands=True,
        ),
        Signature(
            name="handle",
            literal="unable to determine the device handle",
            pattern=r"unable to determine the device handle for gpu",
            weight=86,
            says="The driver no longer reaches a GPU",
            sample="Unable to determine the device handle for GPU 0000:02:00.0: Unknown Error",
            other="unable to determine the device",
        ),
        Signature(
            name="nvml-lost",
            literal="nvmlerror_gpuislost",
            pattern=r"NVMLError_GpuIsLost|NVML_ERROR_GPU_IS_LOST",
            weight=94,
            says="A GPU is lost",
            sample="pynvml.NVMLError_GpuIsLost: GPU is lost",
            other="NVMLError_NotFound",
            stands=True,
        ),
        Signature(
            name="xid-words",
            literal="xid",
            pattern=r"\bXid(?: error| errors|s)?[ :=]{1,2}79\b",
            weight=90,
            says="Xid 79: a GPU has fallen off the bus",
            sample="Xid 79 in dmesg",
            other="Xid 790",
            stands=True,
        ),
        Signature(
            name="disappears",
            literal="gpu",
            pattern=(
                r"(?:gpu|card).{0,40}(?:disappear|vanish|no longer (?:visible|"
                r"detected|listed)|drops? off|lost).{0,80}"
            ),
            weight=66,
            says="A GPU disappears while the machine runs",
            sample="after an hour the GPU disappears from nvidia-smi",
            other="the gpu is back",
            unless=(
                "container",
                "docker",
                "kernel update",
                "upgrade",
            ),
            beside=(
                (
                    "disappear|vanish|no longer visible|no longer detected|"
                    "no longer listed|drop off|drops off|lost"
                ),
            ),
        ),
        Signature(
            name="rm-init-failed",
            literal="rminitadapter failed",
            pattern=r"RmInitAdapter failed",
            weight=52,
            says="The driver cannot start a GPU",
            sample="NVRM: GPU 0000:21:00.0: RmInitAdapter failed! (0x24:0x72:1568)",
            other="rm init adapter",
            unless=(
                "legacy",
                "not supported by open",
                "open kernel modules",
            ),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Switch the machine off and on again; if it comes back look "
                "at power, seating, riser and heat of that card, and have "
                "it replaced."
            ),
            zh="完全断电再开机；如果再次发生，请检查该卡的供电、插槽、转接线和散热，必要时更换。",
            commands=("sudo dmesg | grep -i xid",),
        ),
    ),
)
