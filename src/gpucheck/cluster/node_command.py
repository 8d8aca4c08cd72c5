"""``gpucheck node``: is this node fit for jobs? One line, and Slurm's exit status."""

import re
import time
from collections.abc import Sequence
from typing import Any

import click

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import StepResult
from gpucheck.cluster.pages import words
from gpucheck.cluster.run_command import Printer, request_of, watched
from gpucheck.cluster.session import NodeOutcome, is_unfit, of_report, suspects
from gpucheck.cluster.use_case import Task
from gpucheck.doctor.commands.check import show_report
from gpucheck.doctor.run import listening, open_host, open_tables, run_probes
from gpucheck.doctor.selftests import run_selftests, test_names
from gpucheck.engine import judge_machine
from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import GpuWord
from gpucheck.interface.text import printable
from gpucheck.language import in_series, say
from gpucheck.machine import waker
from gpucheck.selftests import plan
from gpucheck.selftests.plan import Wish
from gpucheck.worker.trial import TESTS

# The one line of ``gpucheck node``: a reason for Slurm, always in English.
#
# It is data for programs, like JSON: scripts pass it to ``scontrol update Reason=...`` and ``sinfo
# -R`` shows it. So it has only characters that mean nothing to a shell, to scontrol or to a
# terminal.

LONGEST = 120  # chosen: Slurm keeps it as the reason of a node, which is read as one line
_UNSAFE = re.compile(r"[^A-Za-z0-9 ._:/,+@%-]+")
_OWNER = re.compile(r"'s\b")
"""What would leave a stray letter behind: the apostrophe is not kept."""
_GAP = re.compile(r" ([,:])")
_MISCONFIGURED, _SLOW = 4, 5  # exit statuses: docs/architecture.md, 1.2
_NO_GPU = "no NVIDIA GPU to judge, --gpus says how many there should be"


def of_node(node: NodeOutcome, snapshot: Snapshot) -> str:
    """Return the line of a node that was checked by itself."""
    if node.unfit:
        first = node.unfit[0]
        what = ", ".join(_named(node, "replace", "drain"))
        return node_line(first.slug, f"{what}: {first.headline}" if what else first.headline)
    if node.unknown:
        return node_line("unknown", node.unknown[0].reason)
    named = _named(node, "replace", "drain", "watch")  # the first two where nothing counts
    count = len(snapshot.get(Nvml).gpus or ())
    if not count:  # with --gpus the node would be unfit
        return node_line("unknown", _NO_GPU)
    count -= len(named)
    healthy = f"{count} GPU{'' if count == 1 else 's'} without a fault of driver or hardware"
    return node_line("fit", ", ".join((*named, healthy, _tested(snapshot.get(SelfTests)))))


def _named(node: NodeOutcome, *each: GpuWord) -> list[str]:
    """Return ``drain GPU 3`` for each GPU with one of these words."""
    return [
        f"{word} GPU {gpu.pci_address if gpu.index is None else gpu.index}"
        for word in each
        for gpu in node.gpus
        if gpu.verdict == word
    ]


def of_result(result: Result, history: Sequence[StepResult]) -> str:
    """Return the line of a node whose GPUs were tested together."""
    found = words.causes(result)
    if is_unfit(result.ending, history):
        drill = "drill: " if result.drill else ""
        if not found:
            ranks = words.spans([suspect.rank for suspect in suspects(history)])
            return node_line(f"{drill}unfit", f"ranks {ranks} failed, nobody can be named")
        return node_line(f"{drill}{found[0].slug}", _of_cause(found[0]))
    if result.ending.status in (_MISCONFIGURED, _SLOW):
        return node_line("unknown", f"{result.ending.word}: {found[0].slug if found else ''}")
    if result.ending.status == words.INCONCLUSIVE:
        return node_line("unknown", result.ending.why)
    return node_line("fit", words.healthy(result))


def _of_cause(cause: words.ShownCause) -> str:
    if not cause.culprits:
        return cause.finding.headline if cause.finding else ""
    first = cause.culprits[0]
    place = f"ranks {words.spans(first.ranks)}"
    if first.gpu is not None:
        place = f"GPU {first.gpu} {first.pci or ''}"
    return f"{place}: {first.evidence}"


def node_line(word: str, reason: str) -> str:
    """Return ``gpucheck: WORD: what was seen``, short and without special characters."""
    text = _UNSAFE.sub(" ", _OWNER.sub("", f"gpucheck: {word}: {reason}"))
    text = _GAP.sub(r"\1", " ".join(text.split())).rstrip(" ,:-")
    if len(text) <= LONGEST:
        return text
    return text[: LONGEST + 1].rpartition(" ")[0].rstrip(" ,:-")


