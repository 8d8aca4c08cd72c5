"""A pytest plugin: ``--item TEXT`` runs the items of loops (``each.py``) whose names contain it.

A test without a loop is an item by itself: it runs if its id contains the text.
"""

import functools
from collections.abc import Callable

import pytest
from each import Item, Loop


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--item", metavar="TEXT", help="run only items whose names contain TEXT")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that have such an item."""
    text = config.option.item
    if text is not None:
        choose(config, items, lambda _test, item: text in item.name)


def choose(
    config: pytest.Config,
    tests: list[pytest.Item],
    is_wanted: Callable[[pytest.Item, Item], bool],
) -> None:
    """Keep the tests with wanted items, and run no others of their items."""
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for test in tests:
        loop = getattr(getattr(test, "function", None), "loop", None)
        if isinstance(loop, Loop):
            wanted = loop.narrow(functools.partial(is_wanted, test))
        else:
            values = test.callspec.params if hasattr(test, "callspec") else {}
            wanted = is_wanted(test, Item(test.name, values))
        (kept if wanted else left).append(test)
    config.hook.pytest_deselected(items=left)
    tests[:] = kept
