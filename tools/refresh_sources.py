# ruff: noqa: INP001, S603, TID251  # part of a script, starts pip and git
"""What a package index says about a release, as rows for compat_tables/.

Nothing that is read is executed: metadata are parsed.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.requirements import Requirement

from gpucheck.tables.versions import parse

Run = Callable[[Sequence[str]], str]
Row = dict[str, Any]

PLATFORM_TAGS = {
    "linux_x86_64": [
        "manylinux1_x86_64",
        "manylinux2014_x86_64",
        *(f"manylinux_2_{minor}_x86_64" for minor in (17, 24, 27, 28, 31, 34, 39)),
    ],
    "linux_aarch64": [
        "manylinux2014_aarch64",
        *(f"manylinux_2_{minor}_aarch64" for minor in (17, 28, 31, 34, 39)),
    ],
    "windows": ["win_amd64"],
}
ENVIRONMENTS = {
    "linux_x86_64": {"sys_platform": "linux", "platform_machine": "x86_64"},
    "linux_aarch64": {"sys_platform": "linux", "platform_machine": "aarch64"},
    "windows": {"sys_platform": "win32", "platform_machine": "AMD64"},
}
SYSTEM = {"linux": "Linux", "win32": "Windows"}
LIBRARIES = ("cudnn", "nccl", "triton", "cusparselt", "nvshmem")
COMPANIONS = ("torchvision", "torchaudio", "torchtext")
EXTENSIONS = ("xformers", "vllm", "bitsandbytes", "torch-tensorrt")
PINNED = re.compile(r"(?:nvidia|cuda)-[a-z0-9-]+|triton")
PYTHON_LIMIT = re.compile(r"python(?:_full)?_version (<|>=|<=) ['\"]([0-9.]+)['\"]")


class RefreshError(Exception):
    """What could not be read, in one sentence."""


@dataclass
class Proposal:
    """Rows for one table, their sources, and what a person has to look at."""

    table: str
    rows: list[Row]
    sources: dict[str, str]
    remarks: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """What pip says about a wheel."""

    version: str
    requires_python: str
    requires: list[str]
    file: str


def run(command: Sequence[str]) -> str:
    """Run a program and return its output. Raises RefreshError with its last line of complaint."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        message = f"{' '.join(command[:4])} ...: {last}"
        raise RefreshError(message)
    return done.stdout


def wheel(requirement: str, platform: str, python: str, runner: Run = run) -> Metadata | None:
    """Return the metadata of the wheel that pip would take, None when there is none."""
    version = python.removesuffix("t")
    tag = "cp" + python.replace(".", "")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps"]
    command += ["--ignore-installed", "--only-binary=:all:", "--report", "-"]
    command += ["--python-version", version, "--implementation", "cp", "--abi", tag]
    for abi in ("abi3", "none"):
        command += ["--abi", abi]
    for name in PLATFORM_TAGS[platform]:
        command += ["--platform", name]
    with tempfile.TemporaryDirectory() as target:
        try:
            report = json.loads(runner([*command, "--target", target, requirement]))
        except RefreshError as error:
            if "No matching distribution" in str(error):
                return None
            raise
    found = report["install"][0]
    metadata = found["metadata"]
    return Metadata(
        version=metadata["version"],
        requires_python=metadata.get("requires_python", ""),
        requires=metadata.get("requires_dist", []),
        file=found["download_info"]["url"].rsplit("/", 1)[-1],
    )


def pin_rows(torch: str, platform: str, requires: Sequence[str]) -> list[Row]:
    """Return the rows of torch_pins for the requirements of a wheel on a platform."""
    source = ["pypi-metadata"]
    rows = [
        {
            "kind": "pin",
            "torch": torch,
            "platform": platform,
            "package": requirement.name,
            "specifier": specifier(requirement),
            "extras": sorted(requirement.extras),
            "python": _python_limit(requirement),
            "source": source,
        }
        for requirement in applying(requires, platform)
        if PINNED.fullmatch(requirement.name)
    ]
    none = [{"kind": "no-pins", "torch": torch, "platform": platform, "source": source}]
    return [filled(row) for row in rows or none]


def build_of(pins: Sequence[Row]) -> tuple[str, str | None]:
    """Return the build ("cu132", "cpu") and the CUDA version of a wheel with these pins."""
    for package in ("cuda-toolkit", "nvidia-cuda-runtime"):
        for pin in pins:
            if re.fullmatch(package + r"(-cu[0-9]{2})?", pin.get("package", "")):
                version = parse(pin["specifier"].lstrip("=~>").split(",")[0])
                if version and len(version) > 1:
                    return f"cu{version[0]}{version[1]}", f"{version[0]}.{version[1]}"
    return "cpu", None


