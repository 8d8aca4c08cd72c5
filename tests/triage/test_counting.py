"""Which messages count: by the role of their line, and by what failed."""

from each import each

from gpucheck import triage
from gpucheck.log_patterns.roles import Role, role_of_line

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/venv/lib/python3.11/site-packages/vllm/engine.py", line 7, in step\n'
    "    raise KeyError(name)\n"
    "KeyError: 'lm_head'\n"
)
ROLES = {
    "INFO 12-30 22:13:11 model_runner.py:407] CUDA graphs take 1 GiB": Role.INFO,
    "18:06:20-891560 DEBUG    Torch allowed: cuda=True rocm=True": Role.INFO,
    "[2025-01-02 03:04:05] INFO server.py:9: started": Role.INFO,
    "  CC [M]  /var/lib/dkms/drivers/gpu/i915_gem_throttle.o": Role.INFO,
    "WARNING 12-13 12:50:45 _logger.py:68] Failed to import": Role.WARNING,
    "/x/cuda/__init__.py:83: UserWarning: CUDA initialization: too old": Role.WARNING,
    "[W611 01:51:09.369133081 TCPStore.cpp:125] [c10d] recvValue failed": Role.WARNING,
    "ERROR 03-20 08:20:15 [core.py:340] it failed": Role.ERROR,
    "    --shm-size 32g \\": Role.COMMAND,
    "docker run --gpus all --shm-size=16g image": Role.COMMAND,
    "CUDA_VISIBLE_DEVICES=0,1": Role.SETTING,
    "      - NCCL_IB_GID_INDEX=3": Role.SETTING,
    "Namespace(lr=1, bs=2, epochs=3, seed=4, gpus=5, workers=6)": Role.SETTING,
    "first run with small batches to avoid CUDA out of memory": Role.ADVICE,
    "[^4]: CUDA out of memory.": Role.ADVICE,
    "I tensorflow/tsl/cuda/cudart_stub.cc:28] Could not find cuda drivers": Role.OTHER,
    'INFO: 10.0.0.1 - "GET /metrics HTTP/1.1" 200 OK': Role.OTHER,
    "the GPU is not used": Role.SAID,
    "torch.OutOfMemoryError: CUDA out of memory. To avoid fragmentation": Role.SAID,
}


@each("line", ROLES)
def test_the_role_of_a_line(line: str) -> None:
    assert role_of_line(line) is ROLES[line]


@each(
    "after",
    [
        "Killed\n",
        "resource_tracker: There appear to be 1 leaked semaphore objects to clean up\n",
        "[W611 01:51:09.3 TCPStore.cpp:125] [c10d] recvValue failed: failed to recv, got 0 bytes\n",
    ],
)
def test_what_happens_after_an_exception_is_an_echo(after: str) -> None:
    assert triage(TRACEBACK + after).root_causes == ("application-bug",)


def test_the_same_word_counts_where_nothing_else_failed() -> None:
    assert triage("loading the model with torch on the GPU\nKilled\n").root_causes == (
        "host-out-of-memory",
    )


@each(
    "line",
    [
        "docker run --gpus all --shm-size 32g image:latest\n",
        "NCCL_IB_GID_INDEX=3\n",
        "INFO 1-2 03:04:05 x.py:9] If you are running out of memory, lower its use\n",
    ],
)
def test_a_command_a_setting_or_information_is_no_sign(line: str) -> None:
    assert triage(f"{line}the answers of the model are too short\n").root_causes == ()


def test_memory_of_ones_own_tensors_is_held_by_nobody_else() -> None:
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.43 GiB. GPU 5 has a total "
        "capacity of 79.44 GiB of which 2.64 GiB is free. Process 679812 has 76.79 GiB memory in "
        "use. Of the allocated memory {own} GiB is allocated by PyTorch, and 1 GiB is reserved\n"
    )
    assert triage(text.format(own="72.76")).root_causes == ("out-of-memory",)
    assert triage(text.format(own="2.76")).root_causes[:1] == ("gpu-memory-held",)
