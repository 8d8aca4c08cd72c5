"""Whether gpucheck's facts say what others say of the same machine; standard library only.

``on_a_gpu_ask.py`` asks the others. ``on_a_gpu.py`` and the tests in ``tests/gpu`` use the rows.
"""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Json = dict[str, Any]

_MIB = 1 << 20


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


def _mebibytes(allowed: int) -> Callable[[Any, str], bool]:
    return lambda fact, said: abs(fact // _MIB - int(said)) <= allowed


def _text(fact: Any, said: str) -> bool:  # noqa: ANN401  # a fact
    return bool(fact == said)


def _switch(fact: Any, said: str) -> bool:  # noqa: ANN401  # a fact
    return bool(fact) is (said == "Enabled")


def _address(fact: Any, said: str) -> bool:  # noqa: ANN401  # a fact
    """Whether an address is that of nvidia-smi, which gives the domain eight digits."""
    return said.lower().endswith(str(fact))


_OF_EACH_GPU = (
    _Question("name", "device_name", _text),
    _Question("uuid", "uuid", _text),
    _Question("pci.bus_id", "pci_address", _address),
    _Question("vbios_version", "vbios", _text),
    _Question("inforom.img", "inforom", _text),
    _Question("compute_cap", "compute_capability", _text),
    _Question("memory.total", "memory_total_bytes", _mebibytes(0)),
    _Question("memory.used", "memory_used_bytes", _mebibytes(1024)),  # asked a moment later
    _Question("ecc.mode.current", "ecc_enabled", _switch),
    _Question("ecc.mode.pending", "ecc_after_reset", _switch),
    _Question("ecc.errors.corrected.volatile.total", "ecc_corrected", _number(0)),
    _Question("ecc.errors.uncorrected.volatile.total", "ecc_uncorrected", _number(0)),
    _Question("ecc.errors.uncorrected.aggregate.total", "ecc_uncorrected_ever", _number(0)),
    _Question("mig.mode.current", "mig_enabled", _switch),
    _Question("mig.mode.pending", "mig_pending", _switch),
    _Question(
        "compute_mode",
        "compute_mode",
        lambda fact, said: str(fact).replace("-", "_") in said.lower(),
    ),
    _Question("persistence_mode", "persistence", _switch),
    _Question("pcie.link.gen.max", "pcie_generation_max", _number(0)),
    _Question("pcie.link.width.max", "pcie_width_max", _number(0)),
    _Question("pcie.link.width.current", "pcie_width", _number(0)),
    _Question("power.limit", "power_limit_w", _number(1)),
    _Question("power.default_limit", "power_limit_default_w", _number(1)),
    _Question("power.draw", "power_w", _number(100)),
    _Question("clocks.max.sm", "sm_clock_max_mhz", _number(0)),
    _Question("clocks.applications.graphics", "application_clock_mhz", _number(0)),
    _Question("clocks.default_applications.graphics", "application_clock_default_mhz", _number(0)),
    _Question("temperature.gpu", "temperature_c", _number(15)),
)
_NOT_SAID = ("[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "")
_NO_LONGER_SAID = "[Requested functionality has been deprecated]"


def compared(facts: Json, asked: Json) -> list[Row]:
    """Return every fact that another program knows as well, beside its answer.

    Args:
        facts: the sections of a snapshot, with its paths and UUIDs.
        asked: what ``on_a_gpu_ask.py`` printed.
    """
    return [
        *_nvml(facts, asked.get("smi") or {}),
        *_of_the_driver(facts, asked),
        *_system(facts, asked.get("system") or {}),
        *_torch(facts, asked.get("torch") or {}),
        *_python(facts, asked),
    ]


def section(row: Row) -> str:
    """Return the section of a snapshot that a row is about."""
    return row.fact.split(".")[0].split(",")[0]


def _nvml(facts: Json, smi: Json) -> Iterator[Row]:
    by = "nvidia-smi"
    nvml = _section(facts, "nvml")
    gpus = nvml.get("gpus") or []
    names = smi.get("name")
    releases = sorted(set(smi.get("driver_version") or ())) or None
    yield _row("nvml.gpus, how many", len(gpus), by, None if names is None else len(names))
    yield _row("nvml.driver_release", _listed(nvml.get("driver_release")), by, releases)
    for question in _OF_EACH_GPU:
        for at, (gpu, said) in enumerate(zip(gpus, smi.get(question.field) or (), strict=False)):
            fact = gpu.get(question.fact)
            unknown = fact is None or said in (*_NOT_SAID, _NO_LONGER_SAID)
            agrees = None if unknown else _safely(question, fact, said)
            yield Row(f"nvml.gpus.{at}.{question.fact}", fact, by, said, agrees)
    smi_facts = _section(facts, "nvidia_smi")
    yield _row("nvidia_smi.found", smi_facts.get("found"), by, bool(smi) or None)
    # It is asked only where NVML has not answered.
    answered = None if nvml.get("init_code") is None else nvml["init_code"] == 0
    yield _row("nvidia_smi, left alone", _opposite(smi_facts.get("asked")), "NVML", answered)


def _safely(question: _Question, fact: Any, said: str) -> bool | None:  # noqa: ANN401  # a fact
    try:
        return question.same(fact, said)
    except ValueError:
        return None


def _of_the_driver(facts: Json, asked: Json) -> Iterator[Row]:
    smi, system, torch = (asked.get(name) or {} for name in ("smi", "system", "torch"))
    module = _section(facts, "driver")
    driver = _section(facts, "cuda_driver")
    release = system.get("module_release") or (smi.get("driver_version") or [None])[0]
    yield _row("driver.module_release", module.get("module_release"), "the module", release)
    loaded = True if system.get("module_release") else None
    yield _row("driver.module_loaded", module.get("module_loaded"), "the module", loaded)
    libraries = [each["release"] for each in module.get("libcuda") or () if each.get("release")]
    yield _row("driver.libcuda, first", (libraries or [None])[0], "the module", release)
    yield _row("cuda_driver.cuda", driver.get("cuda"), "libcuda", system.get("driver_cuda"))
    yield _row("cuda_driver, usable", _usable(driver), "torch", torch.get("available"))
    ours = driver.get("devices")
    theirs = torch.get("devices")
    for key, name in (
        ("device_name", "name"),
        ("compute_capability", "capability"),
        ("uuid", "uuid"),
    ):
        yield _row(
            f"cuda_driver.devices, {key}", _each(ours, key), "torch", _each(theirs, name)
        )  # fmt: skip
    nodes = _section(facts, "device_nodes").get("nodes")
    yield _row("device_nodes.nodes", _sorted(nodes, "path"), "/dev", system.get("nodes"))
    opened = {each["path"]: each["opens"] for each in nodes or () if each.get("opens")}
    tried = system.get("nodes_that_open")
    yield _row(
        "device_nodes, those that open",
        sorted(path for path, opens in opened.items() if opens == "opens"),
        "open()",
        None if tried is None else sorted(set(tried) & set(opened)),
    )
    yield _row(
        "pci.gpus",
        _sorted(_section(facts, "pci").get("gpus"), "address"),
        "/sys/bus/pci",
        system.get("pci_gpus"),
    )
    xids = _section(facts, "kernel_log").get("xids")
    # gpucheck keeps the newest of many.
    yield _row("kernel_log, any Xid", _any(xids), "dmesg", _any(system.get("xids")))


def _system(facts: Json, system: Json) -> Iterator[Row]:
    by = "Python"
    ours = _section(facts, "system")
    limits = _section(facts, "limits")
    for name in ("kernel", "distribution", "distribution_version", "glibc"):
        yield _row(f"system.{name}", ours.get(name), by, system.get(name))
    # A limit of the control group may be lower than what the kernel sees of the machine.
    memory, seen = ours.get("memory_total_bytes"), system.get("memory")
    agrees = None if memory is None or seen is None else memory <= seen * 1.01
    yield Row("system.memory_total_bytes", memory, by, seen, agrees)
    for fact, name in (
        ("memlock_bytes", "memlock"),
        ("open_files", "open_files"),
        ("shm_total_bytes", "shm"),
    ):
        yield _row(f"limits.{fact}", limits.get(fact), by, system.get(name))
    uid = _section(facts, "device_nodes").get("uid")
    yield _row("device_nodes.uid", uid, by, system.get("uid"))
    variables = _section(facts, "environment").get("variables")
    for name in ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"):
        value = None if variables is None else variables.get(name, "")
        yield _row(
            f"environment.{name}", value, by, system.get(name, "") if system else None
        )  # fmt: skip


def _torch(facts: Json, torch: Json) -> Iterator[Row]:
    by = "torch"
    build = _section(facts, "torch")
    for name in ("version", "cuda", "git_version", "cxx11_abi"):
        yield _row(f"torch.{name}", build.get(name), by, torch.get(name))
    yield _row("torch.path", _real(build.get("path")), by, _real(torch.get("path")))
    codes = sorted(build.get("arch_list") or ()) or None
    yield _row("torch.arch_list", codes, by, torch.get("arch_list") or None)
    cudnn = _cudnn(torch.get("cudnn"))
    yield _row("torch.cudnn", _of_three(build.get("cudnn")), by, cudnn)
    yield _row("torch.nccl", _of_three(build.get("nccl")), by, torch.get("nccl"))
    loading = _section(facts, "loading")
    loaded = loading.get("libraries") or []
    for name, theirs in (("cudnn", cudnn), ("nccl", torch.get("nccl"))):
        versions = [each.get("version") for each in loaded if each.get("library") == name]
        first = _of_three(next(iter(versions), None))
        yield _row(f"loading, {name}", first, by, theirs)
        found = {
            _of_three(each.get("version"))
            for each in _section(facts, "cuda_libraries").get("libraries") or ()
            if each.get("library") == name
        }
        there = None if theirs is None else theirs in found
        yield Row(f"cuda_libraries, {name}", sorted(filter(None, found)), by, theirs, there)
    mapped = torch.get("mapped")
    elsewhere = [
        each["path"]
        for each in loaded
        if each.get("path") and mapped is not None and _real(each["path"]) not in mapped
    ]
    yield _row(
        "loading.libraries, predicted and not loaded",
        elsewhere,
        by,
        [] if mapped and loaded else None,
    )
    # torch is imported without any of these.
    missing = [each["soname"] for each in loading.get("missing") or () if each.get("fatal")]
    yield _row("loading.missing, fatal", missing, by, [] if mapped else None)
    for at, (gpu, seen) in enumerate(
        zip(_section(facts, "nvml").get("gpus") or (), torch.get("devices") or (), strict=False)
    ):
        ours, theirs = gpu.get("memory_total_bytes"), seen.get("memory")
        # CUDA leaves out what the driver has reserved: 1 % of 80 GB, more of a small GPU.
        agrees = 0.95 <= theirs / ours <= 1 if ours and theirs else None  # noqa: PLR2004
        yield Row(f"nvml.gpus.{at}, memory for programs", ours, by, theirs, agrees)


def _python(facts: Json, asked: Json) -> Iterator[Row]:
    by = "Python"
    python = asked.get("python") or {}
    ours = _section(facts, "interpreter")
    for name in ("version", "soabi"):
        yield _row(f"interpreter.{name}", ours.get(name), by, python.get(name))
    yield _row("interpreter.executable", ours.get("executable"), by, python.get("executable"))
    installed = python.get("packages")
    by = "importlib.metadata"
    distributions = _section(facts, "packages").get("distributions")
    first: dict[str, str] = {}
    for each in distributions or ():
        first.setdefault(each["project"], each["version"])
    yield _others("packages.distributions", first, by, installed)
    pins = _section(facts, "nvidia_wheels").get("pins")
    wheels = {each["project"]: each["installed"] for each in pins or () if each.get("installed")}
    yield _others("nvidia_wheels.pins", wheels, by, installed)
    versions = {
        each["package"]: each["version"]
        for each in _section(facts, "extensions").get("extensions") or ()
        if each.get("version")
    }
    yield _others("extensions.extensions", versions, by, installed)
    toolkit = asked.get("toolkit") or {}
    tools = _section(facts, "toolkits")
    selected = tools.get("selected_version")
    short = ".".join(selected.split(".")[:2]) if selected else None
    yield _row("toolkits.selected_version", short, "nvcc", toolkit.get("nvcc"))
    yield _row("toolkits.python_headers", tools.get("python_headers"), "Python",
               python.get("headers"))  # fmt: skip
    compilers = tools.get("compilers") or ()
    version = next((each["version"] for each in compilers if each.get("command") == "cc"), None)
    said = toolkit.get("cc")
    agrees = f"{said}.".startswith(f"{version}.") if version and said else None
    yield Row("toolkits.compilers, cc", version, "cc", said, agrees)


def _section(facts: Json, name: str) -> Json:
    return facts.get(name) or {}


def _others(fact: str, ours: dict[str, str], by: str, installed: dict[str, str] | None) -> Row:
    """Return a row about many packages, with those of another version alone."""
    other = {name: (installed or {}).get(name) for name in ours}
    wrong = {name: version for name, version in ours.items() if version != other[name]}
    agrees = not wrong if installed is not None and ours else None
    return Row(fact, wrong or f"{len(ours)} packages", by, {name: other[name] for name in wrong},
               agrees)  # fmt: skip


def _row(fact: str, ours: Any, by: str, theirs: Any) -> Row:  # noqa: ANN401  # facts
    known = ours is not None and theirs is not None
    return Row(fact, ours, by, theirs, ours == theirs if known else None)


def _listed(value: Any) -> Any:  # noqa: ANN401  # a fact
    return None if value is None else [value]


def _sorted(items: list[Json] | None, key: str) -> list[str] | None:
    return None if items is None else sorted(str(each.get(key)) for each in items)


def _each(items: list[Json] | None, key: str) -> list[str] | None:
    """Return one attribute of each device, in their order; None if one is not known."""
    found = [each.get(key) for each in items or ()]
    return None if items is None or None in found else [str(each) for each in found]


def _any(found: Any) -> bool | None:  # noqa: ANN401  # a list or a number
    return None if found is None else bool(found)


def _opposite(value: bool | None) -> bool | None:  # noqa: FBT001  # a fact
    return None if value is None else not value


def _real(path: str | None) -> str | None:
    return None if path is None else os.path.realpath(path)


def _of_three(version: str | None) -> str | None:
    return None if not version else ".".join(version.split("+")[0].split(".")[:3])


def _cudnn(number: int | None) -> str | None:
    """Return cuDNN's number as a version: 91900 is 9.19.0, and before cuDNN 9 8902 was 8.9.2."""
    if not number:
        return None
    thousands = 10_000 if number >= 90_000 else 1_000  # noqa: PLR2004
    return f"{number // thousands}.{number % thousands // 100}.{number % 100}"


def _usable(driver: Json) -> bool | None:
    """Whether the driver can be used, as torch understands it; None if that is not known."""
    if driver.get("load_error"):
        return False
    code = driver.get("init_code")
    return None if code is None else bool(code == 0 and driver.get("device_count"))


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
