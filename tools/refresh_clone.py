# ruff: noqa: INP001  # part of a script
"""What the build scripts in a clone of PyTorch say about a release, as rows for compat_tables/.

Nothing that is read is executed: Python scripts are read as literals, of shell scripts the
assignments of TORCH_CUDA_ARCH_LIST.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from refresh_sources import (
    PLATFORM_TAGS,
    Proposal,
    RefreshError,
    Row,
    Run,
    applying,
    filled,
    pinned,
    run,
    specifier,
)

from gpucheck.tables.versions import released

MATRIX = ".github/scripts/generate_binary_build_matrix.py"
ARCH_TABLES = (".ci/wheel/linux/build_env_setup.py", ".ci/manywheel/build_env_setup.py")
BUILD_SCRIPT = ".ci/manywheel/build_cuda.sh"
AARCH64_SCRIPT = ".ci/aarch64_linux/aarch64_ci_build.sh"
_CASE = re.compile(r"([0-9]+\.[0-9]+)\)")
_ARCHES = re.compile(r'(?:export )?TORCH_CUDA_ARCH_LIST="([^"]*)"')
_VERSION_TEST = re.compile(r'if .*GPU_ARCH_VERSION"? == \*"([0-9]+\.[0-9]+)"\*')
_OLD_LIST = "${TORCH_CUDA_ARCH_LIST}"
_LISTED = re.compile(r"CUDA ([0-9]+\.[0-9]+)")
_NAMED = re.compile(r"CUDA ([0-9]+\.[0-9]+)(?:,| \()\s?CUDNN ([0-9.]*[0-9])")

Codes = dict[str, dict[str, Row]]


def clone_proposals(clone: Path, tag: str, runner: Run = run) -> list[Proposal]:
    """Return what the build scripts at a tag of a PyTorch clone say about its CUDA builds."""
    version = released(tag.removeprefix("v"))
    if version is None or len(version) == 1:
        message = f"{tag} is no tag of a release"
        raise RefreshError(message)
    minor, key = f"{version[0]}.{version[1]}", f"build-scripts-{tag}"
    text = show(clone, tag, MATRIX, runner)
    matrix = _assignments(text)
    if not matrix.get("CUDA_ARCHES"):
        message = f"{MATRIX} at {tag} has no list CUDA_ARCHES that can be read as a literal"
        raise RefreshError(message)
    codes, script = _codes(clone, tag, runner)
    sources = {key: f"pytorch/pytorch at {tag}, {MATRIX} and {script}"}
    rows, nccl = _rows(matrix, _not_on_windows(text, matrix), codes, minor, key)
    remarks = _release_md(show(clone, tag, "RELEASE.md", runner), minor, rows)
    requirements = matrix.get("PYTORCH_EXTRA_INSTALL_REQUIREMENTS", {})
    bare = [cuda for cuda in matrix["CUDA_ARCHES"] if cuda not in requirements]
    remarks += [f"the matrix has no literal requirements for CUDA {cuda}" for cuda in bare]
    remarks += [
        f"{script} has no list for CUDA {c}" for c in matrix["CUDA_ARCHES"] if c not in codes
    ]
    return [Proposal("torch_builds", rows, sources, remarks), Proposal("nccl", nccl, sources)]


def _rows(
    matrix: dict[str, Any], not_windows: set[str], codes: Codes, minor: str, key: str
) -> tuple[list[Row], list[Row]]:
    """Return the rows of torch_builds and of nccl."""
    requirements = matrix.get("PYTORCH_EXTRA_INSTALL_REQUIREMENTS", {})
    note = "from the build scripts; whether it was published and what is inside was not looked at"
    rows, nccl = [], []
    for cuda in matrix["CUDA_ARCHES"]:
        build = "cu" + cuda.replace(".", "")
        for platform in _platforms(matrix, not_windows, cuda):
            pins = _requirements(requirements.get(cuda, ""), platform)
            libraries = {name: pinned(pins, name) for name in ("cudnn", "nccl")}
            code = codes.get(cuda, {}).get(platform.removeprefix("linux_"), {})
            head = {"torch": minor, "build": build, "cuda": cuda, "platform": platform}
            tail = {**libraries, "source": [key], "confirmed": False, "note": note}
            rows.append(filled({**head, **code, **tail}))
            if platform == "linux_x86_64" and libraries["nccl"]:
                row = {"kind": "torch", "torch": minor, "build": build, "nccl": libraries["nccl"]}
                nccl.append({**row, "source": [key]})
    return rows, nccl


def _platforms(matrix: dict[str, Any], not_windows: set[str], cuda: str) -> Iterator[str]:
    listed = matrix.get("CUDA_AARCH64_ARCHES", [f"{cuda}-aarch64"])
    for platform in PLATFORM_TAGS:
        left_out = {
            "windows": cuda in not_windows,
            "linux_aarch64": cuda not in {arch.removesuffix("-aarch64") for arch in listed},
        }
        if not left_out.get(platform):
            yield platform


def _not_on_windows(text: str, matrix: dict[str, Any]) -> set[str]:
    """Return the CUDA versions that the matrix leaves out on Windows."""
    removed = re.findall(r"windows_cuda_arches\.remove\(\"([0-9.]+)\"\)", text)
    return {*matrix.get("CUDA_ARCHES_NO_WINDOWS", ()), *removed}


def _codes(clone: Path, tag: str, runner: Run) -> tuple[Codes, str]:
    """Return arch_list and ptx by CUDA version and machine, and the script that has them."""
    for script in ARCH_TABLES:
        text = _show_if_there(clone, tag, script, runner)
        if text is not None:
            found = _assignments(text)
            ptx = found.get("_PTX_ARCHES", set())
            table = found.get("TORCH_CUDA_ARCH_LIST_TABLE", {})
            return {
                cuda: {machine: _code(archs, archs & ptx) for machine, archs in machines.items()}
                for cuda, machines in table.items()
            }, script.rpartition("/")[2]
    text = _show_if_there(clone, tag, BUILD_SCRIPT, runner)
    if text is None:
        message = f"neither build_env_setup.py nor {BUILD_SCRIPT} is there at {tag}"
        raise RefreshError(message)
    codes = _of_build_script(text)
    aarch64 = _show_if_there(clone, tag, AARCH64_SCRIPT, runner)
    for cuda, code in _of_aarch64_script(aarch64 or "").items():
        codes.setdefault(cuda, {})["aarch64"] = code
    return codes, BUILD_SCRIPT.rpartition("/")[2]


def _of_build_script(text: str) -> Codes:
    """Return the lists of `case ${CUDA_VERSION}`: of the branches for one version each.

    A list under an `if` is of ARM where that `if` asks for it, its `else` then of x86; any other
    condition (a libtorch) is left out.
    """
    codes: Codes = {}
    cuda, base, machines = None, "", ["x86_64"]
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("if ") and not line.endswith("fi"):
            machines.append("aarch64" if machines == ["x86_64"] and "cuda-aarch64" in line else "")
        elif line == "else":
            machines[-1] = "x86_64" if machines[-1] == "aarch64" else ""
        elif line == "fi" and len(machines) > 1:
            machines.pop()
        elif line == ";;":
            cuda = None
        elif case := _CASE.fullmatch(line):
            cuda = case[1]
        elif found := _ARCHES.fullmatch(line):
            arches = found[1].replace(_OLD_LIST, base)
            if cuda is None and not codes and len(machines) == 1:
                base = arches
            elif cuda is not None and machines[-1]:
                codes.setdefault(cuda, {})[machines[-1]] = _of_list(arches)
    return codes


def _of_aarch64_script(text: str) -> dict[str, Row]:
    """Return the list under each `if` that asks for a CUDA version."""
    found: dict[str, Row] = {}
    cuda = None
    for line in (line.strip() for line in text.splitlines()):
        test = _VERSION_TEST.search(line)
        if test or line == "fi":
            cuda = test[1] if test else None
        elif cuda is not None and (arches := _ARCHES.fullmatch(line)):
            found[cuda] = _of_list(arches[1])
    return found


def _of_list(arches: str) -> Row:
    """Return the code of a TORCH_CUDA_ARCH_LIST: "7.5;9.0+PTX"."""
    codes, ptx = set(), set()
    for arch in arches.split(";"):
        match = re.fullmatch(r"([0-9]+)\.([0-9])(\+PTX)?", arch.strip())
        if match:
            number = int(match[1] + match[2])
            codes.add(number)
            ptx |= {number} if match[3] else set()
    return _code(codes, ptx)


def _code(archs: set[int], ptx: set[int]) -> Row:
    return {
        "arch_list": [f"sm_{arch}" for arch in sorted(archs)],
        "ptx": [f"compute_{arch}" for arch in sorted(ptx)],
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


def _requirements(text: str, platform: str) -> list[Row]:
    """Return the pins of the matrix that apply to a platform: "a==1; marker | b==2"."""
    parts = [part.strip() for part in text.split("|") if part.strip()]
    found = applying(parts, platform)
    return [{"package": part.name, "specifier": specifier(part)} for part in found]


def _release_md(text: str, minor: str, rows: Sequence[Row]) -> list[str]:
    """Return where RELEASE.md names another cuDNN than the build scripts."""
    line = next((x for x in text.splitlines() if x.startswith(f"| {minor} |")), None)
    if line is None:
        return [f"RELEASE.md has no row for {minor}"]
    named = dict(_NAMED.findall(line))
    remarks = {
        f"cuDNN of {row['build']}: {row['cudnn']} in the matrix, {named[row['cuda']]} in RELEASE.md"
        for row in rows
        if row["cuda"] in named and row.get("cudnn", named[row["cuda"]]) != named[row["cuda"]]
    }
    missing = sorted({row["cuda"] for row in rows} - set(_LISTED.findall(line)))
    remarks.update(f"RELEASE.md does not list CUDA {cuda} for {minor}" for cuda in missing)
    return sorted(remarks)


def show(clone: Path, tag: str, path: str, runner: Run = run) -> str:
    """Return a file at a tag."""
    return runner(["git", "-C", str(clone), "show", f"{tag}:{path}"])


def _show_if_there(clone: Path, tag: str, path: str, runner: Run) -> str | None:
    try:
        return show(clone, tag, path, runner)
    except RefreshError:
        return None
