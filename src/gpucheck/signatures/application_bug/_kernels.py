"""Texts that point to application-bug: a kernel that fails: an assertion, an address, a launch."""

from gpucheck.signatures.base import Signature

SIGNATURES = (
    Signature(
        name="assertion",
        literal="assertion `",
        pattern=r"Assertion `.{1,160}` failed",
        weight=92,
        says=("A kernel's assertion failed: an index or a value of the program is out of range"),
        sample=(
            "IndexKernel.cu:92: operator(): block: [0,0,0], thread: [1,0,0] "
            'Assertion `index >= -sizes[i] && index < sizes[i] && "index '
            'out of bounds"` failed.'
        ),
        other="Assertion: ok",
        unless=("num_gpus",),
        stands=True,
    ),
    Signature(
        name="kernel-assertion",
        literal=".cu:",
        pattern=(
            r"\.cuh?:\d{1,5}: .{1,160}: block: \[\d{1,9},\d{1,9},\d{1,9}\], "
            r"thread: \[\d{1,9},\d{1,9},\d{1,9}\],? Assertion"
        ),
        weight=88,
        says=("A kernel's assertion failed: an index or a value of the program is out of range"),
        sample=(
            "/aten/src/ATen/native/cuda/Loss.cu:240: nll_loss_forward: block: [0,0,0], "
            "thread: [5,0,0] Assertion `t >= 0"
        ),
        other="Loss.cu:240: nll_loss_forward",
        unless=("num_gpus",),
        stands=True,
    ),
    Signature(
        name="assert",
        literal="device-side assert",
        pattern=r"device-side assert triggered",
        weight=84,
        says=("A kernel's assertion failed: an index or a value of the program is out of range"),
        sample="RuntimeError: CUDA error: device-side assert triggered",
        other="an assert",
        stands=True,
    ),
    Signature(
        name="contradict",
        literal="illegal memory access",
        pattern=r"illegal memory access was encountered",
        weight=60,
        says=(
            "A kernel reads or writes outside its memory: most often a "
            "fault of the program or of an extension"
        ),
        sample="RuntimeError: CUDA error: an illegal memory access was encountered",
        other="memory access",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="misaligned",
        literal="misaligned address",
        pattern=r"CUDA error: misaligned address",
        weight=58,
        says="A kernel uses a misaligned address: a fault of the program or of an extension",
        sample="RuntimeError: CUDA error: misaligned address",
        other="address",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="launch-failure",
        literal="unspecified launch failure",
        pattern=r"unspecified launch failure",
        weight=46,
        says="A kernel failed",
        sample="RuntimeError: CUDA error: unspecified launch failure",
        other="launch",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="config-arg",
        literal="invalid configuration argument",
        pattern=r"CUDA error: invalid configuration argument",
        weight=56,
        says="A kernel is started with an impossible size: an empty or too large tensor",
        sample="RuntimeError: CUDA error: invalid configuration argument",
        other="configuration argument",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="xid-13",
        literal="xid",
        pattern=r"Xid \([^)]{1,40}\): (?P<xid>13|31|43)\b",
        weight=60,
        says="Xid {xid}: a kernel of the program faulted",
        sample="NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python",
        other="Xid (PCI:0000:3b:00): 79",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="resources-launch",
        literal="too many resources requested for launch",
        pattern=r"too many resources requested for launch",
        weight=62,
        says="A kernel is started with more threads than its registers allow",
        sample="RuntimeError: CUDA error: too many resources requested for launch",
        other="resources",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="capturing",
        literal="stream is capturing",
        pattern=(
            r"operation not permitted when stream is capturing|cudaErrorStreamCapture\w{3,40}"
        ),
        weight=72,
        says="While a CUDA graph is recorded the program does what cannot be recorded",
        sample="RuntimeError: CUDA error: operation not permitted when stream is capturing",
        other="the stream is capturing video",
        stands=True,
    ),
)
