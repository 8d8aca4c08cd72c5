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
    "torch-cpu-only aten-cuda": (
        "Cannot initialize CUDA without ATen_cuda library",
        "PyTorch is not linked with support for cuda devices",
        "PyTorch was compiled without CUDA support",
        "Device type CUDA is not supported for torch.Generator",
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
