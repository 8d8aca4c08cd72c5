"""Texts that point to driver-dropped-gpu."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="driver-dropped-gpu",
    zh="当前驱动分支不再支持这块 GPU，或需要另一种内核模块（open/proprietary）",
    signatures=(
        Signature(
            name="legacy",
            literal="legacy driver",
            pattern=r"supported through the NVIDIA (?P<branch>\d{3})\.xx Legacy",
            weight=95,
            says=(
                "The installed driver no longer supports this GPU: {branch}.xx is its last branch"
            ),
            sample="NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please",
            other="the Legacy drivers are fine",
            stands=True,
        ),
        Signature(
            name="will-ignore",
            literal="nvidia driver will ignore",
            pattern=r"the \d{3}[\d.]{2,12} NVIDIA driver will ignore",
            weight=92,
            says="The installed driver ignores this GPU",
            sample="NVRM:  information.  The 550.54.14 NVIDIA driver will ignore",
            other="the nvidia driver will not ignore",
            stands=True,
        ),
        Signature(
            name="needs-closed",
            literal="not supported by open",
            pattern=r"not supported by open|not supported by the open",
            weight=95,
            says="The open kernel modules do not support this GPU: it needs the proprietary ones",
            sample="               NVRM: installed in this system is not supported by open",
            other="this file type is not supported",
            beside=("nvrm|nvidia.ko|kernel module",),
            stands=True,
        ),
        Signature(
            name="needs-open",
            literal="use of the nvidia open kernel modules",
            pattern=r"requires use of the NVIDIA open kernel modules",
            weight=95,
            says="This GPU needs the open kernel modules",
            sample=(
                "NVRM: installed in this system requires use of the NVIDIA open kernel modules."
            ),
            other="use of the NVIDIA open kernel modules is optional",
            stands=True,
        ),
        Signature(
            name="not-supported-release",
            literal="driver release",
            pattern=(
                r"installed in this system is not supported by the|not supported "
                r"by the NVIDIA \d{3}[\d.]{2,12} driver release"
            ),
            weight=93,
            says="The installed driver release does not support this GPU",
            sample=(
                "NVRM: installed in this system is not supported by the NVIDIA "
                "390.48 driver release."
            ),
            other="the 535 driver release is supported",
            stands=True,
        ),
        Signature(
            name="no-gpu-found",
            literal="no nvidia gpu found",
            pattern=r"NVRM: No NVIDIA GPU found",
            weight=62,
            says="The driver drives none of the GPUs",
            sample="NVRM: No NVIDIA GPU found.",
            other="No NVIDIA GPU found by torch",
        ),
        Signature(
            name="legacy-words",
            literal="legacy",
            pattern=(
                r"(?:\b(?:304|340|390|470|580)(?:xx|\.xx)?\b.{0,30}legacy|legacy.{0,40}\b(?:304|"
                r"340|390|470|580)\b)"
            ),
            weight=74,
            says="This GPU needs a legacy driver branch",
            sample="the card needs the 470 legacy driver",
            other="legacy code",
            beside=("driver",),
        ),
        Signature(
            name="no-devices-blackwell",
            literal="no devices were found",
            pattern=r"no devices were found",
            weight=64,
            says="A GPU of the Blackwell family needs the driver's open kernel modules",
            sample="No devices were found",
            other="devices were found",
            beside=("rtx 50|rtx50|5090|5080|5070|5060|rtx pro 6000|gb20|b200|blackwell",),
            unless=("word:xid", "fallen off", "open kernel module", "nvidia-open", "-open "),
        ),
        Signature(
            name="open-only-data-center",
            literal="only ready for use on data center gpus",
            pattern=r"Open nvidia\.ko is only ready for use on Data Center GPUs",
            weight=93,
            says="The open kernel module of this release does not serve this GPU",
            sample="NVRM: Open nvidia.ko is only ready for use on Data Center GPUs.",
            other="ready for use on data center GPUs",
            stands=True,
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install the last driver branch that supports this GPU, or "
                "the flavour of kernel modules (open or proprietary) that "
                "it needs."
            ),
            zh=(
                "安装仍支持这块 GPU 的最后一个驱动分支，或它所需的内核模块类型（open "
                "或 proprietary）。"
            ),
            commands=("sudo dmesg | grep -A4 NVRM",),
        ),
    ),
)
