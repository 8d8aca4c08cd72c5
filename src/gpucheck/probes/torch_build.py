"""The PyTorch build of the target, read from its files; nothing is imported or executed."""

from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.facts import Answer, Notes
from gpucheck.facts.torch import Interpreter, NeededPackage, Platform, TorchBuild, TorchInstall
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, name, parent, pattern
from gpucheck.probes.reading.dist_info import (
    CondaRecord,
    DistInfo,
    conda_records,
    dist_infos,
    header,
    installer,
    recorded_libraries,
    values,
)
from gpucheck.probes.reading.requirements import holds, marker_environment, parse, pins
from gpucheck.probes.reading.torch_files import (
    MAX_ENTRIES,
    Libraries,
    TorchFiles,
    VersionFacts,
    find_torch,
    version_facts,
)

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "target"

_NEEDED_MODULES = {
    "filelock": "filelock",
    "fsspec": "fsspec",
    "jinja2": "jinja2",
    "networkx": "networkx",
    "sympy": "sympy",
    "typing-extensions": "typing_extensions",
}
"""The module of each project that the metadata of torch 2.0 to 2.13 requires on all platforms.
setuptools is left out: torch needs it to compile only."""

_LEFT_BY_PIP = ("~[o~.=-]rch", "~[o~.=-]rch-*")
"""pip renames a package to one of these before it removes it."""
_CONDA_NAMES = ("pytorch", "pytorch-gpu", "pytorch-cpu", "libtorch")
_MANY_RECORDS = 2  # records of torch for one folder: one of them is of an earlier installation
_OF_TESTS = ("test", "backend_with_compiler", "aoti_custom_ops")
"""Of the libraries that only PyTorch's own tests load, which slim images leave out."""


