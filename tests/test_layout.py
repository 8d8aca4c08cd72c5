"""What the contracts of import-linter in pyproject.toml do not say of the layout."""

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import gpucheck

ROOT = Path(gpucheck.__file__).parent
MOST_ENTRIES = 24
LONGEST_CHAIN = 12


def _files() -> Iterator[tuple[str, Path]]:
    """Yield every module with the package of ``gpucheck`` that it lies in."""
    for file in sorted(ROOT.rglob("*.py")):
        first = file.relative_to(ROOT).parts[0]
        if first != "__init__.py":
            yield first.removesuffix(".py"), file


@functools.cache
def _imports(file: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def _arrows(prefix: str) -> dict[str, set[str]]:
    """Return which packages directly below ``prefix`` import from which others."""
    below = ROOT.joinpath(*prefix.split(".")[1:])
    arrows: dict[str, set[str]] = defaultdict(set)
    for file in sorted(below.rglob("*.py")):
        own = file.relative_to(below).parts[0].removesuffix(".py")
        for name in _imports(file):
            if name.startswith(f"{prefix}."):
                other = name.removeprefix(f"{prefix}.").split(".")[0]
                if own not in (other, "__init__") and (below / other).is_dir():
                    arrows[own].add(other)
    return arrows


def _longest_chain(arrows: dict[str, set[str]]) -> int:
    """Return how many packages the longest chain of imports has.

    Raises:
        AssertionError: packages import one another in a circle.
    """
    under_way: list[str] = []

    @functools.cache
    def longest(package: str) -> int:
        assert package not in under_way, f"circle: {' -> '.join([*under_way, package])}"
        under_way.append(package)
        found = 1 + max((longest(other) for other in sorted(arrows[package])), default=0)
        under_way.pop()
        return found

    return max(longest(package) for package in list(arrows))


def test_the_package_has_few_entries() -> None:
    entries = {name for name, _ in _files()}
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_packages_form_no_circle_and_no_long_chain() -> None:
    assert _longest_chain(_arrows("gpucheck")) <= LONGEST_CHAIN


def test_subjects_of_probes_form_no_circle() -> None:
    assert _longest_chain(_arrows("gpucheck.probes")) <= LONGEST_CHAIN


def test_only_the_door_reaches_the_machine() -> None:
    banned = ("subprocess", "ctypes", "pynvml", "os.environ", "os.getenv")
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for package, file in _files()
        if package != "worker"  # it runs in another interpreter, with torch
        for name in _imports(file)
        if name.split(".")[0] == "torch" or (package != "machine" and name in banned)
    ]
    assert wrong == []
