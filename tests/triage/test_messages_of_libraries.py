"""Messages of libraries around PyTorch, each in the forms that it prints; and what stays healthy.

Written from the formats of the libraries, with values of our own.
"""

from each import each

from gpucheck import triage

WORKS = "PyTorch version: 2.5.1+cu124\nIs CUDA available: True\nGPU 0: NVIDIA A100-SXM4-80GB\n"
NO_GPU_HERE = """\
Collecting environment information...
UserWarning: CUDA initialization: Found no NVIDIA driver on your system. Please check that you have
PyTorch version: 1.11.0+cu113
Is CUDA available: False
GPU models and configuration: Could not collect
Nvidia driver version: Could not collect
"""
OF_A_REPORT = (
    "/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found\n{'sys.platform': 'linux', 'NVCC': ''}\n"
)
NOT_IN_CONDA = """\
PackagesNotFoundError: The following packages are not available from current channels:

  - pytorch==1.0.0
"""
CASES = {
    "gpu-too-new-for-torch": (
        ("The GPU compute capability in your current machine is 120, which is not supported by "
        "Paddle, it is recommended to install the corresponding wheel package"),
        "RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)\n" + WORKS,
        "nvrtc: error: failed to load builtins for compute_120.",
        "Assertion `false && \"computeCapability > 90 not supported\"' failed. RTX 5080",
        ("If you want to use the NVIDIA GeForce RTX 5080 GPU with PyTorch, please check the "
        "instructions at https://pytorch.org/get-started/locally/"),
    ),
    "toolkit-gpu-unsupported": (
        "clang: error: unsupported CUDA gpu architecture: sm_120",
        "nvcc fatal   : Unsupported gpu architecture 'compute_90a'",
        "jax: ptxas does not support CC 8.9",
    ),
    "extension-gpu-unsupported": (
        "RuntimeError: Expected is_sm90 || is_sm8x to be true, but got false. flash-attn",
        "FlashAttention backward for head dim > 64 requires A100 or H100 GPUs",
        "Quantization scheme is not supported for the current GPU. Min capability: 89.",
        "The quantization method gptq is not supported for the current GPU.",
        "AssertionError: Device compute capability 8.9 or higher required for FP8 execution.",
        ("RuntimeError: torch._scaled_mm is only supported on CUDA devices with compute capability "
        ">= 9.0 or 8.9, or ROCm MI300+"),
        "No compiled cutlass_scaled_mm for CUDA device capability: 120. Required capability: 90",
        "No implemented fp8_blockwise_scaled_mm for current compute capability: 120",
        ("No operator found for `memory_efficient_attention_forward` with inputs:\n  requires "
        "device with capability <= (9, 0) but your GPU has capability (12, 0) (too new)"),
        "ValueError: FlashMLA is only supported on Hopper devices.",
        "SageAttention: ValueError: Unsupported CUDA architecture: sm70",
        "the minimum compute capability is 8.0 for Marlin kernel.",
        "triton: ValueError: type fp8e4nv not supported in this architecture.",
        "[TRT] Target GPU SM 120 is not supported by this TensorRT release.",
        "ptxas: error   : Feature '.bf16' requires .target sm_80 or higher",
    ),
    "extension-source-too-old": (
        "THC.h : no such file or directory",
        "error: \u2018THCState_getCurrentStream\u2019 was not declared in this scope",
        "error: 'THCState' does not name a type",
        "error: use of undeclared identifier 'THCudaMalloc'",
        "ImportError: cannot import name 'container_abcs' from 'torch._six'",
        ("gcc -std=c++14 a.cpp\nerror: #error C++17 or later compatible compiler is required to "
        "use ATen."),
    ),
    "extension-abi-mismatch": (
        "DGLError: Device API cuda is not enabled. Please install the cuda version of dgl.",
        ("Failed to load custom C++ ops. Running on CPU mode Only!\nNameError: name '_C' is not "
        "defined"),
        "Detected that PyTorch and torch_cluster were compiled with different CUDA versions.",
        ('  File "/opt/transformer_engine/pytorch/__init__.py", line 22, in _load_library\n'
        "StopIteration"),
    ),
    "torch-import-broken": (
        "import torch\nImportError: libstdc++.so.6: cannot open shared object file",
        ("    from torch._C import *\nImportError: /opt/lib/python3.9/site-packages/torch/_C.so: "
        "undefined symbol: _ZN4thpp10THCSTensorIlEC1E"),
        "Forge will not run: loading fbgemm.dll (WinError: 126)",
    ),
    "torch-mixed-install": (
        ("ImportError: ~/.local/lib/python3.9/site-packages/torch/lib/libcaffe2.so: undefined "
        "symbol: _ZTIN3c1010TensorImplE"),
    ),
    "torch-cpu-only": (
        "AssertionError: torch not compiled with cuda",
        ">> Using device_type cpu\nGPU: cuda, RTX 2070",
    ),
    "torch-companion-mismatch": (
        (r"CPU: registered at C:\work\pytorch\vision\torchvision\csrc\ops\cpu\nms_kernel.cpp:112 "
        "[kernel]"),
    ),
    "cudnn-missing": (
        'Unable to dynamically load the "cudnn" shared library - searched for library names: []',
        "Could not load library libcudnn_ops_infer.so.8:cannot open shared object file",
        ("The third-party dynamic library (cudnn64_8.dll) that Paddle depends on is not configured "
        "correctly. (error code is 126)"),
        "RuntimeError: (PreconditionNotMet) Cannot load cudnn shared library.",
        r'nvidia\cudnn\bin\cudnn_cnn64_9.dll" or one of its dependencies. paddle, GPU',
    ),
    "cudnn-version-mismatch": (
        "ImportError: torch/_C.so: undefined symbol: cudnnSetConvolutionGroupCount",
        (r'[WinError 127] Error loading "C:\nvidia\cudnn\bin\cudnn_adv_infer64_8.dll" or one of '
        "its dependencies."),
    ),
    "cudnn-runtime-failure": ("FAILED_PRECONDITION: DNN library initialization failed.",),
    "toolkit-torch-mismatch": (
        "torch: nvcc fatal   : Value 'c++17' is not defined for option 'std'",
        ("AssertionError: PyTorch is built with CUDA version: 11.7.\nThe current running CUDA "
        "version is: 10.2.89"),
        "Your version of CUDA is 12.0 while PyTorch was compiled with CUDA 11.7.",
    ),
    "toolkit-missing": (
        "jaxlib: FAILED_PRECONDITION: INTERNAL: Couldn't invoke ptxas --version",
        ("apex: python setup.py egg_info did not run successfully.\n"
        '  File "/tmp/pip/setup.py", line 24, in get_cuda_bare_metal_version'),
        "CMake Error at CMakeDetermineCUDACompiler.cmake:180: Failed to find nvcc.",
        OF_A_REPORT + "ninja: build stopped: subcommand failed.",
    ),
    "compiler-missing": (
        "torch: UserWarning: Error checking\ncompiler version for cl: [WinError 2] not found",
        "gcc: fatal error: cannot execute 'cc1plus': execvp: No such file or directory",
        "error: command 'x86_64-linux-gnu-g++' failed: No such file or directory",
        "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
    ),
    "host-compiler-unsupported": (
        "Must use gcc>=11.1 to compile CV-CUDA, you're using GNU-9.3.0",
        ("/usr/include/x86_64-linux-gnu/bits/floatn.h(86): error: invalid combination of type "
        "specifiers"),
    ),
    "numpy-abi-mismatch": (
        "RuntimeError: Could not infer dtype of numpy.float32",
        "TypeError: expected np.ndarray (got numpy.ndarray)",
        "TypeError: can't convert np.ndarray of type numpy.float32.",
        "ImportError: numpy.core.umath failed to import",
        "ValueError: numpy.ndarray size changed, may indicate binary incompatibility.",
        "AttributeError: `np.float_` was removed in the NumPy 2.0 release. torch",
    ),
    "system-library-too-old": (
        "/lib64/libstdc++.so.6: version `GLIBCXX_3.4.21` not found",
        "/lib64/libgomp.so.1: version `GOMP_4.0' not found (required by libtorch_cpu.so)",
        "undefined reference to `std::__throw_bad_array_new_length()@GLIBCXX_3.4.29'",
    ),
    "host-out-of-memory": (
        "torch\n**Killed**",
        "deepspeed方式返回的错误码是-9",
        "torch 训练\n已杀死",
        ("DeepSpeed: Installed CUDA version 11.8 does not match the version torch was compiled "
        "with 11.7 but since the APIs are compatible, accepting this combination\n"
        "[launch.py:325:sigkill_handler] ['/opt/bin/python'] exits with return code = -9"),
        "ERROR:torch.distributed.elastic:failed (exitcode: -9) local_rank: 0 (pid: 4242)",
        ("torch\nmpirun noticed that process rank 0 with PID 7 on node a exited on signal 9 "
        "(Killed)."),
        "torch: c++: fatal error: Killed signal terminated program cc1plus",
        "caffe: I0808 13:46 solver.cpp:142] Test score #1: 2.00\nKilled\nDone.",
        "      Reason:       OOMKilled\n      Exit Code:    137",
        "was running was 28.5GB / 30.0GB (0.951), which exceeds the memory usage threshold of 0.95",
        ("Refer to the documentation on how to address the out of memory issue: "
        "https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html."),
        "Worker tcp://127.0.0.1:42 (pid=12) exceeded 95% memory budget. Restarting...",
        "srun: error: node1: task 0: Out Of Memory",
        "State: OUT_OF_MEMORY (exit code 0)",
        "bash: line 1: 12345 Killed                  python train.py --gpu 0",
        "[1]  + 31234 killed     python train.py",
        'earlyoom[1]: sending SIGTERM to process 1234 uid 1 "python": badness 900',
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 5 GiB for an array",
        "unable to mmap 1024 bytes from file <m.safetensors>: Cannot allocate memory (12)",
        "train.service: Failed with result 'oom-kill'.",
        "Your session crashed after using all available RAM.",
        "Loading checkpoint shards:  62%|######    | 5/8 [00:10<00:06,  2.22s/it]Killed",
        "torch: RuntimeError: DataLoader worker (pid(s) 4242) exited unexpectedly",
        ("torch, Worker exit type: SYSTEM_ERROR Worker exit detail: Worker exits unexpectedly. The "
        "worker may have exceeded K8s pod memory limits."),
    ),
    "shm-too-small": (
        ("unable to allocate shared memory(shm) for file </torch_1_2_3>: No space left on device "
        "(28)"),
        "torch: OSError: [Errno 28] No space left on device: '/dev/shm/sem.mp'",
        "node1:4707:5232 [2] NCCL INFO transport/shm.cc:101 -> 2",
    ),
    "kernel-module-not-loaded": (
        ("failed call to cuInit: CUDA_ERROR_NO_DEVICE\nI tensorflow/stream_executor/cuda/"
        "cuda_diagnostics.cc:86] kernel driver does not appear to be running on this host (box)"),
        "Could not resolve Linux kernel version\nnvidia-device-plugin-x  0/1  CrashLoopBackOff",
        "nvidia-driver-ctr: Error: Unable to find a match: kernel-headers-4.18.0-305.el8.x86_64",
        "FATAL: failed to install elfutils packages. RHEL entitlement may be improperly deployed.",
        "nvidia: E: Unable to locate package linux-headers-5.15.0-1023-aws",
        "Building DKMS module 'nvidia-580.142' for kernel-6.1.0_1... FAILED!",
        "DKMS module 'nvidia-367.35' failed to build, please check /var/lib/dkms for errors",
        "GPU driver validator: unable to load kernel module nvidia-modeset.",
    ),
    "driver-dropped-gpu": (
        "NVRM: Open nvidia.ko is only ready for use on Data Center GPUs.",
    ),
    "driver-too-old": (
        ("This container was built for NVIDIA Driver Release 535.54 or later, but\n"
        "  version 470.82 was detected and compatibility mode is UNAVAILABLE."),
        "Compiling a model says that the driver version is too low: 470.82, TensorRT.",
    ),
    "container-cuda-requirement": (
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda >= 9.0",
    ),
    "container-no-gpu": (
        ("Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 1, Available: 0, which is unexpected"),
        "Error: stat nvidia.com/gpu=all: no such file or directory",
        "failed to discover GPU vendor from CDI: no known GPU vendor found",
        ("no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is "
        "unexpected"),
        "nvidia-device-plugin: No devices found. Waiting indefinitely.",
        "nvidia-container-cli.real: initialization error: driver error: failed to process request",
        ("error running hook #1: error running hook: exit status 1, stdout: , stderr: level=info "
        'msg="Symlinking /merged/usr/lib/aarch64-linux-gnu/nvidia/libfoo.so"'),
        "nvidia.runtime: true\nlxc box ERROR conf.c:lxc_setup:4129 - Failed to run mount hooks",
        "unknown flag: --gpus",
    ),
    "mig-misconfigured": ("nvidia-container-cli: device error: MIG-1a2b/5/0: unknown device",),
    "fabric-manager-down": (
        ("cudaGetDeviceCount() ... Error 802: system not yet initialized\n"
        "RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MPS) is available.\n"
        "Please support this newer driver stack."),
    ),
    "gpu-hardware-fault": (
        "RuntimeError: CUDA error: hardware stack error",
        "NVRM: GPU 0000:98:00.0: RmInitAdapter failed! (0x62:0x65:1792)",
        "nvidia-smi: No devices were found\nunexpected WPR2 already up / RmInitAdapter failed!",
    ),
    "nccl-p2p-broken": (
        ("NotImplementedError: Using RTX 4000 series doesn't support faster communication "
        "broadband via P2P or IB."),
    ),
    "rendezvous-failed": (
        ('  File "/opt/torch/distributed/rendezvous.py", line 143, in _env_rendezvous_handler\n'
        "    store = TCPStore(master_addr, master_port, start_daemon)\n"
        "ValueError: host not found: Name or service not known"),
        "torch.distributed.DistNetworkError: Unknown error",
    ),
    "wsl-driver-problem": (
        "nvidia-container-cli: initialization error: WSL environment detected but no adapters we",
        ("In WSL, nvidia-smi has failed because it couldn't communicate with the NVIDIA driver. "
        "Make sure that the latest NVIDIA driver is installed."),
    ),
    "nccl-network-interface": ("gloo: ifa != nullptr. Unable to find interface for: 10.0.0.9",),
    "nccl-infiniband": ("NCCL WARN NET/OFI Request 0x7f completed with error. RC: 5.",),
    "torch-python-unsupported": (
        ("This program is tested with 3.10.6 Python, but you have 3.13.2.\nIf you encounter an "
        "error with \"RuntimeError: Couldn't install torch.\" message,"),
        NOT_IN_CONDA,
    ),
    "driver-missing": (
        'Unable to find cuda lib under the names ["cuda", "nvcuda"]. Please open GitHub issue.',
        NO_GPU_HERE + "my RTX 3060 is in the machine",
        "WARNING: Could not find any NVIDIA libraries on this host!\nNo GPU is detected.",
        "ldd torch/_nvrtc.so\n\tlibcuda.so.1 => not found",
        "RuntimeError: Found no NVIDIA driver on your system. RTX 3060",
    ),
    "torch-missing": (
        "torch: could not find a version that satisfies the requirement pytorch==1.0.1",
        "ModuleNotFoundError: No module named 'torch'\npip has torch 2.3.0, of another python",
    ),
    "rank-crashed-elsewhere": (
        ("DistBackendError: NCCL error in: NCCLUtils.hpp:275, remote process exited or there was a "
        "network error"),
    ),
    "device-permission": (
        "RuntimeError: CUDA error: no CUDA-capable device is detected; with sudo it works",
    ),
    "application-bug": ("RuntimeError: trying to initialize the default process group twice!",),
    "not-gpu-related": (
        WORKS + "AssertionError: MMCV==1.4.0 is used but incompatible. Please install mmcv>=2.0.0.",
    ),
    "gpu-too-old-for-torch": (
        ("2020-07-07 15:35:48.520179: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1721] "
        "Ignoring visible gpu device (device: 0, name: GeForce GT 720M) with Cuda compute "
        "capability 2.1. The minimum required Cuda capability is 3.5."),
    ),
    "cublas-runtime-failure": (
        "caffe: CUBLAS_STATUS_SUCCESS(0 vs 13)",
        ("2020-12-29 04:45:47.964643: E tensorflow/stream_executor/cuda/cuda_blas.cc:428] failed "
        "to run cuBLAS routine: CUBLAS_STATUS_EXECUTION_FAILED"),
    ),
    "out-of-memory": (
        ("W tensorflow/core/common_runtime/bfc_allocator.cc:462] Allocator (GPU_0_bfc) ran out of "
        "memory trying to allocate 2.20GiB (rounded to 2362232064)"),
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "gpu: XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.",
        ("torch: CUDA out of memory. Tried to allocate 90.00 MiB. GPU 7 has a total capacity of "
        "23.64 GiB of which 41.25 MiB is free. Process 4711 has 1.02 GiB memory in use. Including "
        "non-PyTorch memory, this process has 22.57 GiB memory in use."),
    ),
    "gpu-memory-held": (
        ("torch: CUDA out of memory. Tried to allocate 90.00 MiB. GPU 7 has a total capacity of "
        "23.64 GiB of which 41.25 MiB is free. Process 4711 has 9.02 GiB memory in use. Including "
        "non-PyTorch memory, this process has 14.57 GiB memory in use."),
    ),
    "cuda-library-missing": (
        'Unable to dynamically load the "nvrtc" shared library - searched for library names: []',
        ("The third-party dynamic library (cublas64_11.dll) that Paddle depends on is not "
        "configured correctly. (error code is 126)"),
        "W tensorflow/core/gpu_device.cc:2348] Cannot dlopen some GPU libraries. RTX 3090",
    ),
    "device-nodes-missing": (
        "After a suspend of the laptop, mumax3 with CUDA says\npanic: CUDA_ERROR_UNKNOWN",
        "torch on the GPU after I suspend it:\nsudo rmmod nvidia_uvm\nsudo modprobe nvidia_uvm",
    ),
    "compute-mode-exclusive": (
        ("nvidia-smi\n| N/A   N/A    P8              N/A /  N/A |      0MiB /  8192MiB |      0%   "
        "Prohibited |"),
    ),
    "torch-rocm-or-other-build": (
        "NVIDIA GPU detected, RTX 4090\n- **Torch:** 2.9.1+xpu\n- **CUDA Available:** False",
    ),
    "rank-missing": (
        "torch freezes here:\nInitializing distributed: GLOBAL_RANK: 1, MEMBER: 2/8",
    ),
}  # fmt: skip
NOTHING = {
    "TensorFlow beside torch": WORKS + "2024-01-01 10:00:00: E tensorflow/stream_executor/cuda/"
    "cuda_blas.cc:428] failed to run cuBLAS routine: CUBLAS_STATUS_EXECUTION_FAILED",
    "an allocator that tries less": "W tensorflow/core/bfc_allocator.cc:245] Allocator (GPU_0_bfc) "
    "ran out of memory trying to allocate 2.20GiB with freed_by_count=0. The caller indicates that "
    "this is not a failure",
    "CUDA's driver in words": WORKS
    + "why could not find cuda driver? nvidia-smi runs in the container",
    "another that says what it is not": WORKS + "是 gpu crash 但是可以排除out of memory的问题",
    "a report made where no GPU is": "torch.linalg.svd returns nan\n" + NO_GPU_HERE,
    "a report asks for nvcc": OF_A_REPORT + WORKS + "KeyError: 'Detector is not in the registry'",
    "a wish for a driver": WORKS + "Please support this newer driver stack R610 in the docs.",
    "vLLM takes another kernel": WORKS + "Cannot use FA version 2 is not supported due to FA2 is "
    "only supported on devices with compute capability >= 8",
    "a word of capabilities": WORKS + "kernels need docs; compute capability 8.0 is fine.",
    "a page about capabilities": WORKS
    + "The page says: attention requires compute capability 8.0.",
    "a kernel that gives way": WORKS
    + "FP8 is only supported on devices with compute capability 8.9 "
    "or higher, falling back to bf16",
    "a library for others": WORKS + "ValueError: shape\nFlexAttention kernels only support Hopper.",
    "a type that torch never had": "TypeError: can't convert np.ndarray of type numpy.uint16.",
    "a symbol that is there": "GLIBCXX_3.4.30 is found in conda; torch 2.6.0",
    "Ray's setting": WORKS + "Please make the memory usage threshold of Ray configurable.",
    "a container that ended well": WORKS + '"OOMKilled": false',
    "NCCL without its reason": "RuntimeError: NCCL Error 1: unhandled cuda error",
    "a shell variable of Slurm": "#SBATCH --nodes=2 --gpus-per-node=4, in a container",
    "Secure Boot is off": "nouveau and secure boot are off. Which driver for an RTX 3090?",
    "CUDA_HOME is set": WORKS
    + "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'\nerror",
    "TorchScript without torchvision": "Unknown builtin op: torchvision::nms.\nCould not find any "
    "similar ops to torchvision::nms. This op may not be currently supported in TorchScript.",
    "memory of tiny-cuda-nn": WORKS + "cuMemGetInfo(&free, &total) is read",
    "another board": "Ascend: the CUDA available: False. 多卡会卡住",
    "a list of changes": "加上 CUDA 显存不足的明确提示。",
    "a kernel of another size": WORKS + "Expected x.is_cuda() to be true, but got false.",
}
ONLY_TORCH_PRINTS = {
    "shm-too-small": "Unexpected bus error encountered in worker. "
    "This might be caused by insufficient shared memory (shm).",
    "rendezvous-failed": "The client socket has timed out after 60000ms while trying to connect to "
    "(10.0.0.7, 29400).",
    "application-bug": "Trying to backward through the graph a second time",
}
"""Messages that are known in a text that names neither PyTorch, CUDA nor a GPU."""
AS_A_WHOLE = {
    "torch-cpu-only": "SD.Next draws on the CPU though there is an nVidia card.\n"
    "Installed torch=2.4.1+cpu\nTorch generator: device=cpu\nnvidia toolkit detected\n",
    "toolkit-missing": "nvidia-smi is fine. DeepSpeed:\nfatal error: cublas_v2.h: No such file or "
    "directory\nninja: build stopped: subcommand failed.\n"
    "RuntimeError: Error building extension 'cpu_adam'\n",
    "nccl-infiniband": "$ ib_write_bw --use_cuda=0 10.0.0.4\ncreating CUDA Ctx\n"
    "Couldn't allocate MR\n"
    "Segmentation fault (core dumped)\n",
    "gpu-too-new-for-torch": "NVIDIA GeForce RTX 5070 on Windows 11, driver 576.80\n"
    "Error(s) in loading state_dict for Net:\n"
    'While copying the parameter named "a.weight", an exception occurred : '
    "('CUDA error: no kernel image is available for execution on the device\n",
    "driver-too-old": "In the docker image of the course:\n"
    "OSError: (External) Cuda error(35), CUDA driver version is insufficient for CUDA runtime "
    "version.\n"
    "| NVIDIA-SMI 418.67       Driver Version: 418.67       CUDA Version: 10.1     |\n",
    "torch-companion-mismatch": "torchvision::nms on the GPU:\n"
    "RuntimeError: Not compiled with CUDA support\n",
    "nccl-network-interface": "box:11:12 [0] NCCL INFO socketPollConnect: connect returned "
    "No route "
    "to host, retrying (34/34) after sleep for 3400 msec\n",
    "kernel-module-not-loaded": "The driver for CUDA 12.1 does not load:\n"
    "module nvidia.ko uses GPL-only symbol 'rcu_read_unlock_strict'\n",
    "compiler-missing": "Triton, portable Python on Windows:\nerror LNK2019: unresolved external "
    "symbol __imp_PyErr_SetString\n",
}
UNEXPLAINED = (
    "RuntimeError: CUDA error: a kind that nobody knows",
    "RuntimeError: CUDA driver error: a kind that nobody knows",
    "nvrtc: error: a kind that nobody knows",
    "RuntimeError: cuDNN error: CUDNN_STATUS_OF_TOMORROW",
    "RuntimeError: cuBLAS error: of tomorrow",
    "ncclInternalError: Internal check failed.",
    "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
    "ncclSystemError: System call failed.",
    "NVRM: Xid (PCI:0000:65:00): 250, pid=123, name=python",
)


