"""Texts that point to torch-mixed-install."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="torch-mixed-install",
    zh="环境里有多个 torch 相互遮蔽",
    signatures=(
        Signature(
            name="c-folder",
            literal="folder of the pytorch repository",
            pattern=r"loaded the `torch/_C` folder of the PyTorch repository",
            weight=93,
            says=(
                "Python runs in PyTorch's source folder and imports it in "
                "place of the installed one"
            ),
            sample=(
                "It appears that PyTorch has loaded the `torch/_C` folder "
                "of the PyTorch repository rather than the C extensions"
            ),
            other="the folder of the PyTorch repository",
            stands=True,
        ),
        Signature(
            name="not-package",
            literal="is not a package",
            pattern=r"'torch' is not a package",
            weight=92,
            says="A file called torch.py stands in the way of PyTorch",
            sample="ModuleNotFoundError: No module named 'torch.nn'; 'torch' is not a package",
            other="foo is not a package",
            stands=True,
        ),
        Signature(
            name="partial",
            literal="partially initialized module 'torch'",
            pattern=r"partially initialized module 'torch'",
            weight=84,
            says="A file called torch.py, or a second install, stands in the way of PyTorch",
            sample=(
                "AttributeError: partially initialized module 'torch' has "
                "no attribute 'nn' (most likely due to a circular import)"
            ),
            other="partially initialized module 'foo'",
        ),
        Signature(
            name="no-c",
            literal="no module named",
            pattern=r"""no module named ['\"]?torch\.(?:_C|version|_six|cuda)\b""",
            weight=78,
            says="The torch that is imported is incomplete or another one",
            sample="ModuleNotFoundError: No module named 'torch._C'",
            other="No module named 'torchvision._C'",
            unless=("torch._six",),
        ),
        Signature(
            name="no-attribute",
            literal="module 'torch' has no attribute",
            pattern=(
                r"module 'torch' has no attribute '(?:version|__version__|nn|"
                r"Tensor|cuda|utils|_C|_utils_internal|manual_seed|zeros|load|save|"
                r"FloatTensor|randn|cat)'"
            ),
            weight=60,
            says="The torch that is imported is incomplete or another one",
            sample="AttributeError: module 'torch' has no attribute '__version__'",
            other="module 'torch' has no attribute 'foo'",
        ),
        Signature(
            name="nightly",
            literal="pytorch-nightly",
            pattern=r"^\s{0,4}pytorch-nightly\s{1,40}\d",
            weight=78,
            says="conda's pytorch and pytorch-nightly lie in one environment",
            sample="pytorch-nightly           1.0.0.dev20190101         py3.7_0    pytorch",
            other="pytorch 2.0",
            beside=("pytorch ",),
        ),
        Signature(
            name="own-lib",
            literal="undefined symbol",
            pattern=(
                r"(?:site|dist)-packages/torch/lib/(?:libtorch_python|libtorch_cuda|"
                r"libtorch_cpu|libtorch|libc10_cuda|libc10|libshm|libcaffe2)\.so(?:\.\d)?: "
                r"undefined symbol: (?:_ZN|_ZNK|_ZTI)"
            ),
            weight=74,
            says="torch's own libraries are of different builds: two installs are mixed",
            sample=(
                "ImportError: /usr/lib/python3.8/site-packages/torch/lib/libtorch_python.so: "
                "undefined symbol: _ZN3c104impl"
            ),
            other="foo.so: undefined symbol: _ZN3c10",
        ),
        Signature(
            name="invalid-distribution",
            literal="ignoring invalid distribution",
            pattern=r"ignoring invalid distribution (?:-|~)?~?o?rch",
            weight=60,
            says="A half-removed torch lies in site-packages",
            sample=(
                "WARNING: Ignoring invalid distribution -orch (/usr/lib/python3/site-packages)"
            ),
            other="ignoring invalid distribution -ip",
        ),
        Signature(
            name="unknown-location",
            literal="(unknown location)",
            pattern=r"cannot import name '\w{1,40}' from 'torch' \(unknown location\)",
            weight=86,
            says=(
                "A folder called torch, or the remains of an install, stands in the way of PyTorch"
            ),
            sample="ImportError: cannot import name 'Tensor' from 'torch' (unknown location)",
            other="(unknown location)",
        ),
        Signature(
            name="no-c-name",
            literal="name '_c' is not defined",
            pattern=r"NameError: name '_C' is not defined",
            weight=76,
            says="The torch that is imported is incomplete",
            sample="NameError: name '_C' is not defined",
            other="name 'x' is not defined",
            unless=("failed to load custom c++ ops",),
        ),
        Signature(
            name="two-places",
            literal=".local/lib",
            pattern=r"\.local/lib.{0,200}(?:conda|venv)",
            weight=64,
            says="torch lies in two places",
            sample="torch in ~/.local/lib/python3.8/site-packages and in the conda env",
            other=".local/lib",
            beside=("word:two|word:both|shadow|wrong version|different version",),
        ),
        Signature(
            name="two-pythons",
            literal="python",
            pattern=r"\bPython[ -](?P<python>3\.\d{1,2})\.\d{1,2}\b",
            weight=68,
            says="CUDA works in one Python and not in another: each has a torch of its own",
            sample="Python 3.11.3 (main) [GCC 12] on linux",
            other="Python 3",
            beside=(
                "is_available(): false|is_available()\nfalse|is_available() false",
                "is_available(): true|is_available()\ntrue|is_available() true",
            ),
            distinct="python",
        ),
        Signature(
            name="conflict-words",
            literal="of torch",
            pattern=(
                r"(?:two|several|both|multiple|different|old|older|second|another) "
                r"(?:versions?|installs?|installations?|copies) of torch"
            ),
            weight=62,
            says="Several installs of torch shadow one another",
            sample="two versions of torch are installed",
            other="a version of torch",
        ),
        Signature(
            name="conflict-pytorch",
            literal="of pytorch",
            pattern=(
                r"(?:two|several|both|multiple|different|old|older|second|another) "
                r"(?:versions?|installs?|installations?|copies) of pytorch"
            ),
            weight=62,
            says="Several installs of torch shadow one another",
            sample="two versions of PyTorch are installed",
            other="a version of pytorch",
        ),
        Signature(
            name="file-path",
            literal="torch.__file__",
            pattern=r"torch\.__file__",
            weight=58,
            code=True,
            says="It is in question which torch is imported",
            sample="print(torch.__file__)",
            other="__file__",
            beside=("wrong|different|word:old|conda|.local",),
        ),
        Signature(
            name="version-differs",
            literal="torch.__version__",
            pattern=r"torch\.__version__.{0,60}(?:expected|but|shows|still|instead)",
            weight=54,
            says="Another torch is imported than the one installed",
            sample="torch.__version__ still shows 1.8",
            other="torch.__version__",
        ),
        Signature(
            name="own-lib-any",
            literal="undefined symbol",
            pattern=(
                r"(?:site|dist)-packages/torch/lib/lib(?:torch\w{0,12}|c10\w{0,8}|"
                r"caffe2\w{0,8}|ATen|TH\w{0,6}|shm)\.so(?:\.\d)?: undefined "
                r"symbol: (?!nccl|cu|iJIT|nv|__cu|__nv|mkl|omp|GOMP)\w{3,200}"
            ),
            weight=80,
            says=(
                "torch's own libraries are of different builds: two installs, "
                "or the remains of an old build, are mixed"
            ),
            sample=(
                "ImportError: /usr/local/lib/python2.7/dist-packages/torch/lib/libATen.so.1: "
                "undefined symbol: THNN_CudaClassNLLCriterion_updateOutput"
            ),
            other="foo/libATen.so: undefined symbol: bar",
        ),
        Signature(
            name="two-envs",
            literal="conda",
            pattern=(
                r"(?:uninstall|install)\w{0,4}.{0,60}(?:totally |completely "
                r")?(?:different|other|another) (?:conda )?env"
            ),
            weight=58,
            says="Environments share one place for torch",
            sample="it uninstalls torch of a totally different conda env",
            other="conda env",
            beside=("torch",),
        ),
        Signature(
            name="version-stays",
            literal="torch.__version__",
            pattern=r"(?:1|2)\.\d{1,2}\.\d",
            weight=60,
            code=True,
            says="Another torch is imported than the one installed",
            sample="print(torch.__version__) 1.1.0",
            other="torch.__version__",
            beside=(
                (
                    "still finding|still shows|wrong version|wrong torch|"
                    "old version|instead of|expected"
                ),
            ),
        ),
    ),
    cures=(
        Cure(
            text=(
                "See which torch is imported, remove all of them and install "
                "one, in a fresh environment at best."
            ),
            zh="查看导入的是哪个 torch，全部卸载后只装一个，最好使用全新的环境。",
            commands=(
                'python -c "import torch; print(torch.__file__)"',
                "pip list | grep -i torch",
            ),
        ),
    ),
)
