"""The workers of one task: a zygote that imports torch once, and a fork of it for every post."""

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from gpucheck.facts import Answer
from gpucheck.host.supervised import KILL, TERMINATE, Supervised, is_running
from gpucheck.preflight.run.post import KILL_SECONDS, TERM_SECONDS, Deadlines, Post
from gpucheck.selftest import outcome
from gpucheck.selftest.crew import Crew, FromZygote, Message, OneByOne
from gpucheck.selftest.plan import CPU, Job

_FORKS = hasattr(os, "fork")

State = Literal["importing", "ready", "failed"]
Hear = Callable[[Post, Message], None]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there are no workers: torch does not import, or its process stands still."""

    status: Literal["failed", "crashed", "timed-out"]
    kind: str
    detail: str
    data: dict[str, Any] = {}


class Workers:
    """Starts workers, listens to them, ends them in time.

    Args:
        start: starts a program (``LiveHost.supervise``).
        python: the target interpreter.
        hear: gets what a worker says beyond what its post understands.
        import_seconds: how long importing torch may take.
        end: when the run must be over, a time of ``time.monotonic()``.
    """

    def __init__(
        self,
        start: Callable[[list[str]], Answer[Supervised]],
        python: str,
        hear: Hear,
        import_seconds: float,
        end: float,
    ) -> None:
        self._start = start
        self._python = python
        self._hear = hear
        self._import_limit = import_seconds
        self._end = end
        self._crew: Crew = OneByOne(start, python)
        self.posts: dict[str, Post] = {}
        self.state: State = "ready"
        self.failure: Failure | None = None
        self.import_seconds: float | None = None

    def open(self) -> None:
        """Have torch imported; ``state`` tells when that is done."""
        if not _FORKS:
            return
        zygote = FromZygote(self._start, self._python)
        self._crew = zygote
        self.state, self._sent = "importing", 0
        self._deadline = min(time.monotonic() + self._import_limit, self._end)
        self._stage = "import torch"
        if zygote.problem:
            self._fail({"kind": "not-started", "status": "crashed", "detail": zygote.problem})

    def post(self, rank: int, key: str, order: Message, deadlines: Deadlines) -> Post:
        """Start a worker for a rank."""
        if not isinstance(self._crew, FromZygote):  # it imports torch itself
            begin = deadlines.start + self._import_limit
            deadlines = msgspec.structs.replace(deadlines, start=begin)
        post = Post(rank, key, deadlines, self._end)
        self.posts[key] = post
        problem = self._crew.start(key, order)
        if problem:
            post.give_up(problem)
        return post

    def tick(self, seconds: float) -> None:
        """Wait at most so long for what workers say; end those whose time is over."""
        for key, message in self._crew.events(seconds):
            if not key and self.state == "importing":
                self._hear_import(message)
            elif (post := self.posts.get(key)) is not None:
                post.hear(message)
                self._hear(post, message)
        if self.state == "importing":
            self._push_import()
        for post in list(self.posts.values()):
            post.push(self._crew)
            if post.gone:
                del self.posts[post.key]
                if post.unkillable:
                    self._give_up_on(post)

    def close(self) -> None:
        """Kill what still runs."""
        self._crew.close()

    def _give_up_on(self, post: Post) -> None:
        """See whether it is the worker that stands still, or the zygote, which told nobody."""
        if not isinstance(self._crew, FromZygote):
            return
        pid = self._crew.pid(post.key)
        self._crew.close()
        for other in list(self.posts.values()):
            other.give_up("the process that forks the workers had to be ended")
            del self.posts[other.key]
        if post.result is not None and not (pid and is_running(pid)):
            post.unkillable = False
            post.result = msgspec.structs.replace(
                post.result,
                kind="zygote-stopped",
                detail="the process that forks the workers stood still",
            )
        self.open()

    def _hear_import(self, message: Message) -> None:
        event = message.get("event")
        if event == "stage":
            self._stage = str(message.get("text"))[:200]
        elif event == "ready":
            self.state = "ready"
            self.import_seconds = (message.get("notes") or {}).get("import_seconds")
            if message.get("cannot_fork"):
                self._crew.close()
                self._crew = OneByOne(self._start, self._python)
        elif "too_old" in message:
            said = f"it is Python {str(message['too_old'])[:20]}; gpucheck needs 3.8 or newer"
            self._fail({"kind": "too-old", "status": "crashed", "detail": said})
        elif event == "import-failed":
            self._fail({**message, "kind": "import-failed", "status": "failed"})
        elif event == "ended":
            killed = (
                f"no end of import torch after {self._import_limit:.0f} s" if self._sent else ""
            )
            job = Job(tests=("import-torch",), device=CPU, devices=(CPU,))
            ended = outcome.ended(job, "import-torch", self._stage, message, killed=killed)
            self._fail(
                {
                    "kind": ended.kind,
                    "status": ended.status,
                    "detail": ended.detail,
                    "data": ended.data,
                }
            )

    def _push_import(self) -> None:
        """End an import that takes too long, by the same ladder as a worker."""
        now = time.monotonic()
        if now < self._deadline:
            return
        if not self._sent:
            self._sent, self._deadline = TERMINATE, now + TERM_SECONDS
        elif self._sent == TERMINATE != KILL:
            self._sent, self._deadline = KILL, now + KILL_SECONDS
        else:
            said = "import torch cannot be killed: it is stuck in the driver or on a disk"
            self._fail({"kind": "unkillable", "status": "timed-out", "detail": said})
            return
        if isinstance(self._crew, FromZygote):
            self._crew.signal("", self._sent)

    def _fail(self, said: Message) -> None:
        self.state = "failed"
        data = said.get("data")
        with contextlib.suppress(msgspec.ValidationError):
            self.failure = Failure(
                status=msgspec.convert(said["status"], Literal["failed", "crashed", "timed-out"]),
                kind=str(said.get("kind", "")),
                detail=str(said.get("detail", ""))[:1000],
                data=data if isinstance(data, dict) else {},
            )
        self._crew.close()
