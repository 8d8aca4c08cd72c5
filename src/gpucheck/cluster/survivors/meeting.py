"""The tasks that have lost task 0 meet at a deputy, which judges what they saw.

The first deputy that can be reached opens the store on the port that it has kept ready. For a
limited time each task tells it what it saw of task 0. Then it sets the verdict as task 0 would have
done.
"""

import socket
import time
from collections.abc import Callable

import msgspec

from gpucheck.cluster.launchers.entrance import TaskPlace
from gpucheck.cluster.store import messages
from gpucheck.cluster.store.client import ConnectError, StoreClient
from gpucheck.cluster.store.messages import Attendees, Deputies, Malformed, Survivor, Verdict
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.wire import StoreError
from gpucheck.cluster.survivors.conclusion import (
    Conclusion,
    Loss,
    conclude,
    is_about_task_0,
)
from gpucheck.cluster.survivors.deputy import DeputyDesk, Standby
from gpucheck.cluster.task.shutdown import TICK, leave

_SETTLE = 1.0
"""Seconds from the first to the last task, even if all have met: a launcher that ends a whole job
at once may have begun with task 0."""
_WINDOW, _PATIENCE = 5.0, 4.0
"""Seconds for the others to come to a deputy, and for a deputy to open its store."""
_SPREAD = 2.0
"""How many heartbeats later than another a task may notice a silence."""
_TRY = 1.0
"""Seconds for one attempt at a deputy."""

Judge = Callable[[Loss, Conclusion], Verdict]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a meeting: the verdict, if there is one, and the sentence about task 0."""

    verdict: Verdict | None
    sentence: str


class Meeting:
    """One task at a meeting.

    Args:
        standby: what it has kept ready.
        deputies: where to meet.
        lost: the connection to task 0 that was lost.
        said: what it saw itself.
        place: which task it is.
        judge: makes the verdict if this task turns out to be the deputy.
        after: seconds from the start of the run to the last sign of task 0.
        end: returns when the meeting must be over, a time of ``time.monotonic()``.
    """

    def __init__(
        self, standby: Standby, deputies: Deputies, lost: StoreClient, said: Survivor,
        place: TaskPlace, judge: Judge, *, after: float, end: Callable[[], float],
    ) -> None:  # fmt: skip
        self._standby = standby
        self._deputies = deputies
        self._lost = lost
        self._said = said
        self._place = place
        self._judge = judge
        self._after = after
        self._end = end
        late = 0.0 if said.closed else _SPREAD * lost.beat
        self._window, self._patience = _WINDOW + late, _PATIENCE + late
        self._desk: DeputyDesk | None = None
        self._client: StoreClient | None = None

    def hold(self) -> Found:
        """Meet the others; return what came of it."""
        for deputy in self._deputies.deputies:
            if deputy.task == self._standby.task:
                if self._standby.listener is not None:
                    return self._preside(self._standby.listener)
                continue
            client = self._go_to(deputy.host or self._lost.peer_address, deputy.port)
            if client is not None:
                self._client = client
                return self._listen(client)
        return Found(verdict=None, sentence=conclude(self._loss({})).sentence)

    @property
    def presides(self) -> bool:
        """Whether this task is the deputy."""
        return self._desk is not None

    def leave(self, end: float) -> None:
        """Leave with the others."""
        if self._client is not None:
            leave(self._client, self._standby.task, end, self._desk)

    def close(self) -> None:
        """End the connections."""
        if self._client is not None:
            self._client.close()
        if self._desk is not None:
            self._desk.close()

    def _go_to(self, host: str, port: int) -> StoreClient | None:
        """Return a connection to a deputy, None if there is none; one that refuses is dead, too."""
        end = min(time.monotonic() + self._patience, self._end())
        while (left := end - time.monotonic()) > 0:
            try:
                return StoreClient.connect(
                    host,
                    (port,),
                    self._place.run,
                    self._lost.token,
                    min(_TRY, left),
                    self._lost.who,
                )
            except ConnectError as error:
                if error.reason == "refused":
                    return None
        return None

    def _listen(self, client: StoreClient) -> Found:
        """Tell the deputy what was seen, and wait for its verdict."""
        box: list[Verdict | Malformed] = []

        def then(text: bytes | None) -> None:
            if text is not None:
                box.append(messages.VERDICT.read(text))

        wait = self._window + self._patience
        end = min(time.monotonic() + wait, self._end())
        client.set(messages.SURVIVORS.key(self._standby.task), self._said)
        client.get(messages.VERDICT.name, wait, then)
        while not box and not client.lost and time.monotonic() < end:
            client.pump()
            time.sleep(TICK)
        found = box[0] if box else None
        if isinstance(found, Verdict) and is_about_task_0(found, self._loss({})):
            culprit = found.culprits[0].evidence if found.culprits else ""
            return Found(verdict=found, sentence=found.why or culprit)
        return Found(verdict=None, sentence=conclude(self._loss({})).sentence)

    def _preside(self, listener: socket.socket) -> Found:
        """Hold the store for the others, and judge."""
        place, lost = self._place, self._lost
        marks = {task: seat.mark for task, seat in self._attendees.seats.items()}
        store = Store.on(listener, place.run, lost.token, place.tasks, marks)
        desk = self._desk = DeputyDesk(store, place.tasks, self._deputies.host, self._attendees)
        try:
            self._client = StoreClient.connect(
                "127.0.0.1", (store.port,), place.run, lost.token, _PATIENCE, lost.who
            )
        except StoreError as error:
            return Found(verdict=None, sentence=str(error))
        self._client.set(messages.SURVIVORS.key(self._standby.task), self._said)
        loss = self._loss(self._await(desk))
        conclusion = conclude(loss)
        verdict = self._judge(loss, conclusion)
        store.put(messages.VERDICT.name, verdict)
        return Found(verdict=verdict, sentence=conclusion.sentence)

    def _await(self, desk: DeputyDesk) -> dict[int, Survivor]:
        """Return who has come, and what each of them saw, until all are there or time is up."""
        begun = time.monotonic()
        others = self._attendees.tasks - 1
        while True:
            assert self._client is not None  # noqa: S101  # it has just connected
            self._client.pump()
            desk.tick()
            now = time.monotonic()
            seconds = _SETTLE if len(desk.met) >= others else self._window
            if now >= min(begun + seconds, self._end()):
                return desk.met
            time.sleep(TICK)

    @property
    def _attendees(self) -> Attendees:
        """Who was there; without any news all tasks, each on a host of its own."""
        tasks = self._place.tasks
        return self._standby.attendees or Attendees(tasks=tasks, hosts=tasks, beside=1)

    def _loss(self, met: dict[int, Survivor]) -> Loss:
        return Loss(
            host=self._deputies.host,
            attendees=self._attendees,
            met=met or {self._standby.task: self._said},
            after=self._after,
            tasks=self._place.tasks,
        )
