"""What is known of a culprit of a pre-flight besides its sentence: a form for each kind of fault.

In JSON each form is an object without a tag: its keys tell which it is.
"""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from gpucheck.facts.claims import Fix
from gpucheck.facts.process_state import Look


class CulpritData:
    """What is known of a culprit."""

    __slots__ = ()


class OwnFailure(dict[str, Any], CulpritData):
    """A rank that failed by itself: ``kind``, what its worker said, ``look`` and ``fixes``.

    What workers say is open, as in a self-test. So this is also what no other form fits: data of
    another release.
    """

    @property
    def look(self) -> Look | None:
        """What was seen of it; None if it was not, or nobody could have seen that."""
        try:
            return msgspec.convert(self.get("look"), Look | None)
        except msgspec.ValidationError:
            return None

    @property
    def fixes(self) -> list[Fix]:
        """What the check of its own node advises; [] if nothing, or what is no advice."""
        try:
            return msgspec.convert(self.get("fixes") or [], list[Fix])
        except msgspec.ValidationError:
            return []


class _Form(CulpritData, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A form whose keys are all known, in their order in JSON."""


class Route(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The route between two hosts that one of them did not find, and the port at its end."""

    near: str = msgspec.field(name="from")
    far: str = msgspec.field(name="to")
    address: str
    port: int | None
    near_address: str | UnsetType = msgspec.field(name="from_address", default=UNSET)


class ControlRunEnd(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a control run of NCCL ended; ``passed`` is None if nobody knows."""

    env: dict[str, str]
    backend: str
    passed: bool | None


class FailedGroup(_Form, frozen=True, kw_only=True):
    """Ranks that fail together; ``variables`` and ``backend`` are those of a run that passed."""

    kind: str
    group: list[int]
    route: Route | UnsetType = msgspec.field(name="way", default=UNSET)
    control_runs: list[ControlRunEnd] | UnsetType = msgspec.field(name="arms", default=UNSET)
    variables: dict[str, str] | UnsetType = UNSET
    backend: str | UnsetType = UNSET


class SharedGpu(_Form, frozen=True, kw_only=True):
    """A GPU that several ranks use."""

    uuid: str | None


class LinksDown(_Form, frozen=True, kw_only=True):
    """How many NVLinks of a GPU are up, and of most others of its model."""

    links: int
    usual: int


class BadPorts(_Form, frozen=True, kw_only=True):
    """Ports of RDMA adapters."""

    ports: list[str]


class Differs(_Form, frozen=True, kw_only=True):
    """In what tasks differ from the others; ``tied``: no value has the majority."""

    differs: list[str]
    tied: bool | UnsetType = UNSET


class NotAsRequired(_Form, frozen=True, kw_only=True):
    """What was required and what was found."""

    required: int | float | str
    found: int | float | str
    ratio: float | UnsetType = UNSET


class SlowGpu(_Form, frozen=True, kw_only=True):
    """What a GPU reached in several measurements; ``ratio``: the best of them to the usual one."""

    rate: str
    values: list[float]
    usual: float
    ratio: float


class RateTooLow(_Form, frozen=True, kw_only=True):
    """A rate that is further from the usual one than is allowed."""

    rate: str
    ratio: float
    usual: float


class SlowLink(_Form, frozen=True, kw_only=True):
    """The bus bandwidths that a group reached; ``ratio``: the best of them to the usual one."""

    ratio: float
    busbw: list[float]
    usual: float
    size: int


class PacketLoss(_Form, frozen=True, kw_only=True):
    """Packets that were sent on a link, and how many of them got lost."""

    kind: Literal["loses-packets"] = "loses-packets"
    sent: int
    lost: int


class Late(_Form, frozen=True, kw_only=True):
    """By how much a rank began its collectives later than others, and how often."""

    kind: Literal["late"] = "late"
    seconds: float
    times: int


class Throttled(_Form, frozen=True, kw_only=True):
    """In how many periods the limit on processor time held a task up."""

    kind: Literal["throttled"] = "throttled"
    throttled: int
    periods: int
    fixes: list[Fix] | UnsetType = UNSET


# No two have the same keys, and a form refuses keys that it does not have, so the order does not
# matter.
_FORMS: tuple[type[_Form], ...] = (
    FailedGroup, SharedGpu, LinksDown, BadPorts, Differs, NotAsRequired, SlowGpu, RateTooLow,
    SlowLink, PacketLoss, Late, Throttled,
)  # fmt: skip


def culprit_data(value: dict[str, Any]) -> CulpritData:
    """Return JSON-like data in the form that has exactly these keys."""
    for form in _FORMS:
        try:
            return msgspec.convert(value, form)
        except msgspec.ValidationError:  # few and small
            continue
    return OwnFailure(value)


def without_fixes(data: CulpritData) -> CulpritData:
    """Return the data without the fixes that the culprit's own node found."""
    if isinstance(data, Throttled):
        return msgspec.structs.replace(data, fixes=UNSET)
    if isinstance(data, OwnFailure):
        return OwnFailure({name: value for name, value in data.items() if name != "fixes"})
    return data


def decoded(kind: type, value: Any) -> CulpritData:  # noqa: ANN401  # JSON-like data
    """Read what msgspec does not know, for decoders of culprits (``dec_hook``).

    Raises:
        NotImplementedError: it is no data of a culprit.
        ValueError: it is no object.
    """
    if kind is not CulpritData:
        raise NotImplementedError(kind.__name__)
    if isinstance(value, CulpritData):
        return value
    return culprit_data(msgspec.convert(value, dict[str, Any]))
