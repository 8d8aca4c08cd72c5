"""Whether the libraries of nvidia-* wheels still have their original content."""

from typing import Annotated, ClassVar

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say


class AlteredLibrary(Facts, frozen=True, kw_only=True):
    """A library with the size that its wheel recorded, but different content."""

    project: str | None = None
    version: str | None = None
    library: str | None = None
    """Its file name: ``libcudnn_ops.so.9``."""
    path: Annotated[str | None, Private("path")] = None
    sha256: str | None = None
    """The hash of the existing file, in hexadecimal digits."""


class WheelHashes(Section, frozen=True, kw_only=True):
    """The contents of the libraries of every nvidia-* wheel, compared with the hashes in RECORD."""

    name: ClassVar[str] = "wheel_hashes"
    subject = say("Whether the libraries of nvidia-* wheels still have their original content.")

    altered: list[AlteredLibrary] | None = None
    compared: int | None = None
    """How many libraries were compared; unknown without ``-v``."""
    left_out: str | None = None
    """Why not all libraries were compared; "" if all were."""
