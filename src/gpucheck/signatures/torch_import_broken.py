"""Texts that point to torch-import-broken."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="torch-import-broken",
    zh="导入 torch 失败：缺少或损坏了某个库",
    signatures=(
        Signature(
            name="ijit",
            literal="ijit_notifyevent",
            pattern=r"undefined symbol: iJIT_NotifyEvent",
            weight=95,
            says="MKL 2024.1 no longer has a symbol that this conda build of PyTorch needs",
            sample="libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent",
            other="iJIT_NotifyEvent is called",
            stands=True,
        ),
        Signature(
            name="tls",
            literal="static tls block",
            pattern=r"cannot allocate memory in static TLS block",
            weight=84,
            says=(
                "A library was imported too late to get its thread-local storage: "
                "import torch first"
            ),
            sample=(
                "ImportError: libgomp-d22c30c5.so.1: cannot allocate memory in static TLS block"
            ),
            other="TLS certificate",
            cures=(
                Cure(
                    text=(
                        "Import torch first in the program, or preload the library "
                        "that the message names."
                    ),
                    zh="在程序中最先导入 torch，或预加载报错中的库。",
                    commands=("export LD_PRELOAD=PATH_OF_THE_LIBRARY",),
                ),
            ),
        ),
        Signature(
            name="win-126",
            literal="or one of its dependencies",
            pattern=(
                r"(?:Error loading|加载).{0,200}torch\\\\?lib\\\\?\S{1,60}\.dll.{0,6} "
                r"or one of its dependencies"
            ),
            weight=88,
            says=(
                "Windows cannot load one of torch's DLLs: the Visual C++ runtime "
                "or a library is missing"
            ),
            sample=(
                "OSError: [WinError 126] The specified module could not be "
                'found. Error loading "C:\\Python39\\lib\\site-packages\\torch\\lib\\fbgemm.dll" '
                "or one of its dependencies."
            ),
            other="foo.dll or one of its dependencies",
        ),
        Signature(
            name="win-1114",
            literal="winerror 1114",
            pattern=r"\[WinError 1114\]",
            weight=88,
            says="Windows cannot initialise one of torch's DLLs",
            sample=(
                "OSError: [WinError 1114] A dynamic link library (DLL) initialization "
                "routine failed."
            ),
            other="[WinError 5]",
            beside=("torch",),
        ),
        Signature(
            name="win-127",
            literal="winerror 127",
            pattern=r"\[WinError 127\]",
            weight=70,
            says="One of torch's DLLs is of another build",
            sample="OSError: [WinError 127] The specified procedure could not be found",
            other="[WinError 5]",
            beside=("torch\\lib|torch\\\\lib",),
        ),
        Signature(
            name="dll-load",
            literal="dll load failed",
            pattern=r"DLL load failed.{0,60}",
            weight=62,
            says="Windows cannot load a DLL that torch needs",
            sample="ImportError: DLL load failed: The specified module could not be found.",
            other="DLL loaded",
            beside=("torch\\__init__|torch/__init__|from torch._c import",),
        ),
        Signature(
            name="libmkl",
            literal="libmkl",
            pattern=(
                r"(?:libmkl_\w{1,30}|libiomp5|libomp|libgfortran|libopenblas\w{0,10})(?:-\w{4,12"
                r"""})?\.(?:so|dylib)[\d.]{0,8}['\"]?:? cannot open shared object"""
            ),
            weight=86,
            says="A mathematics library that torch needs is missing",
            sample=(
                "OSError: libmkl_intel_lp64.so.1: cannot open shared object "
                "file: No such file or directory"
            ),
            other="libmkl is fine",
        ),
        Signature(
            name="libomp",
            literal="cannot open shared object",
            pattern=(
                r"(?:libiomp5|libomp|libgomp|libgfortran|libopenblas\w{0,10}|"
                r"libmpi_cxx|libmpi)(?:-\w{4,12})?\.so[\d.]{0,8}: cannot open "
                r"shared object"
            ),
            weight=86,
            says="A library that torch needs is missing",
            sample=(
                "OSError: libmpi_cxx.so.40: cannot open shared object file: "
                "No such file or directory"
            ),
            other="libcudart.so.12: cannot open shared object file",
        ),
        Signature(
            name="execstack",
            literal="cannot enable executable stack",
            pattern=r"cannot enable executable stack",
            weight=88,
            says=(
                "The kernel or SELinux forbids the executable stack that this "
                "old torch library asks for"
            ),
            sample=(
                "ImportError: libtorch_cpu.so: cannot enable executable stack "
                "as shared object requires: Invalid argument"
            ),
            other="executable",
        ),
        Signature(
            name="omp-twice",
            literal="libiomp5md.dll",
            pattern=r"OMP: Error #15: Initializing libiomp5",
            weight=80,
            says="Two copies of the OpenMP runtime are loaded",
            sample=(
                "OMP: Error #15: Initializing libiomp5md.dll, but found libiomp5md.dll "
                "already initialized."
            ),
            other="libiomp5md.dll is loaded",
        ),
        Signature(
            name="omp-dylib",
            literal="omp: error #15",
            pattern=r"OMP: Error #15",
            weight=80,
            says="Two copies of the OpenMP runtime are loaded",
            sample=(
                "OMP: Error #15: Initializing libomp.dylib, but found libiomp5.dylib "
                "already initialized."
            ),
            other="OMP: Error #13",
        ),
        Signature(
            name="illegal",
            literal="illegal instruction",
            pattern=r"illegal instruction",
            weight=76,
            says="The processor lacks instructions that this build uses",
            sample="Illegal instruction (core dumped)",
            other="an instruction",
            beside=("torch",),
        ),
        Signature(
            name="elf",
            literal="file too short",
            pattern=r"file too short",
            weight=70,
            says="A library file of torch is damaged or for another machine",
            sample="OSError: libtorch_cpu.so: file too short",
            other="the ELF format",
            beside=("torch",),
        ),
        Signature(
            name="segment",
            literal="failed to map segment",
            pattern=r"failed to map segment from shared object",
            weight=64,
            says="A library cannot be mapped: a file system mounted noexec, or no memory left",
            sample="ImportError: libtorch_cpu.so: failed to map segment from shared object",
            other="map segment",
        ),
        Signature(
            name="dlopen",
            literal="library not loaded",
            pattern=r"Library not loaded: \S{0,120}(?:libomp|libtorch|libc10|libmkl|libiomp)",
            weight=84,
            says="A library that torch needs is missing",
            sample=(
                "ImportError: dlopen(libtorch_cpu.dylib): Library not loaded: @rpath/libomp.dylib"
            ),
            other="library not loaded",
        ),
        Signature(
            name="mkl-fatal",
            literal="intel mkl fatal error",
            pattern=r"Intel MKL FATAL ERROR",
            weight=84,
            says="MKL's libraries do not fit one another",
            sample="Intel MKL FATAL ERROR: Cannot load libmkl_avx2.so or libmkl_def.so.",
            other="MKL error",
        ),
        Signature(
            name="mkl-layer",
            literal="mkl_threading_layer",
            pattern=r"MKL_THREADING_LAYER=INTEL is incompatible with",
            weight=82,
            says="MKL and another OpenMP runtime are loaded together",
            sample=(
                "Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL "
                "is incompatible with libgomp-a34b3233.so.1 library."
            ),
            other="MKL_THREADING_LAYER=GNU",
        ),
        Signature(
            name="import-c",
            literal="from torch._c import",
            pattern=r"from torch\._C import \*",
            weight=56,
            code=True,
            says="Importing torch's own library fails",
            sample="    from torch._C import *  # noqa: F403",
            other="import torch._C",
            beside=("importerror|oserror",),
        ),
        Signature(
            name="winerror",
            literal="winerror",
            pattern=r"\[WinError (?:126|127|182|193|1114)\].{0,200}torch",
            weight=70,
            says="Windows cannot load one of torch's DLLs",
            sample='OSError: [WinError 182] Error loading "torch\\lib\\c10.dll"',
            other="[WinError 5] torch",
        ),
        Signature(
            name="vcredist",
            literal="visual c++ redistributable",
            pattern=r"Visual C\+\+ Redistributable is not installed",
            weight=78,
            says="The Visual C++ runtime is not installed",
            sample=(
                "Microsoft Visual C++ Redistributable is not installed, this "
                "may lead to the DLL load failure."
            ),
            other="redistributable",
        ),
        Signature(
            name="import-words",
            literal="import torch",
            pattern=(
                r"import torch\b.{0,80}(?:segfault|segmentation|crash|hang|"
                r"fail|error|core dump|core dumped)|(?:segfault|segmentation|"
                r"crash|hang|fail)\w{0,4}.{0,60}import torch"
            ),
            weight=52,
            says="Importing torch fails",
            sample="import torch crashes",
            other="import torch",
        ),
        Signature(
            name="could-not-find",
            literal="or one of its dependencies",
            pattern=(
                r"Could not find module '.{0,200}torch.{0,80}\.dll' \(or one "
                r"of its dependencies\)"
            ),
            weight=86,
            says=(
                "Windows cannot load one of torch's DLLs: the Visual C++ runtime "
                "or a library is missing"
            ),
            sample=(
                "FileNotFoundError: Could not find module 'C:\\venv\\torch\\lib\\c10.dll' "
                "(or one of its dependencies)."
            ),
            other="Could not find module 'foo.dll' (or one of its dependencies)",
        ),
        Signature(
            name="win-193",
            literal="winerror 193",
            pattern=r"\[WinError 193\]",
            weight=76,
            says="One of torch's DLLs is for another processor or damaged",
            sample="OSError: [WinError 193] %1 is no valid Win32 application",
            other="[WinError 5]",
            beside=("torch",),
        ),
        Signature(
            name="symbol-mac",
            literal="symbol not found",
            pattern=r"Symbol not found: \(?_{1,2}\w{2,200}",
            weight=72,
            says="A library of torch does not fit this macOS",
            sample=(
                "ImportError: dlopen(libtorch_python.dylib): Symbol not found: "
                "__ZNKSt3__115basic_stringbuf"
            ),
            other="symbol not found",
            beside=("torch",),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install PyTorch anew into a fresh environment; on Windows "
                "install the Visual C++ Redistributable."
            ),
            zh="在全新环境中重新安装 PyTorch；Windows 需安装 Visual C++ Redistributable。",
            commands=("python -m venv fresh",),
        ),
        Cure(
            text="With conda's MKL 2024.1 and later take an older one.",
            zh="conda 的 MKL 2024.1 及以上请降级。",
            commands=("conda install 'mkl<2024.1'",),
        ),
    ),
)
