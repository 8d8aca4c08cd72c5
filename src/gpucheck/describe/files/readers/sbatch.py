"""Batch scripts of Slurm."""

import re

from gpucheck.describe.files.model import BatchJob, FileCommand, Pin, Project
from gpucheck.describe.files.shell import Lines, commands_of

_DIRECTIVE = re.compile(r"#SBATCH[ \t]{1,40}(.{0,500})")
_ASKS = re.compile(
    r"(?:^|[ \t])(?:-G(?=[ \t0-9=])|--gres[= ]|--gpus|--tres|--exclusive|--gpu-"
    r"|-C[ \t]|--constraint|--nodelist|-w[ \t]|-[pq]|--partition|--qos)"
)
"""What asks for GPUs, or may: all of a node, a node by its name or features, or a partition, whose
nodes may come with all of their GPUs."""
_WITHOUT_GPUS = re.compile(r"(?:^|[^a-z])(?:cpu|gloo)(?:[^a-z]|$)")
_STARTERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
_MANY = re.compile(r"--nproc[-_]per[-_]node[= ]([0-9]{1,3}|gpu)(?![0-9A-Za-z])")


def is_batch_script(text: str) -> bool:
    """Whether a script has directives of sbatch."""
    return any(line.startswith("#SBATCH") for line in text.split("\n"))


def read(text: str) -> Project:
    """Return what the script asks for, and the first command that needs GPUs."""
    script, directives, first = Lines(), [], 0
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        found = _DIRECTIVE.fullmatch(line.rstrip())
        if found is not None:
            first = first or number
            directives.append(found[1].split("#")[0])
        joined = line[:-1] + " " if line.endswith("\\") else line + "\n"
        script.add(joined, number)
    commands = commands_of(script)
    asks = any(_ASKS.search(directive) for directive in directives) or any(
        _ASKS.search(" " + " ".join(command.words)) for command in commands if _starts_step(command)
    )
    asks = asks or "SBATCH_G" in text or "--gres" in text
    uses = next((pin for command in commands if (pin := _use(command)) is not None), None)
    return Project(kind="sbatch", batches=(BatchJob(line=first, asks_for_gpu=asks, uses=uses),))


def _starts_step(command: FileCommand) -> bool:
    return command.words[0] in ("srun", "salloc", "sbatch")


def _use(command: FileCommand) -> Pin | None:
    if command.conditional:
        return None
    words = command.words
    if "srun" in words[:1]:
        words = tuple(word for word in words[1:] if not word.startswith("-"))
    if words and words[0] in ("nvidia-smi", "gpucheck"):
        return Pin(words[0], "", command.line)
    text = " ".join(command.words)
    many = _MANY.search(text)
    if _WITHOUT_GPUS.search(text):
        return None
    starter = next((name for name in _STARTERS if name in text), None)
    if many is not None and starter is not None and many[1] not in ("0", "1"):
        return Pin(f"{starter} --nproc-per-node={many[1]}", "", command.line)
    return None
