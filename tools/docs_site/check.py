"""What is wrong with a built site: dead links, orphans, and what is loaded from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""Attributes whose address a browser fetches by itself."""
_LOADED_LINKS = frozenset(("stylesheet", "preload", "prefetch", "icon", "modulepreload"))
_IN_STYLES = re.compile(r"(?:@import\s+|url\()\s*['\"]?(?P<place>(?:https?:)?//[^'\")\s]+)")
_UNLINKED = frozenset(("search.html", "genindex.html"))
"""Pages of Sphinx: the form of the search leads to the one, and nothing has to to the other."""


class Page(HTMLParser):
    """Links, anchors and what a browser loads with a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one tag says."""
        of = {name: value or "" for name, value in attrs}
        self.anchors.update(of[name] for name in ("id", "name") if of.get(name))
        if tag in _LOADED and _LOADED[tag] in of:
            self.loaded.append(of[_LOADED[tag]])
        elif tag == "link" and _LOADED_LINKS.intersection(of.get("rel", "").split()):
            self.loaded.append(of.get("href", ""))
        elif "href" in of:
            self.links.append(of["href"])


def problems(site: Path, url: str = "") -> list[str]:
    """Return what is wrong with a built site, one sentence each.

    Args:
        site: the folder.
        url: the address that it is built for, "" if none; links to it are links into the site.
    """
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    if site / "index.html" not in pages:
        return ["there is no index.html"]
    found: list[str] = []
    reached: dict[Path, set[Path]] = {}
    for file, page in pages.items():
        name = file.relative_to(site).as_posix()
        reached[file] = set()
        for link in (*page.links, *page.loaded):
            target, fragment = _target(site, file, link, url)
            if target is None:
                continue
            reached[file].add(target)
            if not target.is_file():
                found.append(f"{name}: {link} leads nowhere")
            elif fragment and target in pages and fragment not in pages[target].anchors:
                found.append(f"{name}: {link} names no place of that page")
        found += [
            f"{name}: {place} is loaded from elsewhere"
            for place in page.loaded
            if urlsplit(place).netloc
        ]
    return [*found, *_orphans(site, reached), *_foreign_styles(site)]


def _target(site: Path, page: Path, link: str, url: str) -> tuple[Path | None, str]:
    """Return the file and the anchor that a link names; None if it leads out of the site."""
    base = page.parent
    if url and link.startswith(f"{url}/"):
        link, base = link.removeprefix(f"{url}/"), site
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None, ""
    path = (base / unquote(parts.path)).resolve() if parts.path else page
    if not path.is_relative_to(site.resolve()):
        path = site / "outside"
    return (path / "index.html" if path.is_dir() else path), unquote(parts.fragment)


def _orphans(site: Path, reached: dict[Path, set[Path]]) -> list[str]:
    seen, left = set(), [site / "index.html"]
    while left:
        page = left.pop()
        if page not in seen and page in reached:
            seen.add(page)
            left += reached[page]
    return [
        f"{page.relative_to(site).as_posix()}: no page leads to it"
        for page in reached
        if page not in seen and page.name not in _UNLINKED
    ]


def _foreign_styles(site: Path) -> list[str]:
    return [
        f"{file.relative_to(site).as_posix()}: {found['place']} is loaded from elsewhere"
        for file in sorted(site.rglob("*.css"))
        for found in _IN_STYLES.finditer(file.read_text(encoding="utf-8"))
    ]
