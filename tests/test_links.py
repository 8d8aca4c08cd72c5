"""Every link of a page to a file or an anchor of this repository leads somewhere."""

import functools
import re
from pathlib import Path

from each import each

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    file.relative_to(ROOT).as_posix() for file in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
)

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
_ID = re.compile(r'<a id="([^"]+)"></a>')


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


@functools.cache
def anchors(file: Path) -> frozenset[str]:
    """Return the anchors of a page; of headings with the same text, the later ones have numbers."""
    text = _FENCE.sub("", file.read_text(encoding="utf-8"))
    found: list[str] = []
    for heading in _HEADING.findall(text):
        name = anchor(heading)
        before = sum(link == name for link in found)
        found.append(f"{name}-{before}" if before else name)
    return frozenset((*found, *_ID.findall(text)))


def dead(page: Path, text: str) -> list[str]:
    """Return the links in the text of a page that lead nowhere."""
    plain = _CODE.sub("", _FENCE.sub("", text))
    return [link for link in _LINK.findall(plain) if not _leads_somewhere(page, link)]


def _leads_somewhere(page: Path, link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True  # another site
    path, _, fragment = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not fragment or (target.suffix == ".md" and fragment in anchors(target))


@each("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    assert dead(ROOT / page, (ROOT / page).read_text(encoding="utf-8")) == []


def test_there_are_pages_with_links() -> None:
    assert {"README.md", "docs/architecture.md", "docs/decisions/README.md"} <= set(PAGES)
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(_LINK.findall(text)) for text in texts) > 100


def test_a_link_that_leads_nowhere_is_found() -> None:
    page = ROOT / "docs" / "glossary.md"
    text = "[a](nowhere.md) [b](#nowhere) [c](facts.md#nowhere) [d](../../other) `[e](code.md)`"
    assert dead(page, text) == ["nowhere.md", "#nowhere", "facts.md#nowhere", "../../other"]
    assert dead(page, "[a](#earlier-names) [b](facts.md) [c](https://example.org/x)") == []


def test_anchors_are_those_of_github() -> None:
    assert anchor("1.2 Verdict and exit status") == "12-verdict-and-exit-status"
    assert anchor("`--batch`: what [it](x.md) does") == "--batch-what-it-does"
