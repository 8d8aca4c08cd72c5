"""The progress of the self-tests, as the command line shows it."""

import time
from typing import Literal

State = Literal["waiting", "running", "passed", "failed", "skipped", "timed-out", "crashed"]


class ProgressGrid:
    """The state of each self-test in each place."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[str, State]] = {}
        """By test, then by place."""
        self.stages: dict[str, str] = {}
        """What each place is about to do."""
        self.started = time.monotonic()

    def put(self, test: str, place: str, state: State) -> None:
        """Set the state of a test in a place."""
        self.cells.setdefault(test, {})[place] = state
