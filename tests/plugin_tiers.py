"""A pytest plugin: every test has one tier, by its marker; a test without one is ``fast``."""

import ast
import functools
import gc
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

TIERS = ("fast", "process", "exhaustive", "hostile", "gate", "gpu")
_OBJECTS_BETWEEN_COLLECTIONS = 20_000


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use no workers for a few tests, which they only delay, nor for those that share a cluster.

    For the others use two more than there are processors: many tests wait for a process, a
    deadline or a socket, about a quarter of the time of all.
    """
    few = config.args_source is pytest.Config.ArgsSource.ARGS or config.option.finding
    if few or config.option.markexpr in ("gate", "gpu"):
        return 0
    is_known = hasattr(os, "sched_getaffinity")  # on Linux
    return 2 + (len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where one tier is asked for, do not even import the modules of another."""
    wanted = config.option.markexpr
    if wanted not in TIERS or collection_path.suffix != ".py":
        return None
    return True if module_tier(collection_path) not in (None, wanted) else None


def module_tier(file: Path) -> str | None:
    """Return the tier in a module's ``pytestmark``, without importing the module."""
    text = file.read_text(encoding="utf-8")
    if "pytestmark" not in text:
        return None
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark":
            names = {node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
            return next((tier for tier in TIERS if tier in names), None)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its tier, before the expression of ``-m`` chooses."""
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        tiers = [tier for tier in TIERS if tier in marks]
        if len(tiers) > 1:
            raise pytest.UsageError(f"{item.nodeid} has two tiers: {' and '.join(tiers)}")
        if not tiers:
            item.add_marker("fast")
        item.user_properties.append(("tier", tiers[0] if tiers else "fast"))
    # Workers begin at different places of the list. What a test knows of the machines it keeps for
    # the next test of its process, so those that ask for it stand together.
    items.sort(key=lambda item: not _asks_the_machines(item))


def _asks_the_machines(item: pytest.Item) -> bool:
    """Whether the module of a test uses the reports of the machines, or makes its own of them."""
    module = getattr(item, "module", None)
    return module is not None and _uses_machines(module)


@functools.cache
def _uses_machines(module: ModuleType) -> bool:
    names = {getattr(value, "__module__", None) for value in vars(module).values()}
    return "test_machines" in vars(module) or "test_machines" in names


def pytest_collection() -> None:
    """Keep the garbage collector off what is collected: it finds nothing in a fifth of the time."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the garbage collector off the collected tests, which live to the end, and run it less.

    Otherwise it takes a seventh of the time of the fast tests.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how long each tier took."""
    tests: dict[str, set[str]] = defaultdict(set)
    seconds: dict[str, float] = defaultdict(float)
    for report in _reports(terminalreporter):
        tier = str(dict(report.user_properties).get("tier"))
        tests[tier].add(report.nodeid)
        seconds[tier] += report.duration
    if not tests:
        return
    terminalreporter.section("tiers (seconds of all workers together)")
    for tier in filter(tests.get, TIERS):
        terminalreporter.line(f"{tier:12}{len(tests[tier]):6} tests{seconds[tier]:8.1f} s")


def _reports(reporter: pytest.TerminalReporter) -> Iterator[pytest.TestReport]:
    for reports in reporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.user_properties:
                yield report
