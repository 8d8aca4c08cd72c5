"""What is kept of a long line: no part of a word."""

from gpucheck.ticket.exceptions import LONGEST, quote


def test_a_word_that_the_limit_cuts_is_left_out() -> None:
    line = "cannot pull " + "x" * (LONGEST - 20) + " image.of.somebody.example/team/train:v3"
    assert quote(line) == "cannot pull " + "x" * (LONGEST - 20)


def test_a_line_within_the_limit_stays() -> None:
    assert quote(f" {'y' * LONGEST} ") == "y" * LONGEST
    assert quote("z" * (LONGEST + 1)) == "z" * LONGEST
