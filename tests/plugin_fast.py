"""A pytest plugin: a fast test that starts a process or imports torch fails, and is told so."""

import sys
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from plugin_tiers import module_tier

_STARTS = frozenset(
    ["subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"]
)


class _Watch:
    """What the interpreter does meanwhile. An audit hook sees it whoever does it, and stays."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        """Note what no fast test may do."""
        if not self.on:
            return
        if event in _STARTS:
            self.seen.append(f"starts a process ({event}, {_where()})")
        elif event == "import" and arguments[0] == "torch":
            self.seen.append(f"imports torch ({_where()})")


_WATCH = _Watch()
sys.addaudithook(_WATCH.hook)


def _where() -> str:
    """Return the innermost line of a test or of gpucheck that is being executed."""
    for frame in reversed(traceback.extract_stack()):
        if frame.filename != __file__ and {"tests", "gpucheck"} & set(Path(frame.filename).parts):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "nowhere in gpucheck"


@contextmanager
def _watching(*, on: bool) -> Iterator[list[str]]:
    _WATCH.on, _WATCH.seen = on, []
    try:
        yield _WATCH.seen
    finally:
        _WATCH.on = False


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Watch the import of a module that has no tier: its tests are fast, unless marked."""
    fast = isinstance(collector, pytest.Module) and not module_tier(collector.path)
    with _watching(on=fast) as seen:
        report = yield
    if seen:
        report.outcome = "failed"
        report.longrepr = f"A module without a tier is fast, but {collector.nodeid} {seen[0]}."
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Watch the fixtures of a fast test."""
    yield from _fast(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Watch a fast test itself."""
    yield from _fast(item)


def _fast(item: pytest.Item) -> Generator[None]:
    with _watching(on=item.get_closest_marker("fast") is not None) as seen:
        yield
    if seen:
        pytest.fail(f"A fast test must not, but this one {seen[0]}: mark it.", pytrace=False)
