"""The state of each GPU as NVML reports it (in a child, with a deadline)."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from gpucheck.facts import Answer
from gpucheck.facts.driver import CLOCK_REASONS, FABRIC_FAULTS, GpuProcess, MigDevice, Nvml, NvmlGpu
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.probes.reading.driver import (
    RawAnswers,
    as_words,
    capability,
    cuda_version,
    flag,
    integer,
    item,
    text,
    within,
)

DEADLINE = 30.0  # seconds for what asks the driver (docs/architecture.md, 1.5)
LANE = "nvml"

# Errors of nvml.h.
_NOT_SUPPORTED, _NO_PERMISSION, _NOT_FOUND = 3, 4, 6
_LIBRARY_NOT_FOUND, _NO_FUNCTION, _LOST, _UNKNOWN = 12, 13, 15, 999
_WORDS = {
    _NOT_SUPPORTED: "Not Supported",
    _NO_PERMISSION: "Insufficient Permissions",
    _NOT_FOUND: "Not Found",
    _NO_FUNCTION: say("Function Not Found (the driver is older than this function)"),
    _LOST: "GPU is lost",
    _UNKNOWN: "Unknown Error",
}
_FABRIC_STATES = ("not-supported", "not-started", "in-progress", "completed")
_HEALTH_BITS = ((0, 3), (2, 3), (4, 3), (6, 3), (8, 15), (14, 3))
"""Where each of ``FABRIC_FAULTS`` is in the health mask, and its width as a mask (nvml.h)."""
_IS_SO, _IS_LOST, _CONFIGURED = 1, 2, 1  # values of the fabric's health in nvml.h
_COMPUTE_MODES = ("default", "exclusive-thread", "prohibited", "exclusive-process")


def collect(host: Host) -> Nvml:
    """Query NVML and decode its raw answers."""
    answer = host.nvml()
    if answer.value is not None:
        return decode(answer.value)
    if answer.missing:
        return Nvml(
            library_found=False,
            sources={"library_found": answer.source},
            problems={"*": answer.complaint},
        )
    return Nvml(problems={"*": answer.problem})


def decode(raw: dict[str, Any]) -> Nvml:
    """Decode the raw answers (see ``machine/nvml.py``)."""
    code = raw.get("init_code")
    message = str(raw.get("init_message", ""))
    asked = RawAnswers(raw, "NVML", _WORDS, say("not asked") if code == 0 else _why(code, message))
    found = raw.get("library_found", code != _LIBRARY_NOT_FOUND) is True
    gpus = asked.take("gpus", "gpus", _objects)
    return Nvml(
        library_found=asked.fill("library_found", found),
        init_code=asked.take("init_code", "init_code", integer),
        init_message=asked.fill("init_message", message),
        driver_release=asked.take("driver_release", "driver_release", text),
        cuda=asked.take("cuda", "cuda_version", cuda_version),
        gpus=None
        if gpus is None
        else [_gpu(at, gpu_answers) for at, gpu_answers in enumerate(gpus)],
        sources=asked.notes.sources,
        problems=asked.notes.problems,
    )


def _why(code: object, message: str) -> str:
    if isinstance(code, dict):
        return as_words(code.get("error"))
    if not message:
        return say("it did not start: nvmlInit returned {code}", code=code)
    return say("it did not start: {message}", message=message)


def _objects(value: object) -> list[dict[str, Any]]:
    """Return a list of objects.

    Raises:
        ValueError: the value is not a list of objects.
    """
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ValueError(say("it is not a list of objects"))
    return value


def _gpu(index: int, raw: dict[str, Any]) -> NvmlGpu:
    handle = RawAnswers({"handle": 0, **raw}, "NVML", _WORDS).answer("handle").map(integer).value
    lost = handle in (_LOST, _UNKNOWN) or RawAnswers(raw, "", {}).has_code(_LOST)
    unasked = _WORDS[_LOST] if lost else say("not asked")
    if handle:
        why = _WORDS.get(handle) or say("error {code}", code=handle)
        unasked = say("it gives no handle of this GPU: {why}", why=why)
    gpu = RawAnswers({"handle": 0, **raw}, "NVML", _WORDS, unasked)
    mig = _mig(gpu)
    fields: dict[str, Any] = {
        "index": gpu.fill("index", index),
        "lost": gpu.fill("lost", lost),
        **{field: gpu.take(field, key, read) for field, (key, read) in _FIELDS.items()},
        **mig,
        "processes": _processes(gpu),
        "nvlinks": _nvlinks(gpu, mig_enabled=mig["mig_enabled"] is True),
        "fabric_state": _fabric_state(gpu),
        "c2c": _c2c(gpu),
    }
    return NvmlGpu(**fields, sources=gpu.notes.sources, problems=gpu.notes.problems)


def _pci_address(value: object) -> str:
    """Convert ``00000000:3B:00.0`` to the kernel's form ``0000:3b:00.0``."""
    domain, _, rest = text(value).partition(":")
    return f"{int(domain, 16):04x}:{rest.lower()}"


