"""One task's run of ``gpucheck preflight``: from its options to its exit status."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from gpucheck.cluster.files import Before
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.lines_command import ProgressLine, print_line
from gpucheck.cluster.pages import FORMATS
from gpucheck.cluster.request import PreflightRequest
from gpucheck.cluster.session import Session
from gpucheck.cluster.store.task_messages import Verdict
from gpucheck.cluster.use_case import Task
from gpucheck.doctor.run import open_tables, say_whose_programs
from gpucheck.interface.errors import AskError
from gpucheck.interface.live_out import to_nowhere
from gpucheck.interface.options import rendered
from gpucheck.interface.text import page_options, refuse_unwritable, words_of, write_out
from gpucheck.language import say
from gpucheck.machine.candidates import TargetWish

_LATE, _AFTER_SIGNAL, _LOOK = 5.0, 9.0, 0.25
"""Seconds after the time limit, and after a SIGTERM, until the process ends itself by force; and
the interval of the check."""
_FILES = ("output", "exclude_file", "good_file", "status_file", "metrics", "bundle")
_FAREWELL = 8
"""Seconds for the last output after a SIGTERM, before SIGALRM ends the process."""


class Run(Task):
    """One task's run as a process of its own, which prints and writes.

    Args:
        options: of the command line.
        begun: when the command began, a time of ``time.monotonic()``.

    Raises:
        UsageError: an option, or the launcher's information, makes no sense.
    """

    takes_signals = True

    def __init__(self, options: dict[str, Any], begun: float) -> None:
        self._options = options
        self._over = threading.Event()
        wish = {name: options[name] for name in PreflightRequest.__struct_fields__}
        super().__init__(PreflightRequest(**wish), open_tables(options["tables"]), begun)
        self._before = Before(options[name] for name in _FILES)
        self._line = ProgressLine() if self._shows_progress() else None

    def run(self) -> int:
        """Run it; return the exit status."""
        self._watch()
        try:
            return self._run()
        finally:
            _flush()  # it may block, so the watchdog still looks
            self._over.set()

    @contextlib.contextmanager
    def _in_charge_of_signals(self) -> Iterator[None]:
        # A launcher ends the other tasks as soon as one has left: results are written all the same.
        signal.signal(signal.SIGTERM, lambda _number, _frame: signal.alarm(_FAREWELL))
        try:
            yield
        finally:
            # Python resets its signal handlers while it exits; the status must not change by then.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _watch(self) -> None:
        """End this process when the run is late: a stopped terminal or a full pipe may block it."""
        limit = self._begun + self._options["timeout"] + _LATE

        def watch() -> None:
            end = limit
            while time.monotonic() < end:
                if self._over.wait(_LOOK):
                    return
                if self._session is not None and self._session.told_to_end:
                    end = min(end, time.monotonic() + _AFTER_SIGNAL)
            os._exit(self._status)

        threading.Thread(target=watch, name="watchdog", daemon=True).start()

    def _all_is_known(self) -> None:
        """Remove the line that shows progress."""
        if self._line is not None:
            self._line.clear()

    def _show(self, result: Result) -> None:
        """Print the result, and write the requested files."""
        self._options = {**self._options, **self._left_to_others(result)}
        for write in (self._print, self._write_files):
            try:
                write(result)
            except click.ClickException as error:  # a full disk does not change the verdict,
                self._note(error.message)
            except OSError as error:  # and neither does a reader that has left
                to_nowhere(sys.stdout)
                self._note(say("the output cannot be written: {why}", why=error.strerror))

    def _left_to_others(self, result: Result) -> dict[str, None]:
        """Return the options of files that the others have written, and that stay as they are.

        A task 0 that hears no more than half of the hosts may be cut off. Tasks that have met
        without it write only if they are more than half, so they know better.
        """
        written = [
            name
            for name in _FILES
            if result.hears_few
            and self._options[name]
            and self._before.has_changed(self._options[name])
        ]
        for name in written:
            self._note(
                say(
                    "{file} stays as it is: tasks that have met without this one have written it, "
                    "and they are more",
                    file=self._options[name],
                )
            )
        return dict.fromkeys(written)

    def _print(self, result: Result) -> None:
        write_out(result_text(result, self._options), self._options["output"])
        sys.stdout.flush()

    def _write_files(self, result: Result) -> None:
        from gpucheck.cluster.pages import files as preflight_files  # noqa: PLC0415

        options = self._options
        said = preflight_files.write_files(
            result,
            exclude_file=options["exclude_file"],
            good_file=options["good_file"],
            record=options["record"],
            status_file=options["status_file"],
            metrics=options["metrics"],
            bundle_file=options["bundle"],
            history=self._judgement.history,
        )
        for sentence in said:
            self._note(sentence)

    def _take_verdict(
        self,
        session: Session,
        verdict: Mapping[str, Any],
        said: Verdict | None,  # noqa: ARG002  # the file has the verdict as data
    ) -> None:
        """Write what this task has seen; a failure does not change the verdict."""
        self._write_each(session.own, verdict)

    def _without_verdict(self, verdict: Mapping[str, Any]) -> None:
        facts = {"task": self._entrance.task, "host": self._host.identity().node}
        self._write_each({"facts": facts}, verdict)

    def _write_each(self, own: Mapping[str, Any], verdict: Mapping[str, Any]) -> None:
        if self._options["each"]:
            from gpucheck.cluster import files  # noqa: PLC0415

            try:
                files.write_each(self._options["each"], own, verdict)
            except files.FileError as error:
                self._note(say("--each: {why}", why=words_of(error)))

    def _asks(self, python: TargetWish) -> None:
        """Report whose programs root is about to run."""
        if self._entrance.task == 0 and not self._options["quiet"]:
            say_whose_programs(self._host, python)

    def _say_refused(self, why: str) -> None:
        self._line_of_task(say("it cannot take part: {why}", why=why), err=True)

    def _refused(self, _error: AskError, status: int) -> BaseException:
        return click.exceptions.Exit(status)

    def _check_places(self) -> None:
        """Refuse files that cannot be written, before the work; in a job no other task may wait.

        Raises:
            RefusedError: one cannot.
        """
        if self._entrance.tasks == 1:
            for name in _FILES:
                refuse_unwritable(self._options[name])

    def _shows_progress(self) -> bool:
        return sys.stderr.isatty() and not self._options["quiet"] and self._entrance.task == 0

    def _tell(self, what: str) -> None:
        if self._line is not None:
            self._line.show(what, time.monotonic() - self._begun)

    def _say(self, sentence: str, *, err: bool = False, always: bool = False) -> None:
        """Print the one line of a task without a report; only one task of each node does.

        Where task 0 has gone, task 1 is the lowest on its node.
        """
        if always or self._entrance.local == 0 or self._entrance.task == 1:
            self._line_of_task(sentence, err=err)

    def _line_of_task(self, sentence: str, *, err: bool) -> None:
        task, node = self._entrance.task, self._host.identity().node
        line = say(
            "gpucheck preflight: task {task} on {host}: {what}",
            task=task, host=node, what=sentence,
        )  # fmt: skip
        print_line(line, err=err)

    def _note(self, sentence: str) -> None:
        if sentence and not self._options["quiet"]:
            print_line(say("gpucheck preflight: {what}", what=sentence), err=True)


def result_text(result: Result, options: dict[str, Any]) -> str:
    """Return the result in the requested format."""
    if options["form"] == "terminal":
        from gpucheck.cluster.pages import terminal as preflight_text  # noqa: PLC0415

        return preflight_text.render(result, **page_options(options))
    return rendered(FORMATS, options["form"], result)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
