"""Which index a command names, and where no index is named because a mirror is configured."""

from gpucheck.derived import Derived
from gpucheck.facts.request import Request
from gpucheck.facts.secrets import is_plain, place_and_path
from gpucheck.facts.system import HIDDEN
from gpucheck.facts.torch import Interpreter, PackageSources
from gpucheck.language import Sentence, say
from gpucheck.tables.torch import WheelIndexes

WHEEL_INDEX = "https://download.pytorch.org/whl/"


class PackageIndexes(Derived):
    """Where the packages of this user come from: a mirror that is configured, or the usual index.

    A mirror of PyPI has PyPI's builds and no others, so it counts for these alone.
    """

    def __init__(
        self,
        request: Request,
        sources: PackageSources,
        interpreter: Interpreter,
        indexes: WheelIndexes,
    ) -> None:
        self._base = f"{request.wheel_mirror}/" if request.wheel_mirror else WHEEL_INDEX
        self._sources = sources
        self._prefix = interpreter.prefix
        self._indexes = indexes

    def of_build(self, build: str) -> str:
        """Return the address of PyTorch's index, or of its mirror, for a build such as cu126."""
        address = self._indexes.address(build) or f"{WHEEL_INDEX}{build}"
        if address.startswith(WHEEL_INDEX):
            return f"{self._base}{address.removeprefix(WHEEL_INDEX)}"
        return address

    def mirror(self, *, uv: bool, elsewhere: bool = False) -> str:
        """Return the mirror of PyPI that pip, or uv, is configured for; "" if there is none.

        Args:
            uv: whether the command is one of uv, which does not read pip's configuration.
            elsewhere: whether the command installs into a new environment, in which the
                configuration of the target's own does not count.
        """
        if uv:
            index = self._sources.uv_index or ""
            return index if _is_of_pypi(index) else ""
        # Another index beside it may have builds with a local version, which pip prefers.
        extra = self._sources.pip_extra_indexes
        if extra is None or not all(map(_is_of_pypi, extra)):
            return ""
        if elsewhere and self._is_in_target(self._sources.source("pip_index")):
            return ""
        index = self._sources.pip_index or ""
        return index if _is_of_pypi(index) else ""

    def mirror_sentence(self, *, uv: bool, elsewhere: bool = False) -> Sentence | None:
        """Return the sentence that says which mirror is used; None if none is."""
        index = self.mirror(uv=uv, elsewhere=elsewhere)
        if not index:
            return None
        if uv:
            return say(
                "uv is configured to use {index}, so it takes PyTorch from there.", index=index
            )
        return say("pip is configured to use {index}, so it takes PyTorch from there.", index=index)

    def _is_in_target(self, path: str) -> bool:
        return bool(self._prefix) and path.startswith(self._prefix or "")


def _is_of_pypi(index: str) -> bool:
    """Whether an address looks like PyPI or a mirror of it, and not like PyTorch's own index."""
    if not is_plain(index.replace(HIDDEN, "x")):
        return False
    place, path = place_and_path(index)
    return path.endswith("/simple") and "pytorch" not in f"{place}{path}".lower()
