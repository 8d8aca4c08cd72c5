"""The tool that proposes rows, on small made-up metadata and build scripts; no network."""

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from each import each

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
clone = _module("refresh_clone")
pci = _module("refresh_pci")
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


def _git_of(**other: str) -> Any:  # noqa: ANN401  # a runner
    """Return a git whose tag has the made-up scripts, with others by the last word of a path."""
    names = {"matrix": clone.MATRIX, "build_cuda": clone.BUILD_SCRIPT, "arm": clone.AARCH64_SCRIPT}
    files = {clone.MATRIX: MATRIX, ".ci/manywheel/build_env_setup.py": ARCHES}
    files["RELEASE.md"] = other.pop("release_md", RELEASE_MD)
    if "build_cuda" in other:
        del files[".ci/manywheel/build_env_setup.py"]
    files.update({names[name]: text for name, text in other.items()})

    def git(command: Sequence[str]) -> str:
        path = command[-1].partition(":")[2]
        if path not in files:
            message = f"fatal: path {path} does not exist"
            raise sources.RefreshError(message)
        return files[path]

    return git


_git = _git_of()


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


def test_a_pin_for_older_pythons_alone_is_one() -> None:
    requires = ["triton==2.2.0; platform_system == 'Linux' and python_version < '3.12'"]
    rows = sources.pin_rows("9.9.0", "linux_x86_64", requires)
    assert [(row["specifier"], row["python"]) for row in rows] == [("==2.2.0", "<3.12")]
    assert sources.pin_rows("9.9.0", "windows", requires)[0]["kind"] == "no-pins"


def test_nothing_on_the_index_is_said() -> None:
    with pytest.raises(sources.RefreshError, match=r"no wheel of torch 9\.9\.0"):
        sources.release_proposals("9.9.0", TODAY, ["3.11"], Pip())
    with pytest.raises(sources.RefreshError, match="no wheel of torchaudio"):
        sources.companion_proposal("torchaudio", "9.9.0", TODAY, ["3.11"], Pip())


@each(
    ("requires", "pin"),
    [(["torch==9.9.0"], "==9.9.0"), (["torch (>=9.9.0)"], ">=9.9.0"), (["numpy"], "")],
)
def test_a_companion(requires: list[str], pin: str) -> None:
    found = sources.companion_proposal("torchvision", "0.99.0", TODAY, ["3.12"], Pip(requires))
    assert found.rows[0]["torch"] == pin
    assert "companions" in found.remarks[0]


def test_builds_from_a_clone() -> None:
    builds, nccl = clone.clone_proposals(Path("clone"), "v9.9.0", _git)
    rows = {(row["build"], row["platform"]): row for row in builds.rows}
    assert rows["cu132", "linux_x86_64"]["arch_list"] == ["sm_75", "sm_120"]
    assert rows["cu132", "linux_x86_64"]["ptx"] == ["compute_120"]
    assert rows["cu132", "linux_aarch64"]["arch_list"] == ["sm_90"]
    assert rows["cu132", "linux_aarch64"]["cudnn"] == "9.30.0.1"
    assert "cudnn" not in rows["cu132", "windows"]  # the requirements are those of Linux
    assert "arch_list" not in rows["cu136", "linux_x86_64"]
    assert all(row["torch"] == "9.9" and "available" not in row for row in builds.rows)
    assert [row["nccl"] for row in nccl.rows] == ["2.33.1"]
    assert builds.remarks == [
        "cuDNN of cu132: 9.30.0.1 in the matrix, 9.29.0.1 in RELEASE.md",
        "the matrix has no literal requirements for CUDA 13.6",
        "build_env_setup.py has no list for CUDA 13.6",
    ]


