"""What a task reports about its node: some facts at once, others once torch and NVML answer.

Nobody needs root for the ports of RDMA adapters (InfiniBand and RoCE): the kernel's
``Documentation/ABI/stable/sysfs-class-infiniband`` explains every file. A counter may ask the
adapter's firmware, which may hang, so counters are read by a process of its own.
"""

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gpucheck.cluster.model import (
    PHYSICAL_COUNTERS,
    TRANSPORT_COUNTERS,
    Device,
    Devices,
    RdmaPort,
    TaskFacts,
    Throttling,
)
from gpucheck.cluster.task.node_settings import (
    adapter_settings,
    gpu_settings,
    module_settings,
    pcie_settings,
)
from gpucheck.facts import Answer
from gpucheck.facts.driver import Driver, Nvml
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.snapshot import Snapshot, decode
from gpucheck.facts.system import OTHER_NAMES, PATH_NAMES
from gpucheck.facts.torch import Interpreter
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.control_groups import ProcessorLimit
from gpucheck.machine.process_identity import own_command
from gpucheck.machine.supervised import TERMINATE, Supervised
from gpucheck.probes import environment, limits

_FAREWELL = 1.0
"""Seconds for a program that is told to end, so that it can end what it has started."""
_TICK = 0.02
"""Seconds between two looks at a program that is to end. Chosen: as ``client.TICK``."""
_PORTS = "/sys/class/infiniband/*/ports/*"
_MOST_PORTS = 64
"""Chosen: beyond what a node has; each costs some reads of sysfs."""
_PATIENCE = 2.0
"""Seconds that a look at the counters may take."""
_LONGEST_LOOK = 256 * 1024
"""Bytes. Chosen: enough for 64 ports with 40 counters, a line of 100 bytes each."""
_DIGITS = 16
"""Digits of a counter of errors; a longer number is not believed."""
Counters = dict[str, dict[str, int]]
"""The values of the counters by port and name."""
_UNLISTED = ("NCCL_", "GLOO_", "FI_", "UCX_")
"""How the names of further variables begin, whose values are compared and not kept."""
_MOST_UNLISTED = 200
"""Chosen: more than a job sets; all facts of a task go into one message."""
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,80}")
"""A variable with another name is nobody's setting; such names come from exported functions."""
_COLLECTIVE = (
    "NCCL_", "TORCH_", "GLOO_", "CUDA_", "PYTORCH_", "OMP_", "FI_", "UCX_", "LD_LIBRARY_PATH",
    "LD_PRELOAD",
)  # fmt: skip
"""How the names of those variables begin that are compared; ``environment`` lists them singly."""
_LONGEST_SNAPSHOT = 4 * 1024 * 1024
"""Bytes. Chosen: far beyond the snapshot of a node; whatever prints on and on is given up."""
_LONGEST_VALUE = 8192
"""Characters. Chosen: a long search path; all facts of a task go into one message."""
_LONGEST_SETTING = 200
"""Characters. Chosen: eight GPUs with settings of their own; all facts go into one message."""
_UNLIMITED = -1
"""What the facts of a task say where memory may be locked without a limit."""
_LATE = 5.0
"""Seconds beyond its own limit until it is ended: nobody may wait for it longer."""


class Inquiry:
    """A program that was started for its answer.

    Args:
        child: the program; it gets no input.
        end: when it is given up, a time of ``time.monotonic()``.
        longest: the bytes that an answer may have.

    Attributes:
        status: its exit status; None while it runs, and if it did not end in its time.
    """

    def __init__(self, child: Supervised, end: float, longest: int) -> None:
        self._child = child
        self._end = end
        self._longest = longest
        self._answer = b""
        self._late = False
        self.status: int | None = None
        child.hang_up()

    @property
    def answer(self) -> bytes | None:
        """Its answer so far; None if it is too long."""
        return self._answer if len(self._answer) <= self._longest else None

    def tick(self) -> bool:
        """Read on. True if it has ended, or its time is over."""
        self._child.read_now()
        status = self._child.status()
        self._answer = (self._answer + self._child.stdout())[: self._longest + 1]
        now = time.monotonic()
        if status is None and now >= self._end and not self._late:
            self._child.signal(TERMINATE)
            self._late, self._end = True, now + _FAREWELL
        if status is None and now < self._end:
            return False
        if status is None:
            self._child.abandon()
        self.status = None if self._late else status
        return True

    def close(self) -> None:
        """End it."""
        self._end = min(self._end, time.monotonic())
        while not self.tick():
            time.sleep(_TICK)


def read_ports(host: Host) -> dict[str, RdmaPort]:
    """Return state, physical state, rate and link layer of each port, by ``mlx5_0/1``."""
    return {_name(folder.split("/")): _port(host, folder) for folder in _folders(host)}


