"""What a worker says of torch and the GPUs that it sees, whole or in parts."""

import ctypes
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from each import each
from fake_patient import Patient

from gpucheck.machine import LiveHost
from gpucheck.machine.worker_pool.pool import ForkingSpawner, SeparateSpawner, Spawner
from gpucheck.worker import BOOTSTRAP, census

Message = dict[str, Any]

UUIDS = (bytes(range(16)), bytes(range(16, 32)))
TEXTS = ("00010203-0405-0607-0809-0a0b0c0d0e0f", "10111213-1415-1617-1819-1a1b1c1d1e1f")


class Driver:
    """A libcuda with as many devices as there are PCI addresses.

    ``mig``: the second function knows the UUID of an instance.
    """

    def __init__(self, *buses: bytes, mig: bool = False, status: int = 0) -> None:
        self._buses, self._status = buses, status
        self._uuids = (UUIDS[0], UUIDS[1] if mig else UUIDS[0])

    def cuDeviceGet(self, handle: Any, index: int) -> int:  # noqa: ANN401, N802
        handle._obj.value = index  # noqa: SLF001  # of a ctypes.byref
        return self._status

    def cuDeviceGetUuid(self, octets: Any, _handle: Any) -> int:  # noqa: ANN401, N802
        octets._obj[:] = list(self._uuids[0])  # noqa: SLF001
        return 0

    def cuDeviceGetUuid_v2(self, octets: Any, _handle: Any) -> int:  # noqa: ANN401, N802
        octets._obj[:] = list(self._uuids[1])  # noqa: SLF001
        return 0

    def cuDeviceGetPCIBusId(self, text: Any, _size: int, handle: Any) -> int:  # noqa: ANN401, N802
        text.value = self._buses[handle.value]
        return 0


def fake_torch(gpus: int = 2, **more: Any) -> Any:  # noqa: ANN401
    def properties(index: int) -> Any:  # noqa: ANN401
        if index == more.get("broken"):
            raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
        return types.SimpleNamespace(name="Fake GPU", total_memory=1 << 40, major=9, minor=0)

    def init() -> None:
        raise RuntimeError("Found no NVIDIA driver on your system")

    cuda = types.SimpleNamespace(
        device_count=lambda: gpus,
        get_device_properties=properties,
        init=init,
        nccl=types.SimpleNamespace(version=lambda: more.get("nccl", (2, 27, 5))),
    )
    return types.SimpleNamespace(
        __version__="2.9.1+cu130",
        version=types.SimpleNamespace(cuda="13.0"),
        backends=types.SimpleNamespace(
            cudnn=types.SimpleNamespace(version=lambda: more.get("cudnn", 91300))
        ),
        cuda=cuda,
        _C=types.SimpleNamespace(_nccl_version=None),
    )


def take(torch: Any, device: str = "cuda") -> Message:  # noqa: ANN401
    sent: list[Message] = []
    census.run(torch, {"census": True, "device": device}, {}, sent.append)
    (answer,) = (message for message in sent if message["event"] == "census")
    return answer


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver(b"0000:1B:00.0", b"0000:43:00.0")
    monkeypatch.setattr(census, "_driver", lambda: found)
    return found


@pytest.mark.usefixtures("driver")
def test_all_that_a_whole_torch_knows() -> None:
    answer = take(fake_torch())
    assert answer["problems"] == {}
    assert (answer["torch"], answer["cuda"]) == ("2.9.1+cu130", "13.0")
    assert (answer["cudnn"], answer["nccl"]) == ("9.13.0", "2.27.5")
    assert answer["python"] == sys.version.split()[0]
    assert answer["devices"][1] == {
        "index": 1, "name": "Fake GPU", "memory": 1 << 40, "capability": "9.0",
        "uuid": "GPU-" + TEXTS[0], "pci": "0000:43:00.0",
    }  # fmt: skip
    assert answer["devices"][0]["pci"] == "0000:1b:00.0"