MATRIX_2025 = """
from typing import Optional
CUDA_ARCHES = ["12.6", "12.8", "12.9"]
CUDA_AARCH64_ARCHES = ["12.9-aarch64"]
PYTORCH_EXTRA_INSTALL_REQUIREMENTS = {
    "12.8": (
        "nvidia-cudnn-cu12==9.9.0.1; platform_system == 'Linux' and platform_machine == 'x86_64' | "
        "nvidia-nccl-cu12==2.99.1; platform_system == 'Linux' and platform_machine == 'x86_64'"
    ),
    "12.9": ("nvidia-cudnn-cu12==9.9.0.1; platform_system == 'Linux'"),
    "xpu": ("intel-sycl-rt==2025.9.0 | umf==0.9.9"),
}
IMAGES = {**{arch: f"builder:cuda{arch}" for arch in CUDA_ARCHES}}
def arches(os: str) -> list[str]:
    windows_cuda_arches = CUDA_ARCHES.copy()
    windows_cuda_arches.remove("12.9")
    return windows_cuda_arches
"""
BUILD_CUDA = """
if [[ -n "$DESIRED_CUDA" ]]; then
    if [[ ${DESIRED_CUDA} =~ ^[0-9]+$ ]]; then
        CUDA_VERSION=${DESIRED_CUDA}
    else
        CUDA_VERSION="${DESIRED_CUDA:2:2}"
    fi
fi
TORCH_CUDA_ARCH_LIST="5.0;6.0"
case ${CUDA_VERSION} in
    #a remark
    12.8)
        if [[ "$GPU_ARCH_TYPE" = "cuda-aarch64" ]]; then
            TORCH_CUDA_ARCH_LIST="9.0"
        else
            TORCH_CUDA_ARCH_LIST="${TORCH_CUDA_ARCH_LIST};9.0+PTX"
        fi
        ;;
    12.9)
        TORCH_CUDA_ARCH_LIST="7.0;7.5;12.0+PTX"
        if [[ "$PACKAGE_TYPE" == "libtorch" ]]; then
            TORCH_CUDA_ARCH_LIST="7.5;12.0+PTX"
        fi
        ;;
    11.[67])
        TORCH_CUDA_ARCH_LIST="${TORCH_CUDA_ARCH_LIST};3.7"
        ;;
    *)
        exit 1
        ;;
esac
export TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST}
"""
AARCH64_BUILD = """
if [[ "$GPU_ARCH_VERSION" == *"12.9"* ]]; then
    export TORCH_CUDA_ARCH_LIST="8.0;9.0;12.1"
fi
if [[ -n "$CI" ]]; then
    export TORCH_CUDA_ARCH_LIST="5.0"
fi
"""
RELEASE_2025 = "| 9.9 | >=3.9 | C++17 | CUDA 12.6, CUDNN 9.1.0.7 | CUDA 12.8 (CUDNN 9.9.0.1) |"


def _builds_of_2025() -> Any:  # noqa: ANN401  # a Proposal
    git = _git_of(
        matrix=MATRIX_2025, build_cuda=BUILD_CUDA, arm=AARCH64_BUILD, release_md=RELEASE_2025
    )
    return clone.clone_proposals(Path("clone"), "v9.9.0", git)[0]


def test_lists_of_a_shell_script() -> None:
    rows = {(row["build"], row["platform"]): row for row in _builds_of_2025().rows}
    plain = rows["cu128", "linux_x86_64"]
    assert (plain["arch_list"], plain["ptx"]) == (["sm_50", "sm_60", "sm_90"], ["compute_90"])
    wheel = rows["cu129", "linux_x86_64"]
    assert (wheel["arch_list"], wheel["ptx"]) == (["sm_70", "sm_75", "sm_120"], ["compute_120"])
    assert rows["cu129", "linux_aarch64"]["arch_list"] == ["sm_80", "sm_90", "sm_121"]
    assert "arch_list" not in rows["cu126", "linux_x86_64"]


def test_platforms_are_those_of_the_matrix() -> None:
    rows = {(row["build"], row["platform"]): row for row in _builds_of_2025().rows}
    assert ("cu128", "linux_aarch64") not in rows
    assert ("cu129", "windows") not in rows
    assert ("cu128", "windows") in rows
    assert rows["cu128", "linux_x86_64"]["nccl"] == "2.99.1"
    assert rows["cu129", "linux_aarch64"]["cudnn"] == "9.9.0.1"


def test_both_forms_of_release_md() -> None:
    assert _builds_of_2025().remarks == [
        "RELEASE.md does not list CUDA 12.9 for 9.9",
        "the matrix has no literal requirements for CUDA 12.6",
        "build_cuda.sh has no list for CUDA 12.6",
    ]


def test_a_tag_without_arch_lists_is_said() -> None:
    git = _git_of(build_cuda="")

    def without(command: Sequence[str]) -> str:
        if command[-1].endswith(clone.BUILD_SCRIPT):
            message = "fatal: not there"
            raise sources.RefreshError(message)
        return str(git(command))

    with pytest.raises(sources.RefreshError, match=r"neither build_env_setup\.py nor"):
        clone.clone_proposals(Path("clone"), "v9.9.0", without)


def test_a_matrix_of_another_form_is_said() -> None:
    git = _git_of(matrix="CUDA_ARCHES = sorted(found)")
    with pytest.raises(sources.RefreshError, match="no list CUDA_ARCHES"):
        clone.clone_proposals(Path("clone"), "v9.9.0", git)


@each("tag", ["main", "v9.9.0-rc1", "v9"])
def test_only_tags_of_releases(tag: str) -> None:
    with pytest.raises(sources.RefreshError, match="no tag of a release"):
        clone.clone_proposals(Path("clone"), tag, _git)


def test_a_release_is_merged_as_data_only() -> None:
    for table, proposal in _release().items():
        before, after, remarks = refresh.merge(proposal, TODAY)
        assert remarks == []
        old, new = before.splitlines(), after.splitlines()
        assert len(new) == len(old) + len(proposal.rows), table
        changed = {line.rstrip(",") for line in old} - {line.rstrip(",") for line in new}
        assert changed == set()


