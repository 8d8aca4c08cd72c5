"""Texts that point to cudnn-version-mismatch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="cudnn-version-mismatch",
    zh="加载的 cuDNN 与 PyTorch 编译时的版本不一致",
    signatures=(
        Signature(
            name="compiled-linked",
            literal="was compiled against",
            pattern=(
                r"cuDNN version incompatibility: PyTorch was compiled\s{1,4}against|"
                r"PyTorch was compiled against \(\d.{0,20}but linked against"
            ),
            weight=95,
            says="PyTorch runs with another cuDNN than it was compiled for",
            sample=(
                "RuntimeError: cuDNN version incompatibility: PyTorch was "
                "compiled against (8, 3, 2) but linked against (8, 0, 3)"
            ),
            other="was compiled against numpy",
            stands=True,
        ),
        Signature(
            name="incompatibility",
            literal="cudnn version incompatib",
            pattern=r"cuDNN version incompatib",
            weight=94,
            says="PyTorch runs with another cuDNN than it was compiled for",
            sample="RuntimeError: cuDNN version incompatibility: PyTorch was compiled",
            other="cuDNN version 8",
            stands=True,
        ),
        Signature(
            name="runtime-source",
            literal="loaded runtime cudnn library",
            pattern=(
                r"loaded runtime CuDNN library: (?P<loaded>[\d.]{3,10}) but "
                r"source was compiled with: (?P<compiled>[\d.]{3,10})"
            ),
            weight=93,
            says="cuDNN {loaded} is loaded, the program was compiled for {compiled}",
            sample="Loaded runtime CuDNN library: 8.0.4 but source was compiled with: 8.1.0.",
            other="loaded runtime",
            stands=True,
        ),
        Signature(
            name="sublibrary",
            literal="sublibrary_version_mismatch",
            pattern=r"CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
            weight=94,
            says="cuDNN's sub-libraries are of different versions",
            sample="RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
            other="CUDNN_STATUS_SUCCESS",
            stands=True,
        ),
        Signature(
            name="version-status",
            literal="cudnn_status_version_mismatch",
            pattern=r"CUDNN_STATUS_VERSION_MISMATCH",
            weight=93,
            says="cuDNN's sub-libraries are of different versions",
            sample="cuDNN error: CUDNN_STATUS_VERSION_MISMATCH",
            other="CUDNN_STATUS_SUCCESS",
            stands=True,
        ),
        Signature(
            name="load-symbol",
            literal="libcudnn",
            pattern=(
                r"(?:could not load library )?libcudnn\w{0,40}\.so.{0,200}(?:undefined "
                r"symbol|not defined in file libcudnn)"
            ),
            weight=92,
            says="cuDNN's libraries are of different versions",
            sample=(
                "Could not load library libcudnn_cnn_train.so.8. Error: /usr/local/cuda/lib64/l"
                "ibcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn"
            ),
            other="libcudnn.so.8: cannot open",
            stands=True,
        ),
        Signature(
            name="symbol-lookup",
            literal="cudnn",
            pattern=r"symbol lookup error:.{0,200}cudnn",
            weight=90,
            says="cuDNN's libraries are of different versions",
            sample=(
                "python: symbol lookup error: libcudnn_ops_infer.so.8: undefined "
                "symbol: foo, version libcudnn.so.8"
            ),
            other="symbol lookup error: foo",
        ),
        Signature(
            name="lib-config",
            literal="cudnngetlibconfig",
            pattern=r"(?:could not|cannot) load symbol cudnnGetLibConfig",
            weight=86,
            says="cuDNN's libraries are of different versions",
            sample=(
                "Could not load symbol cudnnGetLibConfig. Error: undefined "
                "symbol: cudnnGetLibConfig"
            ),
            other="cudnnCreate",
        ),
        Signature(
            name="dll-127",
            literal="cudnn",
            pattern=(
                r"(?:could not load library|error loading).{0,120}cudnn\w{0,40}\.dll.{0,40}(?:12"
                r"7|1114|193)"
            ),
            weight=80,
            says="cuDNN's libraries are of different versions",
            sample="Could not load library cudnn_cnn_infer64_8.dll. Error code 127",
            other="cudnn64_8.dll loaded",
        ),
        Signature(
            name="words",
            literal="cudnn",
            pattern=(
                r"cudnn.{0,60}(?:mismatch|incompatib|does not match|wrong version|"
                r"different version)"
            ),
            weight=66,
            says="cuDNN is of another version than torch needs",
            sample="the cuDNN version does not match",
            other="cudnn works",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Let torch find its own cuDNN: take system folders out of "
                "LD_LIBRARY_PATH, remove the other cuDNN."
            ),
            zh="让 torch 使用自带的 cuDNN：从 LD_LIBRARY_PATH 去掉系统目录，移除另一份 cuDNN。",
            commands=(
                "unset LD_LIBRARY_PATH",
                'python -c "import torch; print(torch.backends.cudnn.version())"',
            ),
        ),
    ),
)
