"""One task's run of ``gpucheck preflight``: from its options to its exit status."""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import click

from gpucheck.cluster.files import Before, FileError, made
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.model import StepResult
from gpucheck.cluster.pages import FORMATS
from gpucheck.cluster.request import PreflightRequest
from gpucheck.cluster.store.task_messages import Verdict
from gpucheck.cluster.use_case import PreflightListener, Task
from gpucheck.doctor.run import open_tables, say_whose_programs
from gpucheck.facts.preflight import Culprit
from gpucheck.interface.errors import words_of
from gpucheck.interface.options import rendered
from gpucheck.interface.text import (
    LiveOut,
    UsageRefusedError,
    page_options,
    printable,
    refuse_unwritable,
    to_nowhere,
    write_out,
)
from gpucheck.language import say, spoken
from gpucheck.machine import Host
from gpucheck.machine.candidates import TargetWish
from gpucheck.output.words import headed

# The lines that one task of a pre-flight prints while it runs; none of them can block it.


class ProgressLine:
    """One line on a terminal that shows what is going on."""

    def __init__(self) -> None:
        self._out = LiveOut(sys.stderr)
        self._shown = ""

    def show(self, what: str, seconds: float) -> None:
        """Show it, once it takes more than a second."""
        line = spoken(say("{what} ({seconds:.0f} s)", what=what, seconds=seconds))
        if seconds >= 1 and line != self._shown and _can_write(sys.stderr):
            self._shown = line
            self._out.write(f"\r\x1b[K{printable(line, limit=120)}")

    def clear(self) -> None:
        """Remove the line."""
        if self._shown and _can_write(sys.stderr):
            self._out.write("\r\x1b[K")


def _can_write(terminal: TextIO) -> bool:
    """Whether a terminal accepts output now: a stopped one (Ctrl-S) would block us."""
    try:
        return bool(select.select([], [terminal], [], 0)[1])
    except (OSError, ValueError):
        return False


def print_line(sentence: str, *, err: bool) -> None:
    """Print a sentence; if nobody can read it, the exit status does not change."""
    stream = sys.stderr if err else sys.stdout
    try:
        stream.write(printable(spoken(sentence), limit=600) + "\n")
        stream.flush()
    except (OSError, ValueError):
        to_nowhere(stream)


_LATE, _AFTER_SIGNAL, _LOOK = 5.0, 9.0, 0.25
"""Seconds after the time limit, and after a SIGTERM, until the process ends itself by force; and
the interval of the check."""
_FILES = ("output", "exclude_file", "good_file", "status_file", "metrics", "bundle")
"""Options with a file that is replaced: checked before the work, and left to others after it, like
the files of ``--out-dir``."""
_RANKS = "ranks"
"""The folder of all tasks in ``--out-dir``."""
_NAMED = 3
"""Culprits that each pod names; the report has all."""
_FAREWELL = 8
"""Seconds for the last output after a SIGTERM, before SIGALRM ends the process."""


def run(options: dict[str, Any], begun: float) -> int:
    """Run it; return the exit status.

    Args:
        options: of the command line.
        begun: when the command began, a time of ``time.monotonic()``.

    Raises:
        UsageError: an option, or the launcher's information, makes no sense.
    """
    printer = Printer(options, begun)
    request = request_of(options)
    task = Task(request, open_tables(options["tables"]), begun, printer, owns_process=True)
    return watched(task, printer, begun + request.timeout)


def request_of(options: dict[str, Any]) -> PreflightRequest:
    """Return what is asked for."""
    names = PreflightRequest.__struct_fields__
    return PreflightRequest(**{name: options[name] for name in names if name in options})


def watched(task: Task, printer: "Printer", end: float) -> int:
    """Run a task, and end this process when it is late; return the exit status."""
    over = threading.Event()
    _watch(task, over, end + _LATE)
    try:
        return task.run()
    finally:
        printer.end()  # it may block, so the watchdog still looks
        over.set()


def _watch(task: Task, over: threading.Event, limit: float) -> None:
    """End this process when the run is late: a stopped terminal or a full pipe may block it."""

    def watch() -> None:
        end = limit
        while time.monotonic() < end:
            if over.wait(_LOOK):
                return
            if task.told_to_end:
                end = min(end, time.monotonic() + _AFTER_SIGNAL)
        os._exit(task.status)

    threading.Thread(target=watch, name="watchdog", daemon=True).start()


