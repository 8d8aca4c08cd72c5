"""The PyTorch build of the target."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

Platform = Literal["cuda", "rocm", "xpu", "cpu"]


class TorchInstall(Facts, frozen=True, kw_only=True):
    """One torch on sys.path."""

    path: Annotated[str | None, Private("path")] = None
    version: str | None = None
    kind: Literal["package", "module", "folder", "archive"] | None = None
    """``package``: an installed torch; ``module``: a file torch.py; ``folder``: a folder named
    torch that is not PyTorch; ``archive``: a zip file with a torch, from which Python cannot load
    compiled modules."""


class NeededPackage(Facts, frozen=True, kw_only=True):
    """A Python package that torch's metadata requires on every platform."""

    project: str | None = None
    """Normalised name: ``typing-extensions``."""
    specifier: str | None = None
    """Such as ``>=4.10.0``; "" for any version."""
    version: str | None = None
    """The version whose metadata is installed; "" if there is none."""
    found: bool | None = None
    """Whether its module is on sys.path, with or without metadata."""


class TorchBuild(Section, frozen=True, kw_only=True):
    """The torch that ``import torch`` would find."""

    name: ClassVar[str] = "torch"
    subject = say("The PyTorch build of the target.")

    installed: bool | None = None
    """Whether ``import torch`` finds a PyTorch."""
    path: Annotated[str | None, Private("path")] = None
    version: str | None = None
    """The version in ``torch/version.py``, with the local part: ``2.6.0+cu124``."""
    metadata_version: str | None = None
    """The version in the dist-info; differs from ``version`` if two installs were mixed."""
    built_for: Platform | None = None
    cuda: str | None = None
    """CUDA that torch was built for, such as ``12.4``; "" for another kind of build."""
    hip: str | None = None
    git_version: str | None = None
    installer: str | None = None
    """``pip``, ``uv``, ``conda`` ...; "" if the metadata names none."""
    arch_list: list[str] | None = None
    """``sm_80`` (cubin) and ``compute_90`` (PTX) codes compiled in; [] for a CPU build."""
    cuda_library: bool | None = None
    """Whether ``libtorch_cuda`` is in ``torch/lib``."""
    pins: dict[str, str] | None = None
    """What its metadata requires of nvidia-* and triton, extras resolved: name to specifier."""
    needs: list[NeededPackage] | None = None
    """What else its metadata requires, as far as gpucheck knows the name of the module."""
    lost_libraries: list[str] | None = None
    """Libraries of ``torch/lib`` that its RECORD lists and that are not there."""
    mapped_bytes: int | None = None
    """How much of the address space its own libraries take; looked up where that is limited."""
    cudnn: str | None = None
    """The cuDNN that it pins or bundles; "" if there is neither."""
    cudnn_compiled: str | None = None
    """The cuDNN that it was compiled against, which may be older than the one that it pins. The
    files of a build do not contain it; it is given to ``gpucheck compat``, and a table has it for
    some wheels."""
    nccl: str | None = None
    """The NCCL that it pins or bundles; "" for a build without NCCL."""
    cxx11_abi: bool | None = None
    wheel_tag: str | None = None
    """Tag of the wheel it came from, such as ``cp311-cp311-manylinux_2_28_x86_64``."""
    installs: list[TorchInstall] | None = None
    """Every torch on sys.path, in the order of import: the first one is taken."""
    leftovers: list[str] | None = None
    """Damaged or half-removed installs (``~orch``, a dist-info without its package)."""

    @property
    def recorded(self) -> list[str]:
        """The versions of torch whose metadata lie among the leftovers."""
        names = [path.replace("\\", "/").rpartition("/")[2] for path in self.leftovers or ()]
        return [
            name.removeprefix("torch-").rpartition(".")[0]
            for name in names
            if name.startswith("torch-") and name.endswith(("dist-info", "egg-info"))
        ]

    @property
    def is_half_removed(self) -> bool:
        """Whether pip has torch on record, and its files are gone."""
        return self.installed is False and bool(self.recorded)
