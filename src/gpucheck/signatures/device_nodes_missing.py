"""Texts that point to device-nodes-missing."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="device-nodes-missing",
    zh="设备节点 /dev/nvidia-uvm 或 /dev/nvidia* 缺失或损坏",
    signatures=(
        Signature(
            name="uvm-load",
            literal="could not load uvm kernel module",
            pattern=r"could not load UVM kernel module",
            weight=74,
            says="The nvidia-uvm module or its device node is missing",
            sample="Error: Could not load UVM kernel module. Is nvidia-modprobe installed?",
            other="UVM kernel module loaded",
        ),
        Signature(
            name="uvm-node",
            literal="/dev/nvidia",
            pattern=(
                r"""/dev/nvidia(?:-uvm|-uvm-tools|ctl|-modeset|\d{1,3})\"?'?:? """
                r"(?:no such file|does not exist|not found)"
            ),
            weight=90,
            says="A device node of the driver is missing",
            sample=(
                "error gathering device information while adding custom device "
                '"/dev/nvidia-uvm": no such file or directory'
            ),
            other="/dev/nvidia0 is there",
        ),
        Signature(
            name="stat",
            literal="stat failed: /dev/nvidia",
            pattern=r"stat failed: /dev/nvidia",
            weight=88,
            says="A device node of the driver is missing",
            sample=(
                "nvidia-container-cli: detection error: stat failed: /dev/nvidia-modeset: "
                "no such file or directory"
            ),
            other="stat failed: /tmp/x",
        ),
        Signature(
            name="torch-unknown",
            literal="cuda unknown error",
            pattern=r"CUDA unknown error - this may be due to an incorrectly set up environment",
            weight=64,
            says="CUDA error 999: libcuda cannot open its device nodes, often /dev/nvidia-uvm",
            sample=(
                "RuntimeError: CUDA unknown error - this may be due to an "
                "incorrectly set up environment, e.g. changing env variable "
                "CUDA_VISIBLE_DEVICES after program start."
            ),
            other="CUDA error: unknown",
        ),
        Signature(
            name="cuinit-unknown",
            literal="cuda_error_unknown",
            pattern=(
                r"cuInit.{0,60}CUDA_ERROR_UNKNOWN|CUDA_ERROR_UNKNOWN.{0,40}(?:999|"
                r"cuInit)|error 999"
            ),
            weight=66,
            says="cuInit fails with error 999: libcuda cannot open its device nodes",
            sample="failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error",
            other="CUDA_ERROR_UNKNOWN is listed in the header",
        ),
        Signature(
            name="unknown-at-start",
            literal="cudaerrorunknown",
            pattern=r"\bcudaErrorUnknown\b",
            weight=62,
            says="CUDA cannot start (unknown error): libcuda cannot open its device nodes",
            sample="cuInit failed with error 999 [cudaErrorUnknown: unknown error]",
            other="cudaErrorNoDevice",
            beside=("cuinit|cuda_init|_lazy_init|getdevicecount|is_available|thcgeneral|initiali",),
            unless=("fact:cuda_available=true", "fact:os=windows"),
        ),
        Signature(
            name="thc-unknown",
            literal="unknown error",
            pattern=(
                r"(?:error=30|error 30|cuda runtime error \(30\)|\(30\)) ?:? "
                r"?unknown error|cudaGetDeviceCount.{0,60}unknown error|error "
                r"999: unknown error"
            ),
            weight=60,
            says=(
                "CUDA cannot start (unknown error): a device node or the nvidia-uvm "
                "module is missing"
            ),
            sample=(
                "THCudaCheck FAIL file=torch/csrc/cuda/Module.cpp line=109 error=30 : unknown error"
            ),
            other="an unknown error in the parser",
        ),
        Signature(
            name="suspend",
            literal="suspend",
            pattern=(
                r"(?:after|since|wak\w{0,3}|resum\w{0,3}).{0,60}(?:suspend|sleep|hibernat)|"
                r"\bsuspend(?:ed|ing|s)? (?:my|the|this|your) (?:device|machine|laptop|computer|"
                r"pc|system)"
            ),
            weight=80,
            says="CUDA stops after the machine was suspended",
            sample="after suspend and resume torch.cuda.is_available() is False",
            other="we suspend the job",
            beside=("cuda|torch",),
        ),
        Signature(
            name="uvm-words",
            literal="nvidia-uvm",
            pattern=(
                r"nvidia[-_]uvm.{0,60}(?:missing|not (?:loaded|there|found|"
                r"created|exist)|no such)|(?:no|missing|without) /dev/nvidia"
            ),
            weight=66,
            says="/dev/nvidia-uvm is missing",
            sample="/dev/nvidia-uvm is missing",
            other="nvidia-uvm loaded",
        ),
        Signature(
            name="smi-ok-cuda-not",
            literal="nvidia-smi",
            pattern=r"nvidia-smi.{0,40}(?:works?|ok|fine|正常)",
            weight=52,
            says=(
                "nvidia-smi works and CUDA does not: a device node or the "
                "nvidia-uvm module is missing"
            ),
            sample="nvidia-smi works",
            other="nvidia-smi fails",
            beside=(
                "is_available()\nfalse|unknown error",
                "docker|container|suspend|reboot|boot",
            ),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Load nvidia-uvm and make the device nodes; after a suspend load the module anew."
            ),
            zh="加载 nvidia-uvm 并创建设备节点；休眠之后需要重新加载该模块。",
            commands=(
                "sudo nvidia-modprobe -u -c=0",
                "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm",
            ),
        ),
        Cure(
            text="For a container pass the node on as well.",
            zh="容器还需要传入该设备节点。",
            commands=("docker run --gpus all --device /dev/nvidia-uvm IMAGE nvidia-smi",),
        ),
    ),
)
