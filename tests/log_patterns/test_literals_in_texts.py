"""Whether a literal stands in a text is found without a search of the text; never otherwise."""

import random

from each import each

from gpucheck.log_patterns.text import Line, Text, runs

LOG = """\
step 118 | loss 2.31 | 172.17.0.2
step 119 | loss 2.30 | 172.17.0.2
>>> torch.cuda.is_available()
True
[1] 没有 GPU: A100-SXM4, libcudnn_ops.so.8
"""
TEXT = Text([Line(at, text) for at, text in enumerate(LOG.splitlines(), 1)])


@each(
    "literal",
    ["step 118", "loss 2.3", "172.17.0.", "p 119 | l", "a100", "没有 gpu", "is_available()\ntrue",
     "", " ", "|", "so.8", "0.2\nstep 119", "libcudnn"],
)  # fmt: skip
def test_what_stands_in_the_text_is_held(literal: str) -> None:
    assert TEXT.holds(literal)
    assert literal in TEXT.lower


@each(
    "literal",
    ["step 120", "loss 2.33", "a800", "172.18.0.", "有没", "true\ntrue", "step  118", "step118",
     "0.2\nstep 118", "sxm5", "cuda gpu", "118 119"],
)  # fmt: skip
def test_what_only_has_its_shape_or_its_words_is_not(literal: str) -> None:
    assert not TEXT.holds(literal)
    assert literal not in TEXT.lower


def test_any_literal_in_any_text() -> None:
    chance = random.Random(5)  # noqa: S311  # the same texts every time
    letters = "a1\u00e92 \n0\u663eb"
    for _ in range(3000):
        drawn = "".join(chance.choices(letters, k=chance.randrange(40)))
        text = Text([Line(at, line) for at, line in enumerate(drawn.split("\n"))])
        literal = "".join(chance.choices(letters, k=chance.randrange(1, 4)))
        assert text.holds(literal) == (literal in text.lower)


def test_the_lines_of_any_literal_in_any_text() -> None:
    chance = random.Random(6)  # noqa: S311
    letters = "ab1\u00e9 0\u663e-"
    for _ in range(1500):
        lines = ["".join(chance.choices(letters, k=chance.randrange(9))) for _ in range(12)]
        if chance.random() < 0.2:  # a line of a container's log can hold an end of a line
            lines[5] += "\nab1ab"
        text = Text([Line(at, line) for at, line in enumerate(lines)])
        literals = tuple("".join(chance.choices(letters, k=chance.randrange(1, 7))) for _ in "123")
        assert set(text.held(literals)) == {
            literal for literal in literals if literal in text.lower
        }
        most = chance.randrange(1, 6)
        of_each = [[at for at, line in enumerate(lines) if literal in line] for literal in literals]
        assert text.find(*literals) == sorted({at for found in of_each for at in found})
        assert text.find(*literals, most=most) == sorted(
            {at for found in of_each for at in found[:most]}
        )


def test_a_lone_surrogate_in_a_text_is_no_trouble() -> None:
    assert Text([Line(1, "torch \ud800 1")]).holds("torch")


def test_the_runs_are_those_of_letters() -> None:
    found = runs("libcudnn_ops.so.8: 没有 nvidia-smi, cudnn64_8.dll")
    assert found == {"libcudnn", "ops", "so", "nvidia", "smi", "cudnn", "dll"}
    assert TEXT.words() >= {"step", "loss", "libcudnn", "gpu", "a", "sxm"}
