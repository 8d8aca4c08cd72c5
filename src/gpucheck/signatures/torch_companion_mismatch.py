"""Texts that point to torch-companion-mismatch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="torch-companion-mismatch",
    zh="torchvision/torchaudio/torchtext 与 torch 版本不匹配",
    signatures=(
        Signature(
            name="nms-backend",
            literal="torchvision::",
            pattern=r"Could not run 'torchvision::\w{1,40}' with arguments from the 'CUDA'",
            weight=93,
            says="torchvision has no CUDA kernels: it is a CPU build beside a CUDA torch",
            sample=(
                "NotImplementedError: Could not run 'torchvision::nms' with "
                "arguments from the 'CUDA' backend."
            ),
            other="torchvision::nms is an operator",
            stands=True,
        ),
        Signature(
            name="nms-missing",
            literal="torchvision::",
            pattern=(
                r"operator torchvision::\w{1,40} does not exist|No such operator torchvision::|"
                r"Could not find (?:the |schema for |any similar ops to )(?:operator "
                r")?torchvision::"
            ),
            weight=93,
            says="torchvision's operators do not load: it was built for another torch",
            sample="RuntimeError: operator torchvision::nms does not exist",
            other="torchvision::nms works",
            stands=True,
        ),
        Signature(
            name="custom-ops",
            literal="couldn't load custom c++ ops",
            pattern=r"couldn't load custom C\+\+ ops",
            weight=93,
            says="torchvision was built for another torch",
            sample=(
                "RuntimeError: Couldn't load custom C++ ops. This can happen "
                "if your PyTorch and torchvision versions are incompatible"
            ),
            other="load custom C++ ops",
            stands=True,
        ),
        Signature(
            name="different-cuda",
            literal="were compiled with different cuda",
            pattern=r"PyTorch and (?P<other>torch(?!_)\w{3,10}) were compiled with different CUDA",
            weight=94,
            says="torch and {other} were built for different CUDA versions",
            sample=(
                "RuntimeError: Detected that PyTorch and torchvision were "
                "compiled with different CUDA versions."
            ),
            other="compiled with the same CUDA",
            stands=True,
        ),
        Signature(
            name="symbol",
            literal="undefined symbol",
            pattern=(
                r"(?:torchvision|torchaudio|torchtext|torchdata)[/\\].{0,120}undefined "
                r"symbol"
            ),
            weight=92,
            says="torchvision, torchaudio or torchtext was built for another torch",
            sample=(
                "OSError: /usr/lib/python3/site-packages/torchtext/lib/libtorchtext.so: "
                "undefined symbol: _ZN2at4_ops"
            ),
            other="foo.so: undefined symbol: bar",
            stands=True,
        ),
        Signature(
            name="procedure",
            literal="could not be found",
            pattern=r"(?:specified procedure could not be found|找不到指定的程序).{0,200}",
            weight=86,
            says="torchvision, torchaudio or torchtext was built for another torch",
            sample="OSError: [WinError 127] The specified procedure could not be found",
            other="file could not be found",
            beside=("\\torchaudio\\|\\torchvision\\|\\torchtext\\",),
        ),
        Signature(
            name="image-ext",
            literal="failed to load image python extension",
            pattern=r"failed to load image python extension",
            weight=62,
            says=(
                "torchvision's image extension does not load: it was built "
                "for another torch, or libjpeg is missing"
            ),
            sample=(
                "UserWarning: Failed to load image Python extension: libtorch_cuda_cu.so: "
                "cannot open shared object file"
            ),
            other="image extension loaded",
            unless=("out of memory",),
        ),
        Signature(
            name="register-fake",
            literal="torch.library",
            pattern=(
                r"module 'torch\.library' has no attribute '(?:register_fake|"
                r"impl_abstract|custom_op|register_autograd)'"
            ),
            weight=84,
            says="torchvision (or another companion) is newer than torch",
            sample="AttributeError: module 'torch.library' has no attribute 'register_fake'",
            other="torch.library has impl",
            beside=("torchvision|torchaudio|torchao",),
        ),
        Signature(
            name="functional-tensor",
            literal="torchvision.transforms.functional_tensor",
            pattern=r"no module named 'torchvision\.transforms\.functional_tensor'",
            weight=72,
            says="The program needs an older torchvision",
            sample=(
                "ModuleNotFoundError: No module named 'torchvision.transforms.functional_tensor'"
            ),
            other="torchvision.transforms.functional",
        ),
        Signature(
            name="requires",
            literal="which is incompatible",
            pattern=(
                r"torch(?:vision|audio|text) \S{1,40} requires torch==\S{1,40}, "
                r"but you have torch"
            ),
            weight=74,
            says="pip says that a companion needs another torch",
            sample=(
                "torchvision 0.14.1 requires torch==1.13.1, but you have torch "
                "2.0.0 which is incompatible."
            ),
            other="foo requires bar, but you have baz which is incompatible",
        ),
        Signature(
            name="lib-torchaudio",
            literal="libtorchaudio",
            pattern=(
                r"(?:could not load|failed to load|cannot load|OSError).{0,80}libtorchaudio|"
                r"libtorchaudio.{0,80}(?:undefined symbol|cannot open)"
            ),
            weight=84,
            says="torchaudio was built for another torch",
            sample=(
                "OSError: Could not load this library: /opt/venv/lib/python3.11/site-packages/t"
                "orchaudio/lib/libtorchaudio.so"
            ),
            other="libtorchaudio.so is loaded",
        ),
        Signature(
            name="partial-vision",
            literal="module 'torchvision'",
            pattern=(
                r"(?:partially initialized )?module 'torchvision' has no attribute "
                r"'(?:extension|ops|models|transforms|datasets|io)'"
            ),
            weight=88,
            says="torchvision does not load: it was built for another torch",
            sample=(
                "AttributeError: partially initialized module 'torchvision' "
                "has no attribute 'extension'"
            ),
            other="module 'torchvision' is fine",
        ),
        Signature(
            name="import-vision",
            literal="torchvision",
            pattern=(
                r"(?:ImportError|OSError|RuntimeError).{0,200}(?:torchvision|"
                r"torchaudio|torchtext)[/\\](?:_C|image|video_reader|_extension|"
                r"lib)"
            ),
            weight=70,
            says=(
                "torchvision, torchaudio or torchtext does not load: it was built for another torch"
            ),
            sample="ImportError: /usr/lib/site-packages/torchvision/_C.so: cannot import",
            other="torchvision works",
        ),
        Signature(
            name="compat-words",
            literal="torchvision",
            pattern=(
                r"(?:torchvision|torchaudio|torchtext).{0,60}(?:incompatib|"
                r"not compatible|mismatch|does not match|doesn't match|version "
                r"conflict)"
            ),
            weight=72,
            says="torchvision, torchaudio or torchtext does not fit torch",
            sample="torchvision is incompatible with torch",
            other="torchvision 0.15",
        ),
        Signature(
            name="audio-operator",
            literal="torchaudio::",
            pattern=(
                r"operator torchaudio::\w{1,40} does not exist|No such operator torchaudio::|"
                r"Could not find (?:the |schema for )?(?:operator )?torchaudio::"
            ),
            weight=92,
            says="torchaudio's operators do not load: it was built for another torch",
            sample="RuntimeError: No such operator torchaudio::sox_io_get_info",
            other="torchaudio::info works",
            stands=True,
        ),
        Signature(
            name="namespace",
            literal="'_opnamespace'",
            pattern=(
                r"'_OpNamespace' '(?:torchvision|torchaudio|torchtext)' object has no attribute"
            ),
            weight=92,
            says="The operators of a companion do not load: it was built for another torch",
            sample=(
                "AttributeError: '_OpNamespace' 'torchvision' object has no attribute 'roi_align'"
            ),
            other="'_OpNamespace' '_C' object has no attribute 'silu'",
            stands=True,
        ),
        Signature(
            name="mac-symbol",
            literal="symbol not found",
            pattern=(
                r"dlopen\([^()]{0,240}/(?:torchvision|torchaudio|torchtext|"
                r"torchdata)/[^()]{0,120}\): "
                r"symbol not found"
            ),
            weight=92,
            says="torchvision, torchaudio or torchtext was built for another torch",
            sample=(
                "OSError: dlopen(/opt/site-packages/torchaudio/lib/libtorchaudio.so, 0x0006): "
                "Symbol not found: __ZN2at4_ops5emptyE"
            ),
            other="dlopen(/opt/foo/bar.so, 6): Symbol not found: _foo",
            stands=True,
        ),
    ),
    cures=(
        Cure(
            text="Install torch, torchvision and torchaudio together, from the same index.",
            zh="从同一个索引一起安装 torch、torchvision 和 torchaudio。",
            commands=(
                "pip uninstall -y torch torchvision torchaudio",
                "gpucheck recommend --with torchvision,torchaudio",
            ),
        ),
    ),
)
