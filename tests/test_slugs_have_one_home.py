"""A finding has one home: no other module lists slugs, and hardly one names a slug at all.

What a finding means to another module is in its header (``Rule``); who has to name one imports
its module: ``rank_hangs.RULE.slug``. Else a new finding would need changes all over the package.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from slugs import SLUGS

import gpucheck

ROOT = Path(gpucheck.__file__).parent
HOMES = ("findings", "tables")
"""The findings themselves, and the tables, whose rows may name them."""
EXCEPTIONS = {
    # Kinds of failure, named where nothing of gpucheck can be imported: in the target interpreter.
    "worker/errors.py": "out-of-memory",
    "worker/selftests/batch_size.py": "out-of-memory",
    "worker/selftests/jit.py": "compiler-missing",
    "worker/selftests/memory.py": "out-of-memory",
    # A word that stands in texts.
    "ticket/readers/_smi_words.py": "out-of-memory",
    "output/ticket_text.py": "newer-than-tables",
}


def named(source: str) -> Iterator[str]:
    """Yield every slug that stands as text, also in the form of its module's name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            slug = node.value.replace("_", "-")
            if slug in SLUGS:
                yield slug


def modules() -> list[str]:
    files = (file.relative_to(ROOT) for file in sorted(ROOT.rglob("*.py")))
    return [file.as_posix() for file in files if file.parts[0] not in HOMES]


def test_no_module_but_its_home_names_a_slug_and_every_exception_is_still_one() -> None:
    found = {
        module: set(named((ROOT / module).read_text(encoding="utf-8"))) for module in modules()
    }
    allowed = {module: {slug} for module, slug in EXCEPTIONS.items()}
    assert {module: slugs for module, slugs in found.items() if slugs} == allowed


def test_a_slug_is_found_in_any_form() -> None:
    assert list(named('A = ("rank-hangs", "of_other", "nvlink_down")')) == [
        "rank-hangs",
        "nvlink-down",
    ]
