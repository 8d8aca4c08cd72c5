"""Dockerfiles, ``docker run`` and compose files: the image, and what the container is given."""

import re

from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.system import LimitsOfProcess
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import say
from gpucheck.log_patterns.text import Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers.base import Machine

NAME = say("container set-up")
MARKS = (
    "pytorch/pytorch:",
    "nvidia/cuda:",
    "docker run",
    "shm-size",
    "shm_size",
    "podman run",
    "--ulimit",
)
RANK = 30  # a file says what an image should have, not what runs

_TORCH = re.compile(
    r"pytorch/pytorch:(\d\.\d{1,2}\.\d{1,2})-cuda(\d{1,2}\.\d)-cudnn\d{1,2}-(devel|runtime)"
)
_CUDA = re.compile(r"nvidia/cuda:(\d{1,2}\.\d{1,2})(?:\.\d)?-(?:cudnn\d{0,2}-)?devel")
_FROM = re.compile(r"^\s{0,8}(?:FROM|image:|container:)\s", re.IGNORECASE)
_RUN = re.compile(r"\b(?:docker|podman|nvidia-docker)\b.{0,40}\brun\b")
_SHM = re.compile(
    r"(?:--shm-size[= ]|shm_size:\s{1,4}[\"']?)(\d{1,6}(?:\.\d{1,2})?\s?[kmgtKMGT])[bB]?"
)
_MEMLOCK = re.compile(r"--ulimit[= ][\"']?memlock=(-1|\d{1,15})")


def read(text: Text, machine: Machine) -> None:
    """Read images first; only a single image, because with several the relevant one is unknown."""
    _image(text, machine)
    sizes = ("shm-size", "shm_size")
    for found, line in text.matching(_SHM.search, *sizes):
        if len(text.find(*sizes, most=2)) == 1:  # a second one is a later attempt
            fields.shm_size(found[1], line, machine)
    for found, line in text.matching(_MEMLOCK.search, "memlock="):
        machine.fill(LimitsOfProcess, "memlock_bytes", int(found[1]), line)


def _image(text: Text, machine: Machine) -> None:
    lines = [text.lines[index] for index in text.find("pytorch/pytorch:", "nvidia/cuda:")]
    used = [line for line in lines if _FROM.match(line.text) or _RUN.search(line.text)]
    torch = [(found, line) for line in used if (found := _TORCH.search(line.text)) is not None]
    if len({found[0] for found, _ in torch}) == 1 and not machine.knows(TorchBuild, "version"):
        found, line = torch[0]
        fields.torch_version(found[1], line, machine)
        fields.torch_cuda(found[2], line, machine)
    toolkits = [(found, line) for line in used if (found := _CUDA.search(line.text)) is not None]
    if len({found[1] for found, _ in toolkits}) == 1 and not machine.knows(
        Toolkits, "selected_version"
    ):
        found, line = toolkits[0]
        fields.toolkit(found[1], line, machine)
