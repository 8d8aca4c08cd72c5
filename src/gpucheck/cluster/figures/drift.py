"""What differs between the tasks of a job and should not: versions, GPUs, variables, settings."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from gpucheck.cluster.diagnose.naming import blamed, words_of
from gpucheck.cluster.model import Facts, Roster, TaskFacts
from gpucheck.facts.claims import Severity
from gpucheck.facts.preflight import Culprit, Differs
from gpucheck.findings.nccl_library import NCCL_VERSION_MISMATCH
from gpucheck.findings.ranks import RANKS_HETEROGENEOUS
from gpucheck.language import and_more, in_clauses, in_series, listed, say, say_many

NAMES: dict[str, str] = {
    "vbios": say("the VBIOS of the GPUs"),
    "inforom": say("the InfoROM of the GPUs"),
    "power-limit": say("the power limit of the GPUs"),
    "application-clock": say("the application clock of the GPUs"),
    "persistence": say("the persistence mode of the GPUs"),
    "ecc": say("ECC of the GPUs"),
    "ecc-after-reset": say("ECC of the GPUs after the next reset"),
    "mig": say("the MIG mode of the GPUs"),
    "mig-after-reset": say("the MIG mode of the GPUs after the next reset"),
    "repairs": say("repairs of GPU memory that wait for a reset"),
    "gpu-pcie": say("the PCIe links of the GPUs"),
    "gpu-payload": say("the PCIe maximum payload of the GPUs"),
    "gpu-read-request": say("the PCIe maximum read request of the GPUs"),
    "gpu-relaxed-ordering": say("PCIe relaxed ordering of the GPUs"),
    "module": say("the kernel module of the driver"),
    "nvswitches": say("the number of NVSwitches"),
    "c2c": say("NVLink-C2C"),
    "fabric-faults": say("the health of the NVLink fabric"),
    "adapters": say("the RDMA adapters"),
    "adapter-firmware": say("the firmware of the RDMA adapters"),
    "ports": say("the states of the RDMA ports"),
    "port-rates": say("the rates of the active RDMA ports"),
    "port-layers": say("the link layers of the RDMA ports"),
    "adapter-pcie": say("the PCIe links of the RDMA adapters"),
    "adapter-payload": say("the PCIe maximum payload of the RDMA adapters"),
    "adapter-read-request": say("the PCIe maximum read request of the RDMA adapters"),
    "adapter-relaxed-ordering": say("PCIe relaxed ordering of the RDMA adapters"),
    "acs": say("redirection by PCIe ACS above the GPUs and adapters"),
    "peer-memory": say("the module nvidia_peermem"),
    "gdrcopy": say("the module gdrdrv of GDRCopy"),
}
"""What is compared. ``fabric`` is not: a job may lie on several NVLink domains."""
_OF_THE_MODEL = frozenset(
    [
        "vbios", "inforom", "power-limit", "application-clock", "ecc", "ecc-after-reset", "c2c",
        "gpu-pcie", "gpu-payload", "gpu-read-request", "gpu-relaxed-ordering",
    ]
)  # fmt: skip
"""They differ between models of GPUs, so only nodes with the same model are compared."""
_WORDS: Mapping[str, str] = {
    "enabled": say("enabled"), "disabled": say("disabled"), "none": say("no fault"),
    "pending": say("pending"), "nothing": say("none"), "open": say("open"),
    "proprietary": say("proprietary"),
}  # fmt: skip
VARIABLES = (
    "NCCL_ALGO", "NCCL_BUFFSIZE", "NCCL_COLLNET_ENABLE", "NCCL_CROSS_NIC", "NCCL_CUMEM_ENABLE",
    "NCCL_CUMEM_HOST_ENABLE", "NCCL_DMABUF_ENABLE", "NCCL_IB_ADAPTIVE_ROUTING", "NCCL_IB_DISABLE",
    "NCCL_IB_GID_INDEX", "NCCL_IB_PCI_RELAXED_ORDERING", "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_RETRY_CNT", "NCCL_IB_SL", "NCCL_IB_TC", "NCCL_IB_TIMEOUT", "NCCL_LAUNCH_MODE",
    "NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS",
    "NCCL_MNNVL_ENABLE", "NCCL_NET", "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ", "NCCL_NET_PLUGIN",
    "NCCL_NSOCKS_PERTHREAD", "NCCL_NTHREADS", "NCCL_NVB_DISABLE", "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_PROTO", "NCCL_PXN_DISABLE", "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_FAMILY", "NCCL_SOCKET_NTHREADS", "NCCL_TUNER_PLUGIN", "GLOO_DEVICE_TRANSPORT",
    "TORCH_DISTRIBUTED_DEBUG", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_AVOID_RECORD_STREAMS", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "OMP_NUM_THREADS", "LD_LIBRARY_PATH",
    "LD_PRELOAD",
)  # fmt: skip
"""Variables on whose values all ranks should agree, besides those with the prefixes."""
_PREFIXES = ("NCCL_", "GLOO_", "FI_", "UCX_")
"""Whatever these libraries read may change how the ranks talk to each other."""
_OF_THE_RANK = (
    "NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_HOSTID", "NCCL_COMM_ID",
    "UCX_LOG_LEVEL",
)  # fmt: skip
"""Variables that a rank, or a host, may have for itself."""
_OF_AN_ADAPTER = (
    "_IFNAME",
    "_IFACE",
    "_HCA",
    "_FILE",
    "_DEVICE_NAME",
    "_DEV",
    "_NIC",
    "_NET_DEVICES",
)
"""How the names of variables end that name an adapter or a file of the host."""
_VARIABLES_OF_THE_HOST = (
    "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_TOPO_FILE",
    "NCCL_GRAPH_FILE", "NCCL_CONF_FILE",
)  # fmt: skip
"""Variables that all ranks should have, or none: hosts may name their adapters differently."""
_UNSET = say("not set")
_SET = say("set")
_GIB = 1 << 30
"""Binary, as sentences show the size of shared memory."""
_MOST_FURTHER = 256
"""Variables that no list names and that are compared: each is, for every task."""
_MOST_SAID = 16
"""Differences that are told of one set of tasks."""


def _by_setting(facts: Facts) -> list[tuple[str, dict[int, str]]]:
    """Return the values of each setting by task, for tasks whose values may be compared.

    What depends on the model of the GPU is compared between nodes of one model only.
    """
    found = []
    for key, name in NAMES.items():
        groups: dict[str, dict[int, str]] = {}
        for task, task_facts in sorted(facts.items()):
            text = (task_facts.settings or {}).get(key)
            if text is not None:
                model = (task_facts.settings or {}).get("gpu", "") if key in _OF_THE_MODEL else ""
                groups.setdefault(model, {})[task] = _words(text)
        found += [(name, values) for values in groups.values()]
    return found


def _words(value: str) -> str:
    """Return a value for people; a node may have several, each with the number of its GPUs."""
    parts = [part.rpartition(" x ") for part in value.split(", ")]
    if not all(count for count, _, _ in parts):
        return _WORDS.get(value, value)
    return listed(
        [
            say("{count} x {value}", count=count, value=_WORDS.get(name, name))
            for count, _, name in parts
        ]
    )


def fabrics(facts: Facts) -> dict[int, str | None]:
    """Return the NVLink domain of each task that has reported its settings."""
    return {
        task: task_facts.settings.get("fabric")
        for task, task_facts in facts.items()
        if task_facts.settings is not None
    }


class DifferingValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value on which tasks differ.

    ``usual`` is the value of most tasks. It is None in a tie: then no task is the odd one, and
    ``odd``, which has the tasks by value, has every value.
    """

    what: str
    usual: str | None
    odd: Mapping[str, tuple[int, ...]]
    severity: Severity = Severity.WARNING

    @property
    def tasks(self) -> tuple[int, ...]:
        """The tasks that differ from most; in a tie, all of them."""
        return tuple(sorted(task for tasks in self.odd.values() for task in tasks))


