"""Texts that point to compiler-missing."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="compiler-missing",
    zh="找不到 C/C++ 编译器或 Python 头文件",
    signatures=(
        Signature(
            name="triton",
            literal="failed to find c compiler",
            pattern=r"failed to find C compiler",
            weight=94,
            says="Triton finds no C compiler",
            sample=(
                "RuntimeError: Failed to find C compiler. Please specify via "
                "CC environment variable."
            ),
            other="find C compiler",
            stands=True,
        ),
        Signature(
            name="python-h",
            literal="python.h",
            pattern=(
                r"Python\.h\W{0,6}(?:no such file|file not found|not found|"
                r"没有那个文件|cannot open)"
            ),
            weight=92,
            says="Python's headers are not installed",
            sample="fatal error: Python.h: No such file or directory",
            other="Python.h is included",
            stands=True,
        ),
        Signature(
            name="python-h-zh",
            literal="python.h",
            pattern=r"(?:fatal error|C1083|致命错误|cannot find|missing).{0,80}Python\.h",
            weight=90,
            says="Python's headers are not installed",
            sample="main.c(12): fatal error C1083: Cannot open include file: 'Python.h'",
            other="Python.h is included",
            stands=True,
        ),
        Signature(
            name="gcc",
            literal="gcc",
            pattern=(
                r"(?:command|unable to execute) '(?:\S{0,80}/)?(?:x86_64-linux-gnu-)?(?:gcc|"
                r"g\+\+|cc|c\+\+)' failed: (?:no such file|permission)|unable "
                r"to execute '\S{0,80}(?:gcc|g\+\+)'|(?:gcc|g\+\+): (?:command "
                r")?not found"
            ),
            weight=88,
            says="No C compiler is installed",
            sample="error: command 'gcc' failed: No such file or directory",
            other="gcc version 11",
            beside=(
                (
                    "failed: no such file|failed: permission|unable to execute '|"
                    "gcc: not found|gcc: command not found|g++: not found|"
                    "g++: command not found"
                ),
            ),
        ),
        Signature(
            name="no-such-gxx",
            literal="no such file or directory: '",
            pattern=r"no such file or directory: '(?:\S{0,80}/)?(?:gcc|g\+\+|c\+\+|cc|clang)'",
            weight=84,
            says="No C compiler is installed",
            sample="FileNotFoundError: [Errno 2] No such file or directory: 'g++'",
            other="No such file or directory: 'foo'",
        ),
        Signature(
            name="msvc",
            literal="microsoft visual c++",
            pattern=r"Microsoft Visual C\+\+ \d\d(?:\.\d)? (?:or greater )?is required",
            weight=90,
            says="No Visual C++ compiler is installed",
            sample="error: Microsoft Visual C++ 14.0 or greater is required.",
            other="Microsoft Visual C++ 2019",
        ),
        Signature(
            name="cl",
            literal="for cl",
            pattern=r"error checking compiler version for cl",
            weight=84,
            says="cl.exe is not on PATH: use a Visual Studio developer prompt",
            sample=(
                "UserWarning: Error checking compiler version for cl: [WinError "
                "2] The system cannot find the file specified"
            ),
            other="for clang",
        ),
        Signature(
            name="where-cl",
            literal="'where', 'cl'",
            pattern=r"\['where', 'cl'\]",
            weight=92,
            says="cl.exe is not on PATH: use a Visual Studio developer prompt",
            sample=(
                "subprocess.CalledProcessError: Command '['where', 'cl']' "
                "returned non-zero exit status 1."
            ),
            other="'where', 'gcc'",
        ),
        Signature(
            name="inductor-cl",
            literal="compiler: cl is not found",
            pattern=r"compiler: cl is not found",
            weight=93,
            says="cl.exe is not on PATH",
            sample="RuntimeError: Compiler: cl is not found.",
            other="compiler found",
        ),
        Signature(
            name="inductor",
            literal="c++ compiler",
            pattern=r"no working C\+\+ compiler found|InvalidCxxCompiler",
            weight=93,
            says="torch.compile finds no C++ compiler",
            sample=(
                "torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler "
                "found in torch._inductor.config.cpp.cxx"
            ),
            other="a C++ compiler",
        ),
        Signature(
            name="ninja",
            literal="ninja is required",
            pattern=r"ninja is required to load C\+\+ extensions",
            weight=76,
            says="ninja is not installed",
            sample="RuntimeError: Ninja is required to load C++ extensions",
            other="ninja installed",
            cures=(
                Cure(
                    text="Install ninja.",
                    zh="安装 ninja。",
                    commands=("pip install ninja",),
                ),
            ),
        ),
        Signature(
            name="cxx-test",
            literal="no cmake_cxx_compiler could be found",
            pattern=r"No CMAKE_C(?:XX)?_COMPILER could be found",
            weight=72,
            says="CMake finds no C or C++ compiler",
            sample="No CMAKE_CXX_COMPILER could be found.",
            other="CMAKE_CXX_COMPILER=g++",
        ),
        Signature(
            name="vcvars",
            literal="vcvarsall.bat",
            pattern=r"unable to find vcvarsall\.bat",
            weight=90,
            says="No Visual C++ compiler is found",
            sample="error: Unable to find vcvarsall.bat",
            other="vcvarsall.bat x64",
        ),
        Signature(
            name="cl-missing",
            literal="cl",
            pattern=(
                r"(?:cl\.exe|\bcl\b).{0,30}(?:not found|cannot find|is not "
                r"recognized|not on PATH)|(?:cannot|could not|unable to) find "
                r".{0,20}\bcl(?:\.exe)?\b"
            ),
            weight=82,
            says="cl.exe is not on PATH",
            sample="cl.exe is not recognized as a command",
            other="class",
            beside=(
                (
                    "not found|cannot find|is not recognized|not on path|"
                    "could not find|unable to find"
                ),
            ),
        ),
        Signature(
            name="python-libs",
            literal="failed to find python libs",
            pattern=r"failed to find Python libs",
            weight=80,
            says="Triton finds no Python headers and libraries",
            sample="UserWarning: Failed to find Python libs.",
            other="python libs",
        ),
        Signature(
            name="cc1plus",
            literal="cc1plus",
            pattern=r"cannot exec(?:ute)? ['‘`\"]?cc1plus",
            weight=86,
            says="gcc is there without its C++ compiler",
            sample="gcc: fatal error: cannot execute 'cc1plus': execvp: No such file or directory",
            other="cc1plus: all warnings being treated as errors",
        ),
        Signature(
            name="command-missing",
            literal="error: command '",
            pattern=(
                r"error: command '(?:\S{0,60}[-/])?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)"
                r"(?:-\d{1,2})?' failed: No such file or directory"
            ),
            weight=84,
            says="The build of an extension finds no C compiler",
            sample="error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory",
            other="error: command 'gcc' failed with exit status 1",
        ),
        Signature(
            name="ninja-missing",
            literal="no such file or directory: 'ninja'",
            pattern=r"no such file or directory: 'ninja'",
            weight=80,
            says="ninja is not installed, which builds the extension",
            sample="FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
            other="no such file or directory: 'ninja.txt'",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install a C compiler and Python's headers; on Windows the "
                "Visual Studio build tools, and use their prompt."
            ),
            zh=(
                "安装 C 编译器和 Python 头文件；Windows 安装 Visual Studio 生成工具并使用其命令行。"
            ),
            commands=("sudo apt install build-essential python3-dev",),
        ),
    ),
)
