"""What the CUDA driver itself reports: ``cuInit``, its version, its devices (in a child)."""

from typing import Any

from gpucheck.facts.driver import CudaDevice, CudaDriver
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.probes.reading.driver import (
    RawAnswers,
    capability,
    cuda_version,
    integer,
    text,
)

DEADLINE = 30.0  # seconds for what asks the driver (docs/architecture.md, 1.5)

_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE of cuda.h


def collect(host: Host) -> CudaDriver:
    """Query libcuda and decode its raw answers."""
    answer = host.cuinit()
    if answer.value is not None:
        return decode(answer.value)
    if answer.missing:
        return decode({"library": "", "load_error": answer.problem or say("not found")})
    return CudaDriver(problems={"*": answer.problem})


def decode(raw: dict[str, Any]) -> CudaDriver:
    """Decode the raw answers (see ``machine/cuinit.py``)."""
    # Nothing answered if it did not load, and the reason names it.
    source = "" if raw.get("load_error") else "libcuda"
    asked = RawAnswers(raw, source, {}, _why_unasked(raw))
    loader = RawAnswers(raw, say("dynamic loader"), {})
    if raw.get("init_code") == _NO_DEVICE:
        count: int | None = asked.fill("device_count", 0)
        devices: list[CudaDevice] | None = asked.fill("devices", [])
    else:
        count = asked.take("device_count", "device_count", integer)
        devices = asked.take("devices", "devices", _devices)
    return CudaDriver(
        library=loader.take("library", "library", text),
        load_error=loader.take("load_error", "load_error", text),
        init_code=asked.take("init_code", "init_code", integer),
        cuda=asked.take("cuda", "cuda_version", cuda_version),
        device_count=count,
        devices=devices,
        sources={**asked.notes.sources, **loader.notes.sources},
        problems={**asked.notes.problems, **loader.notes.problems},
    )


def _why_unasked(raw: dict[str, Any]) -> str:
    if raw.get("load_error"):
        return say("libcuda could not be loaded ({why})", why=raw["load_error"])
    code = raw.get("init_code", 0)
    return say("cuInit returned {code}", code=code) if code != 0 else say("not asked")


def _devices(value: object) -> list[CudaDevice]:
    """Decode the list of devices.

    Raises:
        ValueError: the value is not a list of devices.
    """
    if not isinstance(value, list):
        raise ValueError(say("it is not a list of devices"))  # noqa: TRY004  # a bad answer
    return [_device(device) for device in value]


def _device(raw: object) -> CudaDevice:
    asked = RawAnswers(raw, "libcuda", {})
    name = asked.take("device_name", "name", text)
    # libcuda returns only the number; NVML and CUDA_VISIBLE_DEVICES also write its kind.
    kind = "MIG" if name is not None and " MIG " in name else "GPU"
    return CudaDevice(
        device_name=name,
        compute_capability=asked.take("compute_capability", "compute_capability", capability),
        uuid=asked.take("uuid", "uuid", lambda value: f"{kind}-{text(value)}"),
        sources=asked.notes.sources,
        problems=asked.notes.problems,
    )
