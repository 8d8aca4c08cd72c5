"""Texts that point to gpu-hardware-fault."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="gpu-hardware-fault",
    zh="GPU 硬件或链路故障",
    signatures=(
        Signature(
            name="ecc",
            literal="uncorrectable ecc",
            pattern=r"uncorrectable ecc error|Uncorrectable ECC Error",
            weight=93,
            says="An uncorrectable memory error (ECC) of the GPU",
            sample="RuntimeError: CUDA error: uncorrectable ECC error encountered",
            other="Volatile Uncorr. ECC",
            stands=True,
        ),
        Signature(
            name="ecc-name",
            literal="ecc_uncorrectable",
            pattern=r"ECC_?UNCORRECTABLE",
            weight=93,
            says="An uncorrectable memory error (ECC) of the GPU",
            sample="CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable",
            other="ecc_correctable",
            stands=True,
        ),
        Signature(
            name="xid",
            literal="xid",
            pattern=(
                r"Xid \([^)]{1,40}\): (?P<xid>48|61|62|63|64|74|92|94|95|110|"
                r"119|120|140|143|144|145|146|147|148|149|150|151|154|155|156)\b"
            ),
            weight=93,
            says="Xid {xid}: a fault of the GPU or its links",
            sample="NVRM: Xid (PCI:0000:3b:00): 48, pid=1234, An uncorrectable double bit error",
            other="NVRM: Xid (PCI:0000:3b:00): 13, pid=1234",
            stands=True,
        ),
        Signature(
            name="nvlink",
            literal="nvlink error",
            pattern=r"uncorrectable NVLink error|NVLink error was detected",
            weight=88,
            says="An NVLink error of the GPU",
            sample="CUDA error: uncorrectable NVLink error detected during the execution",
            other="no nvlink error",
            stands=True,
        ),
        Signature(
            name="inforom",
            literal="inforom is corrupted",
            pattern=r"infoROM is corrupted",
            weight=88,
            says="The GPU's infoROM is corrupted",
            sample="WARNING: infoROM is corrupted at gpu 0000:3B:00.0",
            other="infoROM version",
            stands=True,
        ),
        Signature(
            name="row-remap",
            literal="remapping failure",
            pattern=r"remapping failure occurred\s{0,20}: yes|row.?remap.{0,20}fail",
            weight=90,
            says="The GPU could not replace broken memory rows",
            sample="Remapping Failure Occurred : Yes",
            other="Remapping Failure Occurred : No",
            stands=True,
        ),
        Signature(
            name="smi-err",
            literal="err!",
            pattern=r"\|\s{0,4}ERR!\s|ERR!\s{1,4}ERR!",
            weight=70,
            says="nvidia-smi shows ERR! for a GPU",
            sample=(
                "| ERR!   65C    P2   ERR! / 250W |   1MiB / 11178MiB |    ERR!      Default |"
            ),
            other="an err! sign",
        ),
        Signature(
            name="rma",
            literal="hardware failure",
            pattern=(
                r"(?:gpu|card|hbm).{0,60}hardware (?:failure|fault|defect|error)|"
                r"hardware (?:failure|fault|defect).{0,40}(?:gpu|card)"
            ),
            weight=72,
            says="The text speaks of a hardware fault of the GPU",
            sample="the GPU has a hardware failure",
            other="hardware failure of the disk",
        ),
        Signature(
            name="sxid",
            literal="sxid",
            pattern=r"SXid \([^)]{1,40}\): (?P<sxid>\d{4,6}), Fatal",
            weight=86,
            says="SXid {sxid}: a fatal fault of an NVSwitch",
            sample=(
                "nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 12028, Fatal, "
                "Link 32 egress non-posted PRIV error"
            ),
            other="nvidia-nvswitch3: SXid: none",
        ),
        Signature(
            name="previous-xid",
            literal="previous xid",
            pattern=(
                r"caused by previous Xid (?P<xid>48|61|62|63|64|74|92|94|95|"
                r"110|119|120|140|14[3-9]|15[0-6])\b"
            ),
            weight=90,
            says="Xid {xid}: a fault of the GPU or its links",
            sample=(
                "NVRM: Xid (PCI:0000:3b:00): 45, pid=4242, Ch 00000007 caused by previous Xid 149"
            ),
            other="caused by previous Xid 31",
            stands=True,
        ),
        Signature(
            name="xid-words",
            literal="xid",
            pattern=(
                r"\bXid(?: error| errors|s)?[ :=]{1,2}(?P<xid>48|61|62|63|64|"
                r"74|92|94|95|119|120|140|14[3-9]|15[0-6])\b"
            ),
            weight=78,
            says="Xid {xid}: a fault of the GPU or its links",
            sample="we see Xid 94 in the log",
            other="Xid 13 in the log",
        ),
        Signature(
            name="dbe",
            literal="double bit",
            pattern=r"double.?bit (?:ecc )?error|DBE",
            weight=80,
            says="A double-bit memory error of the GPU",
            sample="a double bit ECC error was found",
            other="a double bit",
        ),
        Signature(
            name="hardware-stack",
            literal="hardware stack error",
            pattern=r"(?:CUDA|cuda).{0,80}hardware stack error|cudaErrorHardwareStackError",
            weight=78,
            says="The GPU's own call stack failed (error 714): memory of it, or the board, is bad",
            sample="CUDA error: hardware stack error",
            other="a hardware stack error of the printer",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Take the GPU out of use, reset it or restart, and test it; "
                "when the fault returns have it replaced."
            ),
            zh="停用该 GPU，重置或重启后测试；若故障重现请更换。",
            commands=(
                "nvidia-smi -q -d ECC,ROW_REMAPPER",
                "sudo dmesg | grep -i xid",
            ),
        ),
    ),
)