def differences(facts: Facts) -> list[DifferingValue]:
    """Return everything on which the tasks differ. An unknown value is not a difference.

    Python counts by its minor version. Shared memory and the limit of locked memory count only
    where one has less than half of another, because nodes differ a little in their memory.
    """
    varying = _varying(facts)
    further = _further(varying, facts)
    found = [
        _compared("torch", facts, lambda task_facts: task_facts.torch, _grave_unless(_release)),
        _compared("CUDA", facts, lambda task_facts: task_facts.cuda, _grave_unless(_major)),
        _compared("NCCL", facts, lambda task_facts: task_facts.nccl, _always_grave),
        _compared("cuDNN", facts, lambda task_facts: task_facts.cudnn),
        _compared(say("the driver"), facts, lambda task_facts: task_facts.driver),
        _compared("Python", facts, lambda task_facts: _minor(task_facts.python)),
        *_of_hosts(facts),
        *(
            _variable(name, facts)
            for name in (
                *VARIABLES,
                *(name for name in further if not name.endswith(_OF_AN_ADAPTER)),
            )
            if name in varying
        ),
        *(
            _set_or_not(name, facts)
            for name in (
                *_VARIABLES_OF_THE_HOST,
                *(name for name in further if name.endswith(_OF_AN_ADAPTER)),
            )
            if name in varying
        ),
        _differing("CUDA_VISIBLE_DEVICES", facts, _forms(facts)),
        _size(say("shared memory"), facts, lambda task_facts: task_facts.shm_bytes),
        _size(
            say("the limit of locked memory"),
            _with_infiniband(facts),
            lambda task_facts: task_facts.memlock_bytes,
        ),
        *(_differing(name, facts, values) for name, values in _by_setting(facts)),
    ]
    return [difference for difference in found if difference is not None]