@pytest.mark.usefixtures("driver")
@each(
    ("number", "text"),
    [(8902, "8.9.2"), (8500, "8.5.0"), (90100, "9.1.0"), (91002, "9.10.2"), (None, None)],
)
def test_how_cudnn_counts(number: int | None, text: str | None) -> None:
    assert take(fake_torch(cudnn=number))["cudnn"] == text


@pytest.mark.usefixtures("driver")
def test_a_broken_gpu_hides_no_other() -> None:
    answer = take(fake_torch(broken=0))
    assert [device["name"] for device in answer["devices"]] == [None, "Fake GPU"]
    assert "uncorrectable ECC error" in answer["problems"]["device 0"]


def test_a_part_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census, "_driver", lambda: Driver(b"0000:1b:00.0", mig=True))
    (device,) = take(fake_torch(1))["devices"]
    assert device["uuid"] == "MIG-" + TEXTS[1]


@each("driver", [None, Driver(status=100)])
def test_a_driver_that_says_nothing_more(
    monkeypatch: pytest.MonkeyPatch, driver: Driver | None
) -> None:
    monkeypatch.setattr(census, "_driver", lambda: driver)
    (device,) = take(fake_torch(1))["devices"]
    assert (device["name"], device["uuid"], device["pci"]) == ("Fake GPU", None, None)


def test_an_old_driver_has_one_function_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old(Driver):
        cuDeviceGetUuid_v2 = None  # type: ignore[assignment]  # noqa: N815

    monkeypatch.setattr(census, "_driver", lambda: Old(b"0000:1b:00.0"))
    assert take(fake_torch(1))["devices"][0]["uuid"] == "GPU-" + TEXTS[0]


def test_no_gpu_has_its_reason() -> None:
    answer = take(fake_torch(0))
    assert answer["devices"] is None
    assert answer["problems"]["devices"].startswith("RuntimeError: Found no NVIDIA driver")


def test_on_the_cpu_nothing_of_cuda_is_touched() -> None:
    torch = fake_torch()
    torch.backends = torch.cuda.device_count = torch.cuda.init = None  # would raise
    answer = take(torch, "cpu")
    assert (answer["cudnn"], answer["devices"], answer["problems"]) == (None, [], {})


def test_a_cpu_build_has_no_nccl() -> None:
    torch = fake_torch()
    torch.version.cuda = None
    assert take(torch, "cpu")["nccl"] is None


def test_a_ruin_of_a_torch() -> None:
    answer = take(types.SimpleNamespace(__version__="x" * 10_000))
    assert answer["torch"] == "x" * 200
    assert {"cuda", "nccl", "cudnn", "devices"} == set(answer["problems"])
    assert all("AttributeError" in reason for reason in answer["problems"].values())


def test_an_absent_driver_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", nothing)
    assert census._driver() is None  # noqa: SLF001


@pytest.mark.process
@pytest.mark.parametrize("kind", [ForkingSpawner, SeparateSpawner])
def test_both_kinds_of_workers_take_the_order(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[ForkingSpawner] | type[SeparateSpawner],
) -> None:
    Patient(tmp_path, monkeypatch, gpus=1, cuda="13.0")
    spawner = kind(LiveHost().supervise, (sys.executable, BOOTSTRAP))
    try:
        assert spawner.start("one", {"census": True, "device": "cuda"}) == ""
        messages = _until_ended(spawner)
    finally:
        spawner.close()
    (answer,) = (message for message in messages if message["event"] == "census")
    assert (answer["torch"], answer["cudnn"]) == ("9.9.9+fake", "9.10.2")
    assert [device["name"] for device in answer["devices"]] == ["Fake GPU"]
    assert messages[-1]["status"] == 0
    assert messages[-2]["event"] == "end"


def _until_ended(spawner: Spawner) -> list[Message]:
    sent: list[Message] = []
    while True:
        for key, message in spawner.events(5.0):
            if key == "one":
                sent.append(message)
                if message["event"] == "ended":
                    return sent
