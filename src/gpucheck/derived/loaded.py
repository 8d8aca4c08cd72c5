"""The copies of cuDNN and NCCL that torch would load, and what is missing."""

import re
from collections.abc import Callable

import msgspec

from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.base import Derived
from gpucheck.facts.libraries import NOT_READABLE, LoadedLibrary, Loading, MissingLibrary
from gpucheck.facts.torch import NvidiaWheels, SharedLibrary, TorchBuild
from gpucheck.language import say

# cuDNN has parts (cudnn_ops); auditwheel puts a hash of 8 digits behind a name, Windows 64_.
_CUDNN = r"(?:lib)?cudnn(_[a-z_]+[a-z])?(?:-[0-9a-f]{8})?(?:64_|\.so|\.dll|\Z)"
_NCCL = r"(?:lib)?nccl(?:-[0-9a-f]{8})?(?:\.so|\.dll|\Z)"


def is_cudnn(soname: str) -> bool:
    """Whether this is cuDNN's main library, the one that torch itself needs."""
    match = re.match(_CUDNN, soname)
    return match is not None and match.group(1) is None


def is_cudnn_part(soname: str) -> bool:
    """Whether this is one of the libraries that cuDNN's main library opens."""
    match = re.match(_CUDNN, soname)
    return match is not None and match.group(1) is not None


def is_nccl(soname: str) -> bool:
    """Whether this is NCCL; its plugins are not."""
    return re.match(_NCCL, soname) is not None


class Copy(msgspec.Struct, frozen=True):
    """A library that would be loaded, and the path of the fact."""

    library: LoadedLibrary
    fact: str


_OF_CUDA = ("libcu", "libnv", "libnccl")
"""Prefixes of libraries that other rules judge, whichever library needs them."""


class LostLibrary(msgspec.Struct, frozen=True):
    """A library that would not be found, and the path of the fact."""

    library: MissingLibrary
    fact: str


class Loaded(Derived):
    """The result of the dynamic loader, by library."""

    def __init__(self, loading: Loading, wheels: NvidiaWheels) -> None:
        self._loading = loading
        self._wheels = wheels

    def copy(self, which: Callable[[str], bool]) -> Copy | None:
        """Return the copy that torch would load; None if it loads none.

        Raises:
            UnknownFactError: it is unknown what torch loads.
        """
        libraries = known(self._loading.libraries, "loading.libraries")
        found = (
            Copy(library, f"loading.libraries.{at}")
            for at, library in enumerate(libraries)
            if which(library.soname)
        )
        return next(found, None)

    def opened(self, which: Callable[[str], bool]) -> list[Copy]:
        """Return the copies that would be opened on first use; [] if that is unknown."""
        return [
            Copy(library, f"loading.runtime_opened.{at}")
            for at, library in enumerate(self._loading.runtime_opened or ())
            if which(library.soname)
        ]

    def lost(self, which: Callable[[str], bool]) -> LostLibrary | None:
        """Return the library that would not be found, the worst first; None if all are found.

        Raises:
            UnknownFactError: it is unknown what torch lacks.
        """
        missing = known(self._loading.missing, "loading.missing")
        found = [
            LostLibrary(library, f"loading.missing.{at}")
            for at, library in enumerate(missing)
            if which(library.soname)
        ]
        return min(found, key=lambda lost: lost.library.fatal is False, default=None)

    def lost_by(self, which: Callable[[str], bool]) -> LostLibrary | None:
        """Return a system library that one of these needs and that would not be found.

        Raises:
            UnknownFactError: it is unknown what torch lacks.
        """
        missing = known(self._loading.missing, "loading.missing")
        return next(
            (
                LostLibrary(library, f"loading.missing.{at}")
                for at, library in enumerate(missing)
                if which(library.needed_by) and not library.soname.startswith(_OF_CUDA)
            ),
            None,
        )

    def overwritten(self, copy: Copy, pinned: str) -> SharedLibrary | None:
        """Return the claim of another wheel on this file, unless the file is the pinned wheel's."""
        for shared in self._wheels.shared or ():
            if (
                shared.path in (copy.library.path, copy.library.real_path)
                and shared.owner != pinned
            ):
                return shared
        return None

    def version(self, copy: Copy) -> str:
        """Return the version of the copy.

        Raises:
            UnknownFactError: it is unknown.
        """
        if not copy.library.version:
            why = copy.library.problem("version") or say("nothing shows the version of this copy")
            raise UnknownFactError(f"{copy.fact}.version", why)
        return copy.library.version


def named(torch: TorchBuild) -> str:
    """Return PyTorch with its release, if known."""
    return f"PyTorch {torch.version}" if torch.version else "PyTorch"


def keeps_out(library: MissingLibrary) -> bool:
    """Whether a library exists and only permissions hide it from the loader."""
    return library.why == NOT_READABLE and bool(library.path)


def needs_permission(who: str, library: MissingLibrary) -> str:
    """Return the sentence about a file that cannot be read."""
    return say(
        "{program} needs {library}; the file exists, but the permissions of {path} keep this "
        "user from reading it",
        program=who,
        library=library.soname,
        path=library.path,
    )


def place(copy: Copy) -> str:
    """Return where a copy is and which variable leads to it, after a blank; "" if unknown."""
    path, by = copy.library.path, copy.library.found_via
    if not path:
        return ""
    if by in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        return say(" from {path}, found through {variable}", path=path, variable=by)
    return say(" from {path}", path=path)


def placed(library: str, copy: Copy) -> str:
    """Return the name of a library with where its copy is and which variable leads to it."""
    path, by = copy.library.path, copy.library.found_via
    if not path:
        return library
    if path.replace("\\", "/").rpartition("/")[2] == library:  # the path says the name
        if by not in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
            return path
        return say("{path}, found through {variable}", path=path, variable=by)
    if by not in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        return say("{library} from {path}", library=library, path=path)
    return say(
        "{library} from {path}, found through {variable}", library=library, path=path, variable=by
    )
