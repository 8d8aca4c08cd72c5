# ruff: noqa: INP001  # a script of this repository
"""Measures the layout of the code: ``python tools/house.py [--json] [--source src/gpucheck]``.

The numbers are those of docs/evidence.md ("The house in numbers"). Nothing is imported; the sources
are parsed.

- *arrows back up*: imports from a module of a lower stratum to one of a higher stratum. The strata
  are those of the import-linter contract ``layers`` in pyproject.toml; the package itself, whose
  ``__init__`` is the public face, stands above all of them. Imports for types only count as well.
- *circles*: groups of strata or packages that import each other.
- *imported by one other*: modules that exactly one other module imports.
- *doubled names*: names of classes that are defined more than once, without those that begin with
  an underscore and those of findings' ``Rule`` modules.
- *comments*: lines that have a comment and nothing else, per 1,000 lines of code (without blank
  lines, docstrings and comments).
"""

import argparse
import ast
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


ROOT = Path(__file__).parents[1]
NO_NAMES = ("one", "said", "told", "these", "those")
"""Words that name nothing: docs/glossary.md."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Module:
    """One parsed file."""

    name: str
    text: str
    tree: ast.Module
    imports: set[str] = field(default_factory=set)


def modules(source: Path) -> dict[str, Module]:
    """Return the modules below a folder, by dotted name."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = [source.name, *path.relative_to(source).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, text, ast.parse(text))
    for module in found.values():
        module.imports = {
            imported for imported in _imported(module.tree, found) if imported != module.name
        }
    return found


def _imported(tree: ast.Module, known: dict[str, Module]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def strata(root: Path) -> list[set[str]]:
    """Return the packages of each stratum, the highest first."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [{name.strip() for name in layer.split("|")} for layer in layers]


def arrows_up(found: dict[str, Module], layers: list[set[str]]) -> list[tuple[str, str]]:
    """Return the imports from a lower stratum to a higher one."""

    def height(name: str) -> int | None:
        if "." not in name:
            return len(layers)  # the public face
        package = ".".join(name.split(".")[:2])
        return next(
            (len(layers) - 1 - at for at, layer in enumerate(layers) if package in layer), None
        )

    arrows = []
    for module in found.values():
        own = height(module.name)
        for other in sorted(module.imports):
            its = height(other)
            if own is not None and its is not None and own < its:
                arrows.append((module.name, other))
    return arrows


def circles(found: dict[str, Module]) -> list[list[str]]:
    """Return the packages that import each other, directly or through others."""
    edges: dict[str, set[str]] = defaultdict(set)
    for module in found.values():
        own = ".".join(module.name.split(".")[:2])
        edges[own] |= {".".join(imported.split(".")[:2]) for imported in module.imports} - {own}
    face = next(iter(found)).split(".")[0]

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        open_ = [start]
        while open_:
            for other in edges[open_.pop()] - seen - {face}:
                seen.add(other)
                open_.append(other)
        return seen

    reach = {name: reached(name) for name in list(edges) if name != face}
    groups = {tuple(sorted(b for b in reach if b in reach[a] and a in reach[b])) for a in reach}
    return [list(group) for group in sorted(groups) if len(group) > 1]


def measured(source: Path, root: Path) -> dict[str, object]:
    """Return the numbers, in the order in which they are shown."""
    found = modules(source)
    layers = strata(root)
    importers = Counter(other for module in found.values() for other in module.imports)
    trees = [module.tree for module in found.values()]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    public = Counter(node.name for node in classes if not node.name.startswith("_"))
    code, comments, names = 0, 0, Counter[str]()
    for module in found.values():
        code_here, comments_here = _lines(module)
        code, comments = code + code_here, comments + comments_here
        names.update(_variables(module.tree))
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    return {
        "modules": len(found),
        "lines": sum(module.text.count("\n") for module in found.values()),
        "imported by one other": sum(count == 1 for count in importers.values()),
        "functions": len(functions),
        "lines of a function, median": statistics.median(lengths),
        "arrows back up": len(arrows_up(found, layers)),
        "circles": len(circles(found)),
        "strata": len(layers),
        "Protocols": sum(_is_protocol(node) for node in classes),
        "doubled names": sum(count > 1 for count in public.values()),
        "comments per 1,000 lines of code": round(1000 * comments / code, 1),
        **{f"variables called {name}": names[name] for name in NO_NAMES},
    }


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base) in ("Protocol", "typing.Protocol") for base in node.bases)


def _lines(module: Module) -> tuple[int, int]:
    """Return how many lines have code, and how many have a comment and nothing else."""
    strings: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Expr) and _is_text(node.value):
            strings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code = comments = 0
    for number, line in enumerate(module.text.splitlines(), 1):
        bare = line.strip()
        if not bare or number in strings:
            continue
        comments += bare.startswith("#")
        code += not bare.startswith("#")
    return code, comments


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _variables(tree: ast.Module) -> Iterator[str]:
    """Yield each name that is bound: by assignment, a loop, a parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def main() -> None:
    """Print the numbers, and with ``--arrows`` the imports that go up."""
    parser = argparse.ArgumentParser(description="Measure the layout of the code.")
    parser.add_argument("--source", type=Path, default=ROOT / "src" / "gpucheck")
    parser.add_argument("--root", type=Path, default=ROOT, help="where pyproject.toml is")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--arrows", action="store_true", help="list the imports that go up")
    options = parser.parse_args()
    numbers = measured(options.source, options.root)
    if options.json:
        print(json.dumps(numbers, indent=2))
        return
    for name, number in numbers.items():
        print(f"{name:<40} {number:>9}")
    if options.arrows:
        for lower, higher in arrows_up(modules(options.source), strata(options.root)):
            print(f"{lower} -> {higher}")


if __name__ == "__main__":
    main()
