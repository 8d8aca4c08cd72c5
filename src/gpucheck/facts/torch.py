"""The target interpreter, its packages, and the PyTorch in it with the wheels that it needs."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

Status = Literal[
    "ok", "not-found", "not-started", "too-old", "exit-status", "signal", "timed-out",
    "no-answer", "bad-answer",
]  # fmt: skip


Locked = Literal["", "read-only", "permission"]
Kind = Literal["venv", "conda", "uv", "pyenv", "system", "other"]


class OtherInterpreter(Facts, frozen=True, kw_only=True):
    """Another candidate that the user may have meant, and that also has torch."""

    executable: Annotated[str | None, Private("path")] = None
    chosen_by: str | None = None
    torch: str | None = None


class Interpreter(Section, frozen=True, kw_only=True):
    """The Python whose PyTorch is diagnosed."""

    name: ClassVar[str] = "interpreter"
    subject = say(
        "The target interpreter: the Python that is diagnosed, why it was chosen, what it reports."
    )

    status: Status | None = None
    """The result of querying it; everything below is unknown unless this is ``ok``."""
    starts_without: str | None = None
    """A variable without which a Python starts that does not start; "" if none is known."""
    executable: Annotated[str | None, Private("path")] = None
    chosen_by: str | None = None
    """Why this one: ``--python``, ``the active virtual environment`` ..."""
    version: str | None = None
    """``3.11.7``"""
    implementation: str | None = None
    """``cpython``, ``pypy`` ..."""
    platform: str | None = None
    """The platform according to sysconfig: ``linux-x86_64``, ``win-amd64`` ..."""
    bits: int | None = None
    free_threaded: bool | None = None
    prefix: Annotated[str | None, Private("path")] = None
    base_prefix: Annotated[str | None, Private("path")] = None
    kind: Kind | None = None
    sys_path: Annotated[list[str] | None, Private("paths")] = None
    """As for ``python script.py`` in the current folder: that folder comes first."""
    hiding_modules: Annotated[list[str] | None, Private("paths")] = None
    """Files and folders of the current folder that hide standard modules which ``import torch``
    loads; [] if Python does not look there."""
    site_packages: Annotated[list[str] | None, Private("paths")] = None
    user_site: Annotated[str | None, Private("path")] = None
    user_site_enabled: bool | None = None
    externally_managed: bool | None = None
    locked: Locked | None = None
    """Why this user can install nothing there, not even for himself; "" if he can."""
    has_pip: bool | None = None
    has_gpucheck: bool | None = None
    """Whether gpucheck is installed there: the target may then be another Python."""
    passed_over: Annotated[str | None, Private("path")] = None
    """The Python of the active environment, if that is gpucheck's own without torch; else ""."""
    glibc: str | None = None
    """The result of ``platform.libc_ver()`` in the target; "" if its C library is not glibc."""
    soabi: str | None = None
    """Tag of extension modules: ``cpython-311-x86_64-linux-gnu``."""
    others: list[OtherInterpreter] | None = None


class Distribution(Facts, frozen=True, kw_only=True):
    """One installed distribution."""

    project: str | None = None
    """Normalised name: ``torchvision``, ``nvidia-cudnn-cu12``."""
    version: str | None = None
    location: Annotated[str | None, Private("path")] = None
    installer: str | None = None
    torch_requirement: str | None = None
    """Its requirement of torch, such as ``==2.6.0``; "" if it states none."""
    requirements: dict[str, str] | None = None
    """The versions that its metadata requires of torch, NumPy, Triton, CUDA's wheels and other
    packages of this section, by project; requirements that this target does not have are left out.
    """


class Packages(Section, frozen=True, kw_only=True):
    """Distributions of the target, in the order of sys.path; a project may occur twice."""

    name: ClassVar[str] = "packages"
    subject = say("Installed distributions that matter to PyTorch.")

    distributions: list[Distribution] | None = None
    conda_packages: Annotated[list[str] | None, Private("conda")] = None
    """``name version build channel`` of conda's relevant packages; [] without conda."""

    def find(self, project: str) -> Distribution | None:
        """Return the distribution that an import would take, None if it is not installed."""
        return next((d for d in self.distributions or () if d.project == project), None)


class PackageSources(Section, frozen=True, kw_only=True):
    """Addresses without logins; ``""`` or ``[]`` if nothing is configured."""

    name: ClassVar[str] = "package_sources"
    subject = say("Where pip, uv and conda of this user are configured to take packages from.")

    pip_index: Annotated[str | None, Private("index")] = None
    """What stands in for PyPI: of ``PIP_INDEX_URL`` or pip's configuration files."""
    pip_extra_indexes: Annotated[list[str] | None, Private("index")] = None
    """Indexes that pip searches as well."""
    pip_constraints: list[str] | None = None
    """The versions to which pip's files of constraints bind packages: ``torch==2.4.0``."""
    uv_index: Annotated[str | None, Private("index")] = None
    """uv's default index; uv does not read pip's configuration."""
    conda_channels: Annotated[list[str] | None, Private("index")] = None
    """The channels of ``.condarc`` in their order: addresses, or names on conda's own servers."""


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
