"""Texts that point to torch-cpu-only."""

from gpucheck.signatures.base import Cure, Signature, Signs

_WANTS_CPU = (
    "n't need cuda", "not need cuda", "n't need gpu", "not need gpu", "n't need the gpu",
    "n't need a gpu", "no need for cuda", "no need of cuda", "not need a gpu", "not need the gpu",
    "without the cuda", "n't want cuda", "not want cuda", "i don't need", "want the cpu",
    "want a cpu", "only want cpu", "want to install the cpu", "only need the cpu", "only need cpu",
    "cpu-only machine", "cpu only machine", "no gpu", "n't have a gpu", "do not have a gpu",
    "cpu-only install", "instead of the cpu", "not the cpu", "not respect", "n't respect",
)  # fmt: skip
"""Words of somebody for whom a CPU build is the right one."""
_CUDA_IS_MISSED = (
    (
        "fact:gpu|fact:cuda_available=false|is_available|is_avaiable|not compiled with cuda|"
        "cuda not|cuda is not|cuda isn't|no cuda|use gpu|use the gpu|using gpu|using the gpu|"
        "on gpu|gpu is not|gpu not|gpu isn't|not see|not detect|nvidia-smi|false|"
        "cudatoolkit |cudatoolkit=|pytorch-cuda|cuda build"
    ),
)
"""A CPU build alone is no fault: something in the text must miss CUDA."""

