"""Lines that a terminal or a mail broke are joined for a second reading."""

import textwrap

from each import each

from gpucheck import triage
from gpucheck.ticket.intake import read_text, unwrapped

MESSAGE = (
    "RuntimeError: The detected CUDA version (11.5) mismatches the version that was used to "
    "compile PyTorch (12.1). Please make sure to use the same CUDA versions."
)
LOG = f"Building the extension on the machine of our group fails\n{MESSAGE}\nPlease help\n"


def cut(text: str, width: int) -> str:
    parts = (
        line[at : at + width] for line in text.splitlines() for at in range(0, len(line), width)
    )
    return "\n".join(parts) + "\n"


def joined(text: str) -> list[list[str]]:
    return [
        [line.text for line in unwrapped_text.lines]
        for unwrapped_text in unwrapped(read_text(text.encode()))
    ]


@each("width", [43, 60, 80])
def test_a_message_that_a_terminal_cut_is_recognised(width: int) -> None:
    assert triage(cut(LOG, width)).root_causes == ("toolkit-torch-mismatch",)


@each("width", [45, 60, 72])
def test_a_message_that_a_mail_wrapped_is_recognised(width: int) -> None:
    wrapped = "\n".join("\n".join(textwrap.wrap(line, width)) for line in LOG.splitlines())
    assert triage(wrapped).root_causes == ("toolkit-torch-mismatch",)


def test_a_joined_line_has_the_number_of_its_first() -> None:
    (first, *_) = unwrapped(read_text(cut(MESSAGE, 80).encode()))
    assert [(line.number, line.text) for line in first.lines] == [(1, MESSAGE)]


def test_a_blank_in_the_last_column_comes_back() -> None:
    text = "x" * 60 + "\n" + "y" * 59 + " \n" + "z" * 10 + "\n"
    assert joined(text)[0] == ["x" * 60 + "y" * 59 + " " + "z" * 10]


def test_tables_lists_and_short_lines_stay_as_they_are() -> None:
    table = f"+{'-' * 77}+\n| NVIDIA-SMI 550.54 {' ' * 58}|\n+{'-' * 77}+\n"
    assert joined(table) == []
    assert joined("one\ntwo\nthree\n") == []
    assert joined("") == []


def test_very_wide_lines_are_no_broken_ones() -> None:
    assert joined("w" * 500 + "\n" + "w" * 500 + "\n") == []