def culprits(roster: Roster, facts: Facts) -> list[Culprit]:
    """Return the culprits: one for each set of tasks, with everything in which they differ.

    Another NCCL release is a culprit of its own (nccl-version-mismatch).
    """
    found = differences(facts)
    nccl = [difference for difference in found if difference.what == "NCCL"]
    entries = [_entry(NCCL_VERSION_MISMATCH.slug, roster, facts, nccl)] if nccl else []
    together: dict[tuple[tuple[int, ...], bool], list[DifferingValue]] = {}
    for difference in found:
        together.setdefault((difference.tasks, difference.usual is None), []).append(difference)
    entries += [
        _entry(RANKS_HETEROGENEOUS.slug, roster, facts, same) for same in together.values()
    ]  # fmt: skip
    return sorted(entries, key=lambda culprit: culprit.severity is not Severity.ERROR)


def _entry(slug: str, roster: Roster, facts: Facts, same: Sequence[DifferingValue]) -> Culprit:
    tied = same[0].usual is None
    tasks = same[0].tasks
    affected = set(tasks)
    grave = any(difference.severity is Severity.ERROR for difference in same)
    return blamed(
        slug,
        roster,
        [rank.rank for rank in roster.ranks if rank.task in affected],
        hosts=[facts[task].host for task in tasks],
        severity=Severity.ERROR if grave else Severity.WARNING,
        evidence=and_more(
            in_clauses([_in_words(difference, facts) for difference in same[:_MOST_SAID]]),
            len(same) - _MOST_SAID,
        ),
        data=Differs(differs=[str(difference.what) for difference in same], tied=tied),
    )


def _in_words(difference: DifferingValue, facts: Facts) -> str:
    """Return a difference in words: both values, and who has them."""
    values = in_series(
        [
            say("{value} on {hosts}", value=value, hosts=words_of(_hosts(tasks, facts)))
            for value, tasks in sorted(difference.odd.items())
        ]
    )
    if difference.usual is None:
        return say(
            "{what}: {values}; none of them is the majority", what=difference.what, values=values
        )
    odd = set(difference.tasks)
    rest = [task for task in facts if task not in odd]
    return say_many(
        len(set(_hosts(rest, facts))),
        "{what}: {values}, {usual} on {count} other host",
        "{what}: {values}, {usual} on {count} other hosts",
        what=difference.what,
        values=values,
        usual=difference.usual,
    )


def _hosts(tasks: Iterable[int], facts: Facts) -> list[str]:
    return list(dict.fromkeys(facts[task].host or say("task {task}", task=task) for task in tasks))


_Gravity = Callable[[Sequence[str]], Severity]


def _always_grave(_values: Sequence[str]) -> Severity:
    return Severity.ERROR


def _grave_unless(part: Callable[[str], str]) -> _Gravity:
    """Return a gravity: an error where the values differ in this part, otherwise a warning."""

    def gravity(values: Sequence[str]) -> Severity:
        return (
            Severity.ERROR if len({part(version) for version in values}) > 1 else Severity.WARNING
        )

    return gravity


def _never_grave(_values: Sequence[str]) -> Severity:
    return Severity.WARNING


def _compared(
    what: str,
    facts: Facts,
    value: Callable[[TaskFacts], str | None],
    gravity: _Gravity = _never_grave,
) -> DifferingValue | None:
    values = {
        task: text for task, task_facts in facts.items() if (text := value(task_facts)) is not None
    }
    return _differing(what, facts, values, gravity)


def _differing(
    what: str, facts: Facts, values: Mapping[int, str], gravity: _Gravity = _never_grave
) -> DifferingValue | None:
    """Compare values by task. Every host has one vote, however many tasks it has."""
    if len(set(values.values())) < 2:  # noqa: PLR2004  # two values
        return None
    on_host = Counter(facts[task].host for task in values)
    whole = math.lcm(*set(on_host.values()))
    votes: Counter[str] = Counter()
    for task, text in values.items():
        votes[text] += whole // on_host[facts[task].host]
    first, second = votes.most_common(2)
    usual = first[0] if first[1] > second[1] else None
    odd: dict[str, list[int]] = {}
    for task, of_task in sorted(values.items()):
        if of_task != usual:
            odd.setdefault(of_task, []).append(task)
    return DifferingValue(
        what=what,
        usual=usual,
        odd={text: tuple(tasks) for text, tasks in odd.items()},
        severity=gravity(sorted(set(values.values()))),
    )


