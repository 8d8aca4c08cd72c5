"""The tool that proposes rows, on small made-up metadata and build scripts; no network."""

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
TODAY = "2030-01-02"
if not TOOLS.is_dir():
    pytest.skip("tools/ is in the repository alone", allow_module_level=True)

MATRIX = """
import os
CUDA_ARCHES = ["13.2", "13.6"]
DEFAULT_TAG = os.getenv("RELEASE_VERSION_TAG", "main")
PYTORCH_EXTRA_INSTALL_REQUIREMENTS = {
    "13.2": (
        "cuda-toolkit[cublas,cudart]==13.2.2; platform_system == 'Linux' | "
        "nvidia-cudnn-cu13==9.30.0.1; platform_system == 'Linux' | "
        "nvidia-nccl-cu13==2.33.1; platform_system == 'Linux'"
    ),
}
raise SystemExit("never executed")
"""
ARCHES = """
TORCH_CUDA_ARCH_LIST_TABLE: dict[str, dict[str, set[int]]] = {
    "13.2": {"x86_64": {120, 75}, "aarch64": {90}},
}
_PTX_ARCHES: set[int] = {120}
"""
RELEASE_MD = """# Releasing
| 9.9 | >=3.11 | C++20 | CUDA 13.2 (CUDNN 9.29.0.1) | CUDA 13.6 (CUDNN 9.30.0.1) |
"""
REQUIRES = [
    "filelock",
    "cuda-toolkit[cublas,cudart]==13.2.2; platform_system == 'Linux'",
    'cuda-bindings<14,>=13.0.3; platform_system == "Linux" and python_version < "3.15"',
    "nvidia-cudnn-cu13==9.30.0.1; platform_system == 'Linux'",
    "nvidia-nccl-cu13==2.33.1; platform_system == 'Linux'",
    "triton~=4.0.0; platform_system == 'Linux' and python_version < '3.17'",
    'numpy; extra == "test"',
]


def _module(name: str) -> Any:  # noqa: ANN401  # a script, not a module of the package
    sys.path.insert(0, str(TOOLS))
    try:
        spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
        assert spec
        assert spec.loader
        module = sys.modules.get(name) or importlib.util.module_from_spec(spec)
        if name not in sys.modules:
            sys.modules[name] = module
            spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(TOOLS))


sources = _module("refresh_sources")
refresh = _module("refresh_tables")


class Pip:
    """A pip that has the made-up wheels of torch 9.9.0 for Python 3.12 and 3.13t."""

    def __init__(self, requires: list[str] = REQUIRES) -> None:
        self.requires = requires
        self.asked: list[str] = []

    def __call__(self, command: Sequence[str]) -> str:
        python = command[command.index("--python-version") + 1]
        abi = command[command.index("--abi") + 1]
        self.asked.append(abi)
        platform = "win_amd64" if "win_amd64" in command else "manylinux_2_28_x86_64"
        if abi not in ("cp312", "cp313t"):
            message = "pip: ERROR: No matching distribution found for torch==9.9.0"
            raise sources.RefreshError(message)
        metadata = {"version": "9.9.0", "requires_python": f">={python}"}
        metadata_of_wheel = {**metadata, "requires_dist": self.requires}
        url = f"https://index.invalid/torch-9.9.0-{abi}-{abi}-{platform}.whl"
        found = {"metadata": metadata_of_wheel, "download_info": {"url": url}}
        return json.dumps({"install": [found]})


def _git(command: Sequence[str]) -> str:
    _, _, path = command[-1].partition(":")
    files = {
        sources.MATRIX: MATRIX,
        ".ci/manywheel/build_env_setup.py": ARCHES,
        "RELEASE.md": RELEASE_MD,
    }
    if path not in files:
        message = f"fatal: path {path} does not exist"
        raise sources.RefreshError(message)
    return files[path]


def _release() -> dict[str, Any]:
    found = sources.release_proposals("9.9.0", TODAY, ["3.11", "3.12", "3.13", "3.13t"], Pip())
    return {proposal.table: proposal for proposal in found}


def test_a_release_from_its_metadata() -> None:
    row = _release()["torch_releases"].rows[0]
    assert set(row["pythons"]) == set(sources.PLATFORM_TAGS)
    assert all(found == ["3.12", "3.13t"] for found in row["pythons"].values())
    assert row["default_builds"] == {
        "linux_x86_64": "cu132",
        "linux_aarch64": "cu132",
        "windows": "cpu",
    }
    assert (row["cuda"], row["cudnn"], row["nccl"]) == ("13.2", "9.30.0.1", "2.33.1")
    assert row["triton"] == "4.0.0"
    assert row["platform_tag"] == "manylinux_2_28_x86_64"
    assert "glibc" not in row
    assert row["confirmed"] is False


def test_pins_from_metadata() -> None:
    rows = _release()["torch_pins"].rows
    windows = [row for row in rows if row["platform"] == "windows"]
    assert [row["kind"] for row in windows] == ["no-pins"]
    linux = {row["package"]: row for row in rows if row["platform"] == "linux_x86_64"}
    assert list(linux) == [
        "cuda-toolkit",
        "cuda-bindings",
        "nvidia-cudnn-cu13",
        "nvidia-nccl-cu13",
        "triton",
    ]
    assert linux["cuda-toolkit"]["extras"] == ["cublas", "cudart"]
    assert linux["cuda-bindings"]["specifier"] == ">=13.0.3,<14"
    assert linux["cuda-bindings"]["python"] == "<3.15"


