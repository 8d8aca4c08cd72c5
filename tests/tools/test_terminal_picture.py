"""The pictures of the README and of ten machines are what gpucheck prints today."""

import re
import xml.etree.ElementTree as ET
from html import unescape

import pytest
import terminal_picture

pytestmark = pytest.mark.process


def test_the_pictures_are_up_to_date() -> None:
    made = terminal_picture.pictures()
    assert len(made) > 10
    stale = [file.name for file, svg in made.items() if file.read_text(encoding="utf-8") != svg]
    assert not stale, "run tools/terminal_picture.py"


def test_the_table_of_the_screens_has_their_lines() -> None:
    table = (terminal_picture.SCREENS / "README.md").read_text(encoding="utf-8")
    for file in terminal_picture.SCREENS.glob("*-after.svg"):
        machine = file.name.removesuffix("-after.svg")
        lines = len(terminal_picture.printed(machine, terminal_picture.SCREEN_WIDTH)) + 2
        assert f"[{lines}]({file.name})" in table


def test_the_picture_has_every_word_that_is_printed() -> None:
    lines = terminal_picture.printed()
    drawn = terminal_picture.PICTURE.read_text(encoding="utf-8")
    texts = [unescape(text) for text in re.findall(r">([^<]*)</text>", drawn)]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", " ".join(lines))
    assert "".join(texts[1:]).replace(" ", "") == plain.replace(" ", "")
    assert texts[0] == f"$ {terminal_picture.COMMAND}"
    assert any("torch==" in text for text in texts)


def test_what_is_drawn_is_escaped_and_in_its_colour() -> None:
    drawn = terminal_picture.picture(["\x1b[1;31merror: <b>&\x1b[0m  \x1b[2mdim\x1b[0m"])
    ET.fromstring(drawn)  # noqa: S314  # made here
    assert 'fill="#ff7b72">error: &lt;b&gt;&amp;</text>' in drawn
    assert 'fill="#8a93a3">dim</text>' in drawn
