"""What torch and nvidia-smi say about a machine, and whether gpucheck's facts say the same.

``on_a_gpu.py`` uses it. It needs only the standard library.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]

TORCH = r"""
import json, sys
answer = {"python": sys.version.split()[0]}
import torch

def said(name, question):
    try:
        answer[name] = question()
    except Exception as error:
        answer.setdefault("errors", {})[name] = type(error).__name__ + ": " + str(error)[:300]

cuda = getattr(torch, "cuda", None)
said("version", lambda: str(torch.__version__))
said("cuda", lambda: torch.version.cuda or "")
said("available", lambda: cuda.is_available())
said("cudnn", lambda: torch.backends.cudnn.version())
said("nccl", lambda: ".".join(str(part) for part in cuda.nccl.version()[:3]))
said("arch_list", lambda: sorted(torch._C._cuda_getArchFlags().split()))
said("driver_cuda", lambda: torch._C._cuda_getDriverVersion())
said("devices", lambda: [
    {"name": each.name, "capability": "%d.%d" % (each.major, each.minor),
     "memory": each.total_memory}
    for each in map(cuda.get_device_properties, range(cuda.device_count()))
])
said("sum", lambda: float(torch.ones(9, device="cuda").sum()) if cuda.is_available() else None)
print("\n" + json.dumps(answer))
"""
"""Asked in the Python with torch; the answer is the last line."""

SMI_FIELDS = (
    "driver_version", "name", "compute_cap", "memory.total", "ecc.mode.current",
    "mig.mode.current", "compute_mode", "persistence_mode", "pcie.link.gen.max",
    "pcie.link.width.max", "power.limit", "clocks.max.sm", "temperature.gpu",
)  # fmt: skip


class Row(NamedTuple):
    """One fact, beside what another program says; ``agrees`` is None if either is not known."""

    fact: str
    gpucheck: Any
    by: str
    other: Any
    agrees: bool | None


class _Question(NamedTuple):
    """A field of nvidia-smi, a fact of each GPU, and when they are the same."""

    field: str
    fact: str
    same: Callable[[Any, str], bool]


def _number(allowed: float) -> Callable[[Any, str], bool]:
    return lambda fact, said: abs(float(fact) - float(said)) <= allowed


def _switch(fact: Any, said: str) -> bool:  # noqa: ANN401  # a fact
    return bool(fact) is (said == "Enabled")


_OF_EACH_GPU = (
    _Question("name", "device_name", lambda fact, said: bool(fact == said)),
    _Question("compute_cap", "compute_capability", lambda fact, said: bool(fact == said)),
    _Question("memory.total", "memory_total_bytes", lambda fact, said: fact >> 20 == int(said)),
    _Question("ecc.mode.current", "ecc_enabled", _switch),
    _Question("mig.mode.current", "mig_enabled", _switch),
    _Question(
        "compute_mode",
        "compute_mode",
        lambda fact, said: str(fact).replace("-", "_") in said.lower(),
    ),
    _Question("persistence_mode", "persistence", _switch),
    _Question("pcie.link.gen.max", "pcie_generation_max", _number(0)),
    _Question("pcie.link.width.max", "pcie_width_max", _number(0)),
    _Question("power.limit", "power_limit_w", _number(1)),
    _Question("clocks.max.sm", "sm_clock_max_mhz", _number(0)),
    _Question("temperature.gpu", "temperature_c", _number(15)),
)
_NOT_SAID = ("[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "")


def compared(facts: Json, smi: Mapping[str, Sequence[str]], torch: Json) -> list[Row]:
    """Return every fact that another program knows as well, beside its answer."""
    return [*_with_smi(facts, smi), *_with_torch(facts, torch)]


def _with_smi(facts: Json, smi: Mapping[str, Sequence[str]]) -> list[Row]:
    by = "nvidia-smi"
    nvml = facts.get("nvml") or {}
    gpus = nvml.get("gpus") or []
    names = smi.get("name")
    releases = sorted(set(smi.get("driver_version") or ()))
    rows = [
        _row("nvml.gpus, how many", len(gpus), by, None if names is None else len(names)),
        _row("nvml.driver_release", _listed(nvml.get("driver_release")), by, releases or None),
        _row(
            "driver.module_release",
            _listed((facts.get("driver") or {}).get("module_release")),
            by,
            releases or None,
        ),
    ]
    for question in _OF_EACH_GPU:
        for at, (gpu, said) in enumerate(zip(gpus, smi.get(question.field) or (), strict=False)):
            fact = gpu.get(question.fact)
            agrees = None if fact is None or said in _NOT_SAID else _safely(question, fact, said)
            rows.append(Row(f"nvml.gpus.{at}.{question.fact}", fact, by, said, agrees))
    return rows


def _safely(question: _Question, fact: Any, said: str) -> bool | None:  # noqa: ANN401  # a fact
    try:
        return question.same(fact, said)
    except ValueError:
        return None


def _with_torch(facts: Json, torch: Json) -> list[Row]:
    build = facts.get("torch") or {}
    driver = facts.get("cuda_driver") or {}
    devices = torch.get("devices")
    of_driver = driver.get("devices")
    codes = [*(build.get("arch_list") or ())]
    rows = [
        _row("torch.version", build.get("version"), "torch", torch.get("version")),
        _row("torch.cuda", build.get("cuda"), "torch", torch.get("cuda")),
        _row("torch.arch_list", sorted(codes) or None, "torch", torch.get("arch_list") or None),
        _row("torch.nccl", _of_three(build.get("nccl")), "torch", torch.get("nccl")),
        _row("cuda_driver.cuda", driver.get("cuda"), "torch", _cuda(torch.get("driver_cuda"))),
        _row("cuda_driver, usable", _usable(driver), "torch", torch.get("available")),
    ]
    for key, name in (("device_name", "name"), ("compute_capability", "capability")):
        theirs = None if devices is None else sorted(str(each[name]) for each in devices)
        ours = None if of_driver is None else sorted(str(each.get(key)) for each in of_driver)
        rows.append(_row(f"cuda_driver.devices, {key}", ours, "torch", theirs))
    return rows


def _row(fact: str, ours: Any, by: str, theirs: Any) -> Row:  # noqa: ANN401  # facts
    known = ours is not None and theirs is not None
    return Row(fact, ours, by, theirs, ours == theirs if known else None)


def _listed(value: Any) -> Any:  # noqa: ANN401  # a fact
    return None if value is None else [value]


def _of_three(version: str | None) -> str | None:
    return None if not version else ".".join(version.split("+")[0].split(".")[:3])


def _cuda(number: int | None) -> str | None:
    return None if not number else f"{number // 1000}.{number % 1000 // 10}"


def _usable(driver: Json) -> bool | None:
    """Whether the driver can be used, as torch understands it; None if that is not known."""
    if driver.get("load_error"):
        return False
    code = driver.get("program_code")
    if code is None:
        code = driver.get("init_code")
    if code is None:
        return None
    return bool(code == 0 and driver.get("device_count"))


def last_json(text: str) -> Json:
    """Return the object in the last line that is one; {} if there is none."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            return found if isinstance(found, dict) else {}
    return {}