def counter_files(host: Host) -> list[str]:
    """Return the paths of the counters that this machine has."""
    return [
        path
        for folder in _folders(host)
        for group, names in (
            ("counters", PHYSICAL_COUNTERS),
            ("hw_counters", TRANSPORT_COUNTERS),
        )
        for path in host.glob(f"{folder}/{group}/*").value or ()
        if path.rpartition("/")[2] in names
    ]


def _folders(host: Host) -> list[str]:
    return (host.glob(_PORTS).value or [])[:_MOST_PORTS]


def _name(parts: Sequence[str]) -> str:
    """Return ``mlx5_0/1`` for the parts of ``.../mlx5_0/ports/1``."""
    return f"{parts[-3]}/{parts[-1]}"


def _port(host: Host, folder: str) -> RdmaPort:
    def word(file: str) -> str | None:
        answer = host.line(f"{folder}/{file}").value
        return None if answer is None else answer.rpartition(":")[2].strip()[:60]

    return RdmaPort(
        state=word("state"), physical=word("phys_state"), rate=word("rate"),
        gigabits=_gigabits(word("rate")), layer=word("link_layer"),
    )  # fmt: skip


def _gigabits(rate: str | None) -> float | None:
    """Parse ``400 Gb/sec (4X NDR)``."""
    number, _, unit = (rate or "").partition(" ")
    if not unit.startswith("Gb/sec"):
        return None
    try:
        return float(number)
    except ValueError:
        return None


class PortCounters:
    """Looks at the counters of a node's ports twice and tells what has grown.

    Args:
        start: starts a program.
        files: the counters, from ``counter_files``; [] on a node without adapters.
    """

    def __init__(
        self, start: Callable[[list[str]], Answer[Supervised]], files: Sequence[str]
    ) -> None:
        self._start = start
        self._files = list(files)
        self._look: Inquiry | None = None
        self._first: Counters | None = None
        self._last: Counters | None = None

    def begin(self) -> None:
        """Begin a look, unless one is under way."""
        if not self._files or self._look is not None:
            return
        end = time.monotonic() + _PATIENCE
        child = self._start(["grep", "-sH", "", *self._files]).value
        if child is not None:
            self._look = Inquiry(child, end, _LONGEST_LOOK)

    def tick(self) -> bool:
        """Go on with the look. True if it has ended, well or not."""
        if self._look is None:
            return True
        if not self._look.tick():
            return False
        if self._look.status is not None and self._look.answer is not None:
            self._last = read_counters(self._look.answer.decode("utf-8", "replace"))
            self._first = self._first or self._last
        self._look = None
        return True

    @property
    def grown(self) -> Counters:
        """By how much each counter is larger than at the first look."""
        return growth(self._first or {}, self._last or {})

    def close(self) -> None:
        """End a look that is under way."""
        if self._look is not None:
            self._look.close()
            self._look = None


def read_counters(text: str) -> Counters:
    """Read lines such as ``/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:0``."""
    found: Counters = {}
    for line in text.splitlines():
        path, _, value = line.rpartition(":")
        parts = path.split("/")
        number = whole_number(value, _DIGITS)
        if number is not None and parts[-4:-3] == ["ports"] and parts[-5:-4]:
            found.setdefault(_name(parts[:-2]), {})[parts[-1]] = number
    return found


def growth(before: Mapping[str, Mapping[str, int]], after: Counters) -> Counters:
    """Return by how much counters have grown. One that is smaller than before was reset."""
    found: Counters = {}
    for port, counters in after.items():
        for name, value in counters.items():
            old = before.get(port, {}).get(name)
            if old is not None and value > old:
                found.setdefault(port, {})[name] = value - old
    return found


def first_facts(host: Host, task: int, *, node: int | None, pid: int) -> TaskFacts:
    """Return what is known at once: names, limits and variables."""
    found = limits.collect(host)
    names = environment.collect(host).variables or {}
    ports = read_ports(host) if found.infiniband_devices else {}
    pcie, unknown = pcie_settings(host)
    return TaskFacts(
        task=task,
        host=host.identity().node,
        node=node,
        pid=pid,
        shm_bytes=found.shm_total_bytes,
        memlock_bytes=_UNLIMITED if found.may_exceed_memlock else found.memlock_bytes,
        infiniband=_states(ports) if found.infiniband_devices else found.infiniband_devices,
        ports=ports if found.infiniband_devices is not None else None,
        settings=_short({**adapter_settings(host), **pcie}),
        settings_unknown=_short(unknown) or None,
        variables={
            **_unlisted(host),
            **{k: v[:_LONGEST_VALUE] for k, v in names.items() if k.startswith(_COLLECTIVE)},
        },
    )


def _unlisted(host: Host) -> dict[str, str]:
    """Return the variables of collectives that no list names, each with a mark of its value.

    Equal values have equal marks. The value itself is not kept, for it may be a secret.
    """
    listed = {*PATH_NAMES, *OTHER_NAMES}
    found = {
        name: f"#{hashlib.sha256(f'{name}={value}'.encode('utf-8', 'replace')).hexdigest()[:8]}"
        for name, value in sorted(host.env().items())
        if name.startswith(_UNLISTED) and name not in listed and _NAME.fullmatch(name)
    }
    return dict(list(found.items())[:_MOST_UNLISTED])


