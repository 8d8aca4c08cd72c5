# ruff: noqa: INP001, TID251  # a script of this repository, which starts pytest
"""Measures what the fast tests catch: ``python tools/mutate.py [-n 60] [--seed 1] [--out FILE]``.

It breaks one condition at a time in a temporary copy of this tree, never in the tree itself, and
runs the fast tests of that module. A mutation is *caught* if one of them fails, and *survives* if
all pass. The same seed on the same sources chooses the same mutations, so two states of the tests
can be compared.

- A mutation is a comparison turned round, ``and`` for ``or``, a ``not`` before a condition, or a
  whole number plus one, all within functions. The packages take turns, so that a small one counts
  as much as a large one. ``worker`` has none: it runs in another interpreter, which the fast tests
  do not start. Annotations, patterns of ``match`` and what stands in f-strings are left alone.
- The tests of a module ``gpucheck.package.module`` are the test files that mention it or are named
  after it. Only if those pass, the 12 files follow that mention ``gpucheck.package`` most often or
  lie in ``tests/package``. Modules of another tier are left out.
- In the end the tests that caught something run once more on the unbroken copy. What fails there as
  well has caught nothing, and is counted as *unclear*.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
from plugin_tiers import module_tier  # noqa: E402  # needs the path

NOT_REACHED = ("worker",)
MOST_FILES = 12
LONGEST = 200
"""Seconds for one set of tests. A mutation that hangs is caught: people notice that."""
_TURNED = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE,
    ast.LtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_LEFT_ALONE = (ast.JoinedStr, ast.match_case, ast.Constant)
_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)


@dataclass
class Mutation:
    """One condition that is broken, and what became of it."""

    file: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    end: int
    outcome: str = ""
    by: str = ""
    seconds: float = 0.0


def main() -> int:
    """Break conditions in a copy, one at a time, and print what is caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", type=int, default=60, help="how many conditions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=Path, help="only what was caught in this file of --out")
    parser.add_argument("--out", type=Path, help="write every mutation to this file, as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        _copy_tree(copy)
        chosen = choose(copy / "src" / "gpucheck", arguments.n, arguments.seed)
        if arguments.again is not None:
            chosen = caught_before(chosen, arguments.again)
        for at, mutation in enumerate(chosen, 1):
            _try(mutation, copy)
            print(f"{at:3} {mutation.outcome:8} {_shown(mutation)}", flush=True)
            _write(chosen[:at], arguments.out)
        _confirm(chosen, copy)
    _write(chosen, arguments.out)
    for outcome, count in sorted(Counter(mutation.outcome for mutation in chosen).items()):
        print(f"{outcome}: {count} of {len(chosen)}")
    return 0


def caught_before(chosen: list[Mutation], report: Path) -> list[Mutation]:
    """Return those that were caught earlier: the others cannot get worse."""
    before = json.loads(report.read_text())
    caught = {
        (mutation["file"], mutation["start"], mutation["after"])
        for mutation in before
        if mutation["by"]
    }
    return [
        mutation for mutation in chosen if (mutation.file, mutation.start, mutation.after) in caught
    ]


def _shown(mutation: Mutation) -> str:
    change = f"{mutation.before}  ->  {mutation.after}"
    return f"{mutation.file}:{mutation.line}  {change}  ({mutation.by or '-'})"


def _write(mutations: list[Mutation], out: Path | None) -> None:
    if out is not None:
        out.write_text(json.dumps([asdict(mutation) for mutation in mutations], indent=1) + "\n")


def _copy_tree(to: Path) -> None:
    """Copy what git tracks or would track: neither environments nor caches."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


def choose(source: Path, count: int, seed: int) -> list[Mutation]:
    """Return mutations of all packages in turn: the same ones for the same sources and seed."""
    chance = random.Random(seed)  # noqa: S311  # nothing secret
    packages = []
    for package in sorted(path for path in source.iterdir() if (path / "__init__.py").is_file()):
        if package.name not in NOT_REACHED:
            files = sorted(package.rglob("*.py"))
            found = [mutation for file in files for mutation in mutations(file, source.parent)]
            chance.shuffle(found)
            packages.append(found)
    longest = max(map(len, packages), default=0)
    turns = [found[turn] for turn in range(longest) for found in packages if turn < len(found)]
    return turns[:count]


def mutations(file: Path, above: Path) -> Iterator[Mutation]:
    """Yield every mutation of a module."""
    content = file.read_bytes()
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.parse(content).body:
        for function in ast.walk(node):
            if isinstance(function, ast.FunctionDef):
                for statement in function.body:
                    for kind, old, new in _broken(statement):
                        start = starts[old.lineno - 1] + old.col_offset
                        end = starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0)
                        yield Mutation(
                            file=file.relative_to(above).as_posix(),
                            line=old.lineno,
                            kind=kind,
                            before=ast.unparse(old),
                            after=ast.unparse(new),
                            start=start,
                            end=end,
                        )


def _broken(node: ast.AST) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Yield each expression at or below a node that can be broken, and what replaces it."""
    if isinstance(node, ast.FunctionDef):
        return  # is walked by itself
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _TURNED:
        turned = deepcopy(node)
        turned.ops[0] = _TURNED[type(node.ops[0])]()
        yield "comparison", node, turned
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", node, ast.BoolOp(other, node.values)
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and _is_plain(node.test):
        yield "not", node.test, ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", node, ast.Constant(node.value + 1)
    if not isinstance(node, _LEFT_ALONE):
        annotation = getattr(node, "annotation", None)
        for child in ast.iter_child_nodes(node):
            if child is not annotation:
                yield from _broken(child)


def _is_plain(test: ast.expr) -> bool:
    """Say whether nothing else breaks this condition already."""
    return not isinstance(test, ast.Compare | ast.BoolOp)


def _try(mutation: Mutation, copy: Path) -> None:
    file = copy / "src" / mutation.file
    content = file.read_bytes()
    began = time.monotonic()
    replaced = f"({mutation.after})".encode()
    _put(file, content[: mutation.start] + replaced + content[mutation.end :])
    try:
        for tests in tests_of(mutation.file, copy / "tests"):
            mutation.by = _first_failure(tests, copy)
            if mutation.by:
                break
    finally:
        _put(file, content)
    mutation.outcome = "caught" if mutation.by else "survived"
    mutation.seconds = round(time.monotonic() - began, 1)


def _put(file: Path, content: bytes) -> None:
    """Write a module, and forget its bytecode: it may be of the same second and size."""
    file.write_bytes(content)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def tests_of(module: str, folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the test files of a module, and the others of its package."""
    package, *below = Path(module).with_suffix("").parts[1:]
    name = below[-1]
    inner = re.escape(".".join(["gpucheck", package, *below[:-1]]))
    of_module = re.compile(rf"\b{inner}(?:\.{name}\b| import (?:\([^)]*|[^\n]*)\b{name}\b)")
    of_package = re.compile(rf"\bgpucheck(?:\.| import (?:[^\n]*, )?){package}\b")
    near: list[Path] = []
    far: list[tuple[int, Path]] = []
    for file in sorted(folder.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if module_tier(file) not in (None, "fast"):
            continue
        if of_module.search(text) or file.stem in (f"test_{name}", f"test_rule_{name}"):
            near.append(file)
        elif (mentions := len(of_package.findall(text))) or file.parent.name == package:
            far.append((-mentions, file))
    return near, [file for _, file in sorted(far)[:MOST_FILES]]


def _first_failure(tests: list[Path], copy: Path) -> str:
    """Return the name of the first test that fails, or nothing."""
    if not tests:
        return ""
    try:
        ran = _pytest(copy, "-x", *map(str, tests))
    except subprocess.TimeoutExpired:
        return f"more than {LONGEST} s"
    if ran.returncode in (0, 5):  # 5: none of these tests is fast
        return ""
    failed = _FAILED.search(ran.stdout)
    return failed[1] if failed else f"pytest ended with {ran.returncode}: {ran.stderr[-200:]}"


def _pytest(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    options = ("-m", "fast", "-n", "0", "-q", "-p", "no:cacheprovider", "--tb", "no")
    return subprocess.run(  # noqa: S603  # this very Python
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=copy,
        env={**environment, "GIT_CEILING_DIRECTORIES": str(copy.parent)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


def _confirm(mutations: list[Mutation], copy: Path) -> None:
    """Take back what a test has caught that fails without a mutation as well."""
    names = sorted({mutation.by for mutation in mutations if mutation.by.startswith("tests/")})
    failing = set(_FAILED.findall(_pytest(copy, *names).stdout)) if names else set()
    for mutation in mutations:
        if mutation.by in failing:
            mutation.outcome = "unclear"


if __name__ == "__main__":
    sys.exit(main())
