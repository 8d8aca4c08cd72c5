"""The versions of the CUDA libraries and of triton that torch's metadata requires."""

from collections.abc import Mapping

from gpucheck.facts import Answer
from gpucheck.facts.torch import Interpreter
from gpucheck.machine import Host
from gpucheck.probes.torch.reading.dist_info import DistInfo, header, values
from gpucheck.probes.torch.reading.requirements import Requirement, holds, parse

_STARTS = ("nvidia-", "cuda-", "triton", "pytorch-triton")
_META = "cuda-toolkit"
"""A distribution without files; its extras name the libraries of one CUDA release."""
_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "win": ("win32", "Windows", "nt"),
    "win32": ("win32", "Windows", "nt"),
    "macosx": ("darwin", "Darwin", "posix"),
}
_MACHINES = {"amd64": "AMD64", "win32": "x86"}
_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy"}

_Parts = dict[str, dict[str, None]]
"""The parts of the specifier of each project, each once and in the order of the metadata."""


def marker_environment(python: Interpreter) -> dict[str, str]:
    """Return the variables of the target that markers may use; unknown ones are left out."""
    environment = {"extra": ""}
    if python.version:
        environment["python_full_version"] = python.version
        environment["python_version"] = ".".join(python.version.split(".")[:2])
    if python.implementation:
        environment["implementation_name"] = python.implementation
        name = _IMPLEMENTATIONS.get(python.implementation, python.implementation)
        environment["platform_python_implementation"] = name
    words = (python.platform or "").split("-")
    if words[0] in _SYSTEMS:
        sys_platform, system, os_name = _SYSTEMS[words[0]]
        machine = _MACHINES.get(words[-1], words[-1])
        environment.update(
            sys_platform=sys_platform,
            platform_system=system,
            os_name=os_name,
            platform_machine=machine,
        )
    return environment


def pins(
    host: Host, info: DistInfo, infos: list[DistInfo], environment: Mapping[str, str]
) -> Answer[dict[str, str]]:
    """Return a specifier per name; the extras of ``cuda-toolkit`` come from its own metadata."""
    lines = header(host, info)
    if lines.value is None:
        return Answer(None, lines.source, lines.problem, lines.missing)
    found: _Parts = {}
    for requirement in _that_matter(values(lines.value, "Requires-Dist"), environment):
        _add(found, requirement)
        if requirement.project != _META:
            continue
        meta = next((other for other in infos if other.project == _META), None)
        inner = header(host, meta).value if meta is not None else None
        for extra in requirement.extras:
            required = _naming(extra, values(inner or [], "Requires-Dist"))
            for follow in _that_matter(required, {**environment, "extra": extra}):
                _add(found, follow)
    return Answer({name: ",".join(parts) for name, parts in found.items()}, lines.source)


def exact(specifier: str) -> str:
    """Return the version that ``==9.1.0.70`` or ``==13.2.86.*`` requires; "" for a range."""
    if not specifier.startswith("==") or "," in specifier:
        return ""
    return specifier.lstrip("=").removesuffix(".*")


def _naming(extra: str, lines: list[str]) -> list[str]:
    """Return the lines whose marker may name the extra; parsing all lines takes too long."""
    return [line for line in lines if f"'{extra}'" in line or f'"{extra}"' in line]


def _that_matter(lines: list[str], environment: Mapping[str, str]) -> list[Requirement]:
    """Return the requirements of CUDA libraries and triton that apply to the target.

    One that cannot be parsed is left out: a wrong pin is worse than an unknown one.
    """
    kept = []
    for line in lines:
        if not line.lower().replace("_", "-").startswith(_STARTS):
            continue
        try:
            requirement = parse(line)
            if holds(requirement.marker, environment):
                kept.append(requirement)
        except ValueError:
            continue
    return kept


def _add(found: _Parts, requirement: Requirement) -> None:
    parts = found.setdefault(requirement.project, {})
    parts.update((part, None) for part in requirement.specifier.split(",") if part)
