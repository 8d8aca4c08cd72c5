# ruff: noqa: INP001, S603, TID251  # part of a script, starts pip and git
"""What a package index and a clone of PyTorch say of a release, as rows for compat_tables/.

Nothing that is read is executed: metadata are parsed, build scripts are read as literals.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from gpucheck.tables.versions import parse, released

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
PINNED = re.compile(r"(?:nvidia|cuda)-[a-z0-9-]+|triton")
PYTHON_LIMIT = re.compile(r"python(?:_full)?_version (<|>=|<=) ['\"]([0-9.]+)['\"]")
MATRIX = ".github/scripts/generate_binary_build_matrix.py"
ARCH_LISTS = (".ci/wheel/linux/build_env_setup.py", ".ci/manywheel/build_env_setup.py")


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
    """What pip says of a wheel."""

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
            "specifier": _specifier(requirement),
            "extras": sorted(requirement.extras),
            "python": _python_limit(requirement),
            "source": source,
        }
        for requirement in _applying(requires, platform)
        if PINNED.fullmatch(requirement.name)
    ]
    none = [{"kind": "no-pins", "torch": torch, "platform": platform, "source": source}]
    return [_filled(row) for row in rows or none]


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
    """Return what the package index says of a torch release, asked for each candidate Python."""
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
        **{name: _pinned(pins["linux_x86_64"], name) for name in LIBRARIES},
        "source": ["pypi-metadata"],
        "confirmed": False,
        "note": "from metadata; no wheel opened: glibc, C++ ABI and NumPy 2 are open",
    }
    sources = {"pypi-metadata": "PyPI metadata of the torch wheels"}
    nccl = row["nccl"]
    nccl_row = {"kind": "torch", "torch": version, "build": build, "nccl": nccl}
    return [
        Proposal("torch_releases", [_filled(row)], sources),
        Proposal("torch_pins", [pin for rows in pins.values() for pin in rows], sources),
        Proposal("nccl", [{**nccl_row, "source": ["pypi-metadata"]}] if nccl else [], sources),
    ]


def companion_proposal(
    package: str, version: str, date: str, candidates: Sequence[str], runner: Run = run
) -> Proposal:
    """Return what the package index says of a companion: the torch that it requires."""
    for python in reversed(candidates):
        metadata = wheel(f"{package}=={version}", "linux_x86_64", python, runner)
        if metadata:
            break
    else:
        message = f"the package index has no wheel of {package} {version} for Linux x86_64"
        raise RefreshError(message)
    torch = [r for r in _applying(metadata.requires, "linux_x86_64") if r.name == "torch"]
    pin = _specifier(torch[0]) if torch else ""
    key = f"{package}-metadata"
    row = {"kind": "pin", "package": package, "version": version, "torch": pin, "date": date}
    remark = f"add the row that says to which torch {package} {version} belongs (kind companions)"
    sources = {key: f"PyPI metadata of the {package} wheels"}
    return Proposal("torch_companions", [{**row, "source": [key]}], sources, [remark])


def clone_proposals(clone: Path, tag: str, runner: Run = run) -> list[Proposal]:
    """Return what the build scripts at a tag of a PyTorch clone say of its CUDA builds."""
    version = released(tag.removeprefix("v"))
    if version is None or len(version) == 1:
        message = f"{tag} is no tag of a release"
        raise RefreshError(message)
    minor, key = f"{version[0]}.{version[1]}", f"build-scripts-{tag}"
    matrix = _assignments(_show(clone, tag, MATRIX, runner))
    codes = _arch_lists(clone, tag, runner)
    if not matrix.get("CUDA_ARCHES"):
        message = f"{MATRIX} at {tag} has no list CUDA_ARCHES that can be read as a literal"
        raise RefreshError(message)
    requirements = matrix.get("PYTORCH_EXTRA_INSTALL_REQUIREMENTS", {})
    note = "from the build scripts; whether it was published and what is inside was not looked at"
    rows, nccl = [], []
    for cuda in matrix["CUDA_ARCHES"]:
        pins = _requirements(requirements.get(cuda, ""))
        libraries = {name: _pinned(pins, name) for name in ("cudnn", "nccl")}
        build = "cu" + cuda.replace(".", "")
        head = {"torch": minor, "build": build, "cuda": cuda}
        tail = {**libraries, "source": [key], "confirmed": False, "note": note}
        for platform in ("linux_x86_64", "linux_aarch64"):
            code = codes.get(cuda, {}).get(platform.removeprefix("linux_"))
            if code:
                rows.append(_filled({**head, "platform": platform, **code, **tail}))
        windows = {**head, "platform": "windows", **tail, "nccl": None}
        rows.append(_filled(windows))
        if libraries["nccl"]:
            row = {"kind": "torch", "torch": minor, "build": build, "nccl": libraries["nccl"]}
            nccl.append({**row, "source": [key]})
    sources = {key: f"pytorch/pytorch at {tag}, {MATRIX} and build_env_setup.py"}
    remarks = _release_md(_show(clone, tag, "RELEASE.md", runner), minor, rows)
    bare = [cuda for cuda in matrix["CUDA_ARCHES"] if cuda not in requirements]
    remarks += [f"the matrix has no literal requirements for CUDA {cuda}" for cuda in bare]
    return [Proposal("torch_builds", rows, sources, remarks), Proposal("nccl", nccl, sources)]


def _arch_lists(clone: Path, tag: str, runner: Run) -> dict[str, dict[str, Row]]:
    """Return arch_list and ptx by CUDA version and machine, of the first script that is there."""
    for script in ARCH_LISTS:
        try:
            found = _assignments(_show(clone, tag, script, runner))
        except RefreshError:
            continue
        ptx = found.get("_PTX_ARCHES", set())
        table = found.get("TORCH_CUDA_ARCH_LIST_TABLE", {})
        return {
            cuda: {machine: _code(archs, ptx) for machine, archs in by_machine.items()}
            for cuda, by_machine in table.items()
        }
    message = f"no build_env_setup.py at {tag}: lists of older releases are in build_cuda.sh"
    raise RefreshError(message)


def _code(archs: set[int], ptx: set[int]) -> Row:
    return {
        "arch_list": [f"sm_{arch}" for arch in sorted(archs)],
        "ptx": [f"compute_{arch}" for arch in sorted(archs & ptx)],
    }


def _assignments(text: str) -> dict[str, Any]:
    """Return the module-level names of a Python file that have literal values; run nothing."""
    found: dict[str, Any] = {}
    for node in ast.parse(text).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        target = node.target if isinstance(node, ast.AnnAssign) else target
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign):
            try:
                found[target.id] = ast.literal_eval(node.value) if node.value else None
            except (ValueError, TypeError):
                continue
    return found


def _requirements(text: str) -> list[Row]:
    """Return the pins of the matrix: "a==1; marker | b==2"."""
    parts = [Requirement(part) for part in text.split("|") if part.strip()]
    return [{"package": part.name, "specifier": _specifier(part)} for part in parts]


def _release_md(text: str, minor: str, rows: Sequence[Row]) -> list[str]:
    """Return where RELEASE.md names another cuDNN than the build scripts."""
    line = next((x for x in text.splitlines() if x.startswith(f"| {minor} |")), None)
    if line is None:
        return [f"RELEASE.md has no row for {minor}"]
    named = dict(re.findall(r"CUDA ([0-9]+\.[0-9]+) \(CUDNN ([0-9.]+)\)", line))
    remarks = {
        f"cuDNN of {row['build']}: {row['cudnn']} in the matrix, {named[row['cuda']]} in RELEASE.md"
        for row in rows
        if row["cuda"] in named and row.get("cudnn", named[row["cuda"]]) != named[row["cuda"]]
    }
    missing = sorted({row["cuda"] for row in rows} - set(named)) if named else []
    remarks.update(f"RELEASE.md does not list CUDA {cuda} for {minor}" for cuda in missing)
    return sorted(remarks)


def _show(clone: Path, tag: str, path: str, runner: Run) -> str:
    return runner(["git", "-C", str(clone), "show", f"{tag}:{path}"])


def _applying(requires: Sequence[str], platform: str) -> Iterator[Requirement]:
    environment = {**ENVIRONMENTS[platform], "extra": "", "python_version": "3.12"}
    environment["python_full_version"] = "3.12.0"
    environment["platform_system"] = SYSTEM[environment["sys_platform"]]
    for text in requires:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            yield requirement


def _specifier(requirement: Requirement) -> str:
    return ",".join(sorted((str(part) for part in requirement.specifier), reverse=True))


def _python_limit(requirement: Requirement) -> str | None:
    match = PYTHON_LIMIT.search(str(requirement.marker)) if requirement.marker else None
    return match[1] + match[2] if match else None


def _pinned(pins: Sequence[Row], name: str) -> str | None:
    for pin in pins:
        if re.fullmatch(rf"(nvidia-)?{name}(-cu[0-9]{{2}})?", pin.get("package", "")):
            version: str = pin["specifier"].lstrip("=~>").split(",")[0]
            return version
    return None


def _filled(row: Row) -> Row:
    return {name: value for name, value in row.items() if value not in (None, [])}
