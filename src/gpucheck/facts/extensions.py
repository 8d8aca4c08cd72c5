"""Compiled extensions of PyTorch in the target environment."""

from typing import Annotated, ClassVar

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say


class Extension(Facts, frozen=True, kw_only=True):
    """One compiled file that needs PyTorch or CUDA."""

    package: Annotated[str | None, Private("package")] = None
    """The distribution that it belongs to, otherwise the folder or module: ``flash-attn``."""
    version: str | None = None
    """The version of the distribution; "" if none claims the file."""
    file: Annotated[str | None, Private("path")] = None
    """Its path in site-packages: ``torchvision/_C.so``."""
    path: Annotated[str | None, Private("path")] = None
    variant_of: Annotated[str | None, Private("path")] = None
    """``file`` without its numbers; the package loads one of the files that share it."""
    python: str | None = None
    """The CPython version in the file name's tag, such as ``311``; "" if there is no tag."""
    needs_torch: bool | None = None
    built_with: str | None = None
    """The CUDA toolkit that compiled it, such as ``12.8``; not available from files."""
    requires_torch: bool | None = None
    """Whether the metadata of its distribution requires torch."""
    optional: bool | None = None
    """Whether its package works without torch: it does not require torch, and some of its other
    files do not need it.

    Such a package supports several frameworks, and its part for torch may be unused.
    """
    cuda: str | None = None
    """Major release of the CUDA libraries that it needs, such as ``12``; "" if it needs none."""
    missing_libraries: list[str] | None = None
    """Libraries of PyTorch and CUDA that it needs and that the loader alone would not find.

    For a file that is not linked with torch this is not a fault: its package may load them first.
    """
    loads_missing: bool | None = None
    """Whether Python code of its package calls the loader for one of ``missing_libraries``."""
    nowhere: list[str] | None = None
    """Those of ``missing_libraries`` of CUDA not found in any place from which a
    package may load them itself: its own folder, NVIDIA's wheels, toolkits. Only for files that are
    not linked with torch and have no variant that can be loaded."""
    missing_symbols: list[str] | None = None
    """Some of the torch symbols that it needs and this torch does not have, in C++ notation."""
    missing_symbol_count: int | None = None
    cxx11_abi: bool | None = None
    """Whether it was compiled with C++11 strings, if its missing symbols show this."""
    codes: list[str] | None = None
    """The GPU code in it: ``sm_80`` (cubin), ``compute_90`` (PTX); [] if there is none."""


class Extensions(Section, frozen=True, kw_only=True):
    """Installed files that were compiled against torch or CUDA, other than torch itself."""

    name: ClassVar[str] = "extensions"
    subject = say("Compiled extensions of PyTorch in the target environment.")

    extensions: list[Extension] | None = None
    looked_at: int | None = None
    """How many compiled files were examined."""
    left_out: str | None = None
    """Why not all files were examined; "" if all were."""