def _variable(name: str, facts: Facts) -> DifferingValue | None:
    return _compared(
        name,
        facts,
        lambda task_facts: (
            None if task_facts.variables is None else task_facts.variables.get(name) or _UNSET
        ),
    )


def _varying(facts: Facts) -> set[str]:
    """Return the variables on which tasks differ: nearly all tasks have the same ones."""
    kinds = {
        frozenset(task_facts.variables.items())
        for task_facts in facts.values()
        if task_facts.variables is not None
    }
    return {name for kind in kinds for name, _value in kind ^ next(iter(kinds))}


def _further(varying: set[str], facts: Facts) -> list[str]:
    """Return those of the variables that are read by collectives, and that no list names.

    Of very many, those that most tasks have: a task that invents names hides none of theirs.
    """
    listed = {*VARIABLES, *_VARIABLES_OF_THE_HOST, *_OF_THE_RANK}
    names = {name for name in varying - listed if name.startswith(_PREFIXES)}
    if len(names) <= _MOST_FURTHER:
        return sorted(names)
    tasks = Counter(
        name
        for task_facts in facts.values()
        for name in names & (task_facts.variables or {}).keys()
    )
    return sorted(sorted(names, key=lambda name: (-tasks[name], name))[:_MOST_FURTHER])


def _set_or_not(name: str, facts: Facts) -> DifferingValue | None:
    def value(task_facts: TaskFacts) -> str | None:
        if task_facts.variables is None:
            return None
        return _SET if task_facts.variables.get(name) else _UNSET

    return _compared(name, facts, value)


def _forms(facts: Facts) -> dict[int, str]:
    """Return how CUDA_VISIBLE_DEVICES names GPUs; which ones is the launcher's business."""
    return {
        task: _form(task_facts.variables.get("CUDA_VISIBLE_DEVICES"))
        for task, task_facts in facts.items()
        if task_facts.variables is not None
    }


def _form(value: str | None) -> str:
    if value is None:
        return _UNSET
    first = value.strip().partition(",")[0].strip()
    if not first or first == "-1":
        return say("set to no GPU")
    return say("set to numbers") if first.isdecimal() else say("set to UUIDs")


def _of_hosts(facts: Facts) -> list[DifferingValue | None]:
    """Compare what belongs to a host: the models of its GPUs and their number.

    A launcher may give each task one GPU, and some hosts more tasks than others: then no number is
    compared.
    """
    by_host: dict[str, list[int]] = {}
    for task, task_facts in sorted(facts.items()):
        by_host.setdefault(task_facts.host, []).append(task)
    is_even = len({len(tasks) for tasks in by_host.values()}) == 1
    models: dict[int, str] = {}
    counts: dict[int, str] = {}
    for tasks in by_host.values():
        seen = [facts[task].devices for task in tasks]
        known = [each for each in seen if each is not None]
        if not known or len(known) < len(seen):
            continue
        devices = list(chain.from_iterable(known))
        names = sorted({device.name for device in devices if device.name})
        uuids = {device.uuid for device in devices if device.uuid}
        for task in tasks:
            if names:
                models[task] = listed(names)
            if uuids and is_even:
                counts[task] = str(len(uuids))
    return [
        _differing(say("the GPU model"), facts, models),
        _differing(say("the number of GPUs"), facts, counts),
    ]


def _size(
    what: str, facts: Facts, value: Callable[[TaskFacts], int | None]
) -> DifferingValue | None:
    sizes = {
        task: size_here
        for task, task_facts in facts.items()
        if (size_here := value(task_facts)) is not None
    }
    finite = [size for size in sizes.values() if size >= 0]
    unlimited = len(finite) < len(sizes)
    if not finite or (not unlimited and max(finite) < 2 * min(finite)):
        return None
    largest = max(finite)
    # Those within a factor of two of the largest count as one value: its own.
    words = {
        task: say("unlimited") if size < 0 else _bytes(largest if 2 * size > largest else size)
        for task, size in sizes.items()
    }
    return _differing(what, facts, words)


def _with_infiniband(facts: Facts) -> Facts:
    return {task: task_facts for task, task_facts in facts.items() if task_facts.infiniband}


def _bytes(size: int) -> str:
    if size >= _GIB:
        return f"{size / _GIB:.1f} GiB"
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def _release(version: str) -> str:
    return version.partition("+")[0]


def _major(version: str) -> str:
    return version.partition(".")[0]


def _minor(version: str | None) -> str | None:
    return None if version is None else ".".join(version.split(".")[:2])
