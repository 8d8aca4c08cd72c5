"""Installed distributions that are relevant to PyTorch, from their metadata."""

from gpucheck.facts import Notes
from gpucheck.facts.torch import Distribution, Interpreter, Packages
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.probes.reading import dist_info
from gpucheck.probes.reading.dist_info import DistInfo
from gpucheck.probes.reading.requirements import (
    marker_environment,
    specifiers,
    torch_requirement,
)
from gpucheck.tables.packages import KnownPackages

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "packages"

_STARTS = ("nvidia-", "cuda-", "torch", "pytorch-", "triton", "jax-cuda", "tensorrt-")
"""In addition to the packages of the table: CUDA's own, what comes in parts, and names that begin
with torch."""
_CUDAS_OWN = ("nvidia-", "cuda-")
_SAY_NOTHING = frozenset(("torch", "numpy"))
"""Distributions whose requirements are not needed: torch's are pins of their own."""
_EXTRAS = {"jax-cuda12-plugin": "with-cuda", "jax-cuda13-plugin": "with-cuda"}
"""Extras that count although nobody knows whether they were asked for: the wheels that they name
are used wherever they are installed."""
_CONDA_STARTS = ("pytorch", "torch", "libtorch", "cuda", "cudnn", "nccl", "triton", "libcu",
                 "libnv", "numpy", "python", "mkl", "magma", "libcudnn", "nvidia")  # fmt: skip
_MOST = 1000  # chosen: of those that matter to torch, above any environment; a report carries them


def collect(host: Host, interpreter: Interpreter, known: KnownPackages) -> Packages:
    """Read the names of the metadata folders, and the metadata of a few distributions."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or say("the target interpreter is unknown")
        return Packages(problems={"*": why})
    notes = Notes()
    notes.known("distributions", say("sys.path of the target"))
    notes.known("conda_packages", f"{interpreter.prefix}: conda-meta")
    infos = dist_info.dist_infos(host, interpreter.sys_path)
    reader = _Reader(host, interpreter, known)
    return Packages(
        distributions=[reader.read(info) for info in infos if reader.matters(info.project)][:_MOST],
        conda_packages=_conda_packages(host, interpreter.prefix),
        sources=notes.sources,
        problems=notes.problems,
    )


class _Reader:
    """Reads the metadata of distributions for one target."""

    def __init__(self, host: Host, interpreter: Interpreter, known: KnownPackages) -> None:
        self._host = host
        self._known = known
        self._environment = marker_environment(interpreter)

    def matters(self, project: str) -> bool:
        """Whether a project is relevant to PyTorch."""
        return project.startswith(_STARTS) or self._known.known(project) is not None

    def read(self, info: DistInfo) -> Distribution:
        """Return what the metadata says, as far as it is needed."""
        notes = Notes()
        notes.known("*", info.path)
        version, torch, requirements = info.version or None, None, None
        if version is not None and _says_nothing(info.project):
            for field in ("torch_requirement", "requirements"):
                notes.unknown(field, say("gpucheck does not read its metadata"))
        else:
            lines = dist_info.header(self._host, info)
            required = lines.map(lambda lines: dist_info.values(lines, "Requires-Dist"))
            torch = notes.take(
                "torch_requirement",
                required.map(lambda wanted: torch_requirement(wanted) or ""),
            )
            requirements = notes.take(
                "requirements",
                required.map(lambda wanted: self._specifiers(info.project, wanted)),
            )
            written = lines.map(
                lambda lines: "".join(dist_info.values(lines, "Version")[:1]) or None
            )
            version = version or notes.take("version", written)
        return Distribution(
            project=info.project,
            version=version,
            location=info.entry,
            installer=notes.take("installer", dist_info.installer(self._host, info)),
            torch_requirement=torch,
            requirements=requirements,
            sources=notes.sources,
            problems=notes.problems,
        )

    def _specifiers(self, project: str, required: list[str]) -> dict[str, str]:
        environment = {**self._environment, "extra": _EXTRAS.get(project, "")}
        return specifiers(required, environment, self.matters)


def _says_nothing(project: str) -> bool:
    return project in _SAY_NOTHING or project.startswith(_CUDAS_OWN)


def _conda_packages(host: Host, prefix: str | None) -> list[str]:
    found = []
    for record in dist_info.conda_records(host, prefix):
        if record.project.startswith(_CONDA_STARTS):
            channel = dist_info.channel(host, record).value or ""
            words = (record.project, record.version, record.build, channel)
            found.append(" ".join(words).rstrip())
    return found[:_MOST]
