"""A pytest plugin: ``--finding SLUG`` runs what concerns one finding, and collects little else.

That is the test of its rule (``test_rule_SLUG.py``), and of the tests marked ``every_finding`` the
cases that are its own: its header, its messages, the test machines whose expectation names it.
"""

import difflib
from functools import cache
from pathlib import Path

import pytest
from each import Item
from plugin_items import choose
from slugs import SLUGS

_TESTS = Path(__file__).parent
_MACHINES = _TESTS / "machines"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--finding", metavar="SLUG", help="run what concerns this finding only")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a finding that does not exist."""
    slug = config.option.finding
    if slug is not None and slug not in SLUGS:
        near = difflib.get_close_matches(slug, SLUGS, n=1)
        meant = f": did you mean {near[0]}?" if near else ". `gpucheck list` names them all."
        raise pytest.UsageError(f"there is no finding called {slug!r}{meant}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect the finding's own module and those that have a case for every finding."""
    slug = config.option.finding
    if slug is None or collection_path.suffix != ".py" or _is_own(collection_path, slug):
        return None
    return None if "mark.every_finding" in collection_path.read_text(encoding="utf-8") else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the finding's own cases, and the items of loops that are its own."""
    slug = config.option.finding
    if slug is not None:
        choose(
            config, items, lambda test, item: _is_own(test.path, slug) or _is_case(test, item, slug)
        )


def _is_own(file: Path, slug: str) -> bool:
    return file.stem == f"test_rule_{slug.replace('-', '_')}"


def _is_case(test: pytest.Item, item: Item, slug: str) -> bool:
    if test.get_closest_marker("every_finding") is None:
        return False
    names = {slug, *_machines(slug)}
    parameters = item.values.values()  # a slug, a rule or a message of it, a machine
    return any(
        getattr(parameter, "slug", parameter) in names
        for parameter in parameters
        if _can_name(parameter)
    )


def _can_name(parameter: object) -> bool:
    return isinstance(parameter, str) or hasattr(parameter, "slug")


@cache
def _machines(slug: str) -> frozenset[str]:
    """Return the names of the test machines whose expectation names a finding."""
    named = f'"{slug}"'
    return frozenset(
        file.stem for file in _MACHINES.glob("*.toml") if named in file.read_text(encoding="utf-8")
    )
