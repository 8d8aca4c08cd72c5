"""Texts that point to mig-misconfigured."""

from gpucheck.findings import Severity
from gpucheck.signatures.base import Cure, Signature, Signs

_A_MIG_INSTANCE = (
    (
        "mig-1g|mig-2g|mig-3g|mig-4g|mig-7g|mig device|mig instance|mig mode|mig 1g|mig 2g|"
        "mig gpu|mig partition|mig slice|mig enabled|mig is enabled|mig is on|with mig "
    ),
)

_READ_AS_NUMBER = ("int() with base 10: 'mig-",)
"""A program that takes the name of an instance for a number: its own fault, MIG is as it should."""

SIGNS = Signs(
    slug="mig-misconfigured",
    zh="MIG 配置或使用方式不正确",
    signatures=(
        Signature(
            name="no-mig",
            literal="no mig devices found",
            pattern=r"no MIG devices found",
            weight=90,
            says="MIG mode is on and no instance exists",
            sample="  No MIG devices found",
            other="MIG devices found: 2",
            stands=True,
        ),
        Signature(
            name="one-only",
            literal="device_count",
            pattern=r"device_count(?:\(\))?.{0,60}\b(?:1|one)\b",
            weight=74,
            says="One process can use one MIG instance, however many are visible",
            sample="torch.cuda.device_count() shows only 1",
            other="torch.cuda.device_count() returned",
            beside=(" mig |mig-|mig instance|migs",),
        ),
        Signature(
            name="mig-words",
            literal="mig",
            pattern=r"\bMIG\b.{0,80}(?:only|not|cannot|can't|fail|error|several|multiple|two|2)",
            weight=66,
            says="MIG instances are used in a way that CUDA does not allow",
            sample="with MIG enabled torch sees only one device",
            other="the mig welder",
            beside=("a100|h100|a30|h200|nvidia|cuda",),
            unless=_READ_AS_NUMBER,
        ),
        Signature(
            name="mig-uuid",
            literal="mig-",
            pattern=r"""CUDA_VISIBLE_DEVICES\s{0,3}[=:]\s{0,3}['\"]?MIG-""",
            weight=72,
            says="CUDA_VISIBLE_DEVICES names MIG instances",
            sample="CUDA_VISIBLE_DEVICES=MIG-GPU-1234/1/0",
            other="CUDA_VISIBLE_DEVICES=GPU-1234",
            beside=(
                # A mask of one instance is how MIG is used; by itself it is no fault.
                (
                    "no cuda|not available|unavailable|device_count|no devices|is_available|"
                    "invalid|cuda error|cudaerror|found no nvidia|only one|only 1|several|multiple"
                ),
            ),
            unless=_READ_AS_NUMBER,
        ),
        Signature(
            name="context",
            literal="mig",
            pattern=r"\bMIG\b",
            weight=58,
            says="MIG is in use",
            sample="the A100 is in MIG mode",
            other="migrate",
            beside=(
                (
                    "device_count|only one|only 1|one gpu|cannot|no cuda|"
                    "not available|invalid|several|multiple"
                ),
                "a100|h100|a30|h200|b200|mig-|mig ",
            ),
            unless=_READ_AS_NUMBER,
        ),
        Signature(
            name="any",
            literal="mig",
            pattern=r"\bMIG\b",
            weight=46,
            says="MIG is in use",
            sample="an A100 with MIG",
            other="migrate",
            beside=(
                "nvidia|cuda|gpu",
                (
                    "error|fail|not work|cannot|can't|fact:cuda_available=false|"
                    "不能|无法|报错|word:hang|word:hangs|word:hanging|"
                    "crash|not available|not found|not "
                    "detected|doesn't"
                ),
            ),
            unless=("mig m.", *_READ_AS_NUMBER),
        ),
        Signature(
            name="chosen-instance",
            literal="cuda_visible_devices",
            pattern=r"CUDA_VISIBLE_DEVICES\W{1,6}MIG-",
            weight=84,
            code=True,
            says="The MIG instance that CUDA_VISIBLE_DEVICES names is not there (any more)",
            sample="CUDA_VISIBLE_DEVICES=MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/7/0",
            other="CUDA_VISIBLE_DEVICES=GPU-5c89852c",
            beside=(
                (
                    "no cuda gpus are available|no cuda-capable device|invalid device ordinal|"
                    "fact:cuda_available=false|no devices were found"
                ),
            ),
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="uuid",
            literal="mig-",
            pattern=r"\bMIG-[0-9a-fG]",
            weight=60,
            says="MIG instances are named",
            sample="UUID: MIG-a3f1b2c4-0000-5000",
            other="MIG-x",
            beside=(
                (
                    "error|fail|not work|cannot|can't|fact:cuda_available=false|"
                    "不能|无法|报错|word:hang|word:hangs|word:hanging|"
                    "crash|not available|not found|not "
                    "detected|doesn't"
                ),
            ),
            unless=_READ_AS_NUMBER,
        ),
        Signature(
            name="smi-enabled",
            literal="enabled",
            pattern=r"\|\s{10,60}Enabled \|",
            weight=66,
            says="MIG mode is on, and CUDA sees no instance",
            sample=(
                "|                               |                      |              Enabled |"
            ),
            other="is enabled",
            beside=(
                "mig m.",
                "fact:cuda_available=false|no cuda|not available",
            ),
        ),
        Signature(
            name="num-gpus",
            literal="num_gpus",
            pattern=r"device >= 0 && device < num_gpus",
            weight=80,
            says="One process sees one MIG instance only, however many there are",
            sample="RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED",
            other="num_gpus=4",
            beside=_A_MIG_INSTANCE,
        ),
        Signature(
            name="ordinal",
            literal="invalid device ordinal",
            pattern=r"invalid device ordinal",
            weight=86,
            says="One process sees one MIG instance only, however many there are",
            sample="RuntimeError: CUDA error: invalid device ordinal",
            other="invalid ordinal of a column",
            beside=_A_MIG_INSTANCE,
        ),
        Signature(
            name="parallel",
            literal="mig",
            pattern=(
                r"\b(?:tensor|pipeline|data)[-_ ]?parallel.{0,80}"
                r"\bMIG (?:gpu|partition|instance|slice|device)|"
                r"\bMIG (?:gpu|partition|instance|slice|device)s?\b.{0,60}"
                r"\b(?:tensor|pipeline|data)[-_ ]?parallel"
            ),
            weight=80,
            says="One process can use one MIG instance, and they cannot speak to one another",
            sample="tensor_parallel_size=2 over two MIG slices",
            other="tensor parallel on a GPU that is not in MIG mode",
        ),
        Signature(
            name="read-as-number",
            literal="int() with base 10: 'mig-",
            pattern=r"invalid literal for int\(\) with base 10: 'MIG-",
            weight=70,
            says="The program takes the name of a MIG instance for a number; the name is right",
            sample="ValueError: invalid literal for int() with base 10: 'MIG-a3f1b2c4-0000-5000'",
            other="invalid literal for int() with base 10: 'GPU-a3f1b2c4'",
            severity=Severity.INFO,
            cures=(
                Cure(
                    text="Use a release of the program that takes names of MIG instances.",
                    zh="请使用支持 MIG 实例名称的程序版本。",
                ),
            ),
        ),
        Signature(
            name="cli-mig",
            literal="nvidia-container-cli: device error: mig-",
            pattern=r"nvidia-container-cli: device error: MIG-\S{1,80}: (?:unknown|invalid) device",
            weight=92,
            says="The container asks for a MIG instance that is not there",
            sample="nvidia-container-cli: device error: MIG-1a2b/5/0: unknown device: unknown.",
            other="nvidia-container-cli: device error: 3: unknown device",
        ),
    ),
    cures=(
        Cure(
            text=(
                "List the instances; make them, or switch MIG off. A process "
                "can use one instance only."
            ),
            zh="列出 MIG 实例；创建实例或关闭 MIG。一个进程只能使用一个实例。",
            commands=(
                "nvidia-smi -L",
                "sudo nvidia-smi mig -cgi 0 -C",
                "sudo nvidia-smi -mig 0",
            ),
        ),
    ),
)
