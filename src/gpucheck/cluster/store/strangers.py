"""Connections that have not said a valid hello yet: few, for a short time, shared by address."""

import ipaddress
from collections.abc import Iterator
from typing import Generic, TypeVar

C = TypeVar("C")
_IPV6_NETWORK = 64
"""Bits of an IPv6 address that one owner of a network cannot choose."""


class Strangers(Generic[C]):
    """The connections that are not known yet, by address, each with constant cost.

    If there are too many, the oldest one of the address with the most has to go. So whoever opens
    many connections pushes out only their own, as long as a newcomer has fewer.
    """

    def __init__(self) -> None:
        self._of: dict[str, dict[C, None]] = {}
        self._by_size: dict[int, dict[str, None]] = {}
        self._largest = 0
        self._count = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def __iter__(self) -> Iterator[C]:
        """Return all of them."""
        for those in self._of.values():
            yield from those

    def add(self, one: C, address: str) -> None:
        """Add a connection from an address."""
        those = self._of.setdefault(address, {})
        self._move(address, len(those), len(those) + 1)
        those[one] = None
        self._count += 1

    def remove(self, one: C, address: str) -> None:
        """Remove a connection if it is there."""
        those = self._of.get(address, {})
        if one not in those:
            return
        self._move(address, len(those), len(those) - 1)
        del those[one]
        if not those:
            del self._of[address]
        self._count -= 1

    def next_out(self) -> C:
        """Return the one that has to go; there must be one."""
        address = next(iter(self._by_size[self._largest]))
        return next(iter(self._of[address]))

    def _move(self, address: str, old: int, new: int) -> None:
        """Note that an address has another number of connections."""
        if old:
            del self._by_size[old][address]
        if new:
            self._by_size.setdefault(new, {})[address] = None
        self._largest = max(self._largest, new)
        while self._largest and not self._by_size.get(self._largest):
            self._largest -= 1


def owner(host: str) -> str:
    """Return what stands for the owner of an address: an IPv4 address, or a network of IPv6."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:  # noqa: PLR2004  # IPv4
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK), strict=False))