SIGNS = Signs(
    slug="torch-cpu-only",
    zh="安装的是 CPU 版 PyTorch",
    signatures=(
        Signature(
            name="not-compiled",
            literal="not compiled with cuda enabled",
            pattern=r"not compiled with CUDA enabled",
            weight=80,
            says="This PyTorch is a CPU-only build",
            sample="AssertionError: Torch not compiled with CUDA enabled",
            other="compiled with CUDA enabled",
        ),
        Signature(
            name="local-version",
            literal="+cpu",
            pattern=(
                r"\btorch(?:[^\w\n].{0,40}|\s{1,30})\d\.\d{1,2}\.\d{1,2}\S{0,20}\+cpu|"
                r"\d\.\d{1,2}\.\d{1,2}\+cpu\b.{0,20}torch|PyTorch.{0,24}\d\.\d{1,2}\.\d{1,2}\+cp"
                r"u"
            ),
            weight=60,
            says="This PyTorch is a CPU-only build (+cpu)",
            sample="PyTorch version: 2.1.0+cpu",
            other="gcc 5.0+cpu",
            beside=(
                (
                    "fact:gpu|is_available|gpu is|not compiled with cuda|"
                    "cuda not available|cuda is not|no cuda gpus|gpu:|use "
                    "gpu|on gpu|gtx|rtx|geforce|cuda version|nvidia-smi"
                ),
            ),
            unless=(
                "fact:os=macos",
                "command not found",
                "no gpu in",
                "no nvidia gpu",
            ),
        ),
        Signature(
            name="version-none",
            literal="torch.version.cuda",
            pattern=(
                r"torch\.version\.cuda\)?\s{0,6}(?:=|:|->|is|returns?|gives|"
                r"prints?)?\s{0,4}`?None"
            ),
            weight=82,
            says="torch.version.cuda is None: a CPU-only build",
            sample="torch.version.cuda is None",
            other="torch.version.cuda 12.1",
            unless=("rocm",),
        ),
        Signature(
            name="version-none-noted",
            literal="torch.version.cuda",
            pattern=r"torch\.version\.cuda\)?\s{0,8}#.{0,20}\bNone\b",
            weight=82,
            code=True,
            says="torch.version.cuda is None: a CPU-only build",
            sample="print(torch.version.cuda)  # prints None",
            other="print(torch.version.cuda)  # prints 12.4",
            unless=("rocm",),
        ),
        Signature(
            name="version-none-turned",
            literal="torch.cuda.version",
            pattern=r"torch\.cuda\.version\)?.{0,20}\bNone\b",
            weight=80,
            code=True,
            says="torch.version.cuda is None: a CPU-only build",
            sample="torch.cuda.version is None",
            other="torch.cuda.version is 11.3",
            unless=("rocm",),
        ),
        Signature(
            name="cpuonly-package",
            literal="cpuonly",
            pattern=r"(?:^|\s)cpuonly\s{1,40}\d",
            weight=74,
            says="conda's package cpuonly holds PyTorch to a CPU build",
            sample="cpuonly                   2.0                           0    pytorch",
            other="cpuonly mode",
            beside=_CUDA_IS_MISSED,
            unless=_WANTS_CPU,
        ),
        Signature(
            name="conda-cpu",
            literal="cpu_",
            pattern=r"^\s{0,8}(?:pytorch|libtorch)\s{1,40}\d\S{0,30}\s{1,40}\S{0,20}cpu_",
            weight=76,
            says="conda installed a CPU build of PyTorch",
            sample="pytorch                   2.1.0           cpu_py311h8a36d5c_0    conda-forge",
            other="pytorch 2.1.0 cuda118_py311",
            beside=_CUDA_IS_MISSED,
            unless=_WANTS_CPU,
            stands=True,
        ),
        Signature(
            name="index",
            literal="download.pytorch.org/whl/cu",
            pattern=r"--extra-index-url \S{0,10}download\.pytorch\.org/whl/(?P<tag>cu\d{2,3})",
            weight=74,
            says=(
                "An index added with --extra-index-url gave no CUDA wheel: "
                "pip took PyPI's CPU wheel"
            ),
            sample="pip3 install torch --extra-index-url https://download.pytorch.org/whl/cu112",
            other="--index-url https://download.pytorch.org/whl/cu121",
            beside=("windows",),
            unless=(
                "no matching distribution",
                "could not find a version",
            ),
        ),
        Signature(
            name="deserialize",
            literal="attempting to deserialize object on a cuda device",
            pattern=(
                r"deserialize object on a CUDA device but torch\.cuda\.is_available\(\) "
                r"is False"
            ),
            weight=50,
            says="A checkpoint of a GPU is loaded where CUDA is not available",
            sample=(
                "RuntimeError: Attempting to deserialize object on a CUDA "
                "device but torch.cuda.is_available() is False."
            ),
            other="deserialize object",
            cures=(
                Cure(
                    text=(
                        "Load the checkpoint with map_location='cpu', or make "
                        "CUDA available: look at the build first."
                    ),
                    zh=(
                        "用 map_location='cpu' 加载检查点，或先让 CUDA 可用：首先检查 "
                        "torch 的版本。"
                    ),
                    commands=(
                        'python -c "import torch; print(torch.__version__, torch.version.cuda)"',
                    ),
                ),
            ),
        ),
        Signature(
            name="aten",
            literal="'cuda' backend",
            pattern=(
                r"Could not run 'aten::\S{1,60}' with arguments from the 'CUDA'(?:TensorId)? "
                r"backend"
            ),
            weight=66,
            says="This PyTorch has no CUDA kernels: a CPU-only build",
            sample=(
                "NotImplementedError: Could not run 'aten::empty.memory_format' "
                "with arguments from the 'CUDA' backend."
            ),
            other="Could not run 'torchvision::nms' with arguments from the 'CUDA' backend",
        ),
        Signature(
            name="cpu-wheel",
            literal="whl/cpu",
            pattern=r"download\.pytorch\.org/whl/cpu",
            weight=70,
            says="The CPU wheels of PyTorch were installed",
            sample="pip install torch --index-url https://download.pytorch.org/whl/cpu",
            other="download.pytorch.org/whl/cu118",
            beside=("not available|is_available|cuda|gpu",),
            unless=_WANTS_CPU,
        ),
        Signature(
            name="collect-env",
            literal="cuda used to build pytorch",
            pattern=r"CUDA used to build PyTorch\W{1,3}(?:None|Could not collect|No\b)",
            weight=72,
            says="This PyTorch is built without CUDA",
            sample="CUDA used to build PyTorch: None",
            other="CUDA used to build PyTorch: 12.1",
            beside=(
                (
                    "is_available()|pytorch-cuda|cudatoolkit|gpu is not|gpu "
                    "not|not using gpu|nvidia driver version: 3|nvidia driver "
                    "version: 4|nvidia driver version: 5"
                ),
            ),
            unless=(
                "xpu",
                "macos",
                "mac os",
                "rocm used to build pytorch: 5",
                "rocm used to build pytorch: 6",
                "rocm used to build pytorch: 4",
                "pytorch version: n/a",
            ),
        ),
        Signature(
            name="words",
            literal="cpu",
            pattern=(
                r"(?:cpu[- ]?(?:only )?(?:version|build|wheel|版)|cpu版本).{0,60}(?:torch|"
                r"pytorch|install)|(?:torch|pytorch).{0,60}(?:cpu[- ]?(?:only "
                r")?(?:version|build|wheel|variant)|cpu版)"
            ),
            weight=66,
            says="A CPU build of PyTorch is installed",
            sample="pip installs the CPU version of torch",
            other="cpu version 3",
            unless=("works", *_WANTS_CPU),
        ),
        Signature(
            name="windows-pip",
            literal="pip",
            pattern=r"pip3? install .{0,80}\btorch\b",
            weight=54,
            says="pip on Windows installs PyPI's CPU build of torch",
            sample="pip install torch torchvision",
            other="pip install numpy",
            beside=(
                "fact:os=windows",
                "fact:cuda_available=false",
            ),
            unless=(
                "--index-url https://download.pytorch.org/whl/cu",
                "-i https://download.pytorch.org/whl/cu",
                "+cu1",
            ),
        ),
        Signature(
            name="conda-install",
            literal="conda install",
            pattern=r"conda install .{0,80}\bpytorch\b",
            weight=50,
            says="conda chose a CPU build of PyTorch",
            sample="conda install pytorch torchvision -c pytorch",
            other="conda install numpy",
            beside=("fact:cuda_available=false",),
            unless=(
                "fact:built_for=cuda",
                "nvidia-smi has failed",
                "fact:jetson",
            ),
        ),
        Signature(
            name="no-cuda-words",
            literal="cuda",
            pattern=(
                r"torch.{0,60}(?:without cuda|no cuda support|not built with "
                r"cuda|has no cuda)"
            ),
            weight=58,
            says="This PyTorch is built without CUDA",
            sample="torch was built without CUDA",
            other="torch with cuda",
            beside=("without cuda|no cuda support|not built with cuda|has no cuda",),
        ),
        Signature(
            name="a1111",
            literal="torch is not able to use gpu",
            pattern=r"torch is not able to use GPU",
            weight=54,
            says="PyTorch cannot use the GPU: often it is a CPU build",
            sample=(
                "AssertionError: Torch is not able to use GPU; add --skip-torch-cuda-test "
                "to COMMANDLINE_ARGS variable to disable this check"
            ),
            other="use gpu",
            unless=(
                "radeon",
                "amd gpu",
                "+rocm",
                "gfx1",
                "gfx9",
                "amdgpu",
            ),
        ),
        Signature(
            name="no-cuda-binding",
            literal="module 'torch._c' has no attribute '_cuda",
            pattern=(
                r"module 'torch\._C' has no attribute '_(?:cuda_(?:setDevice|getDevice|init|"
                r"getDeviceCount|getDriverVersion|getCompiledVersion|isDriverSufficient|"
                r"getCurrent\w{1,24}|setStream|emptyCache|synchronize|sleep|memoryStats|"
                r"resetPeakMemoryStats|getArchFlags|cudaHostAllocator|\w{0,6}xchangeDevice|"
                r"getRNGState|manualSeed|seed\w{0,4}|initialSeed|lock_mutex|ipc_collect)|cudart\b)"
            ),
            weight=82,
            says="This PyTorch has no CUDA functions: a CPU-only build",
            sample="AttributeError: module 'torch._C' has no attribute '_cuda_getDeviceCount'",
            other="module 'torch._C' has no attribute '_cuda_somethingNew'",
            unless=("torch_npu", "ascend", "fact:os=macos"),
        ),
        Signature(
            name="which-build",
            literal="install",
            pattern=(
                r"how (?:do I|to|can I|should I) (?:re)?install\w{0,3} .{0,20}(?:gpu|cuda)[- ]?"
                r"(?:version|build|enabled)"
            ),
            weight=58,
            says="A CPU build of PyTorch is installed",
            sample="how do I install the GPU version of it?",
            other="how to install CUDA 12",
            beside=("fact:cuda_available=false",),
        ),
        Signature(
            name="which-build-zh",
            literal="gpu版",
            pattern=r"GPU版(?:本)?.{0,10}(?:怎么|如何|怎样).{0,4}安?装|(?:怎么|如何|怎样).{0,4}安装.{0,10}GPU版",
            weight=58,
            says="A CPU build of PyTorch is installed",
            sample="GPU版本怎么安装",
            other="GPU版",
            beside=("fact:cuda_available=false",),
        ),
        Signature(
            name="aten-cuda",
            literal="cuda",
            pattern=(
                r"without ATen_cuda library|not linked with support for cuda devices|"
                r"PyTorch was compiled without CUDA support|"
                r"Device type CUDA is not supported for torch\.Generator"
            ),
            weight=78,
            says="This PyTorch has no CUDA functions: a CPU-only build",
            sample="RuntimeError: PyTorch is not linked with support for cuda devices",
            other="linked with support for xpu devices",
            beside=(
                (
                    "aten_cuda|not linked with support|"
                    "was compiled without cuda support|cuda is not supported for"
                ),
            ),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Replace the CPU build by a CUDA build; gpucheck recommend "
                "names the index for your driver."
            ),
            zh="用 CUDA 版替换 CPU 版；gpucheck recommend 会给出适合你驱动的索引地址。",
            commands=(
                "pip uninstall -y torch torchvision torchaudio",
                "gpucheck recommend",
            ),
        ),
    ),
)
