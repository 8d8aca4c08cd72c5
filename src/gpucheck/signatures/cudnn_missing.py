"""Texts that point to cudnn-missing."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="cudnn-missing",
    zh="找不到 cuDNN 库",
    signatures=(
        Signature(
            name="so",
            literal="libcudnn",
            pattern=(
                r"""libcudnn[\w]{0,40}\.so(?:\.\d{1,2}){0,3}['\"]?: cannot open """
                r"shared object"
            ),
            weight=86,
            says="A cuDNN library is not found by the loader",
            sample=(
                "ImportError: libcudnn.so.7: cannot open shared object file: "
                "No such file or directory"
            ),
            other="libcudnn.so.8 is loaded",
        ),
        Signature(
            name="load-missing",
            literal="could not load library libcudnn",
            pattern=(
                r"could not load library libcudnn\w{0,40}\.so\S{0,8} Error: "
                r"libcudnn\w{0,40}\.so\S{0,8}: cannot open"
            ),
            weight=88,
            says="A cuDNN library is not found by the loader",
            sample=(
                "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8"
                ": cannot open shared object file: No such file or directory"
            ),
            other=(
                "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: "
                "cannot open shared object file"
            ),
        ),
        Signature(
            name="unable-any",
            literal="unable to load any of {libcudnn",
            pattern=r"unable to load any of \{libcudnn",
            weight=92,
            says="None of the cuDNN 9 libraries is found by the loader",
            sample=(
                "Unable to load any of {libcudnn_cnn.so.9.1.0, libcudnn_cnn.so.9.1, "
                "libcudnn_cnn.so.9, libcudnn_cnn.so}"
            ),
            other="unable to load any",
            stands=True,
        ),
        Signature(
            name="unable-any-dll",
            literal="unable to load any of {cudnn",
            pattern=r"unable to load any of \{cudnn",
            weight=92,
            says="None of the cuDNN 9 libraries is found by the loader",
            sample="Unable to load any of {cudnn_ops64_9.dll}",
            other="unable to load any",
            stands=True,
        ),
        Signature(
            name="locate",
            literal="could not locate cudnn",
            pattern=r"could not locate cudnn\w{0,40}\.dll",
            weight=92,
            says="A cuDNN library is not found: its folder is not on PATH",
            sample=(
                "Could not locate cudnn_ops_infer64_8.dll. Please make sure "
                "it is in your library path!"
            ),
            other="could locate cudnn",
            stands=True,
        ),
        Signature(
            name="dll",
            literal="cudnn",
            pattern=(
                r"cudnn\w{0,40}\.dll.{0,20}(?:not found|could not be found|"
                r"is missing|cannot be loaded)|could not find (?:module )?.{0,20}cudnn\w{0,40}\."
                r"dll"
            ),
            weight=86,
            says="A cuDNN library is not found",
            sample=(
                "Could not load dynamic library 'cudnn64_8.dll'; dlerror: cudnn64_8.dll not found"
            ),
            other="cudnn64_8.dll loaded",
        ),
        Signature(
            name="invalid-handle",
            literal="cannot load symbol cudnn",
            pattern=r"cannot load symbol cudnn\w{1,60}",
            weight=72,
            says="cuDNN's libraries cannot be loaded",
            sample="Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor",
            other="load symbol foo",
        ),
        Signature(
            name="dso-tf",
            literal="libcudnn",
            pattern=r"could not load dynamic library 'libcudnn",
            weight=80,
            says="cuDNN is not found by the loader",
            sample=(
                "Could not load dynamic library 'libcudnn.so.8'; dlerror: "
                "libcudnn.so.8: cannot open"
            ),
            other="libcudnn.so.8 loaded",
        ),
        Signature(
            name="header",
            literal="cudnn.h",
            pattern=r"cudnn\.h: no such file|could not find cudnn|cannot find -lcudnn",
            weight=76,
            says="cuDNN's headers are not found",
            sample="fatal error: cudnn.h: No such file or directory",
            other="cudnn.h is there",
        ),
        Signature(
            name="dll-126",
            literal="could not load library cudnn",
            pattern=r"could not load library cudnn\w{0,40}\.dll\. Error code 126",
            weight=86,
            says="A cuDNN library, or one that it needs, is not found",
            sample="Could not load library cudnn_cnn_infer64_8.dll. Error code 126",
            other="Could not load library cudnn64_8.dll. Error code 127",
        ),
        Signature(
            name="words",
            literal="cudnn",
            pattern=(
                r"cudnn.{0,60}(?:not (?:found|installed|available)|missing|"
                r"cannot (?:find|load)|找不到|no such file)|(?:cannot|could "
                r"not|can't|unable to) (?:find|load|locate)(?! a valid| an engine).{0,40}cudnn"
            ),
            weight=60,
            says="cuDNN is not found",
            sample="cuDNN is not installed",
            other="cudnn works",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install the cuDNN of the major version that is asked for, "
                "and let the loader find it."
            ),
            zh="安装所需主版本的 cuDNN，并让加载器能找到它。",
            commands=(
                "pip install nvidia-cudnn-cu12",
                "ldconfig -p | grep libcudnn",
            ),
        ),
    ),
)
