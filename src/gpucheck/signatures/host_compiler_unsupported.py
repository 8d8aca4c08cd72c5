"""Texts that point to host-compiler-unsupported."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="host-compiler-unsupported",
    zh="主机编译器（gcc/clang/MSVC）版本与 nvcc 或 PyTorch 头文件不兼容",
    signatures=(
        Signature(
            name="gnu",
            literal="unsupported gnu version",
            pattern=r"unsupported GNU version! gcc versions later than (?P<most>\d{1,2})",
            weight=95,
            says="This nvcc does not take gcc newer than {most}",
            sample=(
                "#error -- unsupported GNU version! gcc versions later than 12 are not supported!"
            ),
            other="GNU version 12",
            stands=True,
        ),
        Signature(
            name="msvc",
            literal="unsupported microsoft visual studio version",
            pattern=r"unsupported Microsoft Visual Studio version",
            weight=95,
            says="This nvcc does not take this Visual Studio",
            sample=(
                "#error: -- unsupported Microsoft Visual Studio version! Only "
                "the versions between 2017 and 2022 (inclusive) are supported!"
            ),
            other="Microsoft Visual Studio",
            stands=True,
        ),
        Signature(
            name="clang",
            literal="unsupported clang version",
            pattern=r"unsupported clang version",
            weight=94,
            says="This nvcc does not take this clang",
            sample="#error -- unsupported clang version! clang version must be less than 16",
            other="clang version",
            stands=True,
        ),
        Signature(
            name="maximum",
            literal="maximum required version",
            pattern=(
                r"current installed version of \S{1,40} \((?P<found>[\d.]{1,10})\) "
                r"is greater than the maximum required version"
            ),
            weight=94,
            says="g++ {found} is newer than this CUDA takes",
            sample=(
                "RuntimeError: The current installed version of g++ (13.2.0) "
                "is greater than the maximum required version by CUDA 11.8"
            ),
            other="maximum version",
            stands=True,
        ),
        Signature(
            name="minimum",
            literal="minimum required version",
            pattern=(
                r"current installed version of \S{1,40} \((?P<found>[\d.]{1,10})\) "
                r"is less than the minimum required version"
            ),
            weight=94,
            says="The compiler ({found}) is older than this CUDA takes",
            sample=(
                "RuntimeError: The current installed version of g++ (4.8.5) "
                "is less than the minimum required version by CUDA 11.3"
            ),
            other="minimum version",
            stands=True,
        ),
        Signature(
            name="stl",
            literal="stl1002",
            pattern=r"STL1002: Unexpected compiler version, expected CUDA (?P<least>[\d.]{3,6})",
            weight=94,
            says="This Visual Studio needs CUDA {least} or newer",
            sample="error STL1002: Unexpected compiler version, expected CUDA 12.4 or newer.",
            other="STL1001",
            stands=True,
        ),
        Signature(
            name="gcc-old",
            literal="too old version of gcc",
            pattern=(
                r"too old version of GCC|requires? (?:gcc|g\+\+|GCC) (?:version "
                r")?(?:>=? ?)?\d|GCC \d{1,2}(?:\.\d)? or (?:later|newer|above)"
            ),
            weight=92,
            says="gcc is too old for PyTorch's headers",
            sample=(
                "#error \"You're trying to build PyTorch with a too old version "
                'of GCC. We need GCC 9 or later."'
            ),
            other="GCC 9",
        ),
        Signature(
            name="cpp17",
            literal="c++17",
            pattern=(
                r"C\+\+17 (?:or later )?compatible compiler is required|you "
                r"need C\+\+17 to compile PyTorch"
            ),
            weight=84,
            says=(
                "The compiler, or the standard it is asked for, is too old for PyTorch's headers"
            ),
            sample="#error C++17 or later compatible compiler is required to use PyTorch.",
            other="c++17",
        ),
        Signature(
            name="abi-warning",
            literal="may be abi-incompatible with pytorch",
            pattern=(
                r"your compiler \((?P<compiler>.{1,40})\) may be ABI-incompatible "
                r"with PyTorch"
            ),
            weight=72,
            says="{compiler} may be too old for PyTorch",
            sample="Your compiler (g++ 4.8) may be ABI-incompatible with PyTorch!",
            other="abi compatible",
        ),
        Signature(
            name="std-function",
            literal="parameter packs not expanded",
            pattern=r"parameter packs not expanded with '?\W{0,3}\.\.\.",
            weight=84,
            says="gcc's headers are too new for this nvcc",
            sample=(
                "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter "
                "packs not expanded with '...'"
            ),
            other="parameter packs",
        ),
        Signature(
            name="builtin",
            literal="is undefined",
            pattern=(
                r"identifier \"(?:__builtin_ia32\w{1,40}|_Float(?:32|64|128)x?|"
                r"__ldtilecfg|__bf16|__Float32x4_t)\" is undefined"
            ),
            weight=76,
            says="gcc's or glibc's headers are too new for this nvcc",
            sample='error: identifier "__builtin_ia32_ldtilecfg" is undefined',
            other='identifier "foo" is undefined',
        ),
        Signature(
            name="math-throw",
            literal="exception specification is incompatible",
            pattern=(
                r"exception specification is incompatible with that of previous "
                r"function \"(?:rsqrt|cospi|sinpi|rsqrtf|cospif|sinpif)"
            ),
            weight=78,
            says="glibc's headers are too new for this CUDA",
            sample=(
                "error: exception specification is incompatible with that "
                'of previous function "cospi"'
            ),
            other="exception specification",
        ),
        Signature(
            name="compute-gcc",
            literal="gcc versions later than",
            pattern=r"gcc versions later than \d{1,2} are not supported",
            weight=66,
            says="This nvcc does not take such a new gcc",
            sample=(
                "#error -- unsupported GNU version! gcc versions later than 8 are not supported!"
            ),
            other="gcc version 8",
        ),
        Signature(
            name="std-flag",
            literal="unrecognized command line option",
            pattern=r"""unrecognized command[- ]line option ['‘\"]?-std=c\+\+(?:14|17|20)""",
            weight=84,
            says="gcc is too old for the C++ standard that PyTorch needs",
            sample="g++: error: unrecognized command line option '-std=c++17'",
            other="unrecognized command line option '-foo'",
        ),
        Signature(
            name="gcc-words",
            literal="gcc",
            pattern=r"gcc.{0,40}(?:too (?:new|old)|not supported|unsupported|downgrad|upgrade)",
            weight=60,
            says="gcc does not fit this CUDA or torch",
            sample="gcc 13 is too new for CUDA 11.8",
            other="gcc 11",
            beside=("nvcc|cuda|torch",),
        ),
        Signature(
            name="floatn",
            literal="bits/floatn",
            pattern=(
                r"bits/floatn(?:-common)?\.h\(\d{1,4}\): error: "
                r"(?:identifier|invalid combination)"
            ),
            weight=86,
            says="nvcc is older than the headers of this system's C library",
            sample=(
                "/usr/include/x86_64-linux-gnu/bits/floatn.h(86): error: invalid combination of "
                "type specifiers"
            ),
            other="#include <bits/floatn.h>",
        ),
    ),
    cures=(
        Cure(
            text="Build with a compiler that this CUDA supports.",
            zh="使用该 CUDA 支持的编译器编译。",
            commands=("export CC=gcc-12 CXX=g++-12 CUDAHOSTCXX=g++-12",),
        ),
    ),
)
