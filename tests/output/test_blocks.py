"""Every format writes every block, and text in it stays text."""

import re

import pytest
from html_support import Markup
from markdown_support import outside_code
from preflight_samples import HOSTILE

from gpucheck.language import speaking
from gpucheck.output import markdown
from gpucheck.output.blocks import (
    Block,
    Box,
    Commands,
    Evidence,
    Items,
    LineBlock,
    Quoted,
    SectionBlock,
    Words,
)
from gpucheck.output.html import elements
from gpucheck.output.html.elements import el, rendered
from gpucheck.output.layout import Page

EACH: list[Block] = [
    Words(HOSTILE, lead=HOSTILE, kind="warning", hangs=True, below=(Words(HOSTILE, kind="aside"),)),
    Items((HOSTILE, "second")),
    Commands((HOSTILE, "second")),
    Commands((HOSTILE,), lead=HOSTILE),
    Evidence((LineBlock(HOSTILE, HOSTILE, HOSTILE), LineBlock("second", "", ""))),
    Quoted((HOSTILE, "second")),
    SectionBlock(HOSTILE, (Items((HOSTILE,)),), "literal"),
    Box(
        heading=HOSTILE, severity="error", intro=(Words(HOSTILE),),
        evidence=(Quoted((HOSTILE,)),), fixes=(Commands((HOSTILE,)),), more=(Words(HOSTILE),),
    ),
]  # fmt: skip
KINDS = pytest.mark.parametrize("block", EACH, ids=lambda block: type(block).__name__)
TAGS = {
    "article", "button", "code", "details", "div", "dl", "h2", "li", "p", "pre", "section", "small",
    "span", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


@KINDS
def test_nothing_takes_effect_on_a_terminal(block: Block) -> None:
    page = Page(80)
    page.write([block])
    text = page.text()
    assert "n1" in text
    assert text.replace("\n", "").isprintable()


@KINDS
def test_nothing_acts_as_markdown(block: Block) -> None:
    text = "\n\n".join(markdown.written([block]))
    assert "n1" in text
    outside = outside_code(text)
    assert not re.search(r"<b>|(?<!\\)`|\x1b|@all\b|(?<!\\)\]\(|(?<!\\)\|", outside)


@KINDS
def test_nothing_acts_as_markup(block: Block) -> None:
    page = Markup(rendered(el("div", *elements.written([block]))))
    assert not page.faults
    assert "n1" in page.text()
    assert set(page.tags) <= TAGS


def test_a_lead_has_the_signs_of_its_language() -> None:
    block = Commands(("gpucheck",), lead="验证")
    with speaking("zh"):
        page = Page(80)
        page.write([block])
        assert page.text().strip() == "验证\N{FULLWIDTH COLON}gpucheck"
        assert list(markdown.written([block])) == ["验证\N{FULLWIDTH COLON} `gpucheck`"]
