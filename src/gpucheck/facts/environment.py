"""The environment variables that control CUDA, NCCL and the loader, by name.

Names are listed one by one and never selected by prefix, because a prefix may match tokens.
"""

from typing import Annotated, ClassVar

from gpucheck.facts import Private, Section
from gpucheck.language import say

HIDDEN = "(hidden)"
"""Replaces a value that looks like a secret."""

PATH_NAMES = (
    "CC",
    "CONDA_PREFIX",
    "CUDA_BIN_PATH",
    "CUDA_CACHE_PATH",
    "CUDA_HOME",
    "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CUDAHOSTCXX",
    "CUDNN_PATH",
    "CXX",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NCCL_CONF_FILE",
    "NCCL_DEBUG_FILE",
    "NCCL_GRAPH_FILE",
    "NCCL_TOPO_FILE",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "NVCC_PREPEND_FLAGS",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "TRITON_CACHE_DIR",
    "TRITON_PTXAS_PATH",
    "TORCH_HOME",
    "VIRTUAL_ENV",
)
"""Variables that contain paths, in which long hashes are common and not secret."""

OTHER_NAMES = (
    # CUDA
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_VERSION",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDNN_LOGLEVEL_DBG",
    # containers, NVIDIA's runtime for them, and libraries
    "NVIDIA_DISABLE_REQUIRE",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_REQUIRE_CUDA",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "container",
    # Python
    "CONDA_DEFAULT_ENV",
    "PYTHONNOUSERSITE",
    "PYTHONSAFEPATH",
    # NCCL
    "NCCL_ALGO",
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT",
    "NCCL_BUFFSIZE",
    "NCCL_CHECKS_DISABLE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_COMM_BLOCKING",
    "NCCL_CROSS_NIC",
    "NCCL_CUMEM_ENABLE",
    "NCCL_CUMEM_HOST_ENABLE",
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_DMABUF_ENABLE",
    "NCCL_IB_ADAPTIVE_ROUTING",
    "NCCL_IB_DISABLE",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_PCI_RELAXED_ORDERING",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_RETRY_CNT",
    "NCCL_IB_SL",
    "NCCL_IB_TC",
    "NCCL_IB_TIMEOUT",
    "NCCL_IGNORE_CPU_AFFINITY",
    "NCCL_LAUNCH_MODE",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MNNVL_ENABLE",
    "NCCL_NET",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_GDR_READ",
    "NCCL_NET_PLUGIN",
    "NCCL_NTHREADS",
    "NCCL_NVB_DISABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_PROTO",
    "NCCL_PXN_DISABLE",
    "NCCL_RAS_ENABLE",
    "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_FAMILY",
    "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_NTHREADS",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_TUNER_PLUGIN",
    # PyTorch
    "GLOO_SOCKET_IFNAME",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "PYTORCH_SKIP_CUDNN_COMPATIBILITY_CHECK",
    "TORCHINDUCTOR_COMPILE_THREADS",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_CUDA_ARCH_LIST",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_DISTRIBUTED_DEBUG",
    "TORCH_DONT_CHECK_COMPILER_ABI",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "FORCE_CUDA",
    "MAX_JOBS",
    "OMP_NUM_THREADS",
    # ranks
    "GROUP_RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NODE_RANK",
    "RANK",
    "WORLD_SIZE",
    # batch schedulers
    "LSB_JOBID",
    "PBS_JOBID",
    "SLURM_CPUS_PER_TASK",
    "SLURM_GPUS",
    "SLURM_GPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_TASK",
    "SLURM_JOB_GPUS",
    "SLURM_JOB_ID",
    "SLURM_LOCALID",
    "SLURM_NNODES",
    "SLURM_NODEID",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_PROCID",
    "SLURM_STEP_GPUS",
    # GPUs of another vendor
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)


class Environment(Section, frozen=True, kw_only=True):
    """Variables that are set; a listed name that is missing here is unset."""

    name: ClassVar[str] = "environment"
    subject = say("The environment variables that control CUDA, NCCL and the loader, by name.")

    variables: Annotated[dict[str, str] | None, Private("variables")] = None

    def get(self, variable: str) -> str | None:
        """Return the value, or None if it is unset or the environment is unknown."""
        return None if self.variables is None else self.variables.get(variable)