def test_nothing_on_the_index_is_said() -> None:
    with pytest.raises(sources.RefreshError, match=r"no wheel of torch 9\.9\.0"):
        sources.release_proposals("9.9.0", TODAY, ["3.11"], Pip())
    with pytest.raises(sources.RefreshError, match="no wheel of torchaudio"):
        sources.companion_proposal("torchaudio", "9.9.0", TODAY, ["3.11"], Pip())


@pytest.mark.parametrize(
    ("requires", "pin"),
    [(["torch==9.9.0"], "==9.9.0"), (["torch (>=9.9.0)"], ">=9.9.0"), (["numpy"], "")],
)
def test_a_companion(requires: list[str], pin: str) -> None:
    found = sources.companion_proposal("torchvision", "0.99.0", TODAY, ["3.12"], Pip(requires))
    assert found.rows[0]["torch"] == pin
    assert "companions" in found.remarks[0]


def test_builds_from_a_clone() -> None:
    builds, nccl = sources.clone_proposals(Path("clone"), "v9.9.0", _git)
    rows = {(row["build"], row["platform"]): row for row in builds.rows}
    assert rows["cu132", "linux_x86_64"]["arch_list"] == ["sm_75", "sm_120"]
    assert rows["cu132", "linux_x86_64"]["ptx"] == ["compute_120"]
    assert rows["cu132", "linux_aarch64"]["arch_list"] == ["sm_90"]
    assert rows["cu132", "windows"]["cudnn"] == "9.30.0.1"
    assert ("cu136", "linux_x86_64") not in rows
    assert all(row["torch"] == "9.9" and "available" not in row for row in builds.rows)
    assert [row["nccl"] for row in nccl.rows] == ["2.33.1"]
    assert builds.remarks == [
        "cuDNN of cu132: 9.30.0.1 in the matrix, 9.29.0.1 in RELEASE.md",
        "the matrix has no literal requirements for CUDA 13.6",
    ]


def test_a_matrix_of_another_form_is_said() -> None:
    def git(command: Sequence[str]) -> str:
        return "CUDA_ARCHES = sorted(found)" if command[-1].endswith(sources.MATRIX) else ARCHES

    with pytest.raises(sources.RefreshError, match="no list CUDA_ARCHES"):
        sources.clone_proposals(Path("clone"), "v9.9.0", git)


@pytest.mark.parametrize("tag", ["main", "v9.9.0-rc1", "v9"])
def test_only_tags_of_releases(tag: str) -> None:
    with pytest.raises(sources.RefreshError, match="no tag of a release"):
        sources.clone_proposals(Path("clone"), tag, _git)


def test_a_release_is_merged_as_data_only() -> None:
    for table, proposal in _release().items():
        before, after, remarks = refresh.merge(proposal, TODAY)
        assert remarks == []
        old, new = before.splitlines(), after.splitlines()
        assert len(new) == len(old) + len(proposal.rows), table
        changed = {line.rstrip(",") for line in old} - {line.rstrip(",") for line in new}
        assert changed == set()


def test_a_new_source_is_dated() -> None:
    builds, _ = sources.clone_proposals(Path("clone"), "v9.9.0", _git)
    _, after, _ = refresh.merge(builds, TODAY)
    assert json.loads(after)["sources"]["build-scripts-v9.9.0"]["read"] == TODAY


def test_a_row_that_is_there_is_not_changed() -> None:
    data = json.loads((TOOLS.parent / "compat_tables" / "torch_releases.json").read_text())
    row = {**data["rows"][-1], "cudnn": "1.2.3"}
    proposal = sources.Proposal("torch_releases", [row], {})
    before, after, remarks = refresh.merge(proposal, TODAY)
    assert before == after
    assert len(remarks) == 1
    assert remarks[0].endswith("1.2.3 is proposed")


def test_what_is_newer_than_the_tables() -> None:
    def pip(command: Sequence[str]) -> str:
        found = "99.0.0, 2.0.0" if command[-1] == "torch" else "0.1.0"
        return f"{command[-1]} (1)\nAvailable versions: {found}\n"

    lines = refresh.newer(pip)
    assert len(lines) == 1
    assert lines[0].startswith("torch==99.0.0 is newer")


def test_pythons_to_ask_for_come_from_the_table() -> None:
    found = refresh.candidate_pythons()
    assert found.index("3.9") < found.index("3.10") < found.index("3.13t")
    assert len(found) == len(set(found))


def test_nothing_is_written_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    path = TOOLS.parent / "compat_tables" / "torch_releases.json"
    text = path.read_text(encoding="utf-8")
    assert refresh.apply([_release()["torch_releases"]], today=TODAY, write=False) == 0
    assert '+  {"torch": "9.9.0"' in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == text


def test_written_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "compat_tables"
    folder.mkdir()
    name = "torch_releases.json"
    text = (TOOLS.parent / "compat_tables" / name).read_text(encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(refresh, "ROOT", tmp_path)
    refresh.apply([_release()["torch_releases"]], today=TODAY, write=True)
    assert '"torch": "9.9.0"' in (folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [["index", "numpy==2.0"], ["index", "torch"], []])
def test_bad_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        refresh.main(arguments)
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_clone_that_is_none_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refresh.main(["clone", str(tmp_path), "v9.9.0"]) == 1
    assert "git" in capsys.readouterr().err