def _watts(value: object) -> float:
    return integer(value) / 1000


def _compute_mode(value: object) -> str:
    return _name_of(value, _COMPUTE_MODES)


def _name_of(value: object, names: Sequence[str]) -> str:
    number = integer(value)
    if not 0 <= number < len(names):
        raise ValueError(say("gpucheck has no name for {number}", number=number))
    return names[number]


def _reasons(value: object) -> list[str]:
    """Return the reasons whose bits are set; one without a name yet is given by its value."""
    bits = [at for at in range(64) if integer(value) >> at & 1]
    return [CLOCK_REASONS[at] if at < len(CLOCK_REASONS) else hex(1 << at) for at in bits]


def _cluster(value: object) -> str:
    """Return the UUID of the cluster; one of zeros stands for none."""
    digits = text(value.get("cluster") if isinstance(value, dict) else None)
    return digits if digits.strip("0") else ""


def _fabric_faults(value: object) -> list[str]:
    """Return what the health mask of the fabric says against the GPU."""
    mask = within("health")(value)
    fields = [mask >> shift & width for shift, width in _HEALTH_BITS]
    *flags, configuration, manager = fields
    wrong = [
        *(state == _IS_SO for state in flags),
        configuration > _CONFIGURED,
        manager == _IS_LOST,
    ]
    return [fault for fault, is_so in zip(FABRIC_FAULTS, wrong, strict=True) if is_so]


_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "handle_code": ("handle", integer),
    "device_name": ("name", text),
    "uuid": ("uuid", text),
    "pci_address": ("pci_bus_id", _pci_address),
    "compute_capability": ("compute_capability", capability),
    "memory_total_bytes": ("memory", within("total")),
    "memory_used_bytes": ("memory", within("used")),
    "memory_free_bytes": ("memory", within("free")),
    "ecc_enabled": ("ecc_mode", flag(item(0, 2))),
    "ecc_after_reset": ("ecc_mode", flag(item(1, 2))),
    "ecc_corrected": ("ecc_corrected", integer),
    "ecc_uncorrected": ("ecc_uncorrected", integer),
    "ecc_uncorrected_ever": ("ecc_uncorrected_ever", integer),
    "pages_pending": ("retired_pages_pending", flag(integer)),
    "rows_remapped_uncorrected": ("remapped_rows", item(1, 4)),
    "rows_pending": ("remapped_rows", flag(item(2, 4))),
    "rows_failed": ("remapped_rows", flag(item(3, 4))),
    "compute_mode": ("compute_mode", _compute_mode),
    "persistence": ("persistence", flag(integer)),
    "sm_clock_mhz": ("sm_clock", integer),
    "sm_clock_max_mhz": ("sm_clock_max", integer),
    "application_clock_mhz": ("application_clock", integer),
    "application_clock_default_mhz": ("application_clock_default", integer),
    "throttle": ("clocks_event_reasons", _reasons),
    "temperature_c": ("temperature", integer),
    "temperature_slowdown_c": ("temperature_slowdown", integer),
    "power_w": ("power", _watts),
    "power_limit_w": ("power_limit", _watts),
    "power_limit_default_w": ("power_limit_default", _watts),
    "utilization_percent": ("utilization", integer),
    "pcie_generation": ("pcie_generation", integer),
    "pcie_generation_max": ("pcie_generation_max", integer),
    "pcie_width": ("pcie_width", integer),
    "pcie_width_max": ("pcie_width_max", integer),
    "fabric_status": ("fabric", within("status")),
    "fabric_cluster": ("fabric", _cluster),
    "fabric_clique": ("fabric", within("clique")),
    "fabric_faults": ("fabric", _fabric_faults),
    "vbios": ("vbios", text),
    "inforom": ("inforom", text),
}
"""The fields of a GPU that are filled from one raw answer: its key and how it is read."""


