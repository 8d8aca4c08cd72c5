"""``ds_report``: labels and values with dots between them."""

import re
from collections.abc import Callable

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
        take = _LABELS.get(found[1].lower())
        if take is not None:
            take(found[2].strip(), line, machine)
    for index in text.find(_SHM):
        fields.shm_size(text.lines[index].text.rpartition("size")[2], text.lines[index], machine)


def _deepspeed(value: str, line: Line, machine: Machine) -> None:
    fields.package("deepspeed", value.partition(",")[0], line, machine)


_LABELS: dict[str, Callable[[str, Line, Machine], object]] = {
    "torch version": fields.torch_version,
    "torch cuda version": fields.torch_cuda,
    "torch hip version": fields.torch_hip,
    "nvcc version": fields.toolkit,
    "deepspeed info": _deepspeed,
}
