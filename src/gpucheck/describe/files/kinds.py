"""Which kind a project file is, by its name and its content."""

import re
from collections.abc import Callable

from gpucheck.describe.files.model import Project
from gpucheck.describe.files.readers import (
    compose,
    conda_env,
    dockerfile,
    kubernetes,
    pixi,
    pyproject,
    requirements,
    sbatch,
    uv_lock,
    yaml,
)

# Bounds such as {0,200} are above what people write, and keep a search in a hostile file linear.
# The first that fits counts. YAML files and scripts may be anything: their content decides as well.
_BY_NAME: tuple[tuple[str, Callable[[str], Project]], ...] = (
    (r"(?:.{1,80}\.)?(?:dockerfile|containerfile)(?:[._-].{1,80})?", dockerfile.read),
    (
        r"(?:.{0,80}[-_.])?(?:requirements?|constraints?)(?:[-_.].{0,80})?\.(?:txt|in)",
        requirements.read,
    ),
    (r"pyproject\.toml", pyproject.read),
    (r"pixi\.toml", pixi.read),
    (r"uv\.lock", uv_lock.read),
)
_YAML = r".{1,200}\.ya?ml"
_SCRIPT = r".{1,200}\.(?:sbatch|slurm|sh|batch|job)"
_KIND = re.compile(r"^kind:[ \t]{0,20}[\"']?([A-Za-z]{1,40})\b", re.MULTILINE)
_SERVICES = re.compile(r"^services:[ \t]{0,20}(?:#.{0,300})?$", re.MULTILINE)
_DEPENDENCIES = re.compile(r"^dependencies:[ \t]{0,20}(?:#.{0,300})?$", re.MULTILINE)
# A word of its name or of its folder's: for another accelerator, for none, or documentation.
_NOT_NVIDIA = re.compile(
    r"(?:^|[^a-z])(?:cpu|rocm|amd|xpu|intel|hpu|gaudi|neuron|tpu|npu|ascend|mps|metal|dcu|mlu|gcu"
    r"|musa|docs?)(?:[^a-z]|$)"
)


def project_of(name: str, text: str) -> Project | None:
    """Return what a file says; None if it is of no kind that is known.

    Args:
        name: the path of the file.
        text: its content.

    Raises:
        UnreadableError: it is of a kind that is known, but damaged.
    """
    parts = name.lower().replace("\\", "/").split("/")
    found = _read(parts[-1][:200], text)
    if found is None or not any(_NOT_NVIDIA.search(part[:200]) for part in parts[-2:]):
        return found
    return Project(
        kind=found.kind, installs=found.installs, stages=found.stages,
        workloads=found.workloads, batches=found.batches, not_for_nvidia=True,
    )  # fmt: skip


def _read(base: str, text: str) -> Project | None:
    for pattern, read in _BY_NAME:
        if re.fullmatch(pattern, base):
            return read(text)
    if re.fullmatch(_YAML, base):
        return _of_yaml(base, text)
    if sbatch.is_batch_script(text) and (re.fullmatch(_SCRIPT, base) or text.startswith("#!")):
        return sbatch.read(text)
    return None


def _of_yaml(base: str, text: str) -> Project | None:
    if "{{" in text or "{%" in text:
        return None  # a template: what it becomes is not known
    if _SERVICES.search(text) and "compose" in base:
        return _with_documents(compose.read, text)
    if any(found[1] in kubernetes.KINDS for found in _KIND.finditer(text)):
        return _with_documents(kubernetes.read, text)
    if _DEPENDENCIES.search(text) and not re.search(r"^apiVersion:", text, re.MULTILINE):
        return _with_documents(conda_env.read, text)
    return None


def _with_documents(read: Callable[[list[yaml.Node]], Project], text: str) -> Project | None:
    nodes = yaml.documents(text)
    return read(nodes) if nodes else None
