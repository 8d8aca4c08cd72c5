"""The display adapters in the registry of Windows: what is there, and whose driver serves it."""

import sys
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import machine_files
import pytest
import test_machines
from each import each

from gpucheck.facts import Answer
from gpucheck.facts.system import Pci
from gpucheck.machine import Identity, LiveHost, RecordedHost, Recording, RecordingHost, registry
from gpucheck.machine.base import RegistryKey
from gpucheck.output.redact import Redaction, shapes
from gpucheck.probes import pci
from gpucheck.probes.reading import platform
from gpucheck.probes.reading.platform import nvidia_release
from gpucheck.tables import Tables
from gpucheck.tables.gpus import PciDevices

ENUM = r"HKLM\SYSTEM\CurrentControlSet\Enum\PCI"
CARD = r"VEN_10DE&DEV_2206&SUBSYS_38971462&REV_A1\4&1a6a3c12&0&0008"
SERVICES = r"HKLM\SYSTEM\CurrentControlSet\Services"
SMI = "nvidia-smi.exe"


def keys(**values: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401  # of the registry
    """Return the registry of a PC with one RTX 3080 that NVIDIA's driver serves."""
    card = {
        "ClassGUID": registry.DISPLAYS,
        "DeviceDesc": "@oem5.inf,%nvidia_dev.2206%;NVIDIA GeForce RTX 3080",
        "Driver": rf"{registry.DISPLAYS}\0000",
        "LocationInformation": r"@System32\drivers\pci.sys,#65536;PCI bus %1 ...;(10,0,1)",
        "Service": "nvlddmkm",
        **values,
    }
    control = rf"HKLM\SYSTEM\CurrentControlSet\Control\Class\{registry.DISPLAYS}\0000"
    return {
        rf"{ENUM}\{CARD}": {name: value for name, value in card.items() if value is not None},
        control: {"DriverVersion": "32.0.15.7283"},
        rf"{SERVICES}\nvlddmkm\Enum": {"0": rf"PCI\{CARD.upper()}"},
    }


def windows(
    of_registry: dict[str, dict[str, Any]],
    machine: str = "AMD64",
    **more: Any,  # noqa: ANN401
) -> RecordedHost:
    identity = Identity(os="windows", machine=machine)
    return RecordedHost(Recording(identity=identity, registry=of_registry, **more))


def read(of_registry: dict[str, dict[str, Any]], machine: str = "AMD64") -> Pci:
    return pci.collect(windows(of_registry, machine), Tables().get(PciDevices))


def test_an_adapter_is_what_the_registry_says() -> None:
    found = read(keys())
    assert found.adapters == ["NVIDIA GeForce RTX 3080"]
    assert found.former_gpus == []
    assert found.gpus is not None
    (gpu,) = found.gpus
    assert (gpu.product, gpu.address) == ("NVIDIA GeForce RTX 3080", "0000:0a:00.1")
    assert (gpu.bound_driver, gpu.compute_capability) == ("nvlddmkm", "8.6")


def test_an_adapter_that_was_taken_out_is_none() -> None:
    of_registry = keys()
    del of_registry[rf"{SERVICES}\nvlddmkm\Enum"]
    found = read(of_registry)
    assert (found.gpus, found.adapters) == ([], [])
    assert found.former_gpus == ["NVIDIA GeForce RTX 3080"]
    assert platform.release(windows(of_registry)).value == ""


def test_one_without_a_driver_may_be_there_or_not() -> None:
    compatible = (r"PCI\VEN_10DE&CC_030200", r"PCI\CC_0302")
    found = read(keys(ClassGUID=None, Service=None, Driver=None, CompatibleIDs=compatible))
    assert found.gpus is None
    assert found.problem("gpus") == (
        "Windows has a record of a GPU (NVIDIA GeForce RTX 3080), but no driver serves it: it may "
        "lack one, be disabled, or have been taken out"
    )


def test_a_gpu_that_hyper_v_shares_may_be_anybodys() -> None:
    shared = {f.replace("VEN_10DE&DEV_2206", "VEN_1414&DEV_008E"): v for f, v in keys().items()}
    shared[rf"{SERVICES}\nvlddmkm\Enum"]["0"] = rf"PCI\{CARD}".replace(
        "10DE&DEV_2206", "1414&DEV_008E"
    )
    assert "Hyper-V" in read(shared).problem("gpus")


def test_without_any_adapter_there_is_no_gpu_but_on_arm_nobody_knows() -> None:
    empty: dict[str, dict[str, Any]] = {ENUM: {}}
    assert read(empty).gpus == []
    assert read(empty, "ARM64").gpus is None


def test_a_service_that_may_not_be_read_leaves_the_adapter_there() -> None:
    of_registry = keys()
    del of_registry[rf"{SERVICES}\nvlddmkm\Enum"]
    denied = {rf"{SERVICES}\nvlddmkm\Enum": "EACCES: Permission denied"}
    found = pci.collect(windows(of_registry, problems=denied), Tables().get(PciDevices))
    assert found.gpus is None
    assert found.former_gpus == []


@each(
    ("version", "release"),
    [
        ("32.0.15.7283", "572.83"),
        ("31.0.15.3699", "536.99"),
        ("27.21.14.5671", "456.71"),
        ("9.18.13.4788", "347.88"),
        ("32.0.15.12", "500.12"),
        ("10.0.26100.1", ""),
        ("", ""),
    ],
)
def test_nvidia_has_its_own_name_of_a_version(version: str, release: str) -> None:
    assert nvidia_release(version) == release


def test_the_release_is_that_of_the_driver_that_serves() -> None:
    assert platform.release(windows(keys())).value == "572.83"
    unread = keys(Driver=r"{another}\0000")
    assert platform.release(windows(unread)).value is None


@each(
    "place",
    [
        rf"C:\Windows\System32\{SMI}",
        rf"C:\Program Files\NVIDIA Corporation\NVSMI\{SMI}",
        rf"C:\Windows\System32\DriverStore\FileRepository\nv_dispi.inf_amd64_20ae8f14a487d5db\{SMI}",
        rf"C:\Windows\System32\DriverStore\FileRepository\nvlt.inf_amd64_452afd32ca7c661f\{SMI}",
    ],
)
def test_nvidia_smi_is_where_drivers_put_it(place: str) -> None:
    host = windows(keys(), files={place: b"MZ"})
    assert platform.nvidia_smi(host).value == place


class _Registry(LiveHost):
    """A live machine that has a registry."""

    def __init__(self, answers: dict[str, RegistryKey]) -> None:
        super().__init__()
        self._answers = answers

    def registry(self, key: str, *_names: str) -> Answer[RegistryKey]:
        return Answer(self._answers.get(key), key)


def test_a_recording_has_no_other_devices() -> None:
    network = r"VEN_10EC&DEV_8168&SUBSYS_86771043&REV_15\01000000684CE00000"
    of_network = {"ClassGUID": "{4d36e972-e325-11ce-bfc1-08002be10318}"}
    display = {"ClassGUID": registry.DISPLAYS.upper()}
    host = RecordingHost(
        _Registry(
            {
                ENUM: RegistryKey(subkeys=("VEN_10EC&DEV_8168&SUBSYS_86771043&REV_15",)),
                rf"{ENUM}\{network}": RegistryKey(values=dict(of_network)),
                rf"{ENUM}\{CARD}": RegistryKey(values=dict(display)),
            }
        )
    )
    for key in (ENUM, rf"{ENUM}\{network}", rf"{ENUM}\{CARD}"):
        host.registry(key)
    assert host.recorded()["registry"] == {ENUM: {}, rf"{ENUM}\{CARD}": display}


def test_the_serial_number_in_a_key_is_private() -> None:
    line = r"Device Key: Enum\PCI\VEN_10DE&DEV_2C05&SUBSYS_417F1458&REV_A1\0123456789AB2DB04800 x"
    shown = shapes.without_addresses(line, lambda _unit: "address1")
    assert shown.endswith(r"&REV_A1\address1 x")


def test_a_redacted_registry_says_the_same() -> None:
    recording = machine_files.copied("windows-rtx5070ti-cu126")
    before = pci.collect(RecordedHost(recording), Tables().get(PciDevices))
    redaction = Redaction(test_machines.reported("windows-rtx5070ti-cu126").snapshot)
    recording.registry = {
        redaction.text(key): {
            name: redaction.text(value) for name, value in values.items() if isinstance(value, str)
        }
        for key, values in recording.registry.items()
    }
    assert "0123456789AB2DB04800" not in str(recording.registry)
    assert pci.collect(RecordedHost(recording), Tables().get(PciDevices)) == before


def test_the_registry_is_read_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[object, ...]] = []

    values = {"A": "text", "B": ["x", "y"], "C": 7, "D": b"\0"}
    subkeys = ("one", "two")

    def open_key(*arguments: object) -> AbstractContextManager[None]:
        opened.append(arguments)
        return nullcontext()

    def value(_key: None, name: str) -> tuple[object, int]:
        if name not in values:
            raise FileNotFoundError
        return values[name], 1

    fake = SimpleNamespace(
        HKEY_LOCAL_MACHINE="machine", KEY_READ=1, KEY_WOW64_64KEY=2, OpenKey=open_key,
        QueryInfoKey=lambda _key: (len(subkeys), 0, 0), EnumKey=lambda _key, at: subkeys[at],
        QueryValueEx=value,
    )  # fmt: skip
    module = ModuleType("winreg")
    vars(module).update(vars(fake))
    monkeypatch.setitem(sys.modules, "winreg", module)
    found = registry.read(r"HKLM\SYSTEM\X", ("A", "B", "C", "D", "E"))
    assert opened == [("machine", r"SYSTEM\X", 0, 3)]
    assert found == RegistryKey(values={"A": "text", "B": ("x", "y"), "C": 7}, subkeys=subkeys)
