"""The interfaces and adapters that a job is told to use, as NCCL and Gloo read their names.

NCCL's guide, Environment Variables (NCCL_SOCKET_IFNAME, NCCL_IB_HCA): a list of prefixes, after
``=`` of whole names, after ``^`` of what is left out; ``:`` and a port may follow an adapter.
"""

import msgspec

from gpucheck.facts.numbers import whole_number

_MOST = 64  # chosen: more than a node has; a variable may have any length


class Names(msgspec.Struct, frozen=True):
    """The names in such a variable; none if it only says what is left out."""

    names: tuple[str, ...]
    are_whole: bool
    """Whether each has to match as a whole."""

    @staticmethod
    def of(value: str) -> "Names":
        """Read the value of a variable."""
        if value.strip().startswith("^"):
            return Names((), are_whole=True)
        are_whole = value.strip().startswith("=")
        found = [name.strip() for name in value.strip().removeprefix("=").split(",")]
        return Names(tuple(filter(None, found))[:_MOST], are_whole)

    def match(self, name: str) -> bool:
        """Whether an interface is one of them."""
        return any(self._is(name, own) for own in self.names)

    def name_port(self, adapter: str, port: int | None) -> bool:
        """Whether a port of an adapter is named by the whole name of the adapter.

        A prefix of several adapters names none of them: the job may do without one.
        """
        for own in self.names:
            named, colon, number = own.partition(":")
            if named == adapter and (not colon or whole_number(number) in (port, None)):
                return True
        return False

    def _is(self, name: str, own: str) -> bool:
        return name == own if self.are_whole else name.startswith(own)
