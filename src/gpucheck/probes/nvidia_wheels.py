"""The wheels that torch pins: which are installed, and whether their libraries are complete."""

from gpucheck.derived.wheels import pinned_wheel
from gpucheck.facts import Answer, Notes
from gpucheck.facts.libraries import Loading
from gpucheck.facts.torch import (
    DamagedLibrary,
    Interpreter,
    NvidiaWheels,
    PinnedWheel,
    SharedLibrary,
    State,
    TorchBuild,
)
from gpucheck.language import listed, say
from gpucheck.machine import Host
from gpucheck.machine.paths import join, name, parent
from gpucheck.probes.reading.dist_info import (
    DistInfo,
    RecordedFile,
    damage,
    dist_infos,
    recorded_libraries,
)
from gpucheck.tables.versions import at_least, parse

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "target"

_TRITON = ("triton", "pytorch-triton")
_ONNX_RUNTIME = frozenset(("onnxruntime", "onnxruntime-gpu"))
"""Both write the same package, of which one has no CUDA."""
_MOST_WHEELS = 200  # chosen: torch for CUDA requires some 15 of them
_SEVERAL = 2  # wheels that have written one and the same file

_NCCL_PREFIX = "nccl"
_NCCL_SONAME = "libnccl.so"


def collect(
    host: Host, interpreter: Interpreter, torch: TorchBuild, loading: Loading
) -> NvidiaWheels:
    """Compare what is installed with torch's pins and with the wheels' own records."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or say("the target interpreter is unknown")
        return NvidiaWheels(problems={"*": why})
    infos = dist_infos(host, interpreter.sys_path)
    notes = Notes()
    pins = _pins(torch, infos, notes)
    wheels = nvidia_wheels(infos)
    records = {info.path: recorded_libraries(host, info) for info in wheels}
    claims: dict[str, list[RecordedFile]] = {}
    for answer in records.values():
        for file in answer.value or ():
            claims.setdefault(file.path, []).append(file)
    damaged, shared = _compared(host, claims)
    for field in ("damaged", "shared", "unrecorded"):
        notes.known(field, say("the RECORD files of the wheels, and the sizes of their libraries"))
    return NvidiaWheels(
        pins=pins,
        damaged=damaged,
        shared=shared,
        nccl_functions_missing=notes.take(
            "nccl_functions_missing", _missing_nccl_functions(host, torch, loading)
        ),
        unrecorded=[info.project for info in wheels if records[info.path].value is None],
        sources=notes.sources,
        problems=notes.problems,
    )


def nvidia_wheels(infos: list[DistInfo]) -> list[DistInfo]:
    """Return the wheels whose files are compared with their RECORD."""
    wanted = _ONNX_RUNTIME if {info.project for info in infos} >= _ONNX_RUNTIME else frozenset()
    return [info for info in infos if _is_wheel(info) or info.project in wanted][:_MOST_WHEELS]


def _is_wheel(info: DistInfo) -> bool:
    return info.path.endswith(".dist-info") and (
        info.project.startswith("nvidia-") or info.project in _TRITON
    )


def _pins(torch: TorchBuild, infos: list[DistInfo], notes: Notes) -> list[PinnedWheel] | None:
    if torch.pins is None:
        notes.unknown("pins", torch.problem("pins") or say("what torch requires is unknown"))
        return None
    source = torch.source("pins")
    notes.known("pins", say("{source}, and the metadata of what is installed", source=source))
    found = []
    for project, specifier in torch.pins.items():
        info = _installed(project, infos, torch.path or "")
        version = info.version if info is not None else ""
        where = info.path if info is not None else say("sys.path of the target")
        found.append(pinned_wheel(project, specifier, version, {"*": where, "specifier": source}))
    return found


def _installed(project: str, infos: list[DistInfo], torch: str) -> DistInfo | None:
    """Return the wheel of a project that torch would use: the one next to it, else the first."""
    found = [info for info in infos if info.project == project]
    beside = [info for info in found if info.entry == parent(torch)]
    return next(iter(beside or found), None)


def _compared(
    host: Host, claims: dict[str, list[RecordedFile]]
) -> tuple[list[DamagedLibrary], list[SharedLibrary]]:
    """Return the libraries that differ from their record, and those that several wheels wrote."""
    damaged: list[DamagedLibrary] = []
    shared: list[SharedLibrary] = []
    for path, owners in claims.items():
        stat = host.stat(path)
        size = stat.value.size if stat.value is not None else None
        if stat.missing:
            damaged += [_damaged(owner, "missing", 0) for owner in owners]
        elif size is not None and all(owner.size != size for owner in owners):
            damaged.append(_damaged(owners[-1], damage(host, path, size), size))
        if len({owner.info.project for owner in owners}) >= _SEVERAL and not stat.missing:
            shared.append(_shared(path, owners, size))
    return damaged, shared


def _damaged(recorded: RecordedFile, state: State, size: int) -> DamagedLibrary:
    return DamagedLibrary(
        project=recorded.info.project,
        version=recorded.info.version,
        library=name(recorded.path),
        path=recorded.path,
        state=state,
        recorded_size=recorded.size,
        size=size,
        sources={"*": recorded.path, "recorded_size": f"{recorded.info.path}: RECORD"},
    )


def _shared(path: str, owners: list[RecordedFile], size: int | None) -> SharedLibrary:
    projects = sorted({owner.info.project for owner in owners})
    fitting = sorted({owner.info.project for owner in owners if owner.size == size})
    problems: dict[str, str] = {}
    if size is None:
        problems["owner"] = say("its size cannot be read")
    elif len(fitting) > 1:
        problems["owner"] = say(
            "the files of {projects} have the same size", projects=listed(fitting)
        )
    return SharedLibrary(
        library=name(path),
        path=path,
        projects=projects,
        owner=None if problems else "".join(fitting),
        sources={"*": say("the RECORD files of the wheels"), "owner": path},
        problems=problems,
    )


def _missing_nccl_functions(host: Host, torch: TorchBuild, loading: Loading) -> Answer[list[str]]:
    """Return the NCCL functions that libtorch_cuda needs and that the copy does not define.

    An NCCL that is not older than the pinned one has them all, so it is not read.
    """
    copy = next(
        (library for library in loading.libraries or () if library.soname.startswith(_NCCL_SONAME)),
        None,
    )
    if copy is None or not copy.real_path or not torch.path:
        return Answer(None, "", say("it is not known which NCCL would be loaded"))
    have, want = parse(copy.version), parse(torch.nccl)
    if have is None or want is None:
        return Answer(
            None, copy.real_path, say("its version, or the version that torch pins, is unknown")
        )
    if at_least(have[:2], want[:2]):
        return Answer(
            [], say("{path} is not older than the version that torch pins", path=copy.real_path)
        )
    from gpucheck.machine.binaries.elf import read_elf  # noqa: PLC0415  # rare
    from gpucheck.machine.binaries.elf_symbols import missing_symbols, undefined_symbols  # noqa: PLC0415  # rare

    user = read_elf(host, join(torch.path, "lib", "libtorch_cuda.so"))
    library = read_elf(host, copy.real_path)
    if user.value is None or library.value is None:
        failed = library if user.value is not None else user
        return Answer(None, failed.source, failed.problem)
    needed = undefined_symbols(host, user.value)
    if needed.value is None:
        return Answer(None, needed.source, needed.problem)
    names = [
        symbol.name
        for symbol in needed.value
        if symbol.name.startswith(_NCCL_PREFIX) and not symbol.weak
    ]
    return missing_symbols(host, library.value, names).map(sorted)