def _states(ports: Mapping[str, RdmaPort]) -> list[str]:
    """Return the ports with their states, those whose state is known."""
    return [f"{name} {port.state}" for name, port in ports.items() if port.state is not None]


def with_census(facts: TaskFacts, answer: dict[str, Any], *, cuda: bool) -> TaskFacts:
    """Add what a worker reported about torch and its devices (``worker/census.py``)."""
    known = {
        name: str(answer[name])[:100]
        for name in ("python", "torch", "cuda", "cudnn", "nccl")
        if answer.get(name)
    }
    problems = answer.get("problems")
    why = problems.get("devices") if cuda and isinstance(problems, dict) else None
    return msgspec.structs.replace(
        facts,
        **known,
        devices=_devices(answer.get("devices")),
        phase="census",
        problem=str(why or "")[:500],
        kind="no-device" if why else "",
    )


def with_limit(facts: TaskFacts, limit: ProcessorLimit | None) -> TaskFacts:
    """Add how a limit on processor time held the task up; None without a limit."""
    if limit is None:
        return facts
    throttling = Throttling(
        periods=limit.periods, throttled=limit.throttled, processors=limit.processors
    )
    return msgspec.structs.replace(facts, throttling=throttling)


def _devices(answer: object) -> list[Device] | None:
    """Read the devices that a worker saw, or None if its answer is malformed."""
    try:
        return msgspec.convert(answer, Devices | None)
    except ValueError:
        return None


def with_snapshot(facts: TaskFacts, snapshot: Snapshot) -> TaskFacts:
    """Add what the driver and NVML report."""
    nvml = snapshot.get(Nvml)
    links = {
        gpu.uuid: sum(gpu.nvlinks)
        for gpu in nvml.gpus or ()
        if gpu.uuid and gpu.nvlinks is not None
    }
    numbers = {gpu.uuid: gpu.index for gpu in nvml.gpus or () if gpu.uuid and gpu.index is not None}
    release = snapshot.get(Driver).module_release or nvml.driver_release
    return msgspec.structs.replace(
        facts, nvlinks=links or facts.nvlinks, driver=release or facts.driver,
        gpu_numbers=numbers or None,
        settings={
            **(facts.settings or {}),
            **_short({**gpu_settings(nvml), **module_settings(snapshot)}),
        },
    )  # fmt: skip


def _short(settings: dict[str, str]) -> dict[str, str]:
    return {key: value[:_LONGEST_SETTING] for key, value in settings.items()}


class NodeCheck:
    """Runs gpucheck's static probes beside the supervisor, in a process of their own.

    Args:
        start: starts a program.
        python: the target interpreter.
        seconds: how long they may take.
        chosen_by: how it was chosen.
    """

    def __init__(
        self, start: Callable[[list[str]], Answer[Supervised]], python: str, seconds: float,
        chosen_by: str = "",
    ) -> None:  # fmt: skip
        self._chosen_by = chosen_by
        self.snapshot: Snapshot | None = None
        self.problem = ""
        end = time.monotonic() + seconds + _LATE
        argv = [*own_command(), "baseline", "collect", "--no-redact", "--python", python]
        answer = start([*argv, "--timeout", f"{seconds:.0f}"])
        self._inquiry = (
            Inquiry(answer.value, end, _LONGEST_SNAPSHOT) if answer.value is not None else None
        )
        self.done = self._inquiry is None
        self.problem = str(answer.problem)

    def tick(self) -> bool:
        """Look for its answer. True if it has ended, well or not."""
        if self.done or self._inquiry is None:
            return True
        if not self._inquiry.tick():
            return False
        self.done = True
        status, output = self._inquiry.status, self._inquiry.answer
        if status is None:
            self.problem = say("gpucheck baseline collect did not end in its time")
            return True
        if status != 0 or output is None:
            self.problem = say("gpucheck baseline collect ended with {status}", status=status)
            return True
        try:
            self.snapshot = self._as_chosen(decode(output))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.problem = say("gpucheck baseline collect was not understood: {error}", error=error)
        return True

    def _as_chosen(self, snapshot: Snapshot) -> Snapshot:
        """Return what it found as if it had chosen the interpreter as this task did.

        It was given ``--python``, which the user may not have used.
        """
        found = snapshot.get(Interpreter)
        if found.chosen_by is None or not self._chosen_by:
            return snapshot
        return snapshot.with_section(msgspec.structs.replace(found, chosen_by=self._chosen_by))

    def close(self) -> None:
        """End it if it still runs."""
        if self._inquiry is not None and not self.done:
            self._inquiry.close()
            self.done = True
