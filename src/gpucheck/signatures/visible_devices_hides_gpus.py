"""Texts that point to visible-devices-hides-gpus."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="visible-devices-hides-gpus",
    zh="CUDA_VISIBLE_DEVICES 把 GPU 隐藏了，或设置得太晚",
    signatures=(
        Signature(
            name="no-gpus",
            literal="no cuda gpus are available",
            pattern=r"no CUDA GPUs are available",
            weight=52,
            says="CUDA starts but shows no GPU: CUDA_VISIBLE_DEVICES hides them all",
            sample="RuntimeError: No CUDA GPUs are available",
            other="CUDA GPUs are available",
        ),
        Signature(
            name="no-capable",
            literal="no cuda-capable device is detected",
            pattern=r"no CUDA-capable device is detected",
            weight=50,
            says="CUDA shows no GPU: often CUDA_VISIBLE_DEVICES hides them all",
            sample="RuntimeError: CUDA error: no CUDA-capable device is detected",
            other="CUDA-capable device found",
        ),
        Signature(
            name="no-device-name",
            literal="cuda_error_no_device",
            pattern=r"CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice",
            weight=48,
            says="CUDA shows no GPU: often CUDA_VISIBLE_DEVICES hides them all",
            sample="failed call to cuInit: CUDA_ERROR_NO_DEVICE: no device",
            other="CUDA_ERROR_UNKNOWN",
        ),
        Signature(
            name="ordinal-masked",
            literal="invalid device ordinal",
            pattern=r"invalid device ordinal",
            weight=86,
            says="A device number is used that the mask CUDA_VISIBLE_DEVICES leaves out",
            sample="RuntimeError: CUDA error: invalid device ordinal",
            other="invalid ordinal of a column",
            beside=("cuda_visible_devices", "set_device|cuda:|.cuda(|--gpu|--device"),
            unless=("nproc", "torchrun", "world_size", "accelerate launch", "spawn", "local_rank"),
        ),
        Signature(
            name="ordinal",
            literal="invalid device ordinal",
            pattern=r"invalid device ordinal",
            weight=66,
            says="A device number is used that is not visible here",
            sample="RuntimeError: CUDA error: invalid device ordinal",
            other="invalid ordinal of a column",
        ),
        Signature(
            name="num-gpus",
            literal="num_gpus",
            pattern=r"device >= 0 && device < num_gpus",
            weight=70,
            says="A device number is used that is not visible here (the mask was set too late)",
            sample="RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED",
            other="num_gpus=4",
        ),
        Signature(
            name="masked",
            literal="cuda_visible_devices",
            pattern=r"""CUDA_VISIBLE_DEVICES\s{0,2}=\s{0,2}['\"]?\d""",
            weight=76,
            code=True,
            says="CUDA_VISIBLE_DEVICES names a GPU that is not there",
            sample="CUDA_VISIBLE_DEVICES=2 python main.py",
            other="CUDA_VISIBLE_DEVICES is unset",
            beside=(
                (
                    "no cuda-capable device|no cuda gpus are available|cuda_error_no_device|"
                    "invalid device ordinal"
                ),
            ),
        ),
        Signature(
            name="nvidia-visible",
            literal="nvidia_visible_devices",
            pattern=r"""NVIDIA_VISIBLE_DEVICES\s{0,3}[=:]\s{0,3}['\"]?(?:void|none|['\"]?\s|$)""",
            weight=84,
            code=True,
            says="NVIDIA_VISIBLE_DEVICES gives the container no GPU",
            sample="NVIDIA_VISIBLE_DEVICES=void",
            other="NVIDIA_VISIBLE_DEVICES=all",
        ),
        Signature(
            name="true-elsewhere",
            literal="no cuda gpus are available",
            pattern=r"no CUDA GPUs are available",
            weight=60,
            says=(
                "CUDA works elsewhere in this environment: the script hides the GPUs from itself"
            ),
            sample="RuntimeError: No CUDA GPUs are available",
            other="GPUs are available",
            beside=(
                (
                    "is_available() is t|is_available() t|is_available()\ntrue|"
                    "cuda available: true|is cuda available: true|is_available(): "
                    "true"
                ),
            ),
        ),
        Signature(
            name="context",
            literal="cuda_visible_devices",
            pattern=r"CUDA_VISIBLE_DEVICES(?!\W{1,6}None\b)",
            weight=50,
            code=True,
            says="CUDA_VISIBLE_DEVICES is in question",
            sample="os.environ['CUDA_VISIBLE_DEVICES'] = '1'",
            other="VISIBLE_DEVICES",
            beside=(
                ("said:fact:cuda_available=false|no gpu|not see|not found|invalid device|no cuda"),
            ),
            unless=(
                "fact:cuda_available=true",
                "set cuda_visible_devices incorrectly",
                "changing env variable cuda_visible_devices",
            ),
        ),
        Signature(
            name="context-some",
            literal="cuda_visible_devices",
            pattern=r"\bCUDA_VISIBLE_DEVICES\b(?!\W{1,6}None\b)",
            weight=50,
            code=True,
            says="CUDA_VISIBLE_DEVICES is in question",
            sample="export CUDA_VISIBLE_DEVICES=0,1",
            other="VISIBLE_DEVICES",
            beside=(
                "said:device_count|only one|only 1|wrong gpu|ignored|no effect|invalid device",
            ),
            unless=(
                "set cuda_visible_devices incorrectly",
                "changing env variable cuda_visible_devices",
            ),
        ),
        Signature(
            name="ultralytics",
            literal="invalid cuda",
            pattern=r"Invalid CUDA 'device=.{1,20}' requested",
            weight=58,
            says="The program asks for a GPU that torch does not see",
            sample=(
                "ValueError: Invalid CUDA 'device=1' requested. Use 'device=cpu' "
                "or pass valid CUDA device(s)"
            ),
            other="invalid cuda",
        ),
        Signature(
            name="no-effect",
            literal="visible",
            pattern=(
                r"CUDA_VISIBLES?_DEVI[CS]ES?\b.{0,80}(?:no effect|not work|"
                r"does ?n.t work|ignored|invalid|useless|不起作用|没有作用|"
                r"无效|not take effect|unavail|n.t take effect|not respected|not honou?red|"
                r"不能识别|无法识别|识别不到|不识别|找不到|不生效|没生效|失效)|"
                r"(?:no effect|ignor\w{1,4}|不起作用|无效).{0,60}CUDA_VISIBLE"
            ),
            weight=64,
            says="CUDA_VISIBLE_DEVICES is set too late, or in the wrong place",
            sample="CUDA_VISIBLE_DEVICES has no effect in the script",
            other="visible",
        ),
        Signature(
            name="always-first",
            literal="always",
            pattern=(
                r"\balways (?:uses?|runs? on|goes to|takes?|picks?|selects?|lands on) (?:the )?"
                r"(?:cuda:0|gpu ?[:#]?0|device 0|first (?:gpu|card|device))\b"
            ),
            weight=64,
            says="CUDA_VISIBLE_DEVICES is set too late, or in the wrong place",
            sample="the code always uses cuda:0",
            other="it always uses the GPU",
            beside=("cuda_visible_devices", "os.environ"),
            unless=("out of memory",),
        ),
        Signature(
            name="gpu-index",
            literal="invalid device ordinal",
            pattern=r"invalid device ordinal",
            weight=62,
            says=(
                "A device number is used that is not visible: numbers count among the visible GPUs"
            ),
            sample="cuda runtime error (101) : invalid device ordinal",
            other="ordinal",
            beside=(
                (
                    "gpu_idx|gpuid|gpu_id|gpu-id|--gpu|gpu idx|device 1|cuda:1|"
                    "cuda:2|cuda:3|card 1|gpu 1"
                ),
            ),
            unless=(
                "local_rank",
                "nproc_per_node",
                "torchrun",
            ),
        ),
        Signature(
            name="invalid-id",
            literal="invalid device id",
            pattern=r"invalid device id\b",
            weight=66,
            says="A device number is used that is not visible here",
            sample="AssertionError: Invalid device id",
            other="device id 3",
        ),
        Signature(
            name="masked-single",
            literal="cuda_visible_devices",
            pattern=r"""CUDA_VISIBLE_DEVICES\s{0,2}=\s{0,2}['\"]?[1-9]\b""",
            weight=70,
            code=True,
            says="CUDA_VISIBLE_DEVICES names a GPU that is not there: numbers count from 0",
            sample="export CUDA_VISIBLE_DEVICES=1",
            other="export CUDA_VISIBLE_DEVICES=0",
            beside=("single gpu|one gpu|1 gpu|only gpu|single card|一张显卡|单卡|一块显卡",),
            unless=("fact:cuda_available=true", "out of memory", "nccl"),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Look at the variable where the program runs, and set it before "
                "CUDA is first used; numbers count from 0."
            ),
            zh="在程序运行处查看该变量；必须在首次使用 CUDA 之前设置，编号从 0 开始。",
            commands=(
                "echo $CUDA_VISIBLE_DEVICES",
                "nvidia-smi -L",
                "unset CUDA_VISIBLE_DEVICES",
            ),
        ),
    ),
)