class Printer(PreflightListener):
    """Prints and writes what becomes of a task that is a process of its own.

    Args:
        options: of the command line.
        begun: when the command began, a time of ``time.monotonic()``.
    """

    def __init__(self, options: dict[str, Any], begun: float) -> None:
        self.options = options
        self._begun = begun
        self._paths = {name: [options[name]] for name in _FILES if options.get(name)}
        if options.get("out_dir"):
            from gpucheck.cluster.pages.files import in_folder  # noqa: PLC0415

            self._paths["out_dir"] = in_folder(options["out_dir"])
        self._before = Before(path for paths in self._paths.values() for path in paths)
        self._folder_failed = False
        self._line: ProgressLine | None = None
        self._task, self._host = 0, ""
        self._is_first_here = True
        self._is_connected = False
        self._is_pod = False
        self._has_printed = False

    def placed(self, place: TaskPlace, host: str) -> None:
        """Refuse files that cannot be written, before the work; in a job no other task may wait.

        Raises:
            RefusedError: one cannot.
        """
        self._task, self._host = place.task, host
        self._is_first_here = place.local == 0
        self._is_pod = place.launcher == "kubernetes"
        if sys.stderr.isatty() and not self.options["quiet"] and place.task == 0:
            self._line = ProgressLine()
        if place.tasks == 1:
            for name, paths in self._paths.items():
                if name == "out_dir":
                    self._make_folder()
                for path in paths:
                    refuse_unwritable(path)

    def _make_folder(self) -> None:
        try:
            made(self.options["out_dir"])
        except FileError as error:
            raise UsageRefusedError(headed("--out-dir", words_of(error))) from error

    def accepted(self, host: Host, target: TargetWish) -> None:
        """Report whose programs root is about to run."""
        if self._task == 0 and not self.options["quiet"]:
            say_whose_programs(host, target)

    def refused(self, why: str) -> None:
        """Report that this task of a job cannot take part."""
        self._line_of_task(say("it cannot take part: {why}", why=why), err=True)

    def others_know(self, status: int) -> None:
        """End with the status of the job: why is printed already."""
        raise click.exceptions.Exit(status)

    def connected(self) -> None:
        """Have some seconds left at a SIGTERM.

        A launcher ends the other tasks as soon as one has left: results are written all the same.
        """
        self._is_connected = True
        signal.signal(signal.SIGTERM, lambda _number, _frame: signal.alarm(_FAREWELL))

    def progress(self, what: str) -> None:
        """Show it."""
        if self._line is not None:
            self._line.show(what, time.monotonic() - self._begun)

    def tests_over(self) -> None:
        """Remove the line that shows progress."""
        if self._line is not None:
            self._line.clear()

    def result(self, result: Result, history: Sequence[StepResult]) -> None:
        """Print the result, and write the requested files."""
        self._has_printed = True
        self.options = {**self.options, **self._left_to_others(result)}
        for write in (partial(self._print, result), partial(self.write_files, result, history)):
            try:
                write()
            except click.ClickException as error:  # a full disk does not change the verdict,
                self.note(error.message)
            except OSError as error:  # and neither does a reader that has left
                to_nowhere(sys.stdout)
                self.note(say("the output cannot be written: {why}", why=error.strerror))

    def _left_to_others(self, result: Result) -> dict[str, None]:
        """Return the options of files that the others have written, and that stay as they are.

        A task 0 that hears no more than half of the hosts may be cut off. Tasks that have met
        without it write only if they are more than half, so they know better.
        """
        written = [
            name
            for name, paths in self._paths.items()
            if result.hears_few and any(map(self._before.has_changed, paths))
        ]
        for name in written:
            self.note(
                say(
                    "{file} stays as it is: tasks that have met without this one have written it, "
                    "and they are more",
                    file=self.options[name],
                )
            )
        return dict.fromkeys(written)

    def _print(self, result: Result) -> None:
        write_out(result_text(result, self.options), self.options["output"])
        sys.stdout.flush()

    def write_files(self, result: Result, history: Sequence[StepResult]) -> None:
        """Write the requested files."""
        from gpucheck.cluster.pages.files import write_files, write_folder  # noqa: PLC0415

        if folder := self.options.get("out_dir"):
            try:
                self.note(write_folder(folder, result, history))
            except FileError as error:
                self._folder_failed = True
                self.note(headed("--out-dir", words_of(error)))
        for sentence in write_files(result, self.options, history):
            self.note(sentence)

    def verdict(
        self, own: Mapping[str, Any], plain: Mapping[str, Any], message: Verdict | None
    ) -> None:
        """Write what this task has seen; a failure does not change the verdict."""
        from gpucheck.cluster.files import write_each  # noqa: PLC0415

        if self._is_pod and not self._has_printed and message is not None:
            self._name_culprits(message.culprits)

        if self.options.get("each"):
            try:
                write_each(self.options["each"], own, plain)
            except FileError as error:
                self.note(headed("--each", words_of(error)))
        if self.options.get("out_dir"):
            try:
                write_each(Path(self.options["out_dir"]) / _RANKS, own, plain)
            except FileError as error:  # one sentence for each host
                if self._is_first_here and not self._folder_failed:
                    self.note(headed("--out-dir", words_of(error)))

    def _name_culprits(self, culprits: Sequence[Culprit]) -> None:
        """Name them in the log of each pod of a Job, first the worst.

        The first pod that fails ends the Job, and Kubernetes then removes those that still run: the
        pod that prints the whole report may be one of them, and its log is gone.
        """
        from gpucheck.cluster.pages.words import sentence  # noqa: PLC0415

        for culprit in culprits[:_NAMED]:
            named = say("{culprit} [{slug}]", culprit=sentence(culprit), slug=culprit.slug)
            self._line_of_task(named, err=False)

    def no_report(self, why: str, *, err: bool = False, always: bool = False) -> None:
        """Print the one line of a task without a report; only one task of each node does.

        Where task 0 has gone, task 1 is the lowest on its node.
        """
        if always or self._is_first_here or self._task == 1:
            self._line_of_task(why, err=err)

    def _line_of_task(self, sentence: str, *, err: bool) -> None:
        line = say(
            "gpucheck preflight: task {task} on {host}: {what}",
            task=self._task, host=self._host, what=sentence,
        )  # fmt: skip
        print_line(line, err=err)

    def note(self, sentence: str) -> None:
        """Print it."""
        if sentence and not self.options["quiet"]:
            print_line(say("gpucheck preflight: {what}", what=sentence), err=True)

    def end(self) -> None:
        """Flush what was printed; the exit status no longer changes."""
        if self._is_connected:
            # Python resets its signal handlers while it exits; the status must not change by then.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()


def result_text(result: Result, options: dict[str, Any]) -> str:
    """Return the result in the requested format."""
    if options["form"] == "terminal":
        from gpucheck.cluster.pages import terminal as preflight_text  # noqa: PLC0415

        return preflight_text.render(result, **page_options(options))
    return rendered(FORMATS, options["form"], result)
