"""One test for many items: it goes on after a failure, and names the items that fail.

``each`` is written like ``pytest.mark.parametrize``, and the check below it looks the same. pytest
sees one test, which costs it nothing for an item: neither to collect, nor to send it to a worker.
``pytest --item TEXT`` chooses the items whose names contain a text.
"""

import functools
import inspect
import itertools
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

Check = Callable[..., None]
Items = Iterable[object] | Callable[[], Iterable[object]]
SHOWN = 10
"""Failures with their tracebacks. More are the same mistake."""


class Item(NamedTuple):
    """The values of a check's parameters, and the name of them all."""

    name: str
    values: dict[str, Any]


class Axis(NamedTuple):
    """Parameters of a check, and the values that they take together."""

    names: Sequence[str]
    items: Items
    ids: Iterable[str] | Callable[[Any], str] | None

    def made(self) -> Iterator[Item]:
        """Make the items: when a test asks for them, not when its module is imported."""
        items = self.items if isinstance(self.items, Iterable) else self.items()
        ids = iter(self.ids) if isinstance(self.ids, Iterable) else itertools.repeat("")
        name_of = self.ids if callable(self.ids) else _name
        for item in items:
            values: Any = (item,) if len(self.names) == 1 else item
            name = next(ids) or "-".join(map(name_of, values))
            yield Item(name, dict(zip(self.names, values, strict=True)))


def each(
    names: str | Sequence[str],
    items: Items,
    *,
    ids: Iterable[str] | Callable[[Any], str] | None = None,
    shards: int = 1,
) -> Callable[[Check], Check]:
    """Run a check for each item, within one test.

    The items are an iterable, or a function that makes them when the test runs. Several ``each``
    above one check take every combination. ``shards`` divides a test of more than some seconds
    into several, and each of these takes its share of the items, by their places.

    All items share the fixtures of the test, with three exceptions: each item has a ``tmp_path``
    and a ``monkeypatch`` of its own, and a ``capsys`` that has captured nothing yet.
    """
    names = names.replace(" ", "").split(",") if isinstance(names, str) else names
    items = [*items] if isinstance(items, Iterator) else items  # they are asked for several times
    axis = Axis(names, items, [*ids] if isinstance(ids, Iterator) else ids)

    def decorate(check: Check) -> Check:
        inner = getattr(check, "loop", None)
        loop = Loop(inner.check, (*inner.axes, axis)) if inner else Loop(check, (axis,))

        @functools.wraps(check)
        def test(shard: int = 0, **fixtures: Any) -> None:  # noqa: ANN401  # whatever they are
            __tracebackhide__ = True
            loop.run(shard, shards, fixtures)

        parameters = inspect.signature(loop.check).parameters
        taken = {name for axis in loop.axes for name in axis.names}
        kept = [parameters[name] for name in parameters if name not in taken]
        if shards > 1:
            kept.append(inspect.Parameter("shard", inspect.Parameter.KEYWORD_ONLY))
            pytest.mark.parametrize("shard", range(shards))(test)
        test.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]  # pytest reads it
        test.loop = loop  # type: ignore[attr-defined]  # plugin_items reads it
        return test

    return decorate


class Loop:
    """A check and the axes of its items: every item of one with every item of the others."""

    def __init__(self, check: Check, axes: tuple[Axis, ...]) -> None:
        self.check = check
        self.axes = axes
        self._wanted: Callable[[Item], bool] = lambda _item: True

    def items(self) -> list[Item]:
        """Return the wanted items."""
        found = []
        for parts in itertools.product(*(axis.made() for axis in self.axes)):
            values = {key: value for part in parts for key, value in part.values.items()}
            item = Item("-".join(part.name for part in parts), values)
            if self._wanted(item):
                found.append(item)
        return found

    def narrow(self, wanted: Callable[[Item], bool]) -> bool:
        """Want fewer items from now on; say whether there are any."""
        before = self._wanted
        self._wanted = lambda item: before(item) and wanted(item)
        return bool(self.items())

    def run(self, shard: int, shards: int, fixtures: dict[str, Any]) -> None:
        """Check the items of a shard, all of them; fail if one of them has failed."""
        __tracebackhide__ = True
        items = self.items()
        assert items, "there are no items, so this test checks nothing"
        items = items[shard::shards]
        failures = {}
        for at, item in enumerate(items):
            with _of_its_own(fixtures, at) as own:
                failure = _failure(functools.partial(self.check, **item.values, **own))
            if failure:
                failures[item.name] = failure
        if failures:
            pytest.fail(_report(failures, len(items)), pytrace=False)


@contextmanager
def _of_its_own(fixtures: dict[str, Any], at: int) -> Iterator[dict[str, Any]]:
    """Give an item the fixtures that it must not share."""
    own = dict(fixtures)
    if "tmp_path" in own:
        own["tmp_path"] /= str(at)
        own["tmp_path"].mkdir()
    if "capsys" in own:
        own["capsys"].readouterr()
    if "monkeypatch" not in own:
        yield own
        return
    with pytest.MonkeyPatch.context() as own["monkeypatch"]:
        yield own


def _failure(check: Callable[[], None]) -> str:
    """Return how a check fails, as pytest shows it, or nothing."""
    try:
        check()
    except pytest.skip.Exception as skipped:
        return f"skipped ({skipped}), which nobody would see: give this item a test of its own"
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # whatever fails, the others run
        return str(pytest.ExceptionInfo.from_exception(error).getrepr(style="short"))
    return ""


def _report(failures: dict[str, str], count: int) -> str:
    """Name all that failed, and show the first failures."""
    shown = [f"--- {name}\n{text}" for name, text in [*failures.items()][:SHOWN]]
    names = "\n".join(f"  {name}" for name in failures)
    return "\n".join(
        [f"{len(failures)} of {count} items failed (--item NAME runs one):", names, *shown]
    )


def _name(value: object) -> str:
    """Return a short name: what a value calls itself, or how it is written."""
    own = getattr(value, "slug", getattr(value, "name", getattr(value, "__name__", value)))
    return own if isinstance(own, str) and own else reprlib.repr(own)