def _mig(gpu: RawAnswers) -> dict[str, Any]:
    """Fill in MIG mode and instances; without support by GPU and driver, MIG is disabled."""
    if gpu.error("mig_mode") in (_NOT_SUPPORTED, _NO_FUNCTION):
        off = {"mig_enabled": False, "mig_pending": False, "mig_devices": []}
        return {field: gpu.fill(field, value) for field, value in off.items()}
    enabled = gpu.take("mig_enabled", "mig_mode", flag(item(0, 2)))
    return {
        "mig_enabled": enabled,
        "mig_pending": gpu.take("mig_pending", "mig_mode", flag(item(1, 2))),
        "mig_devices": gpu.fill("mig_devices", [])
        if enabled is False
        else gpu.take("mig_devices", "mig_devices", _mig_devices),
    }


def _mig_devices(value: object) -> list[MigDevice]:
    return [_mig_device(raw_device) for raw_device in _objects(value)]


def _mig_device(raw: dict[str, Any]) -> MigDevice:
    device = RawAnswers(raw, "NVML", _WORDS)
    return MigDevice(
        uuid=device.take("uuid", "uuid", text),
        device_name=device.take("device_name", "name", text),
        memory_total_bytes=device.take("memory_total_bytes", "memory", within("total")),
        sources=device.notes.sources,
        problems=device.notes.problems,
    )


def _processes(gpu: RawAnswers) -> list[GpuProcess] | None:
    """Return compute and graphics processes; a process of both kinds is counted once."""
    compute = gpu.take("processes", "compute_processes", _objects)
    if compute is None:
        return None
    graphics = gpu.answer("graphics_processes").map(_objects).value or []
    computing = [_process(process, "compute") for process in compute]
    drawing = [_process(process, "graphics") for process in graphics]
    counted = {process.pid for process in computing}
    return computing + [process for process in drawing if process.pid not in counted]


def _process(raw: dict[str, Any], kind: Literal["compute", "graphics"]) -> GpuProcess:
    process = RawAnswers(raw, "NVML", _WORDS)
    if process.error("name") in (_NOT_FOUND, _NO_PERMISSION):
        name: str | None = process.fill("process_name", "")
    else:
        name = process.take("process_name", "name", text)
    return GpuProcess(
        pid=process.take("pid", "pid", integer),
        used_bytes=process.take("used_bytes", "used", integer),
        kind=process.fill("kind", kind),
        process_name=name,
        sources=process.notes.sources,
        problems=process.notes.problems,
    )


def _nvlinks(gpu: RawAnswers, *, mig_enabled: bool) -> list[bool] | None:
    states = gpu.answer("nvlinks").map(_states_of_links)
    if mig_enabled and states.value == []:
        states = Answer(None, states.source, say("it does not report them in MIG mode"))
    return gpu.notes.take("nvlinks", states)


def _states_of_links(value: object) -> list[bool]:
    """Return the state of each link that the GPU has; absent links are left out.

    Raises:
        ValueError: a link did not answer.
    """
    if not isinstance(value, list):
        raise ValueError(say("it is not a list of links"))  # noqa: TRY004  # a bad answer
    codes = [link.get("error") if isinstance(link, dict) else None for link in value]
    failed = next((code for code in codes if code not in (None, _NOT_SUPPORTED)), None)
    if failed is not None:
        words = _WORDS.get(failed) if isinstance(failed, int) else str(failed)
        why = words or say("error {code}", code=failed)
        raise ValueError(say("link {link}: {why}", link=codes.index(failed), why=why))
    return [integer(link) != 0 for link, code in zip(value, codes, strict=True) if code is None]


def _fabric_state(gpu: RawAnswers) -> str | None:
    if gpu.error("fabric") == _NOT_SUPPORTED:
        return gpu.fill("fabric_state", _FABRIC_STATES[0])
    state = gpu.answer("fabric").map(within("state"))
    return gpu.notes.take(
        "fabric_state", state.map(lambda number: _name_of(number, _FABRIC_STATES))
    )


def _c2c(gpu: RawAnswers) -> bool | None:
    if gpu.error("c2c") in (_NOT_SUPPORTED, _NO_FUNCTION):
        return gpu.fill("c2c", value=False)
    return gpu.take("c2c", "c2c", flag(integer))
