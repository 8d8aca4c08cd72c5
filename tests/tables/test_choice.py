"""The newest PyTorch build that fits a machine."""

from pathlib import Path
from typing import Any

import pytest
from tables.some import some

from gpucheck.tables import Tables, tables_dir
from gpucheck.tables.choice import Choice, newest_fitting

MACHINE: dict[str, Any] = {
    "platform": "linux_x86_64",
    "python": "3.12",
    "capabilities": (),
    "driver": None,
    "driver_cuda": None,
}


def _choice(tables: Tables, **machine: object) -> Choice | None:
    return newest_fitting(tables, **{**MACHINE, **machine})


@pytest.mark.parametrize(
    ("machine", "torch", "build"),
    [
        pytest.param(
            {"capabilities": ["6.1"], "driver": "580.95.05", "driver_cuda": "13.0"},
            "2.14.1",
            "cu126",
            id="GTX 1080 on R580",
        ),
        pytest.param({"capabilities": ["6.1"], "driver": "580"}, "2.14.1", "cu126", id="R580"),
        pytest.param(
            {"capabilities": ["6.1"], "driver": "470.256.02", "driver_cuda": "11.4"},
            "2.7.1",
            "cu118",
            id="GTX 1080 on R470",
        ),
        pytest.param(
            {"capabilities": ["12.0"], "driver": "570.211.01", "driver_cuda": "12.8"},
            "2.11.0",
            "cu128",
            id="RTX 5090 on R570",
        ),
        pytest.param(
            {"capabilities": ["9.0"], "driver": "535.288.01", "driver_cuda": "12.2"},
            "2.14.1",
            "cu126",
            id="H100 on R535",
        ),
        pytest.param(
            {"capabilities": ["9.0"], "driver": "580.95.05", "driver_cuda": "13.0"},
            "2.15.0",
            "cu132",
            id="H100 on R580: minor-version compatibility",
        ),
        pytest.param({"capabilities": ["7.0"], "driver": "550"}, "2.14.1", "cu126", id="V100"),
        pytest.param(
            {"capabilities": ["6.1", "8.6"], "driver": "580.95.05"},
            "2.14.1",
            "cu126",
            id="old and new GPU",
        ),
        pytest.param(
            {"platform": "windows", "capabilities": ["12.0"], "driver": "576.57"},
            "2.11.0",
            "cu128",
            id="RTX 5090 on Windows",
        ),
        pytest.param(
            {"platform": "linux_aarch64", "capabilities": ["12.1"], "driver": "580.95.05"},
            "2.15.0",
            "cu132",
            id="GB10",
        ),
        pytest.param({}, "2.15.0", "cu132", id="nothing known"),
        pytest.param({"python": "3.10"}, "2.14.1", "cu132", id="Python too old for the newest"),
        pytest.param({"python": "3.13t"}, "2.12.0", "cu132", id="free-threaded"),
        pytest.param({"not_newer_than": "2.6"}, "2.6.0", "cu124", id="confirmed row first"),
        pytest.param(
            {"platform": "windows", "driver_cuda": "12.9", "not_newer_than": "2.9"},
            "2.9.1",
            "cu128",
            id="cu129 was published for 2.9.0 alone",
        ),
        pytest.param({"not_newer_than": "2.14.0"}, "2.14.0", "cu132", id="limit"),
    ],
)
def test_choice(tables: Tables, machine: dict[str, Any], torch: str, build: str) -> None:
    choice = some(_choice(tables, **machine))
    assert (choice.torch, choice.build) == (torch, build)


@pytest.mark.parametrize(
    "machine",
    [
        {"driver": "390.157"},
        {"driver": "580.95.05", "driver_cuda": "9.1"},
        {"capabilities": ["3.0"]},
        {"capabilities": ["6.1", "12.0"], "driver": "580.95.05"},
        {"capabilities": ["13.0"], "driver": "535.288.01", "driver_cuda": "12.2"},
        {"python": "2.7"},
        {"platform": "macos"},
        {"driver": "unknown"},
        {"not_newer_than": "junk"},
    ],
)
def test_nothing_fits(tables: Tables, machine: dict[str, Any]) -> None:
    assert _choice(tables, **machine) is None


def test_confirmed_only_falls_back_to_an_older_release(tables: Tables) -> None:
    machine = {"capabilities": ["6.1"], "driver": "470.256.02", "driver_cuda": "11.4"}
    assert some(_choice(tables, **machine)).confirmed is False
    choice = some(_choice(tables, confirmed_only=True, **machine))
    assert (choice.torch, choice.build, choice.confirmed) == ("2.5.1", "cu118", True)


def test_a_build_whose_cudnn_dropped_the_gpu_is_not_chosen(tmp_path: Path) -> None:
    for path in tables_dir().iterdir():
        text = path.read_text(encoding="utf-8")
        if path.name == "torch_builds.json":
            lines = text.splitlines(keepends=True)
            newer = [line.replace("9.10.2.21", "9.24.0.43") for line in lines if _is_2_14(line)]
            assert newer
            text = "".join([newer.pop(0) if _is_2_14(line) else line for line in lines])
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    choice = some(_choice(Tables(tmp_path), capabilities=["6.1"], driver="580.95.05"))
    assert (choice.torch, choice.build) == ("2.13.0", "cu126")


def _is_2_14(line: str) -> bool:
    return '"torch": "2.14", "build": "cu126"' in line


def test_ptx_is_the_last_resort_and_never_confirmed(tables: Tables) -> None:
    choice = some(_choice(tables, capabilities=["13.0"], driver_cuda="13.4"))
    assert choice.by_ptx
    assert not choice.confirmed
    assert choice.row.ptx


def test_the_default_of_pypi_is_said(tables: Tables) -> None:
    assert some(_choice(tables)).is_default is True
    assert some(_choice(tables, platform="windows")).is_default is False