def collect(host: Host, interpreter: Interpreter) -> TorchBuild:
    """Read the facts in torch's files; nothing is imported."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or say("the target interpreter is unknown")
        return TorchBuild(problems={"*": why})
    found, problems = find_torch(host, interpreter.sys_path)
    infos = dist_infos(host, interpreter.sys_path)
    notes = Notes()
    notes.known("installs", say("sys.path of the target"))
    notes.known("leftovers", say("sys.path of the target"))
    installs = [_install(host, files) for files in found]
    leftovers = _leftovers(host, interpreter.sys_path, infos)
    if found and found[0].kind == "package":
        conda = conda_records(host, interpreter.prefix)
        own = Own.of(host, found[0], infos, conda)
        return _build(host, interpreter, own, notes, installs=installs, leftovers=leftovers)
    hidden = problems + _editable_installs(host, infos)
    path = None
    if found:
        path = found[0].path
        notes.known("path", say("sys.path of the target"))
        notes.unknown("*", say("import torch finds {path}, which is not PyTorch", path=path))
    elif hidden:
        notes.unknown("*", hidden[0])
    else:
        notes.unknown("*", say("torch is not installed in the target interpreter"))
    is_known = bool(found) or not hidden
    if is_known:
        notes.known("installed", say("sys.path of the target"))
    return TorchBuild(
        installed=False if is_known else None,
        path=path,
        installs=installs,
        leftovers=leftovers,
        sources=notes.sources,
        problems=notes.problems,
    )


def _install(host: Host, files: TorchFiles) -> TorchInstall:
    facts = version_facts(host, join(files.path, "version.py"))
    version = facts.value.version if facts.value is not None else None
    problems: dict[str, str] = (
        {} if version else {"version": say("it has no readable torch/version.py")}
    )
    sources = {"*": files.path}
    return TorchInstall(
        path=files.path, kind=files.kind, version=version, sources=sources, problems=problems
    )


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """What was installed along with one torch package."""

    host: Host
    package: TorchFiles
    info: DistInfo | None
    infos: list[DistInfo]
    """Every distribution of the target."""
    conda: list[CondaRecord]

    @classmethod
    def of(
        cls, host: Host, package: TorchFiles, infos: list[DistInfo], conda: list[CondaRecord]
    ) -> "Own":
        """Return the metadata next to the package; of several, the one that fits its version."""
        beside = [i for i in infos if i.project == "torch" and i.entry == package.entry]
        if len(beside) >= _MANY_RECORDS:
            facts = version_facts(host, join(package.path, "version.py")).value
            public = (facts.version or "").partition("+")[0] if facts is not None else ""
            beside.sort(key=lambda info: info.version.partition("+")[0] != public)
        info = beside[0] if beside else None
        return cls(host=host, package=package, info=info, infos=infos, conda=conda)

    def version(self) -> Answer[str]:
        """Return the version in the metadata."""
        if self.info is None:
            return Answer(None, self.package.entry, say("there is no metadata of torch"))
        if self.info.version:
            return Answer(self.info.version, self.info.path)
        return header(self.host, self.info).map(lambda lines: _first_of(values(lines, "Version")))

    def installer(self) -> Answer[str]:
        """Return the installer of torch; "" if the metadata names none."""
        signed = Answer("", self.package.entry)
        if self.info is not None:
            signed = installer(self.host, self.info)
        if signed.value == "":
            record = next((r for r in self.conda if r.project in _CONDA_NAMES), None)
            if record is not None:
                return Answer("conda", record.path)
        return signed

    def wheel_tag(self) -> Answer[str]:
        """Return the tag of the wheel; "" if it was not installed from a wheel."""
        if self.info is None:
            return Answer(None, self.package.entry, say("there is no metadata of torch"))
        text = self.host.read(join(self.info.path, "WHEEL"), 16 * 1024)
        return text.map(lambda text: _first_of(values(text.splitlines(), "Tag"))).absent("")

    def lost_libraries(self) -> Answer[list[str]]:
        """Return which libraries of ``torch/lib`` are in the RECORD and not there."""
        if self.info is None:
            return Answer(None, self.package.entry, say("there is no metadata of torch"))
        lib = join(self.package.path, "lib")
        there = self.host.listing(lib)
        if there.value is None:
            return Answer(None, there.source, there.problem)
        here = frozenset(there.value)
        return recorded_libraries(self.host, self.info).map(
            lambda found: [
                library
                for file in found
                if parent(file.path) == lib
                and (library := name(file.path)) not in here
                and not any(words in library for words in _OF_TESTS)
            ]
        )


def _build(
    host: Host,
    interpreter: Interpreter,
    own: Own,
    notes: Notes,
    *,
    installs: list[TorchInstall],
    leftovers: list[str],
) -> TorchBuild:
    package = own.package
    notes.known("installed", package.path)
    notes.known("path", package.path)
    facts = version_facts(host, join(package.path, "version.py"))
    built_for: Platform | None = notes.take("built_for", facts.map(_built_for))
    libraries = Libraries(host, package, interpreter.prefix or "", built_for)
    notes.unknown("cudnn_compiled", say("the files of a build do not say it"))
    no_metadata = say("there is no metadata of torch")
    required: Answer[dict[str, str]] = Answer(None, package.entry, no_metadata)
    needs: Answer[list[NeededPackage]] = Answer(None, package.entry, no_metadata)
    if own.info is not None:
        environment = marker_environment(interpreter)
        required = pins(host, own.info, own.infos, environment)
        needs = needed(host, own.info, own.infos, interpreter.sys_path or (), environment)
    return TorchBuild(
        installed=True,
        path=package.path,
        version=notes.take("version", facts.map(lambda v: v.version)),
        metadata_version=notes.take("metadata_version", own.version()),
        built_for=built_for,
        cuda=notes.take("cuda", facts.map(lambda v: v.cuda)),
        hip=notes.take("hip", facts.map(lambda v: v.hip or "")),
        git_version=notes.take("git_version", facts.map(lambda v: v.git_version)),
        installer=notes.take("installer", own.installer()),
        arch_list=notes.take("arch_list", libraries.arch_list()),
        cuda_library=notes.take("cuda_library", libraries.has_cuda()),
        pins=notes.take("pins", required),
        needs=notes.take("needs", needs),
        lost_libraries=notes.take("lost_libraries", own.lost_libraries()),
        mapped_bytes=notes.take("mapped_bytes", libraries.mapped_bytes()),
        cudnn=notes.take("cudnn", libraries.cudnn(required, own.conda)),
        nccl=notes.take("nccl", libraries.nccl(required, own.conda)),
        cxx11_abi=notes.take("cxx11_abi", libraries.cxx11_abi()),
        wheel_tag=notes.take("wheel_tag", own.wheel_tag()),
        installs=installs,
        leftovers=leftovers,
        sources=notes.sources,
        problems=notes.problems,
    )


def _built_for(facts: VersionFacts) -> Platform | None:
    """Return what the build is for; None if the file does not even define ``cuda``."""
    if facts.cuda is None:
        return None
    if facts.cuda:
        return "cuda"
    if facts.hip:
        return "rocm"
    return "xpu" if facts.xpu else "cpu"


def needed(
    host: Host,
    info: DistInfo,
    infos: Sequence[DistInfo],
    sys_path: Sequence[str],
    environment: Mapping[str, str],
) -> Answer[list[NeededPackage]]:
    """Return each package that torch requires, in the order of its metadata.

    Where none of them is, the files of this machine were not recorded, or torch is to be alone.
    """
    lines = header(host, info).map(lambda lines: values(lines, "Requires-Dist"))
    found = [
        package
        for line in lines.value or ()
        if (package := _needed_package(host, line, infos, sys_path, environment)) is not None
    ]
    if lines.value is not None and found and not any(package.found for package in found):
        return Answer(None, lines.source, say("none of the packages that torch requires is there"))
    return lines.map(lambda _: found)


def _needed_package(
    host: Host,
    line: str,
    infos: Sequence[DistInfo],
    sys_path: Sequence[str],
    environment: Mapping[str, str],
) -> NeededPackage | None:
    if "extra" in line.partition(";")[2]:
        return None
    try:
        wanted = parse(line)
        module = _NEEDED_MODULES.get(wanted.project)
        if module is None or not holds(wanted.marker, environment):
            return None
    except ValueError:
        return None
    info = next((candidate for candidate in infos if candidate.project == wanted.project), None)
    return NeededPackage(
        project=wanted.project,
        specifier=wanted.specifier,
        version=info.version if info is not None else "",
        found=_is_there(host, module, sys_path),
        sources={"*": info.path if info is not None else "sys.path"},
    )


def _is_there(host: Host, module: str, sys_path: Sequence[str]) -> bool | None:
    """Return whether a module is on sys.path; None where a folder cannot be looked into."""
    unknown = False
    for entry in distinct(list(sys_path)):
        for path in (join(entry, module, "__init__.py"), join(entry, f"{module}.py")):
            answer = host.exists(path).value
            if answer:
                return True
            unknown = unknown or answer is None
        if entry.endswith((".zip", ".egg", ".whl")):  # gpucheck does not look into an archive
            unknown = unknown or host.exists(entry).value is not False
    return None if unknown else False


def _first_of(found: list[str]) -> str | None:
    return found[0] if found else None


def _leftovers(host: Host, sys_path: list[str], infos: list[DistInfo]) -> list[str]:
    """Return what an interrupted, overwritten or half-removed installation has left."""
    found: list[str] = []
    for entry in distinct(sys_path)[:MAX_ENTRIES]:
        for backup in _LEFT_BY_PIP:
            found += host.glob(pattern(entry, backup)).value or ()
        own = [i for i in infos if i.project == "torch" and i.entry == entry]
        own = [info for info in own if not _is_editable(host, info)]
        if not own:
            continue
        without = host.exists(join(entry, "torch", "__init__.py")).value is False
        if without or len(own) >= _MANY_RECORDS:
            found += [info.path for info in own]
    return found


def _editable_installs(host: Host, infos: list[DistInfo]) -> list[str]:
    """Return why torch may be installed although sys.path does not show it."""
    hidden = [i.path for i in infos if i.project == "torch" and _is_editable(host, i)]
    return [
        say("torch is an editable install, which gpucheck does not follow: {path}", path=path)
        for path in hidden
    ]


def _is_editable(host: Host, info: DistInfo) -> bool:
    if info.path.endswith(".egg-info"):
        return False
    direct_url = host.read(join(info.path, "direct_url.json"), 16 * 1024).value or ""
    return '"editable":true' in "".join(direct_url.split())
