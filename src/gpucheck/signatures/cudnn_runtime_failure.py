"""Texts that point to cudnn-runtime-failure."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="cudnn-runtime-failure",
    zh="cuDNN 运行时出错",
    signatures=(
        Signature(
            name="status",
            literal="cudnn_status_",
            pattern=(
                r"CUDNN_STATUS_(?P<status>EXECUTION_FAILED\w{0,30}|INTERNAL_ERROR\w{0,30}|"
                r"BAD_PARAM\w{0,30}|NOT_SUPPORTED\w{0,40}|NOT_INITIALIZED|MAPPING_ERROR|"
                r"ALLOC_FAILED|INVALID_VALUE|RUNTIME_\w{1,30}|LICENSE_ERROR)"
            ),
            weight=64,
            says="cuDNN fails: CUDNN_STATUS_{status}",
            sample="RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
            other="CUDNN_STATUS_SUCCESS",
        ),
        Signature(
            name="engine",
            literal="unable to find an engine",
            pattern=(
                r"unable to find an engine to execute this computation|unable "
                r"to find a valid cuDNN algorithm"
            ),
            weight=60,
            says=(
                "cuDNN has no algorithm for this convolution: too little memory, "
                "or a fault of the call"
            ),
            sample="RuntimeError: GET was unable to find an engine to execute this computation",
            other="an engine",
        ),
        Signature(
            name="algorithm",
            literal="cudnn algorithm",
            pattern=r"unable to find a valid cuDNN algorithm",
            weight=60,
            says=(
                "cuDNN has no algorithm for this convolution: too little memory, "
                "or a fault of the call"
            ),
            sample="RuntimeError: Unable to find a valid cuDNN algorithm to run convolution",
            other="cuDNN algorithm",
        ),
        Signature(
            name="frontend",
            literal="cudnn_backend",
            pattern=(
                r"cuDNN (?:Frontend )?error: \[cudnn_frontend\]|No execution "
                r"plans support the graph|CUDNN_BACKEND_API_FAILED"
            ),
            weight=60,
            says="cuDNN refuses this operation",
            sample=(
                "RuntimeError: cuDNN Frontend error: [cudnn_frontend] Error: "
                "No execution plans support the graph. cudnn_backend"
            ),
            other="cudnn frontend",
        ),
        Signature(
            name="frontend2",
            literal="cudnn_frontend",
            pattern=r"\[cudnn_frontend\] Error",
            weight=60,
            says="cuDNN refuses this operation",
            sample=(
                "RuntimeError: cuDNN Frontend error: [cudnn_frontend] Error: "
                "No execution plans support the graph."
            ),
            other="cudnn_frontend",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Run without cuDNN to tell cuDNN from the program, and look for exhausted memory."
            ),
            zh="关闭 cuDNN 运行以区分是 cuDNN 还是程序的问题，并检查显存是否耗尽。",
            commands=(
                "CUDA_LAUNCH_BLOCKING=1 python SCRIPT",
                'python -c "import torch; print(torch.backends.cudnn.version())"',
            ),
        ),
    ),
)
