"""What task 0 has heard when it judges the job."""

from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.cluster.model import Roster, StepResult, TaskFacts
from gpucheck.cluster.store.messages import Refusal, Seen
from gpucheck.cluster.store.wire import TurnedAway


class Heard(msgspec.Struct, kw_only=True):
    """Everything that the judgement is based on."""

    roster: Roster
    facts: dict[int, TaskFacts]
    history: list[StepResult]
    late: tuple[int, ...] = ()
    """Tasks that came after the ranks had been assigned."""
    grown: dict[int, Mapping[str, Mapping[str, int]]] = {}
    """By how much error counters of RDMA ports have grown, by task."""
    seen: Mapping[int, Mapping[int, Seen]] = {}
    """What others saw of tasks that are not heard: by task, and by the task that was asked."""
    back: frozenset[int] = frozenset()
    """Tasks that were lost, and are heard again."""
    awaited: frozenset[int] = frozenset()
    """Tasks that have not come, and that still had time to."""
    left: frozenset[int] = frozenset()
    """Tasks that were told to end before the job was judged, and said so."""
    broken: frozenset[int] = frozenset()
    """Tasks whose connection ended without a word, just before the job was told to end."""
    closed: frozenset[int] = frozenset()
    """Tasks whose connection was closed as soon as they fell silent."""
    gave_up: Mapping[int, str] = {}
    """Tasks that have ended because nothing came from task 0 any more, with what they saw."""
    narrow: frozenset[int] = frozenset()
    """Tasks of which nothing came after their registration, not even their large message."""
    mute: frozenset[int] = frozenset()
    """Tasks that have connected, and have never registered."""
    turned_away: Sequence[TurnedAway] = ()
    """Processes that looked for the store and are none of the tasks."""
    is_blind: bool = False
    """Whether task 0 lost its own store: what it did not hear then means nothing."""
    refused: Mapping[int, Refusal] = {}
    """Tasks that were refused at their start."""
    wrong_tokens: Mapping[str, int] = {}
    """How often another token was presented, by address."""
    malformed: tuple[str, ...] = ()
    """Messages that were not believed, each in a sentence."""
    stopped_because: str = ""
    not_measured: str = ""
    """Why a measurement was left out, in a sentence; the job was tested without it."""
