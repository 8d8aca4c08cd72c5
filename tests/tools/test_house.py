"""What ``tools/house.py`` measures, on a small package and on gpucheck."""

from pathlib import Path

import house

_LAYERS = """
[[tool.importlinter.contracts]]
name = "forbidden"
type = "forbidden"

[[tool.importlinter.contracts]]
name = "strata"
type = "layers"
layers = ["small.high", "small.middle | small.beside", "small.low"]
"""
_FILES = {
    "__init__.py": "from small.high import top as top\n",
    "high/__init__.py": "",
    "high/top.py": "from small.low import ground\n# why\nx = ground\n",
    "middle/__init__.py": "import small.beside.a\nclass Same: ...\nclass P(Protocol): ...\n",
    "beside/__init__.py": "",
    "beside/a.py": "from small import middle\nclass Same: ...\nfor one in (): pass\n",
    "low/__init__.py": '"""Text.\n\n# no comment\n"""\n',
    "low/ground.py": "import small\n\ndef f(said):\n    return said\n",
}


def _small(folder: Path) -> Path:
    (folder / "pyproject.toml").write_text(_LAYERS)
    for name, text in _FILES.items():
        path = folder / "small" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "small"


def test_a_small_package(tmp_path: Path) -> None:
    source = _small(tmp_path)
    numbers = house.measured(source, tmp_path)
    wanted = {
        "modules": 8, "functions": 1, "arrows back up": 1, "circles": 1, "strata": 3,
        "Protocols": 1, "doubled names": 1, "variables called one": 1, "variables called said": 1,
        # top, ground and beside.a; two import middle's __init__: nobody, and small.beside.a
        "imported by one other": 5,
    }  # fmt: skip
    assert {name: numbers[name] for name in wanted} == wanted
    found = house.modules(source)
    assert house.arrows_up(found, house.strata(tmp_path)) == [("small.low.ground", "small")]
    assert house.circles(found) == [["small.beside", "small.middle"]]


def test_comments_are_lines_of_their_own(tmp_path: Path) -> None:
    source = _small(tmp_path)
    # 12 lines of code, one with a comment alone; that in a docstring is none
    assert house.measured(source, tmp_path)["comments per 1,000 lines of code"] == round(
        1000 / 12, 1
    )


def test_nothing_in_gpucheck_imports_what_is_above_it() -> None:
    found = house.modules(house.ROOT / "src" / "gpucheck")
    assert house.arrows_up(found, house.strata(house.ROOT)) == []
    assert house.circles(found) == []