@each(("slug", "text"), [(slug, text) for slug, texts in CASES.items() for text in texts])
def test_each_message_names_its_cause(slug: str, text: str) -> None:
    assert triage(text).root_causes[:1] == (slug,)


@each("name", NOTHING)
def test_what_only_resembles_a_message_names_no_fault_of_the_environment(name: str) -> None:
    assert set(triage(NOTHING[name]).root_causes) <= {"application-bug"}


@each("message", UNEXPLAINED)
def test_beside_an_error_that_nobody_knows_nothing_is_healthy(message: str) -> None:
    assert triage(WORKS).verdict == "healthy"
    assert triage(WORKS + message).verdict != "healthy"


@each(("slug", "text"), [*ONLY_TORCH_PRINTS.items(), *AS_A_WHOLE.items()])
def test_it_is_known_whatever_stands_beside_it(slug: str, text: str) -> None:
    assert triage(text).root_causes[:1] == (slug,)


def test_what_a_database_prints_is_not_of_torch() -> None:
    assert triage("ORA-27102: insufficient shared memory for the instance").root_causes == ()


@each(
    "header",
    ["cusparse.h", "cuda_fp16.h", "nvToolsExt.h", "thrust/complex.h", "cub/cub.cuh", "nvrtc.h"],
)
def test_a_header_of_the_toolkit_is_named(header: str) -> None:
    for start, end in (
        ("csrc/ops.cu:4:10: fatal error: ", ": No such file or directory"),
        ("(9): fatal error C1083: Cannot open include file: '", "': No such file or directory"),
        ("ops.cpp:9:10: fatal error: '", "' file not found"),
    ):
        report = triage(f"nvcc is there, torch sees the GPU\n{start}{header}{end}")
        assert report.root_causes == ("toolkit-missing",)
        assert header in report.causes[0].headline
    own = triage(f"torch and CUDA\nfatal error: my_{header}: No such file or directory")
    assert "toolkit-missing" not in own.root_causes
