"""The side of a deputy that looks after the others: who has come, as task 0 knew them."""

import msgspec

from gpucheck.cluster.model import RankNumber
from gpucheck.cluster.spans import unpack
from gpucheck.cluster.store import messages
from gpucheck.cluster.store.messages import Roll, Survivor
from gpucheck.cluster.store.server import Store
from gpucheck.facts.numbers import whole_number


class Chair:
    """What the others have told a deputy.

    Args:
        store: the store of the deputy.
        tasks: how many tasks the job has.
        host: that of task 0.
        roll: who was there.
    """

    def __init__(self, store: Store, tasks: int, host: str, roll: Roll) -> None:
        self._store = store
        self._tasks = tasks
        self._roll = roll
        self._host = host
        self._names = {0: host}
        """By the numbers of the roll."""
        self._taken: set[RankNumber] = set(unpack(roll.ranks))
        self._came: set[int] = set()
        self._gone: set[int] = set()
        self.met: dict[int, Survivor] = {}
        """What each task saw."""

    def tick(self) -> None:
        """Take what was said."""
        for key, text in self._store.news(messages.SURVIVORS.name).items():
            found = messages.SURVIVORS.read(text)
            task = whole_number(key)
            if task is None or not isinstance(found, Survivor):
                continue
            self._came.add(task)
            if self._counts(task, found):
                self.met[task] = self._as_known(task, found)
        left = map(whole_number, self._store.news(messages.LEAVING.name))
        self._gone.update(task for task in left if task is not None)

    @property
    def all_have_left(self) -> bool:
        """Whether all who came have taken the verdict."""
        return self._gone >= self._came

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _counts(self, task: int, said: Survivor) -> bool:
        """Whether a task counts: one that was there, and that speaks for the first time.

        One that lies about whether it runs on the host of task 0 does not.
        """
        if not 0 < task < self._tasks or task in self.met:
            return False
        if not self._roll.seats:
            return True
        seat = self._roll.seats.get(task)
        return seat is not None and (seat.host == 0) is (said.host == self._host)

    def _as_known(self, task: int, said: Survivor) -> Survivor:
        """Return what a task said, on the host where it was, with ranks that nobody else has.

        A task counts once, for one host, whatever name it gives that host now.
        """
        size = self._roll.world_size
        ranks = {
            rank: device
            for rank, device in said.ranks.items()
            if rank not in self._taken and (not size or rank < size)
        }
        self._taken.update(ranks)
        seat = self._roll.seats.get(task)
        host = self._names.setdefault(seat.host, said.host) if seat is not None else said.host
        return msgspec.structs.replace(said, host=host, ranks=ranks)
