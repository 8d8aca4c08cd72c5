"""GPUs by the names that people use: a product, or a compute capability."""

import re
from collections.abc import Iterable

from gpucheck.advice.offers import Card
from gpucheck.language import in_turn, say
from gpucheck.tables import Tables
from gpucheck.tables.gpus import capability_of, spellings
from gpucheck.tables.meant_products import meant_by, of_other_vendor, unlisted

_CAPABILITY = re.compile(r"(?:sm_?)?([0-9]{1,2})\.?([0-9])")
_LONGEST = 100  # of what a refusal quotes; the longest product name in the tables has 55


_BY_CAPABILITY = say(
    "Or give its compute capability, such as 8.9 (nvidia-smi --query-gpu=compute_cap --format=csv "
    "shows it)"
)


class GpuNameError(ValueError):
    """A name that matches no GPU, or several with different compute capabilities."""


def cards_named(names: Iterable[str], tables: Tables) -> tuple[Card, ...] | None:
    """Return the named GPUs, given one by one or separated by commas.

    () for "none", None if no GPU was named.

    Raises:
        GpuNameError: the tables do not know a name.
    """
    wanted = [part.strip() for name in names for part in name.split(",")]
    if not wanted:
        return None
    if [name.lower() for name in wanted] == ["none"]:
        return ()
    return tuple(_card(name, tables) for name in wanted)


def _card(name: str, tables: Tables) -> Card:
    if code := _CAPABILITY.fullmatch(name.lower()):
        capability = f"{code[1]}.{code[2]}"
        return Card(capability, capability)
    found = _capabilities(name, tables)
    if len(found) == 1:
        return Card(name, found.pop())
    if not found and (other := of_other_vendor(name)):
        raise GpuNameError(other)
    if not found and (meant := meant_by(name, tables)):
        return Card(*meant)
    quoted_name = repr(name[:_LONGEST])
    what = (
        say("{name} can be several GPUs.", name=quoted_name)
        if found
        else say("{name} is not a GPU that the tables know.", name=quoted_name)
    )
    like = unlisted(name, tables)
    raise GpuNameError(in_turn((what, *((like,) if like else ()), _BY_CAPABILITY)))


def _capabilities(name: str, tables: Tables) -> set[str]:
    """Return the compute capabilities of a name as it is, and as the tables may spell it."""
    return {found for known in spellings(name) if (found := capability_of(known, tables))}
