"""``gpucheck preflight --node``: is this node fit for jobs? One line, and Slurm's exit status."""

import time
from typing import Any

import click

from gpucheck.api.selftests import run_selftests, test_names
from gpucheck.cli.commands.check import show_report
from gpucheck.cli.preflight_run import Run
from gpucheck.cli.run import listening, open_host, open_tables, run_probes
from gpucheck.cli.text import printable
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.launchers import entrance
from gpucheck.cluster.node_check import is_unfit, of_report
from gpucheck.engine import judge_machine
from gpucheck.facts.request import Request
from gpucheck.language import say
from gpucheck.machine import waker
from gpucheck.output import node_line
from gpucheck.selftests import eligibility
from gpucheck.selftests.plan import Wish
from gpucheck.worker.alone import TESTS

_QUICK, _TOGETHER = 10.0, 90.0
"""The time limits in seconds unless the user gives another."""
_NO_TESTS = "none"
_FIT, _UNFIT = 0, 1
_OF_PROBES = 0.6
"""The share of the time for the static checks."""
_LEAST, _TO_END = 2.0, 1.0
"""Seconds that self-tests need to be worth starting, and that are left to end them."""
_OF_JOBS = ("master", "nodes", "port", "ranks", "links", "each")


def seconds(level: str) -> float:
    """Return the usual time limit of a level."""
    return _QUICK if level == "quick" else _TOGETHER


class NodeRun(Run):
    """The check of one node; it is a pre-flight of that node if ``--level`` is above quick.

    Raises:
        click.UsageError: an option is about several nodes, or makes no sense.
    """

    def __init__(self, options: dict[str, Any], begun: float) -> None:
        together = options["level"] != "quick" and options["tests"] != _NO_TESTS
        odd = [name for name in _OF_JOBS if options[name] and not (name == "ranks" and together)]
        if odd:
            raise click.UsageError(
                say(
                    "--node checks this node alone, without {option}",
                    option=f"--{odd[0].replace('_', '-')}",
                )
            )
        self._together = together
        self._unfit = self._has_devices = False
        self._said = node_line.line("unknown", "the time was over before the GPUs were tested")
        self._tests = () if options["tests"] == _NO_TESTS else test_names(options["tests"]) or TESTS
        usual = {**options, "level": "quick", "tests": ",".join(self._tests)}
        super().__init__(usual, begun)

    def run(self) -> int:
        """Check the node; return 1 if it should be drained, else 0."""
        self._check()
        if self._together and not self._unfit and self._has_devices:
            with waker.beside(self._begun + self._options["timeout"]):
                super().run()
        click.echo(printable(self._said, limit=2 * node_line.LONGEST))
        return _UNFIT if self._unfit else _FIT

    def _check(self) -> None:
        """Run the static checks, and as many self-tests as there is time for."""
        options, gpus = self._options, self._requirements.gpus_per_node
        tables = open_tables(options["tables"])
        host = open_host("")
        limit = {**options, "timeout": options["timeout"] * _OF_PROBES}
        snapshot = run_probes(host, tables, limit, request=Request(gpus=gpus)).snapshot
        left = self._begun + options["timeout"] - time.monotonic() - _TO_END
        by_itself = eligibility.why_not_by_itself(snapshot)
        if self._tests and not (self._together or by_itself) and left >= _LEAST:
            wish = Wish(tests=self._tests, timeout=left)
            with listening(options) as listener:
                snapshot = run_selftests(host, snapshot, tables, wish, show=listener.tests)
        report = judge_machine(snapshot, tables)
        node = of_report(report, tables, options["fail_on"], gpus)
        self._has_devices = options["device"] == "cpu" or not by_itself
        self._unfit = bool(node.unfit)
        self._said = node_line.of_node(node, snapshot)
        if options["output"]:
            show_report(report, options)

    def _find_entrance(self) -> entrance.TaskPlace:
        """Return this process alone, whatever has started it."""
        return entrance.alone(self._host.env())

    def _show(self, result: Result) -> None:
        """Keep the line for the end, and write the report if it has a file."""
        history = self._judgement.history
        self._unfit = is_unfit(result.ending, history)
        self._said = node_line.of_result(result, history)
        if self._options["output"]:
            super()._show(result)
        else:
            self._write_files(result)

    def _say(self, sentence: str, *, err: bool = False, always: bool = False) -> None:  # noqa: ARG002  # it is not printed
        """Keep why there is no result: it says nothing about the node."""
        self._said = node_line.line("unknown", sentence)
