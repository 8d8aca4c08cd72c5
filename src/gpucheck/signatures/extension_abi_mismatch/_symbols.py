"""Texts that point to extension-abi-mismatch: symbols and libraries of another build."""

from gpucheck.signatures.base import Signature

SIGNATURES = (
    Signature(
        name="symbol",
        literal="undefined symbol",
        pattern=(
            r"undefined symbol:?\s{0,3}_ZNK?(?:R?K?\d?)?(?:St|S\d_)?\d{0,2}(?:c10|"
            r"at|torch|caffe2|N?2at|3c10|5torch|6caffe2|10c10)\w{0,200}|"
            r"undefined symbol:?\s{0,3}_ZN?K?T?[IVS]?N?(?:3c10|2at|5torch|"
            r"6caffe2)"
        ),
        weight=86,
        says="A compiled extension was built for another torch",
        sample=(
            "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined "
            "symbol: _ZN3c104cuda9SetDeviceEi"
        ),
        other="undefined symbol: cublasLtGetStatusString",
        unless=(
            "ijit",
            "torch/lib/libtorch",
        ),
    ),
    Signature(
        name="symbol-any",
        literal="undefined symbol",
        pattern=(
            r"(?:_C|_cuda|_ext|_ops|cuda_ext|libcue_ops|_kernels?|amp_C|"
            r"spmm|_cpp)\S{0,60}\.so:? undefined symbol"
        ),
        weight=80,
        says="A compiled extension was built for another torch or CUDA",
        sample="_C.cpython-39-x86_64-linux-gnu.so: undefined symbol: foo",
        other="libfoo.so: undefined symbol: bar",
    ),
    Signature(
        name="split-libs",
        literal="cannot open shared object",
        pattern=(
            r"libtorch_cuda_(?:cu|cpp)\.so: cannot open|lib(?:torch|torch_cpu|"
            r"torch_cuda|torch_python|c10|c10_cuda|c10_hip|caffe2|caffe2_gpu|"
            r"ATen|_C)\.so(?:\.\d)?: cannot open"
        ),
        weight=90,
        says=(
            "A compiled extension was built for another torch: the torch "
            "library that it wants is not there"
        ),
        sample=(
            "ImportError: libtorch_cuda_cu.so: cannot open shared object "
            "file: No such file or directory"
        ),
        other="libfoo.so: cannot open shared object file",
    ),
    Signature(
        name="cudart-ext",
        literal="libcudart.so",
        pattern=r"libcudart\.so\.\d{1,2}(?:\.\d{1,2})?: cannot open shared object",
        weight=87,
        says="A compiled extension was built for another CUDA than this torch",
        sample=(
            "ImportError: libcudart.so.10.1: cannot open shared object "
            "file: No such file or directory"
        ),
        other="libcudart.so is loaded",
        beside=(
            (
                "flash_attn|flash-attn|_ext|mmcv|detectron2|pytorch3d|"
                "torch_scatter|torch_sparse|torch_cluster|torch_geometric|"
                "apex|xformers|bitsandbytes|deepspeed|causal_conv1d|mamba|"
                "exllama|auto_gptq|vllm|_c.cpython|_cuda.cpython|pointnet|"
                "spconv|dcn|minkowski|nvdiffrast|tiny-cuda|warpctc|fairseq"
            ),
        ),
    ),
    Signature(
        name="dll-ext",
        literal="dll load failed while importing",
        pattern=(
            r"DLL load failed while importing (?:_C|_ext|\w{1,40}_cuda|"
            r"\w{1,40}_C|flash\w{1,30}|_(?!ssl|sqlite3|ctypes|torchaudio)\w{1,30})\b"
        ),
        weight=84,
        says="A compiled extension was built for another torch, CUDA or Python",
        sample=(
            "ImportError: DLL load failed while importing flash_attn_2_cuda: "
            "The specified procedure could not be found."
        ),
        other="DLL load failed while importing _ssl",
    ),
    Signature(
        name="any-symbol",
        literal="undefined symbol",
        pattern=r"undefined symbol:?\s{0,3}_Z\w{3,200}",
        weight=58,
        says="A compiled library was built for another version of what it uses",
        sample="libfoo.so: undefined symbol: _ZN3fooEv",
        other="undefined symbol: foo",
    ),
    Signature(
        name="symbol-c",
        literal="undefined symbol",
        pattern=r"\.so\S{0,12}:? undefined symbol:?\s",
        weight=46,
        says="A compiled library was built for another version of what it uses",
        sample="libfoo.so: undefined symbol: foo",
        other="symbol",
    ),
    Signature(
        name="mac-symbol",
        literal="symbol not found",
        pattern=(
            r"dlopen\([^()]{0,300}\): symbol not found(?::| in flat namespace) ?\(?'?"
            r"_{1,2}ZN?K?T?[IVS]?(?:N?K?)(?:3c10|2at|5torch|6caffe2)"
        ),
        weight=86,
        says="A compiled extension was built for another torch",
        sample=(
            "ImportError: dlopen(/opt/foo/_C.cpython-311-darwin.so, 0x0002): symbol not found "
            "in "
            "flat namespace '__ZN2at4_ops5emptyE'"
        ),
        other="dlopen(/opt/foo/bar.so, 6): Symbol not found: _foo",
        unless=("/torchaudio/", "/torchvision/", "/torchtext/"),
    ),
    Signature(
        name="python-tag",
        literal="undefined symbol: _py",
        pattern=r"undefined symbol: _?Py\w{1,60}",
        weight=66,
        says="A compiled extension was built for another Python",
        sample="foo.so: undefined symbol: _PyGen_Send",
        other="undefined symbol: foo",
    ),
    Signature(
        name="built-against",
        literal="built",
        pattern=(
            r"(?:was |is )?(?:built|compiled) (?:for|with|against) (?:a "
            r"different|another|PyTorch|torch).{0,60}(?:but|you have|installed)"
        ),
        weight=74,
        says="A compiled extension was built for another torch",
        sample="the wheel was built for torch 2.1 but 2.3 is installed",
        other="it is built",
    ),
    Signature(
        name="pytorch-built",
        literal="built with",
        pattern=(
            r"(?:wheel|extension|kernel|package|library|it) (?:was|is|were|"
            r"are) (?:built|compiled) (?:with|for|against) (?:cuda|torch|"
            r"pytorch).{0,80}(?:but|while|however)"
        ),
        weight=74,
        says="A compiled extension was built for another torch or CUDA",
        sample="the wheel was built with CUDA 11 but torch has 12",
        other="built with love",
    ),
    Signature(
        name="dll-own",
        literal="dll load failed",
        pattern=r"DLL load failed",
        weight=62,
        says=(
            "A compiled extension does not load: it was built for another "
            "torch, or is imported before torch"
        ),
        sample="ImportError: DLL load failed: The specified module could not be found.",
        other="DLL loaded",
        beside=("extension|setup.py|cpp_extension|cudaextension",),
    ),
)
