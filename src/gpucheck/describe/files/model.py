"""What a project file says: installs, base images, services and jobs, each with its line."""

from collections.abc import Iterable

import msgspec

UNKNOWN = "\ufffd"
"""Stands for text that only the build knows, such as a build argument without a default."""


class Pin(msgspec.Struct, frozen=True):
    """A package that is asked for; ``version`` is "" unless exactly one is."""

    name: str
    version: str
    line: int
    among: str = ""
    """The specifier of several versions, such as ``>=2.6,<3``; "" if there is none."""


class NamedIndex(msgspec.Struct, frozen=True):
    """A package index. ``role`` is "main", "extra", or "only" (for the packages in ``of``)."""

    address: str
    line: int
    role: str = "extra"
    of: tuple[str, ...] = ()


class Image(msgspec.Struct, frozen=True):
    """An image reference, and what its name says about its content; "" where it says nothing."""

    reference: str
    line: int
    cuda: str = ""
    torch: str = ""
    python: str = ""
    flavour: str = ""
    """``base``, ``runtime`` or ``devel``: whether it has the CUDA compiler."""
    for_gpus: bool = False
    """Whether its programs are made for NVIDIA GPUs."""
    has_torch: bool = False
    machine: str = ""
    """The processor that its name says: see ``Stage.machine``."""


class Install(msgspec.Struct, frozen=True, kw_only=True):
    """Packages that one command or one file installs together."""

    line: int
    pins: tuple[Pin, ...]
    indexes: tuple[NamedIndex, ...] = ()
    tool: str = "pip"
    """``pip``, ``uv``, ``conda`` or ``lock``."""
    python: Pin | None = None
    """The Python, if the file says which one."""
    python_from: Pin | None = None
    """The oldest Python that is allowed."""
    image: Image | None = None
    """The image that it is installed into."""
    machine: str = ""
    """See ``Stage.machine``."""
    conditional: bool = False
    """Whether only some builds run it."""
    without_dependencies: bool = False
    """Whether the installer is told not to respect what the packages require."""
    cuda: Pin | None = None
    """The CUDA of conda's build of torch."""
    cpu: Pin | None = None
    """What makes conda's build of torch one for the CPU."""

    def pin(self, name: str) -> Pin | None:
        """Return the only request for a package; None also if there are several."""
        found = [pin for pin in self.pins if pin.name == name]
        return found[0] if len(found) == 1 else None


class FileCommand(msgspec.Struct, frozen=True):
    """A command of a shell script, in words."""

    words: tuple[str, ...]
    line: int
    conditional: bool = False
    """Whether it may not run, or whether the script goes on if it fails."""
    assigned: tuple[str, ...] = ()
    """The variables that are set for it alone, as ``NAME=value``."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of a Dockerfile, with what the stages before it in its line of FROMs have."""

    name: str
    line: int
    image: Image | None
    commands: tuple[FileCommand, ...]
    installs: tuple[Install, ...]
    machine: str = ""
    """The processor that the file says: x86_64, aarch64, another word, UNKNOWN where only the build
    knows it, and "" where nothing is said."""
    copies_toolkit: bool = False
    final: bool = False
    in_final: bool = False
    """Whether the final stage is made of it."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A container that a compose file or a manifest starts."""

    name: str
    line: int
    image: Image | None
    asks_for_gpu: bool | None
    """None where a file that was not read may ask for it."""
    gpus: int | None = None
    """How many GPUs it asks for, where a number says so."""
    shared_memory: bool = False
    """Whether the file provides for /dev/shm."""
    runtime_class: Pin | None = None
    machine: str = ""
    """See ``Stage.machine``."""
    by: str = "compose"
    """``compose`` or ``kubernetes``."""
    complete: bool = True
    """Whether its definition stands in this file, and is for NVIDIA GPUs."""


def hides_gpus(variables: Iterable[tuple[str, str]]) -> bool:
    """Whether variables say that a container is to use no GPU."""
    return any(
        (name == "CUDA_VISIBLE_DEVICES" and value.strip() in ("", "-1", "none"))
        or (name == "NVIDIA_VISIBLE_DEVICES" and value.strip() in ("", "void", "none"))
        for name, value in variables
    )


class BatchJob(msgspec.Struct, frozen=True, kw_only=True):
    """A batch script of Slurm."""

    line: int
    asks_for_gpu: bool
    uses: Pin | None = None
    """The command that needs GPUs; its name is the command."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """What one file says."""

    kind: str
    installs: tuple[Install, ...] = ()
    stages: tuple[Stage, ...] = ()
    workloads: tuple[Workload, ...] = ()
    batches: tuple[BatchJob, ...] = ()
    not_for_nvidia: bool = False
    """Whether its name says that it is about the CPU, or about processors of others."""
