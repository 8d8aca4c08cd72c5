"""The wheels that torch pins: which are installed, and whether their libraries are complete."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

State = Literal["missing", "cut-off", "changed"]


class PinnedWheel(Facts, frozen=True, kw_only=True):
    """A wheel that the installed torch requires."""

    project: str | None = None
    """Normalised name: ``nvidia-cudnn-cu12``."""
    specifier: str | None = None
    """The version that torch requires: ``==9.10.2.21``."""
    installed: str | None = None
    """The installed version; "" if it is not installed."""
    state: Literal["ok", "other-version", "missing"] | None = None


class DamagedLibrary(Facts, frozen=True, kw_only=True):
    """A library whose file differs from the one that its wheel installed."""

    project: str | None = None
    version: str | None = None
    library: str | None = None
    """Its file name: ``libcudnn_ops.so.9``."""
    path: Annotated[str | None, Private("path")] = None
    state: State | None = None
    """``cut-off``: shorter than its own header says; ``changed``: of another size than recorded."""
    recorded_size: int | None = None
    """Bytes, from the RECORD of the wheel."""
    size: int | None = None
    """Bytes of the existing file; 0 if there is none."""


class SharedLibrary(Facts, frozen=True, kw_only=True):
    """A library file that several installed wheels contain; the wheel installed last wrote it."""

    library: str | None = None
    path: Annotated[str | None, Private("path")] = None
    projects: list[str] | None = None
    """All wheels that claim it: ``nvidia-cudnn-cu12``, ``nvidia-cudnn-cu13``."""
    owner: str | None = None
    """The wheel whose file it is, by its size; "" if it is from none of them."""


class NvidiaWheels(Section, frozen=True, kw_only=True):
    """The wheels that torch requires, and every other nvidia-* wheel, from metadata and files."""

    name: ClassVar[str] = "nvidia_wheels"
    subject = say(
        "The wheels that torch pins: which are installed, and whether their libraries are complete."
    )

    pins: list[PinnedWheel] | None = None
    """In the order of torch's metadata; [] for a torch that pins none."""
    damaged: list[DamagedLibrary] | None = None
    shared: list[SharedLibrary] | None = None
    unrecorded: list[str] | None = None
    """Wheels that were not compared because they have no readable RECORD."""
    nccl_functions_missing: list[str] | None = None
    """Functions that torch calls and that the NCCL it would load does not have. They are searched
    only if that NCCL is older than the pinned one."""

    def pinned(self, project: str) -> PinnedWheel | None:
        """Return the pin of a project, None if torch has none."""
        return next((pin for pin in self.pins or () if pin.project == project), None)
