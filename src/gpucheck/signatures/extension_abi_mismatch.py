"""Texts that point to extension-abi-mismatch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="extension-abi-mismatch",
    zh="编译好的扩展是为另一个 torch/CUDA 版本编译的",
    signatures=(
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
            name="xformers",
            literal="xformers was built for",
            pattern=r"xFormers (?:was built for|can't load C\+\+/CUDA extensions)",
            weight=93,
            says="xFormers was built for another torch",
            sample=(
                "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. "
                "xFormers was built for:"
            ),
            other="xFormers is built",
            stands=True,
        ),
        Signature(
            name="bnb-required",
            literal="required library version not found",
            pattern=r"required library version not found: libbitsandbytes",
            weight=90,
            says="bitsandbytes has no library for this CUDA version",
            sample="CUDA SETUP: Required library version not found: libbitsandbytes_cuda113.so.",
            other="required library version",
        ),
        Signature(
            name="bnb-configured",
            literal="configured",
            pattern=r"configured (?:CUDA|ROCm) binary not found at",
            weight=90,
            says="bitsandbytes has no library for this CUDA version",
            sample=(
                "RuntimeError: Configured CUDA binary not found at /site-packages/bitsandbytes/"
                "libbitsandbytes_cuda128.so"
            ),
            other="configured",
        ),
        Signature(
            name="bnb-cpu",
            literal="libbitsandbytes_cpu",
            pattern=(
                r"libbitsandbytes_cpu\.so: undefined symbol|bitsandbytes was "
                r"compiled without GPU support"
            ),
            weight=84,
            says="bitsandbytes loaded its CPU library: it has none for this CUDA",
            sample="AttributeError: libbitsandbytes_cpu.so: undefined symbol: cget_col_row_stats",
            other="libbitsandbytes_cuda118.so",
        ),
        Signature(
            name="bnb-nogpu",
            literal="compiled without gpu support",
            pattern=r"bitsandbytes was compiled without GPU support",
            weight=82,
            says="bitsandbytes loaded its CPU library: it has none for this CUDA",
            sample="The installed version of bitsandbytes was compiled without GPU support.",
            other="compiled without",
        ),
        Signature(
            name="bnb-setup",
            literal="cuda setup failed despite",
            pattern=r"CUDA Setup failed despite (?:GPU|CUDA) being available",
            weight=70,
            says="bitsandbytes has no library for this CUDA version, or finds no libcudart",
            sample="RuntimeError: CUDA Setup failed despite GPU being available.",
            other="setup failed",
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
            name="mmcv-ext",
            literal="no module named",
            pattern=(
                r"""no module named ['\"]?(?:mmcv\._ext|flash_attn_2_cuda|flash_attn_cuda|"""
                r"torch_scatter\._\w{1,20}|fused_layer_norm_cuda|amp_C|apex_C|"
                r"syncbn|selective_scan_cuda|causal_conv1d_cuda|pointnet2\._ext|"
                r"\w{1,20}_ext)\b"
            ),
            weight=78,
            says="A compiled extension was not built, or not for this torch",
            sample="ModuleNotFoundError: No module named 'mmcv._ext'",
            other="No module named 'numpy'",
        ),
        Signature(
            name="ext-different",
            literal="compiled with different cuda",
            pattern=r"PyTorch and torch_\w{1,20} were compiled with different CUDA versions",
            weight=93,
            says="An extension was built for another CUDA than this torch",
            sample=(
                "Detected that PyTorch and torch_scatter were compiled with "
                "different CUDA versions."
            ),
            other="compiled with different CUDA flags",
        ),
        Signature(
            name="no-operator",
            literal="no operator found for",
            pattern=r"no operator found for `memory_efficient_attention",
            weight=66,
            says=(
                "xFormers has no kernel for this call: it was built for another torch, CUDA or GPU"
            ),
            sample=(
                "NotImplementedError: No operator found for `memory_efficient_attention_forward"
                "` with inputs:"
            ),
            other="no operator",
        ),
        Signature(
            name="not-compiled-gpu",
            literal="not compiled with gpu support",
            pattern=(
                r"(?:not compiled with GPU support|is not compiled with (?:CUDA|"
                r"GPU)|compiled without CUDA support)"
            ),
            weight=80,
            says="The extension was built without CUDA",
            sample="RuntimeError: Not compiled with GPU support",
            other="Torch not compiled with CUDA enabled",
        ),
        Signature(
            name="not-compiled-with-cuda",
            literal="compiled with cuda support",
            pattern=r"(?:not|was not|isn't) compiled with CUDA support",
            weight=78,
            says="The extension was built without CUDA",
            sample="detectron2._C is not compiled with CUDA support",
            other="compiled with CUDA support",
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
            name="vllm-c",
            literal="failed to import from vllm._c",
            pattern=r"failed to import from vllm\._C",
            weight=80,
            says="vLLM's extension was built for another torch or CUDA",
            sample="WARNING: Failed to import from vllm._C with ImportError(...)",
            other="import vllm",
        ),
        Signature(
            name="no-attr-ops",
            literal="'_opnamespace'",
            pattern=r"'_OpNamespace' '\S{1,40}' object has no attribute",
            weight=66,
            says="A compiled extension is not loaded: it was built for another torch",
            sample="AttributeError: '_OpNamespace' '_C' object has no attribute 'silu_and_mul'",
            other="_OpNamespace",
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
            name="no-c",
            literal="no module named",
            pattern=(
                r"""no module named ['\"]?[\w.]{1,60}(?:\._C|_cuda|\._ext|_C|"""
                r"\.cuda_\w{1,20})\b"
            ),
            weight=66,
            says="A compiled extension was not built, or not for this Python and torch",
            sample="ModuleNotFoundError: No module named 'foo._C'",
            other="No module named 'foo'",
            unless=("no module named 'torch._c'",),
        ),
        Signature(
            name="cannot-import-c",
            literal="cannot import name '_c'",
            pattern=r"cannot import name '_C' from",
            weight=66,
            says="A compiled extension was not built, or not for this Python and torch",
            sample="ImportError: cannot import name '_C' from 'pytorch3d'",
            other="import name",
            unless=("from 'torch'",),
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
            name="import-ext",
            literal="error",
            pattern=(
                r"(?:ImportError|ModuleNotFoundError|OSError|RuntimeError).{0,200}(?:flash_attn|"
                r"xformers|bitsandbytes|apex|mmcv|detectron2|pytorch3d|torch_scatter|"
                r"torch_sparse|torch_cluster|deepspeed|causal_conv1d|mamba_ssm|"
                r"exllama|auto_gptq|vllm|spconv|MinkowskiEngine|nvdiffrast|"
                r"tinycudann|transformer_engine|fused_dense|cuequivariance|"
                r"natten|sgl_kernel|flashinfer|triton)"
            ),
            weight=52,
            says="A compiled extension does not load",
            sample="ImportError: cannot import name 'x' from 'flash_attn'",
            other="ImportError: numpy",
            unless=(
                "fact:cuda_available=true",
                "no module named 'triton'",
                "no module named 'deepspeed'",
                "no module named 'xformers'",
            ),
        ),
        Signature(
            name="rebuild",
            literal="reinstall",
            pattern=(
                r"(?:reinstall|rebuild|recompil)\w{0,4}.{0,60}(?:extension|"
                r"flash.?attn|xformers|apex|mmcv|from source)"
            ),
            weight=54,
            says="A compiled extension was built for another torch",
            sample="reinstalling flash-attn from source helps",
            other="reinstall windows",
            beside=("torch",),
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
            name="no-kernel-module",
            literal="importerror",
            pattern=r"ImportError: \S{1,200}\.(?:so|pyd): ",
            weight=58,
            says="A compiled extension does not load",
            sample=(
                "ImportError: /opt/venv/lib/foo.cpython-310-x86_64-linux-gnu.so: undefined thing"
            ),
            other="ImportError",
            unless=(
                "libcud",
                "cannot open shared object",
                "glibc",
                "cxxabi",
                "static tls",
                "torch/lib",
                "torchvision",
                "torchaudio",
                "torchtext",
                "executable stack",
            ),
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
            name="bnb-binary",
            literal="could not find the bitsandbytes",
            pattern=r"Could not find the bitsandbytes (?:CUDA|ROCm|XPU) binary at",
            weight=91,
            says="bitsandbytes has no library for this CUDA version",
            sample=(
                "Could not find the bitsandbytes CUDA binary at PosixPath('/opt/site-packages/"
                "bitsandbytes/libbitsandbytes_cuda131.so')"
            ),
            other="Could not find the bitsandbytes folder",
            stands=True,
        ),
        Signature(
            name="bnb-native",
            literal="bitsandbytes",
            pattern=(
                r"Could not load bitsandbytes native library|bitsandbytes library load error|"
                r"Attempted to use bitsandbytes native library functionality"
            ),
            weight=76,
            says="bitsandbytes loads no library: it has none for this CUDA, or one is missing",
            sample=(
                "Could not load bitsandbytes native library: libcusparse.so.11: cannot open shared "
                "object file"
            ),
            other="import bitsandbytes",
            unless=("no module named 'triton.ops'",),
        ),
        Signature(
            name="bnb-none",
            literal="'nonetype' object has no attribute 'c",
            pattern=(
                r"'NoneType' object has no attribute '"
                r"c(?:de)?(?:quantize|adam|igemm|gemm|lion|percentile|get|histogram|fill|"
                r"arange)\w{0,40}'"
            ),
            weight=78,
            says="bitsandbytes loads no library: it has none for this CUDA",
            sample=(
                "AttributeError: 'NoneType' object has no attribute 'cquantize_blockwise_bf16_nf4'"
            ),
            other="'NoneType' object has no attribute 'cuda'",
        ),
    ),
    cures=(
        Cure(
            text="Build or install the extension anew for the torch that is installed.",
            zh="针对已安装的 torch 重新编译或安装该扩展。",
            commands=(
                "pip uninstall -y PACKAGE",
                "pip install --no-build-isolation --no-cache-dir --no-binary PACKAGE PACKAGE",
            ),
        ),
    ),
)