def release_proposals(
    version: str, date: str, candidates: Sequence[str], runner: Run = run
) -> list[Proposal]:
    """Return what the package index says about a torch release, for each candidate Python."""
    requirement, pythons, pins = f"torch=={version}", {}, {}
    first: dict[str, Metadata] = {}
    for platform in PLATFORM_TAGS:
        found = [(p, wheel(requirement, platform, p, runner)) for p in candidates]
        pythons[platform] = [python for python, metadata in found if metadata]
        newest = next((metadata for _, metadata in reversed(found) if metadata), None)
        if newest:
            first[platform] = newest
            pins[platform] = pin_rows(version, platform, newest.requires)
    if "linux_x86_64" not in first:
        message = f"the package index has no wheel of torch {version} for Linux x86_64"
        raise RefreshError(message)
    main = first["linux_x86_64"]
    build, cuda = build_of(pins["linux_x86_64"])
    row = {
        "torch": version,
        "date": date,
        "requires_python": main.requires_python,
        "pythons": {platform: found for platform, found in pythons.items() if found},
        "default_builds": {platform: build_of(rows)[0] for platform, rows in pins.items()},
        "cuda": cuda,
        "platform_tag": main.file.removesuffix(".whl").rsplit("-", 1)[-1],
        **{name: pinned(pins["linux_x86_64"], name) for name in LIBRARIES},
        "source": ["pypi-metadata"],
        "confirmed": False,
        "note": "from metadata; no wheel opened: glibc, C++ ABI and NumPy 2 are open",
    }
    sources = {"pypi-metadata": "PyPI metadata of the torch wheels"}
    nccl = row["nccl"]
    nccl_row = {"kind": "torch", "torch": version, "build": build, "nccl": nccl}
    return [
        Proposal("torch_releases", [filled(row)], sources),
        Proposal("torch_pins", [pin for rows in pins.values() for pin in rows], sources),
        Proposal("nccl", [{**nccl_row, "source": ["pypi-metadata"]}] if nccl else [], sources),
    ]


def companion_proposal(
    package: str, version: str, date: str, candidates: Sequence[str], runner: Run = run
) -> Proposal:
    """Return what the package index says about a companion: the torch that it requires."""
    metadata = _newest_wheel(package, version, candidates, runner)
    torch = [r for r in applying(metadata.requires, "linux_x86_64") if r.name == "torch"]
    pin = specifier(torch[0]) if torch else ""
    key = f"{package}-metadata"
    row = {"kind": "pin", "package": package, "version": version, "torch": pin, "date": date}
    remark = f"add the row that says to which torch {package} {version} belongs (kind companions)"
    sources = {key: f"PyPI metadata of the {package} wheels"}
    return Proposal("torch_companions", [{**row, "source": [key]}], sources, [remark])


def extension_proposal(
    package: str, version: str, candidates: Sequence[str], runner: Run = run
) -> Proposal:
    """Return what the package index says about an extension: the torch that it requires."""
    metadata = _newest_wheel(package, version, candidates, runner)
    torch = [r for r in applying(metadata.requires, "linux_x86_64") if r.name == "torch"]
    if not torch or not torch[0].specifier:
        message = f"the metadata of {package} {version} name no release of torch"
        raise RefreshError(message)
    key = f"pypi-{package}"
    row = {"kind": "release", "package": package, "version": version}
    sources = {key: f"PyPI metadata of the {package} wheels"}
    return Proposal("extensions", [{**row, "torch": specifier(torch[0]), "source": [key]}], sources)


def _newest_wheel(package: str, version: str, candidates: Sequence[str], runner: Run) -> Metadata:
    """Return the metadata of the wheel for the newest Python that has one."""
    for python in reversed(candidates):
        metadata = wheel(f"{package}=={version}", "linux_x86_64", python, runner)
        if metadata:
            return metadata
    message = f"the package index has no wheel of {package} {version} for Linux x86_64"
    raise RefreshError(message)


def applying(requires: Sequence[str], platform: str) -> Iterator[Requirement]:
    """Yield what a platform requires with an old or a new Python, requirements of extras left out.

    Triton was required for Pythons before 3.12 alone by some releases.
    """
    environment = {**ENVIRONMENTS[platform], "extra": ""}
    environment["platform_system"] = SYSTEM[environment["sys_platform"]]
    environments = [
        {**environment, "python_version": python, "python_full_version": f"{python}.0"}
        for python in ("3.8", "3.12")
    ]
    for text in requires:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate(values) for values in environments):
            yield requirement


def specifier(requirement: Requirement) -> str:
    """Return the versions that a requirement admits, in one order."""
    return ",".join(sorted((str(part) for part in requirement.specifier), reverse=True))


def _python_limit(requirement: Requirement) -> str | None:
    match = PYTHON_LIMIT.search(str(requirement.marker)) if requirement.marker else None
    return match[1] + match[2] if match else None


def pinned(pins: Sequence[Row], name: str) -> str | None:
    """Return the version to which the rows of pins hold a library such as cudnn."""
    for pin in pins:
        if re.fullmatch(rf"(nvidia-)?{name}(-cu[0-9]{{2}})?", pin.get("package", "")):
            version: str = pin["specifier"].lstrip("=~>").split(",")[0]
            return version
    return None


def filled(row: Row) -> Row:
    """Return a row without its empty columns."""
    return {name: value for name, value in row.items() if value not in (None, [])}
