"""``ds_report``: labels and values with dots between them."""

import re

from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers.base import Machine

NAME = "ds_report"
_SHM = "/dev/shm) size"  # noqa: S108  # words to look for
MARKS = (
    "torch version ..",
    "torch cuda version ..",
    "nvcc version ..",
    "deepspeed info ..",
    _SHM,
)

_DOTTED = re.compile(r"^\s{0,8}([a-z][a-z0-9 ./()]{2,40}?) \.{2,60} ?(\S.{0,120})$", re.IGNORECASE)


def read(text: Text, machine: Machine) -> None:
    """Read each dotted line."""
    for found, line in text.matching(_DOTTED.match, " .."):
        _take(found[1].lower(), found[2].strip(), line, machine)
    for index in text.find(_SHM):
        fields.shm_size(text.lines[index].text.rpartition("size")[2], text.lines[index], machine)


def _take(label: str, value: str, line: Line, machine: Machine) -> None:
    if label == "torch version":
        fields.torch_version(value, line, machine)
    elif label == "torch cuda version":
        fields.torch_cuda(value, line, machine)
    elif label == "torch hip version":
        fields.torch_hip(value, line, machine)
    elif label == "nvcc version":
        fields.toolkit(value, line, machine)
    elif label == "deepspeed info":
        fields.package("deepspeed", value.partition(",")[0], line, machine)
