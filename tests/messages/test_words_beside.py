"""Words that spare the pattern of a frequent literal stand in whatever the pattern matches."""

import re

import pytest
from each import each

from gpucheck.log_patterns.form import Message, compiled
from gpucheck.log_patterns.loading import all_messages
from gpucheck.log_patterns.matcher import search
from gpucheck.ticket.intake import read_text

_LINES = {
    "compiler-missing cl-missing": (
        "cl.exe: command not found", "MSVC's cl: cannot find it", "'cl' is not recognized",
        "cl is not on PATH", "could not find the compiler cl", "unable to find cl.exe",
        "cannot find cl",
    ),
    "compiler-missing gcc": (
        "error: command 'gcc' failed: No such file or directory",
        "unable to execute '/opt/bin/gcc' failed: permission denied", "unable to execute 'gcc'",
        "sh: gcc: command not found", "gcc, g++: not found", "gcc or g++: command not found",
        "sh: 1: gcc: not found",
    ),
    "no-nvidia-gpu hp-mac": (
        "CUDA on my MacBook", "cuda on mac os", "macos and CUDA", "an iMac without CUDA",
        "Apple Silicon, CUDA fails", "Mac mini with cuda",
    ),
    "torch-cpu-only aten-cuda": (
        "Cannot initialize CUDA without ATen_cuda library",
        "PyTorch is not linked with support for cuda devices",
        "PyTorch was compiled without CUDA support",
        "Device type CUDA is not supported for torch.Generator",
    ),
    "torch-cpu-only no-cuda-words": (
        "torch is without CUDA", "torch has no cuda support", "torch was not built with CUDA",
        "torch here has no CUDA",
    ),
    "driver-too-old cuda-version-in-smi": (
        "CUDA 12.4 is higher than what the driver speaks", "cuda 12.1 newer than the driver",
        "CUDA 11.8 is greater than my driver's", "driver only supports CUDA 11.4",
        "the driver supports up to CUDA 11.4", "drivers that support up to CUDA 12.2",
        "a driver that can only support CUDA 12.0",
    ),
    "toolkit-torch-mismatch words": (
        "nvcc does not match, cuda 12", "the toolkit (CUDA) doesn't match", "cuda: nvcc differs",
        "cuda: a mismatch of nvcc", "CUDA toolkit is different",
    ),
    "thermal-or-power-throttle reboots": (
        "the PC restarts under GPU load", "server powers off in GPU training",
        "at full load the GPU machine freezes", "heavy load of the gpu: it shuts down",
        "the system turns off when the GPU is full", "any load on the GPU and it goes down",
    ),
    "gpu-fallen-off-bus disappears": (
        "the GPU disappeared", "the gpu vanishes", "the GPU is no longer visible",
        "the GPU is no longer detected", "the GPU is no longer listed", "the GPU drops off",
        "GPUs drop off", "a GPU was lost",
    ),
    "gpu-too-new-for-torch not-recognised-new": (
        "5050 is not supported", "RTX 5060 does not work", "5070 fails", "5080 incompatible",
        "RTX 5090 doesn't work",
    ),
    "nccl-network-interface connect-failed": (
        "NCCL WARN Connect to 10.0.0.1<40001> failed : Connection refused",
    ),
    "nccl-p2p-broken copy-words": (
        "tensors copied between GPUs are zero", "a copy from one GPU gets corrupted",
        "moving to another gpu gives garbage", "transfer gpu to gpu: wrong values",
        "the values change from one gpu on", "data differ: transferred between GPUs, different",
    ),
}  # fmt: skip
"""By slug and name of the message: a line for each way in which its pattern matches."""


def _message(key: str) -> Message:
    slug, name = key.split()
    return next(message for message in all_messages()[slug].messages if message.name == name)


@each(("key", "line"), [(key, line) for key, lines in _LINES.items() for line in lines])
def test_a_line_that_the_pattern_matches_is_found(key: str, line: str) -> None:
    """A text with a word of PyTorch and nothing else beside the line."""
    assert compiled(_message(key).pattern).search(line)
    found = search(read_text(f"torch\n{line}".encode()))
    assert key in {f"{match.slug} {match.message.name}" for match in found}


@each("key", _LINES)
def test_the_pattern_is_not_tried_where_no_such_word_stands(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def noted(pattern: str) -> re.Pattern[str]:
        tried.append(pattern)
        return compiled(pattern)

    monkeypatch.setattr("gpucheck.log_patterns.matcher.compiled", noted)
    search(read_text(f"torch {_message(key).literal}".encode()))
    assert _message(key).pattern not in tried
