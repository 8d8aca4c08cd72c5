"""Texts that point to out-of-memory."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="out-of-memory",
    zh="显存不足",
    signatures=(
        Signature(
            name="torch",
            literal="out of memory",
            pattern=r"CUDA out of memory\. Tried to allocate (?P<asked>[\d.]{1,9} [KMGT]iB)",
            weight=80,
            says="The workload asks for more GPU memory than there is ({asked} more)",
            sample=(
                "RuntimeError: CUDA out of memory. Tried to allocate 20.00 "
                "MiB (GPU 0; 2.00 GiB total capacity;"
            ),
            other="out of memory in the host",
        ),
        Signature(
            name="cuda",
            literal="out of memory",
            pattern=(
                r"(?:CUDA error|CUDA driver error|CUDA failure|error=2|cudaErrorMemoryAllocation"
                r"|CUDA_ERROR_OUT_OF_MEMORY|cuda runtime error \(2\)|OutOfMemoryError|"
                r"RuntimeError: CUDA).{0,40}out of memory|CUDA out of memory"
            ),
            weight=74,
            says="GPU memory is exhausted",
            sample="RuntimeError: CUDA error: out of memory",
            other="Out of memory: Killed process",
        ),
        Signature(
            name="nccl",
            literal="'out of memory'",
            pattern=r"NCCL WARN Cuda failure (?:2 )?'out of memory'",
            weight=86,
            says="NCCL finds no GPU memory left for its buffers",
            sample="include/alloc.h:200 NCCL WARN Cuda failure 'out of memory'",
            other="NCCL WARN Cuda failure 'invalid argument'",
        ),
        Signature(
            name="name",
            literal="out_of_memory",
            pattern=r"CUDA_ERROR_OUT_OF_MEMORY",
            weight=74,
            says="GPU memory is exhausted",
            sample="CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            other="out_of_memory",
        ),
        Signature(
            name="calloc",
            literal="failed to cuda calloc",
            pattern=r"failed to CUDA calloc",
            weight=76,
            says="GPU memory is exhausted",
            sample="NCCL WARN Failed to CUDA calloc 4194304 bytes",
            other="calloc",
        ),
        Signature(
            name="class",
            literal="outofmemoryerror",
            pattern=r"torch(?:\.cuda)?\.OutOfMemoryError",
            weight=74,
            says="GPU memory is exhausted",
            sample="torch.cuda.OutOfMemoryError: CUDA out of memory.",
            other="OutOfMemoryError of java",
        ),
        Signature(
            name="kv",
            literal="kv cache",
            pattern=(
                r"(?:no available memory for the cache blocks|(?:larger|exceeds?|"
                r"greater) than the (?:maximum|available) .{0,40}KV cache|not "
                r"enough (?:gpu )?memory.{0,40}KV cache)"
            ),
            weight=78,
            says="The model leaves no GPU memory for the KV cache",
            sample=(
                "ValueError: The model's max seq len (32768) is larger than "
                "the maximum number of tokens that can be stored in KV cache "
                "(14352)."
            ),
            other="the KV cache",
        ),
        Signature(
            name="cache-blocks",
            literal="memory for the cache blocks",
            pattern=r"no available memory for the cache blocks",
            weight=78,
            says="The model leaves no GPU memory for the KV cache",
            sample="ValueError: No available memory for the cache blocks.",
            other="cache blocks",
        ),
        Signature(
            name="cublas-alloc",
            literal="cublas_status_alloc_failed",
            pattern=r"CUBLAS_STATUS_ALLOC_FAILED",
            weight=62,
            says="cuBLAS finds no GPU memory for its handle",
            sample=(
                "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when "
                "calling `cublasCreate(handle)`"
            ),
            other="CUBLAS_STATUS_SUCCESS",
        ),
        Signature(
            name="capacity",
            literal="total capacity",
            pattern=r"GPU \d{1,3}; [\d.]{1,8} [MG]iB total capacity",
            weight=66,
            says="GPU memory is exhausted",
            sample="GPU 0; 7.80 GiB total capacity",
            other="total capacity",
        ),
        Signature(
            name="malloc",
            literal="cudamalloc failed",
            pattern=r"cudaMalloc failed: out of memory",
            weight=76,
            says="GPU memory is exhausted",
            sample=(
                "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8192.00 "
                "MiB on device 0: cudaMalloc failed: out of memory"
            ),
            other="cudaMalloc",
        ),
        Signature(
            name="words",
            literal="out of memory",
            pattern=(
                r"(?:cuda|gpu|vram|显存).{0,60}out of memory|out of memory.{0,60}(?:cuda|"
                r"gpu|vram)|\bOOM\b.{0,40}(?:gpu|cuda|vram)|显存不足|爆显存"
            ),
            weight=54,
            says="GPU memory is exhausted",
            sample="the GPU runs out of memory: CUDA out of memory",
            other="out of memory on the host",
        ),
        Signature(
            name="oom-words",
            literal="oom",
            pattern=(
                r"\b(?:got|gets?|getting|hits?|hitting|run(?:s|ning)? into|results? in|leads? to|"
                r"caus(?:es?|ing)|with|multi-gpu|cuda|gpu|vram) "
                r"(?:an |a |the )?(?:cuda |gpu )?OOM\b"
                r"|(?<!avoid )(?<!prevent )(?<!no )(?<!not )(?<!without )\bOOMs? "
                r"(?:errors? |issues? |problems? )?(?:when|while|during|after|on resum)\b"
            ),
            weight=56,
            says="GPU memory is exhausted",
            sample="Multi-GPU OOM when resuming from a checkpoint",
            other="options that avoid OOM when training",
            beside=("gpu|cuda|vram",),
            unless=("oomkill", "oom-kill", "oom killer", "host oom", "cpu oom", "ram oom"),
        ),
        Signature(
            name="batch",
            literal="batch",
            pattern=r"(?:reduc|small|lower|decreas)\w{0,4} (?:the )?batch.?size",
            weight=50,
            says="GPU memory is exhausted",
            sample="reducing the batch size helps",
            other="batch",
            beside=("memory|oom|显存", "reduc|small|lower|decreas"),
            unless=(
                "no effect",
                "changes nothing",
            ),
        ),
        Signature(
            name="mps",
            literal="mps backend out of memory",
            pattern=r"MPS backend out of memory",
            weight=66,
            says="The memory that the Mac gives to its GPU is exhausted",
            sample="RuntimeError: MPS backend out of memory (MPS allocated: 8.00 GB)",
            other="MPS backend",
        ),
        Signature(
            name="hip",
            literal="hip out of memory",
            pattern=r"HIP out of memory",
            weight=74,
            says="GPU memory is exhausted",
            sample="torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB",
            other="HIP memory",
        ),
        Signature(
            name="exceed",
            literal="would exceed allowed memory",
            pattern=r"would exceed allowed memory",
            weight=70,
            says="GPU memory is exhausted",
            sample="torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory.",
            other="exceed memory",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Smaller batches, gradient accumulation, mixed precision or "
                "activation checkpointing; look first whether another process "
                "holds memory."
            ),
            zh="减小 batch、梯度累积、混合精度或激活检查点；先确认没有其他进程占用显存。",
            commands=(
                "nvidia-smi",
                "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            ),
        ),
    ),
)
