"""What the search of the site looks through: every page with its headings and known messages.

Sphinx's own search finds pages that have all words of a query, and a message that somebody pastes
always has a path or a number that no page has. Ours weighs the words by how rare they are
(``static/search.js``). It has the texts of the pages, so that it shows excerpts without a server.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from gpucheck.findings import all_rules
from gpucheck.log_patterns.form import Strength
from gpucheck.log_patterns.loading import all_messages

_OF_STRENGTH = {
    Strength.NAMES: 1.0, Strength.POINTS: 0.95, Strength.FITS: 0.9, Strength.SYMPTOM: 0.85,
}  # fmt: skip
_QUOTED, _BESIDE, _TIE, _ELSEWHERE = 0.8, 0.75, 0.05, 0.8
"""Weights. Chosen: among pages that know the same message, the one that triage would name is first.
A message that needs others beside it says less alone, a quote may be there for contrast, and who
looks here has trouble with a GPU rather than elsewhere."""
_QUOTE = re.compile(r'"([^" ]+ [^" ]+ [^"]{1,200})"')  # two words are a term
_HEAD = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_TOCTREE = re.compile(r"^```\{toctree\}.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_TAG = re.compile(r"</?[a-z][^>\n]*>")
_FENCE = re.compile(r"^\s*`{3,}\w*$", re.MULTILINE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SIGNS = re.compile(r"^[#>|\s-]+|[|`*]+|\|[-|]+\|", re.MULTILINE)


def script(folder: Path) -> str:
    """Return the pages of a folder of sources, as a script that a page of the site loads."""
    pages = list(_pages(folder))
    return f"var gpucheckPages = {json.dumps(pages, ensure_ascii=False, separators=(',', ':'))};\n"


def _pages(folder: Path) -> Iterator[dict[str, object]]:
    for file in sorted(folder.rglob("*.md")):
        name = file.relative_to(folder).with_suffix("").as_posix()
        text = _TOCTREE.sub("", _HEAD.sub("", file.read_text(encoding="utf-8")))
        headings = [plain(heading) for heading in _HEADING.findall(text)]
        if not headings or "examples/" in name:  # lists of files, which the guides link to
            continue
        yield {
            "at": f"{name}.html",
            "title": headings[0],
            "heads": headings[1:],
            "lines": _lines(file.stem) if name.startswith("findings/") else [],
            "text": plain(_HEADING.sub("", text)),
        }


def _lines(slug: str) -> list[tuple[str, float]]:
    """Return what somebody may paste who has this finding, each line once, with its weight."""
    rule = all_rules().get(slug)
    if rule is None:
        return []  # the index
    page = " ".join(rule.page.split())
    lines = [(slug, 1.0), *((quote, _QUOTED) for quote in _QUOTE.findall(page))]
    found = all_messages().get(slug)
    for message in found.messages if found else ():
        weight = _OF_STRENGTH[message.strength] * (_BESIDE if message.beside else 1)
        lines.append((message.sample, weight + _TIE * message.tie_break))
    most: dict[str, float] = {}
    for text, weight in lines:
        most[text] = max(weight, most.get(text, 0))
    usual = _ELSEWHERE if rule.owner in ("code", "other") else 1
    return [(text, round(usual * weight, 3)) for text, weight in most.items()]


def plain(text: str) -> str:
    """Return the words of Markdown on one line."""
    text = _TAG.sub("", _LINK.sub(r"\1", _FENCE.sub("", text)))
    return " ".join(_SIGNS.sub(" ", _ESCAPE.sub(r"\1", text)).split())
