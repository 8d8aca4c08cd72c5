"""Texts that point to toolkit-missing."""

from gpucheck.signatures.base import Cure, Signature, Signs

_IN_A_REPORT = ("nvcc: not available", "sys.platform")
"""Reports of the environment ask for nvcc; that it is not there is no complaint."""

SIGNS = Signs(
    slug="toolkit-missing",
    zh="没有找到 CUDA 工具包（nvcc / CUDA_HOME）",
    signatures=(
        Signature(
            name="cuda-home",
            literal="cuda_home environment variable is not set",
            pattern=r"CUDA_HOME environment variable is not set",
            weight=88,
            says="No CUDA toolkit is found: CUDA_HOME is not set and no nvcc is on PATH",
            sample=(
                "OSError: CUDA_HOME environment variable is not set. Please "
                "set it to your CUDA install root."
            ),
            other="CUDA_HOME is set",
        ),
        Signature(
            name="cuda-home-ds",
            literal="cuda_home does not exist",
            pattern=r"CUDA_HOME does not exist, unable to compile",
            weight=88,
            says="No CUDA toolkit is found",
            sample="AssertionError: CUDA_HOME does not exist, unable to compile CUDA op(s)",
            other="CUDA_HOME exists",
        ),
        Signature(
            name="nvcc-not-found",
            literal="nvcc",
            pattern=(
                r"""nvcc['\"]?: (?:command )?not found|no such file or directory: """
                r"'?\S{0,80}nvcc|nvcc was not found|cannot find nvcc|unable "
                r"to find nvcc|nvcc(?:\.exe)?\S{0,3} (?:not found|is not recognized)|"
                r"which: no nvcc"
            ),
            weight=82,
            says="nvcc is not found: no CUDA toolkit is installed, or it is not on PATH",
            sample=(
                "/bin/sh: /usr/local/cuda/bin/nvcc: No such file or directory: "
                "'/usr/local/cuda/bin/nvcc'"
            ),
            other="nvcc: NVIDIA (R) Cuda compiler driver",
            unless=_IN_A_REPORT,
        ),
        Signature(
            name="sh-nvcc",
            literal="nvcc",
            pattern=(
                r"/bin/nvcc: (?:no such file|not found)|bin\\nvcc.{0,20}(?:cannot "
                r"find|no such)"
            ),
            weight=84,
            says="nvcc is not found: no CUDA toolkit is installed, or CUDA_HOME is wrong",
            sample="/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found",
            other="nvcc: NVIDIA (R) Cuda compiler driver",
            unless=_IN_A_REPORT,
        ),
        Signature(
            name="cmake",
            literal="no cuda toolset found",
            pattern=r"no CUDA toolset found",
            weight=84,
            says="CMake finds no CUDA toolkit",
            sample="CMake Error: No CUDA toolset found.",
            other="CUDA toolset found",
        ),
        Signature(
            name="cmake-compiler",
            literal="cmake_cuda_compiler",
            pattern=(
                r"No CMAKE_CUDA_COMPILER could be found|failed to detect a "
                r"default CUDA architecture"
            ),
            weight=84,
            says="CMake finds no nvcc",
            sample="No CMAKE_CUDA_COMPILER could be found.",
            other="CMAKE_CUDA_COMPILER=/usr/bin/nvcc",
        ),
        Signature(
            name="cmake-find",
            literal="could not find cuda",
            pattern=r"could not find CUDA(?:Toolkit)?\b|could NOT find CUDA",
            weight=74,
            says="CMake finds no CUDA toolkit",
            sample="-- Could NOT find CUDA (missing: CUDA_TOOLKIT_ROOT_DIR CUDA_NVCC_EXECUTABLE)",
            other="found CUDA",
        ),
        Signature(
            name="toolkit-root",
            literal="cuda_toolkit_root_dir not found",
            pattern=r"CUDA_TOOLKIT_ROOT_DIR not found",
            weight=76,
            says="CMake finds no CUDA toolkit",
            sample="CUDA_TOOLKIT_ROOT_DIR not found or specified",
            other="CUDA_TOOLKIT_ROOT_DIR=/usr",
        ),
        Signature(
            name="none-join",
            literal="cuda_home",
            pattern=(
                r"CUDA_HOME\s{0,2}(?:=|:|is)\s{0,2}None|no CUDA runtime is "
                r"found, using CUDA_HOME"
            ),
            weight=74,
            code=True,
            says="No CUDA toolkit is found",
            sample="CUDA_HOME = None",
            other="CUDA_HOME=/usr/local/cuda",
            beside=("error|failed",),
        ),
        Signature(
            name="libdevice",
            literal="libdevice",
            pattern=r"libdevice(?:\.10\.bc)? not found|can't find libdevice directory",
            weight=70,
            says="The toolkit's libdevice is not found",
            sample="Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice",
            other="libdevice found",
        ),
        Signature(
            name="home-any",
            literal="cuda_home",
            pattern=(
                r"CUDA_HOME\b.{0,40}(?:not set|does(?:n't| not) exist|not found|"
                r"not defined|undefined|is None|unset)"
            ),
            weight=76,
            says="No CUDA toolkit is found",
            sample="CUDA_HOME is not set",
            other="CUDA_HOME=/usr/local/cuda",
        ),
        Signature(
            name="nvcc-words",
            literal="nvcc",
            pattern=(
                r"nvcc.{0,40}(?:not (?:found|installed|available)|missing|no "
                r"such)|(?:no|without|cannot find|can't find) nvcc"
            ),
            weight=66,
            says="nvcc is not found",
            sample="nvcc is not installed",
            other="nvcc works",
            unless=_IN_A_REPORT,
        ),
        Signature(
            name="sh-nvcc-builds",
            literal="nvcc: not found",
            pattern=r"/bin/nvcc: not found",
            weight=84,
            says="nvcc is not found: no CUDA toolkit is installed, or CUDA_HOME is wrong",
            sample="/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found",
            other="nvcc: not found by the report",
            beside=(
                "sys.platform",
                (
                    "ninja: build stopped|error: command|subcommand failed|build_ext|"
                    "failed building|error compiling objects|make: ***"
                ),
            ),
        ),
        Signature(
            name="cmake-no-nvcc",
            literal="failed to find nvcc",
            pattern=r"Failed to find nvcc\b",
            weight=84,
            says="CMake finds no nvcc",
            sample="CMake Error at CMakeDetermineCUDACompiler.cmake:180: Failed to find nvcc.",
            other="nvcc was found",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install the CUDA toolkit of the CUDA that torch was built with, and set CUDA_HOME."
            ),
            zh="安装与 torch 相同 CUDA 版本的工具包，并设置 CUDA_HOME。",
            commands=(
                'python -c "import torch; print(torch.version.cuda)"',
                "export CUDA_HOME=/usr/local/cuda",
                "nvcc --version",
            ),
        ),
    ),
)