def _tested(tests: SelfTests) -> str:
    results = [result for result in tests.results or () if not result.is_import]
    if results and all(result.status == "passed" for result in results):
        return "self-tests passed"
    return "not every self-test finished" if results else "no self-test was run"


_QUICK, _TOGETHER = 10.0, 90.0
"""The time limits in seconds unless the user gives another."""
_NO_TESTS = "none"
_FIT, _UNFIT = 0, 1
"""Exit statuses: Slurm drains a node whose Prolog ends with anything but 0."""
_OF_PROBES = 0.6
"""The share of the time for the static checks."""
_LEAST, _TO_END = 2.0, 1.0
"""Seconds that self-tests need to be worth starting, and that are left to end them."""
_OF_JOBS = ("master", "nodes", "port", "ranks", "links", "each", "out_dir")
"""Options that make no sense for one node by itself; of these ``gpucheck node`` has ``--ranks``."""
_TOGETHER_ONLY = ("exclude_file", "good_file", "run_log", "status_file", "metrics", "bundle")
"""Options with files about a pre-flight, which the quick level has none of."""


def run(options: dict[str, Any], begun: float) -> int:
    """Check the node; return 1 if it should be drained, else 0.

    It is a pre-flight of that node if ``--level`` is above quick. ``preflight --node`` is its
    earlier name, and has the options of a job as well.

    Raises:
        click.UsageError: an option is about several nodes, or makes no sense.
    """
    together = options["level"] != "quick" and options["tests"] != _NO_TESTS
    odd = [name for name in _OF_JOBS if options.get(name) and not (name == "ranks" and together)]
    if odd:
        raise click.UsageError(
            say("this checks one node alone, without {option}", option=_spelled(odd[0]))
        )
    if options["timeout"] is None:
        options["timeout"] = _QUICK if options["level"] == "quick" else _TOGETHER
    tests = () if options["tests"] == _NO_TESTS else test_names(options["tests"]) or TESTS
    line = _Line({**options, "level": "quick", "tests": ",".join(tests)}, begun)
    task = Task(
        request_of(line.options), open_tables(options["tables"]), begun, line,
        owns_process=True, is_alone=True,
    )  # fmt: skip
    has_devices = line.check(tests, task.requirements.gpus_per_node, ends_there=not together)
    files = [_spelled(name) for name in _TOGETHER_ONLY if options.get(name)]
    if files and not together:
        line.note(say("nothing is written for {options} at this level", options=in_series(files)))
    if together and not line.is_unfit and has_devices:
        end = begun + options["timeout"]
        with waker.beside(end):
            watched(task, line, end)
    click.echo(printable(line.text, limit=2 * LONGEST))
    return _UNFIT if line.is_unfit else _FIT


def _spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class _Line(Printer):
    """The line about the node, which is printed at the end."""

    def __init__(self, options: dict[str, Any], begun: float) -> None:
        super().__init__(options, begun)
        self.is_unfit = False
        self.text = node_line("unknown", "the time was over before the GPUs were tested")

    def check(self, tests: tuple[str, ...], gpus: int | None, *, ends_there: bool) -> bool:
        """Run the static checks; return whether there are devices for a pre-flight.

        ``ends_there``: no pre-flight follows, so as many of the tests are run as there is time for.
        """
        options = self.options
        tables = open_tables(options["tables"])
        host = open_host("")
        limit = {**options, "timeout": options["timeout"] * _OF_PROBES}
        snapshot = run_probes(host, tables, limit, request=Request(gpus=gpus)).snapshot
        left = self._begun + options["timeout"] - time.monotonic() - _TO_END
        by_itself = plan.why_not_by_itself(snapshot)
        if tests and ends_there and not by_itself and left >= _LEAST:
            selftest_request = Wish(tests=tests, timeout=left)
            with listening(options) as listener:
                snapshot = run_selftests(
                    host, snapshot, tables, selftest_request, show=listener.tests
                )
        report = judge_machine(snapshot, tables)
        node = of_report(report, tables, options["fail_on"], gpus)
        self.is_unfit = bool(node.unfit)
        self.text = of_node(node, snapshot)
        if options["output"]:
            show_report(report, options)
        return options["device"] == "cpu" or not by_itself

    def result(self, result: Result, history: Sequence[StepResult]) -> None:
        """Keep the line for the end, and write the report if it has a file."""
        self.is_unfit = is_unfit(result.ending, history)
        self.text = of_result(result, history)
        if self.options["output"]:
            super().result(result, history)
        else:
            self.write_files(result, history)

    def no_report(self, why: str, *, err: bool = False, always: bool = False) -> None:  # noqa: ARG002  # it is not printed
        """Keep why there is no result: it says nothing about the node."""
        self.text = node_line("unknown", why)
