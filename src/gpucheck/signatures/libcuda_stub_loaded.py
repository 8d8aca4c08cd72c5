"""Texts that point to libcuda-stub-loaded."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="libcuda-stub-loaded",
    zh="加载的是工具包里的 libcuda 桩库，而不是驱动自带的 libcuda",
    signatures=(
        Signature(
            name="stub",
            literal="cuda driver is a stub library",
            pattern=r"CUDA driver is a stub library",
            weight=95,
            says="The toolkit's stub libcuda is loaded in place of the driver's",
            sample="CUDA error: CUDA driver is a stub library",
            other="link with the stub library at build time",
            stands=True,
        ),
        Signature(
            name="stub-name",
            literal="stub_library",
            pattern=r"CUDA_ERROR_STUB_LIBRARY|cudaErrorStubLibrary",
            weight=95,
            says="The toolkit's stub libcuda is loaded in place of the driver's",
            sample="cuInit: CUDA_ERROR_STUB_LIBRARY",
            other="a stub_library target",
            stands=True,
        ),
        Signature(
            name="mapped",
            literal="stubs/libcuda.so",
            pattern=r"stubs/libcuda\.so",
            weight=88,
            says="The toolkit's stub libcuda is found in place of the driver's",
            sample="libcuda.so.1 => /usr/local/cuda/lib64/stubs/libcuda.so.1 (0x00007f)",
            other="/usr/lib/libcuda.so",
            unless=("-l/usr/local/cuda/lib64/stubs",),
        ),
        Signature(
            name="path",
            literal="stubs",
            pattern=r"LD_LIBRARY_PATH.{0,300}/stubs",
            weight=66,
            code=True,
            says="LD_LIBRARY_PATH leads to the toolkit's stub libraries",
            sample="export LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs:$LD_LIBRARY_PATH",
            other="LIBRARY /stubs",
        ),
    ),
    cures=(
        Cure(
            text="Take every folder called stubs out of LD_LIBRARY_PATH: it is for linking only.",
            zh="从 LD_LIBRARY_PATH 中去掉所有 stubs 目录：它只用于链接。",
            commands=(
                "echo $LD_LIBRARY_PATH | tr ':' '\\n' | grep stubs",
                "ldconfig -p | grep libcuda",
            ),
        ),
    ),
)
