"""Compiled extensions of PyTorch in the target, read from their files; nothing is imported."""

from typing import TYPE_CHECKING, Protocol

from gpucheck.facts import Answer, Notes
from gpucheck.facts.libraries import Extension, Extensions, Loading
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import and_more, say
from gpucheck.machine import Host
from gpucheck.probes.reading import extension_files as _extension_files
from gpucheck.probes.reading.dist_info import DistInfo, dist_infos

if TYPE_CHECKING:
    from gpucheck.probes.reading.extension_needs import Needs


DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "target"

# Chosen: of symbols and libraries in a report; the first ones show which release is meant.
_MOST_NAMES = 8
_MOST = 600  # chosen: of files; a machine with some 200 packages had 476 (docs/evidence.md)
_MOST_SECONDS = 2.5
"""After this time no further file is read; the later steps take time as well."""


def collect(
    host: Host, interpreter: Interpreter, torch: TorchBuild, loading: Loading
) -> Extensions:
    """Read the headers of the compiled files, and more of those that need torch or CUDA."""
    if interpreter.sys_path is None or torch.path is None:
        why = (
            interpreter.problem("sys_path")
            or torch.problem("path")
            or say("torch is not installed")
        )
        return Extensions(problems={"*": why})
    platform = interpreter.platform or "linux"
    if not platform.startswith(("linux", "win")):
        return Extensions(
            problems={"*": say("gpucheck reads only the libraries of Linux and Windows")}
        )
    if torch.installed is not True:
        return Extensions(problems={"*": say("torch is not installed")})
    is_windows = platform.startswith("win")
    endings = _extension_files.WINDOWS if is_windows else _extension_files.LINUX
    start = host.clock()
    found = _extension_files.candidates(host, interpreter.sys_path, endings)
    reader = _reader(host, interpreter, torch, loading, is_windows=is_windows)
    needing, left_out = _needing(host, reader, found.files, start) if found.files else ([], "")
    return Extensions(
        extensions=_described(host, interpreter.sys_path, needing, found.files),
        looked_at=len(found.files),
        left_out=found.problem or left_out,
        sources={"*": say("the compiled files in the target's site-packages")},
    )


class _Reader(Protocol):
    """Reads the compiled files of one system; ``unread`` lists the files that failed."""

    unread: list[str]

    def read(self, file: _extension_files.CandidateFile) -> "Needs | None":
        """Return what the file needs; None if it needs neither PyTorch nor CUDA."""

    def resolve(self, files: "list[Needs]") -> None:
        """Fill in the missing libraries and symbols."""


def _reader(
    host: Host, interpreter: Interpreter, torch: TorchBuild, loading: Loading, *, is_windows: bool
) -> _Reader:
    # Each reader imports many modules, and most environments need only one of them.
    if is_windows:
        from gpucheck.probes.reading import windows  # noqa: PLC0415

        return windows.WindowsNeedsReader(host, torch, interpreter)
    from gpucheck.probes.reading import extension_needs as _extension_needs  # noqa: PLC0415

    return _extension_needs.NeedsReader(host, torch, interpreter, loading)


def _needing(
    host: Host, reader: _Reader, files: list[_extension_files.CandidateFile], start: float
) -> "tuple[list[Needs], str]":
    """Return what the files need, and why some were left out."""
    found: list[Needs] = []
    left_out = ""
    for at, file in enumerate(files):
        if host.clock() - start > _MOST_SECONDS:
            left_out = say(
                "the disk is slow: {left} of {count} files were not read",
                left=len(files) - at,
                count=len(files),
            )
            break
        if (needs := reader.read(file)) is not None:
            found.append(needs)
    if reader.unread and not left_out:
        left_out = and_more(reader.unread[0], len(reader.unread) - 1)
    if len(found) > _MOST:
        left_out = say(
            "{count} extensions, {looked} were looked at", count=len(found), looked=_MOST
        )
    reader.resolve(found[:_MOST])
    return found[:_MOST], left_out


def _described(
    host: Host,
    sys_path: list[str],
    needing: "list[Needs]",
    files: list[_extension_files.CandidateFile],
) -> list[Extension]:
    """Describe the package of each file; this reads the package's Python modules."""
    if not needing:
        return []
    # Both are needed by few environments.
    from gpucheck.probes.reading.extension_files import Elsewhere, PythonSide  # noqa: PLC0415

    elsewhere = Elsewhere(host, sys_path)
    owners = _extension_files.FileOwners(host, dist_infos(host, sys_path))
    side = PythonSide(host)
    of_torch = {needs.file.path for needs in needing if needs.needs_torch}
    others = {(file.entry, file.top) for file in files if file.path not in of_torch}
    loadable = {needs.file.variant_of for needs in needing if not needs.cannot_load}
    found = []
    for needs in needing:
        owner = owners.of(needs.file)
        required = side.requires_torch(owner)
        known = needs.needs_torch and owner is not None and required.value is False
        optional = known and (needs.file.entry, needs.file.top) in others
        missing = needs.missing_libraries.value
        loads = bool(missing) and side.loads(needs.file, owner, missing or ())
        has_variant = needs.file.variant_of in loadable and needs.cannot_load
        nowhere = elsewhere.lacks(needs, has_variant=has_variant)
        found.append(_extension(needs, owner, required, nowhere, optional=optional, loads=loads))
    return found


def _extension(
    needs: "Needs",
    owner: DistInfo | None,
    required: Answer[bool],
    nowhere: Answer[list[str]],
    *,
    optional: bool,
    loads: bool,
) -> Extension:
    from gpucheck.probes.reading.extension_needs import short_name, string_abi  # noqa: PLC0415  # imports much

    notes = Notes()
    notes.known("*", needs.file.path)
    missing = notes.take("missing_libraries", needs.missing_libraries)
    lacking = notes.take("missing_symbols", needs.missing_symbols)
    codes = notes.take("codes", needs.codes)
    if lacking is None:
        notes.unknown("missing_symbol_count", notes.problems["missing_symbols"])
    notes.unknown("built_with", say("the file does not say it"))
    if (abi := string_abi(lacking or [])) is None:
        notes.unknown("cxx11_abi", say("no missing symbol shows it"))
    return Extension(
        package=owner.project if owner is not None else needs.file.top,
        version=owner.version if owner is not None else "",
        file=needs.file.inside,
        path=needs.file.path,
        variant_of=needs.file.variant_of,
        python=needs.file.python,
        needs_torch=needs.needs_torch,
        requires_torch=notes.take("requires_torch", required),
        optional=optional,
        cuda=needs.cuda,
        missing_libraries=missing,
        loads_missing=loads,
        nowhere=notes.take("nowhere", nowhere),
        missing_symbols=None
        if lacking is None
        else _some([short_name(symbol) for symbol in lacking]),
        missing_symbol_count=None if lacking is None else len(lacking),
        cxx11_abi=abi,
        codes=codes,
        sources=notes.sources,
        problems=notes.problems,
    )


def _some(names: list[str]) -> list[str]:
    """Return the first few distinct names."""
    return list(dict.fromkeys(names))[:_MOST_NAMES]
