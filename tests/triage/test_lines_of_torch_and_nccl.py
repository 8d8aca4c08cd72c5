"""What PyTorch, NCCL and the libraries around them print, in the words of their sources.

The values are our own. What they warn of on sound machines accuses nothing.
"""

from each import each

from gpucheck import triage
from gpucheck.facts.request import Pasted

FRAME = '  File "/opt/conda/lib/python3.11/site-packages/{}", line 84, in {}\n    {}\n'
TRACEBACK = "Traceback (most recent call last):\n"
OF_AGENT = (
    TRACEBACK
    + FRAME.format(
        "torch/distributed/elastic/multiprocessing/api.py",
        "_terminate_process_handler",
        'raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)',
    )
    + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4021 got signal: "
)
NCCL = "node1:4021:4077 [1] "
LIST_OF_CODE = (
    "The following list shows the CCs this version of PyTorch was built for and the hardware CCs "
    "it supports:\n- 8.0 which supports hardware CC >=8.0,<9.0 except {8.7}\n"
)
FOUND = "UserWarning: Found GPU0 "
HARMLESS = (
    # The code of 12.0 runs on 12.1, that of 8.0 on Orin.
    FOUND + "NVIDIA GB10 which is of cuda capability 12.1.\n    Minimum and Maximum cuda capability"
    " supported by this version of PyTorch is\n    (8.0) - (12.0)",
    FOUND + "Orin which is of compute capability (CC) 8.7.\n" + LIST_OF_CODE,
    OF_AGENT + "15",
    "Exception ignored in: <function DeepSpeedCPUAdam.__del__ at 0x7f>\n"
    + TRACEBACK
    + FRAME.format("deepspeed/ops/adam/cpu_adam.py", "__del__", "self.ds_opt_adam.destroy_adam()")
    + "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'",
    "A matching Triton is not available, some optimizations will not be enabled\n"
    + TRACEBACK
    + FRAME.format("xformers/__init__.py", "_is_triton_available", "import triton  # noqa")
    + "ModuleNotFoundError: No module named 'triton'\n100%|#####| 20/20 [00:05<00:00, 3.9it/s]",
    (
        " [WARNING]  DeepSpeed Op Builder: Installed CUDA version 13.0 does not match the version "
        "was compiled with 12.8.Detected `DS_SKIP_CUDA_CHECK=1`: Allowing this combination of CUDA"
    ),
    (
        "Warning:  multi_tensor_applier fused unscale kernel is unavailable, possibly because apex "
        "installed without --cuda_ext --cpp_ext. Using Python fallback.  Original ImportError was: "
        "ModuleNotFoundError(\"No module named 'amp_C'\")"
    ),
    NCCL + "NCCL WARN NET/IB : mlx5_0:1 Got async event : client reregistration",
    NCCL + "NCCL WARN NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)",
    (
        "[rank1]:[W1128 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=62, "
        "addr=[localhost]:51234, remote=[localhost]:29500): failed to recv, got 0 bytes"
    ),
    (
        "[W1128 socket.cpp:759] [c10d] The client socket cannot be initialized to connect to "
        "[localhost]:29500 (errno: 97 - Address family not supported by protocol)."
    ),
    (
        "RuntimeError: No valid triton configs. OutOfMemoryError: out of resource: triton_mm "
        "Required: 147456 Hardware limit:101376 Reducing block sizes or `num_stages` may help."
    ),
)
CASES = {
    "gpu-too-new-for-torch": (
        FOUND + "NVIDIA Thor which is of compute capability (CC) 11.0.\n" + LIST_OF_CODE,
        "Found GPU0 TITAN V which requires CUDA_VERSION >= 9000 for",
    ),
    "gpu-too-old-for-torch": (
        FOUND + "Tesla V100-PCIE-32GB which is of compute capability (CC) 7.0.\n" + LIST_OF_CODE,
        FOUND + "NVIDIA GeForce GTX 980 which is of cuda capability 5.2.",
    ),
    "not-gpu-related": (OF_AGENT + "1",),
    "rank-crashed": (
        (
            "E1128 10:00:00.000000 4021 torch/distributed/elastic/multiprocessing/api.py:883] "
            "failed (exitcode: -11) local_rank: 1 (pid: 4052) of binary: /usr/bin/python"
        ),
    ),
    "rank-missing": (
        (
            "RuntimeError: Timed out initializing process group in store based barrier on rank "
            "0, for key: store_based_barrier_key:1 (world_size=4, num_workers_joined=3, "
            "timeout=0:30:00)"
        ),
    ),
    "nccl-infiniband": (
        NCCL + "NCCL WARN NET/IB: Got completion from peer 10.0.0.6<41000> with "
        "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129 hca mlx5_2",
    ),
    "nccl-network-interface": (
        NCCL + "NCCL WARN NET/Socket : No usable listening interface found",
        NCCL + "NCCL WARN NET/IB : No IP interface found.",
        NCCL + "NCCL WARN socketPollConnect: connect to 10.0.0.7<40021> returned Connection timed "
        "out, exceeded error retry count after 35 attempts",
    ),
    "nccl-transport-broken": (
        NCCL + "NCCL WARN ncclProxyCallBlockingUDS call to tpRank 1(8f2c) failed : 3",
        NCCL + "NCCL WARN UDS: Sending data over socket /tmp/nccl-socket-1-8f2c failed : "
        "Connection refused (111)",
    ),
    "rendezvous-failed": (
        "torch.distributed.elastic: RuntimeError: on 10.0.0.1, port: 29500 already in use",
    ),
}


@each("text", HARMLESS)
def test_what_sound_machines_print_accuses_nothing(text: str) -> None:
    assert not triage(text).root_causes


@each("slug, text", [(slug, text) for slug, texts in CASES.items() for text in texts])
def test_each_wording_names_its_cause(slug: str, text: str) -> None:
    assert slug in triage(text).root_causes


NO_GPU = (
    "RuntimeError: 0 active drivers ([]). There should only be one.",
    "RuntimeError: DeepSpeed JIT builder for 'fused_adam' found no CUDA devices.",
    "RuntimeError: Unable to proceed, no GPU resources available",
)


@each("text", NO_GPU)
def test_a_library_that_sees_no_gpu_says_that_cuda_is_not_available(text: str) -> None:
    report = triage(text)
    assert report.verdict == "unknown"
    assert report.snapshot.get(Pasted).cuda_available is False
