"""The CUDA driver's questions over a fake libcuda, in a child as the collector runs it."""

import sys
from pathlib import Path
from typing import Any

import pytest
from fakes_build import ask_fake, build_fake

from gpucheck.machine import LiveHost, cuinit

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake("cuda", tmp_path_factory.mktemp("cuda")).parent


def _section(driver: Path, **env: str) -> dict[str, Any]:
    done = ask_fake("cuda_driver", driver, env)
    assert done["status"] == "ok", done["problem"]
    section: dict[str, Any] = done["result"]
    return section


def test_version_and_devices(driver: Path) -> None:
    section = _section(driver, FAKE_CUDA_VERSION="12020", FAKE_CUDA_COUNT="2")
    assert section["library"] == str(driver / "libcuda.so.1")
    assert section["load_error"] == ""
    assert section["init_code"] == 0
    assert section["cuda"] == "12.2"
    assert section["device_count"] == 2
    second = section["devices"][1]
    assert second["device_name"] == "NVIDIA H100 80GB HBM3"
    assert second["compute_capability"] == "9.0"
    assert second["uuid"] == "GPU-8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a01"
    assert section["problems"] == {}


def test_a_mig_instance_has_a_mig_uuid(driver: Path) -> None:
    name = "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
    section = _section(driver, FAKE_CUDA_NAME=name, FAKE_CUDA_COUNT="1")
    assert section["devices"][0]["uuid"] == "MIG-8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a00"


def test_the_link_that_was_loaded_is_followed(driver: Path, tmp_path: Path) -> None:
    real = tmp_path / "libcuda.so.580.95.05"
    real.write_bytes((driver / "libcuda.so.1").read_bytes())
    (tmp_path / "libcuda.so.1").symlink_to(real.name)
    assert _section(tmp_path)["library"] == str(real)


def test_a_mismatch_leaves_version_and_code(driver: Path) -> None:
    section = _section(driver, FAKE_CUDA_INIT="803")
    assert section["init_code"] == 803
    assert section["cuda"] == "13.0"
    assert section["device_count"] is None
    assert section["devices"] is None
    assert section["problems"]["device_count"] == "libcuda: cuInit returned 803"


def test_no_device_is_a_count_of_none(driver: Path) -> None:
    section = _section(driver, FAKE_CUDA_INIT="100")
    assert (section["init_code"], section["device_count"], section["devices"]) == (100, 0, [])


def test_a_stub_tells_nothing_but_that_it_is_one(driver: Path) -> None:
    section = _section(driver, FAKE_CUDA_INIT="34")
    assert section["init_code"] == 34
    assert section["cuda"] is None
    assert section["problems"]["cuda"] == "libcuda: error 34"


def test_a_hang_is_killed_and_named(driver: Path) -> None:
    done = ask_fake("cuda_driver", driver, {"FAKE_CUDA": "hang"}, deadline=1.0)
    assert done["status"] == "timed-out"
    assert "from cuInit " in done["problem"]


def test_a_crash_names_the_signal_and_the_step(driver: Path) -> None:
    env = {"FAKE_CUDA": "crash", "FAKE_CUDA_AT": "cuDeviceGetName"}
    done = ask_fake("cuda_driver", driver, env)
    assert done["status"] == "crashed"
    assert done["problem"] == "killed by SIGSEGV in cuDeviceGetName of device 0"


def test_before_cuda_11_4_there_is_only_the_first_form_of_the_uuid(tmp_path: Path) -> None:
    folder = build_fake("cuda", tmp_path, old=True).parent
    section = _section(folder, FAKE_CUDA_COUNT="1")
    assert section["devices"][0]["uuid"] == "GPU-8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a00"


def test_no_library_gives_the_loaders_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cuinit, "LIBRARY", "libcuda-of-nobody.so.1")
    monkeypatch.setattr(cuinit, "WSL_LIBRARY", str(tmp_path / "none"))
    raw = cuinit.ask(LiveHost()).value
    assert raw is not None
    assert raw["library"] == ""
    assert "libcuda-of-nobody.so.1" in raw["load_error"]
    assert set(raw) == {"library", "load_error"}


@pytest.mark.skipif(sys.platform != "linux", reason="the loader of Linux")
def test_a_broken_file_gives_the_loaders_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"not an ELF file" * 100)
    monkeypatch.setattr(cuinit, "LIBRARY", str(tmp_path / "libcuda.so.1"))
    monkeypatch.setattr(cuinit, "WSL_LIBRARY", str(tmp_path / "none"))
    raw = cuinit.ask(LiveHost()).value
    assert raw is not None
    assert "invalid ELF header" in raw["load_error"]


def test_wsl_keeps_its_library_where_the_loader_does_not_look(
    monkeypatch: pytest.MonkeyPatch, driver: Path
) -> None:
    monkeypatch.setattr(cuinit, "LIBRARY", "libcuda-of-nobody.so.1")
    monkeypatch.setattr(cuinit, "WSL_LIBRARY", str(driver / "libcuda.so.1"))
    raw = cuinit.ask(LiveHost()).value
    assert raw is not None
    assert raw["library"] == str(driver / "libcuda.so.1")
    assert raw["init_code"] == 0
