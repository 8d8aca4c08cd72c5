"""Hosts that differ from their like: states of a fleet, compared fact by fact.

Hosts are alike if they have the same GPUs. A value counts as usual if more than half of at least
:data:`FEWEST` hosts that are alike have it; where no value is usual, nobody differs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from gpucheck.baselines.diff import VOLATILE
from gpucheck.baselines.documents import Difference
from gpucheck.baselines.store import State
from gpucheck.facts import Facts, Private
from gpucheck.facts.torch import Packages
from gpucheck.output.summary import gpu_names

FEWEST = 3
"""Hosts of one kind below which no value is usual."""
_SECTIONS = (
    "driver", "nvml", "cuda_driver", "torch", "packages", "interpreter", "system", "limits",
    "device_nodes", "toolkits",
)  # fmt: skip
"""What is compared, the most telling first."""
_OWN = frozenset(("index", "minor_number"))
"""Fields in which hosts differ by nature, besides those that are private."""
_MAY_BE_ABSENT = "packages.distributions."
"""Below it absence is a fact; elsewhere it only means that nobody knows."""
_SAME_SIZE = ".2g"
"""Sizes in bytes are compared by two digits: a kernel keeps a little more or less for itself."""


def differences(states: Sequence[State]) -> list[Difference]:
    """Return the facts in which hosts differ from their like, the most telling first."""
    groups: dict[tuple[str, ...], list[State]] = defaultdict(list)
    for state in states:
        groups[tuple(sorted(gpu_names(state.snapshot)))].append(state)
    found: list[Difference] = []
    for gpus, alike in sorted(groups.items()):
        if len(alike) >= FEWEST:
            found += _of_group(gpus, alike)
    return found


def too_few(states: Sequence[State]) -> list[str]:
    """Return the hosts that have too few like them to be compared."""
    kinds = Counter(tuple(sorted(gpu_names(state.snapshot))) for state in states)
    return [
        state.host for state in states if kinds[tuple(sorted(gpu_names(state.snapshot)))] < FEWEST
    ]


def _of_group(gpus: tuple[str, ...], alike: Sequence[State]) -> Iterator[Difference]:
    facts = {state.host: dict(_facts(state)) for state in alike}
    names: dict[str, None] = {}
    for of_host in facts.values():
        names.update(dict.fromkeys(of_host))
    order = {section: at for at, section in enumerate(_SECTIONS)}
    for name in sorted(names, key=lambda fact: order[fact.partition(".")[0]]):
        values = {host: of_host.get(name) for host, of_host in facts.items()}
        usual, count = Counter(values.values()).most_common(1)[0]
        others = {host: value for host, value in values.items() if value != usual}
        if not name.startswith(_MAY_BE_ABSENT):
            others = {host: value for host, value in others.items() if value is not None}
        elif usual is not None:
            known = {s.host for s in alike if s.snapshot.get(Packages).distributions is not None}
            others = {host: value for host, value in others.items() if host in known}
        if usual is None or not others or count * 2 <= len(alike):
            continue
        yield Difference(
            fact=name,
            usual=usual,
            alike=count,
            of=len(alike),
            gpus=", ".join(f"{number} x {gpu}" for gpu, number in Counter(gpus).items()),
            hosts=others,
        )


def _facts(state: State) -> Iterator[tuple[str, str]]:
    """Yield the facts of a state by their paths, as words; lists of things by their places."""
    for name in _SECTIONS:
        yield from _below(name, state.snapshot.sections[name])


def _below(path: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401  # facts of any type
    if value is None:
        return
    if isinstance(value, Facts):
        for field in _compared(type(value)):
            yield from _below(f"{path}.{field}", getattr(value, field))
    elif isinstance(value, list) and any(isinstance(item, Facts) for item in value):
        for at, item in enumerate(value):
            label = getattr(item, "project", None) or at
            yield from _below(f"{path}.{label}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _below(f"{path}.{key}", item)
    elif isinstance(value, list):
        yield path, ", ".join(map(str, value))
    elif path.endswith("_bytes") and isinstance(value, int):  # a key of a foreign report may end so
        yield path, f"{value:{_SAME_SIZE}}"
    else:
        yield path, str(value)


def _compared(kind: type[Facts]) -> list[str]:
    """Return the fields that can be compared: neither private, nor of one host, nor volatile."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        field
        for field in kind.__struct_fields__
        if field not in VOLATILE and field not in _OWN and not _is_private(hints[field])
    ]


def _is_private(hint: Any) -> bool:  # noqa: ANN401  # a type
    return get_origin(hint) is Annotated and any(
        isinstance(argument, Private) for argument in get_args(hint)
    )
