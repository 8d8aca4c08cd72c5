"""The wheels that torch pins: which are installed, and whether their libraries are complete."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Notes, Private, Section
from gpucheck.host import Host
from gpucheck.probes._dist_info import DistInfo, dist_infos
from gpucheck.probes._nccl_functions import missing_functions
from gpucheck.probes._paths import name, parent
from gpucheck.probes._pins import meets
from gpucheck.probes._wheel_records import Recorded, State, damage, recorded_libraries
from gpucheck.probes.interpreter import Interpreter
from gpucheck.probes.loading import Loading
from gpucheck.probes.torch_build import TorchBuild

DEADLINE = 5.0
LANE = "target"

_TRITON = ("triton", "pytorch-triton")
_MOST_WHEELS = 200
_SEVERAL = 2


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
    """A library that is not as its wheel installed it."""

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
    """A library file that two installed wheels claim: each wrote it, the last one won."""

    library: str | None = None
    path: Annotated[str | None, Private("path")] = None
    projects: list[str] | None = None
    """All wheels that claim it: ``nvidia-cudnn-cu12``, ``nvidia-cudnn-cu13``."""
    owner: str | None = None
    """The wheel whose file it is, by its size; "" if it is from none of them."""


class NvidiaWheels(Section, frozen=True, kw_only=True):
    """The wheels that torch requires and every nvidia-* wheel, from their metadata and files."""

    name: ClassVar[str] = "nvidia_wheels"

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


def collect(
    host: Host, interpreter: Interpreter, torch: TorchBuild, loading: Loading
) -> NvidiaWheels:
    """Compare what is installed with torch's pins and with the wheels' own records."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or "the target interpreter is unknown"
        return NvidiaWheels(problems={"*": why})
    infos = dist_infos(host, interpreter.sys_path)
    notes = Notes()
    pins = _pins(torch, infos, notes)
    wheels = nvidia_wheels(infos)
    records = {info.path: recorded_libraries(host, info) for info in wheels}
    claims: dict[str, list[Recorded]] = {}
    for answer in records.values():
        for one in answer.value or ():
            claims.setdefault(one.path, []).append(one)
    damaged, shared = _compared(host, claims)
    for field in ("damaged", "shared", "unrecorded"):
        notes.said(field, "RECORD of the wheels, and the sizes of their libraries")
    return NvidiaWheels(
        pins=pins,
        damaged=damaged,
        shared=shared,
        nccl_functions_missing=notes.take(
            "nccl_functions_missing", missing_functions(host, torch, loading)
        ),
        unrecorded=[info.project for info in wheels if records[info.path].value is None],
        sources=notes.sources,
        problems=notes.problems,
    )


def nvidia_wheels(infos: list[DistInfo]) -> list[DistInfo]:
    """Return the wheels whose files are compared with their RECORD."""
    return [info for info in infos if _is_wheel(info)][:_MOST_WHEELS]


def _is_wheel(info: DistInfo) -> bool:
    return info.path.endswith(".dist-info") and (
        info.project.startswith("nvidia-") or info.project in _TRITON
    )


def _pins(torch: TorchBuild, infos: list[DistInfo], notes: Notes) -> list[PinnedWheel] | None:
    if torch.pins is None:
        notes.unknown("pins", torch.problem("pins") or "what torch requires is unknown")
        return None
    source = torch.source("pins")
    notes.said("pins", f"{source}, and the metadata of what is installed")
    found = []
    for project, specifier in torch.pins.items():
        info = _installed(project, infos, torch.path or "")
        version = info.version if info is not None else ""
        where = info.path if info is not None else "sys.path of the target"
        found.append(pinned_wheel(project, specifier, version, {"*": where, "specifier": source}))
    return found


def _installed(project: str, infos: list[DistInfo], torch: str) -> DistInfo | None:
    """Return the wheel of a project that torch would use: the one next to it, else the first."""
    found = [info for info in infos if info.project == project]
    beside = [info for info in found if info.entry == parent(torch)]
    return next(iter(beside or found), None)


def pinned_wheel(
    project: str, specifier: str, installed: str, sources: dict[str, str]
) -> PinnedWheel:
    """Compare the installed version of a wheel, "" if it is not installed, with torch's pin."""
    fits = meets(specifier, installed) if installed else None
    missing = not installed
    problems = {} if missing or fits is not None else {"state": f"{specifier} is not understood"}
    return PinnedWheel(
        project=project,
        specifier=specifier,
        installed=installed,
        state="missing" if missing else None if fits is None else "ok" if fits else "other-version",
        sources=sources,
        problems=problems,
    )


def _compared(
    host: Host, claims: dict[str, list[Recorded]]
) -> tuple[list[DamagedLibrary], list[SharedLibrary]]:
    """Return the libraries that differ from their record, and those that several wheels wrote."""
    damaged: list[DamagedLibrary] = []
    shared: list[SharedLibrary] = []
    for path, owners in claims.items():
        stat = host.stat(path)
        size = stat.value.size if stat.value is not None else None
        if stat.missing:
            damaged += [_damaged(one, "missing", 0) for one in owners]
        elif size is not None and all(one.size != size for one in owners):
            damaged.append(_damaged(owners[-1], damage(host, path, size), size))
        if len({one.info.project for one in owners}) >= _SEVERAL and not stat.missing:
            shared.append(_shared(path, owners, size))
    return damaged, shared


def _damaged(one: Recorded, state: State, size: int) -> DamagedLibrary:
    return DamagedLibrary(
        project=one.info.project,
        version=one.info.version,
        library=name(one.path),
        path=one.path,
        state=state,
        recorded_size=one.size,
        size=size,
        sources={"*": one.path, "recorded_size": f"{one.info.path}: RECORD"},
    )


def _shared(path: str, owners: list[Recorded], size: int | None) -> SharedLibrary:
    projects = sorted({one.info.project for one in owners})
    fitting = sorted({one.info.project for one in owners if one.size == size})
    problems = {}
    if size is None:
        problems["owner"] = "its size cannot be read"
    elif len(fitting) > 1:
        problems["owner"] = f"the files of {' and '.join(fitting)} have the same size"
    return SharedLibrary(
        library=name(path),
        path=path,
        projects=projects,
        owner=None if problems else "".join(fitting),
        sources={"*": "RECORD of the wheels", "owner": path},
        problems=problems,
    )