def test_a_new_source_is_dated() -> None:
    builds, _ = clone.clone_proposals(Path("clone"), "v9.9.0", _git)
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
        newer = {"torch": "99.0.0, 2.0.0", "xformers": "99.0.post1, 0.0.35"}
        found = newer.get(command[-1], "0.0.1")
        return f"{command[-1]} (1)\nAvailable versions: {found}\n"

    lines = refresh.newer(pip)
    assert len(lines) == 2
    assert lines[0].startswith("torch==99.0.0 is newer")
    assert lines[1].startswith("xformers==99.0.post1 is newer")


def test_an_extension() -> None:
    requires = ["numpy", "torch<3,>=2.4", 'torch==2.0; extra == "old"']
    found = sources.extension_proposal("vllm", "0.99.0", ["3.11", "3.12"], Pip(requires))
    assert found.rows == [
        {
            "kind": "release",
            "package": "vllm",
            "version": "0.99.0",
            "torch": ">=2.4,<3",
            "source": ["pypi-vllm"],
        }
    ]


@each("requires", [["numpy"], ["torch"]])
def test_an_extension_that_names_no_torch_is_said(requires: list[str]) -> None:
    with pytest.raises(sources.RefreshError, match="name no release of torch"):
        sources.extension_proposal("vllm", "0.99.0", ["3.12"], Pip(requires))


def test_an_extension_goes_between_its_neighbours() -> None:
    row = {"kind": "release", "package": "vllm", "version": "0.8.2.post9", "torch": "==2.6.0"}
    proposal = sources.Proposal("extensions", [{**row, "source": ["pypi-vllm"]}], {"pypi-vllm": ""})
    _, after, _ = refresh.merge(proposal, TODAY)
    versions = [
        row["version"]
        for row in json.loads(after)["rows"]
        if row["kind"] == "release" and row["package"] == "vllm"
    ]
    place = versions.index("0.8.2.post9")
    assert versions[place - 1 : place + 2] == ["0.8.2", "0.8.2.post9", "0.8.3"]


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


@each("arguments", [["index", "numpy==2.0"], ["index", "torch"], []])
def test_bad_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        refresh.main(arguments)
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.process
def test_a_clone_that_is_none_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refresh.main(["clone", str(tmp_path), "v9.9.0"]) == 1
    assert "git" in capsys.readouterr().err


PCI_IDS = """#
#	Version: 2030.01.02
10dd  Another Vendor
	2684  AD102 [GeForce RTX 4090]
10de  NVIDIA Corporation
	0fbc  GM107 High Definition Audio Controller [GeForce 940MX]
	1ad7  TU102 USB Type-C UCSI Controller
	1ad8  TU104 USB 3.1 Host Controller
	1af1  GA100 [A100 NVSwitch]
	1dbe  GV100 Engineering Sample
	2080  GA100
	22ba  AD102 High Definition Audio Controller
	22d1  GB20B PCI bridge
	25ac  GA107BM / GN20-P0-R-K2 [GeForce RTX 3050 6GB Laptop GPU]
	2684  AD102 [GeForce RTX 4090]
		10de 16f4  AD102 [GeForce RTX 4090 of a board]
	4001  GB203GL [RTX PRO 4500 / RTX PRO 4501]
	4000  XY100 [GeForce RTX 9090]
"""


def test_of_a_list_of_pci_devices_gpus_alone_are_taken() -> None:
    known = {"22ba": "a mistake", "2684": ""}
    capabilities = {"AD102": "8.9", "GA107B": "8.6", "GB203": "12.0", "GA100": "8.0"}
    found = pci.pci_proposal(PCI_IDS, capabilities, known)
    assert [(row["device_id"], row["chip"], row["products"]) for row in found.rows] == [
        ("25ac", "GA107B", ["GeForce RTX 3050 6GB Laptop GPU"]),
        ("4001", "GB203", ["RTX PRO 4500", "RTX PRO 4501"]),
    ]
    assert {row["compute_capability"] for row in found.rows} == {"8.6", "12.0"}
    assert found.remarks == [
        "pci_devices 22ba: pci.ids calls it AD102 High Definition Audio Controller",
        "chips lacks XY100, the chip of 1 GPUs",
    ]
    _before, after, _remarks = refresh.merge(found, TODAY)
    assert '"source": ["pci-ids-2030.01.02"]' in after
    assert f'version 2030.01.02, taken under BSD-3-Clause", "read": "{TODAY}"' in after


def test_another_file_is_no_list_of_pci_devices() -> None:
    with pytest.raises(pci.RefreshError, match="this is no pci"):
        pci.pci_proposal("10de  NVIDIA\n", {}, ())
