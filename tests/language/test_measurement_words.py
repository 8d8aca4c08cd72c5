"""The names of measurements in words, in both languages; the data keeps them as they are."""

import ast
from pathlib import Path

from each import each

from gpucheck import worker
from gpucheck.language import Sentence, speaking, spoken
from gpucheck.output.selftest_lines import measured_what


@each(
    ("name", "chinese"),
    [
        ("training step", "训练步"),
        ("fp32 rate", "fp32 速率"),
        ("all-reduce of 4 KiB, time", "all-reduce of 4 KiB，时间"),
        ("conv2d: largest error", "conv2d：最大误差"),
        ("cuda:0 to cuda:1", "cuda:0 to cuda:1"),
    ],
)
def test_in_chinese(name: str, chinese: str) -> None:
    assert measured_what(name) == name
    with speaking("zh"):
        assert spoken(measured_what(name)) == chinese


def test_every_plain_name_of_a_self_test_has_its_words() -> None:
    named = []
    for file in sorted(Path(worker.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "bench.measure":
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    named.append(str(first.value))
    assert len(named) > 5
    assert [name for name in named if not isinstance(measured_what(name), Sentence)] == []
