"""Which GPUs have lost NVLinks: those with fewer up than most others of their model."""

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

import msgspec

K = TypeVar("K")


class LostLinks(msgspec.Struct, frozen=True):
    """The links that a GPU has up, and how many of its model have how many."""

    links: int
    usual: int
    votes: int


def lost_links(active: Mapping[K, int], *, switched: bool | None) -> dict[K, LostLinks]:
    """Return what each GPU of one model has lost, by its key.

    GPUs that come with different numbers of links by design have no majority, and nothing is said
    of them. Bridges may join some of the GPUs only, so having none at all is a loss only where
    switches are known to join all of them; there no majority is needed.

    Args:
        active: how many NVLinks each GPU of the model has up.
        switched: whether NVSwitches join the GPUs; None where nobody knows.
    """
    if not active:
        return {}
    usual, votes = Counter(active.values()).most_common(1)[0]
    if 2 * votes <= len(active):
        usual, votes = 0, 0
    most = max(active.values())
    lost = {key: LostLinks(up, usual, votes) for key, up in active.items() if 0 < up < usual}
    if switched and most:
        peers = sum(up == most for up in active.values())
        lost |= {key: LostLinks(0, most, peers) for key, up in active.items() if not up}
    return {key: lost[key] for key in active if key in lost}
