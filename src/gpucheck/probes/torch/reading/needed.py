"""The Python packages that torch requires besides CUDA's: whether they are there."""

from collections.abc import Mapping, Sequence

from gpucheck.facts import Answer
from gpucheck.facts.torch_build import NeededPackage
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join
from gpucheck.probes.torch.reading.dist_info import DistInfo, header, values
from gpucheck.probes.torch.reading.requirements import holds, parse

_MODULES = {
    "filelock": "filelock",
    "fsspec": "fsspec",
    "jinja2": "jinja2",
    "networkx": "networkx",
    "sympy": "sympy",
    "typing-extensions": "typing_extensions",
}
"""The module of each project that the metadata of torch 2.0 to 2.13 requires on all platforms.
setuptools is left out: torch needs it to compile only."""


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
        if (package := _needed(host, line, infos, sys_path, environment)) is not None
    ]
    if lines.value is not None and found and not any(package.found for package in found):
        return Answer(None, lines.source, say("none of the packages that torch requires is there"))
    return lines.map(lambda _: found)


def _needed(
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
        module = _MODULES.get(wanted.project)
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
