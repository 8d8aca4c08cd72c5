"""Writes what Sphinx reads: the pages of the repository as they are, and those of findings."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from docs_site import findings
from docs_site.markdown import code
from docs_site.words import words
from gpucheck.findings import all_rules
from gpucheck.language import Language

ROOT = Path(__file__).parents[2]
_TOP = ("CONTRIBUTING", "SECURITY", "CHANGELOG")
_GUIDES_FIRST = (
    "install",
    "triage/README",
    "triage/triage",
    "selftests/README",
    "selftests/reference",
    "preflight/README",
    "preflight/slurm",
    "preflight/torchrun",
    "preflight/mpirun",
    "preflight/kubernetes",
    "preflight/reference",
)
"""What most readers look for; the other guides follow by name."""
_WINGS = ("describe", "preflight", "programs", "selftests", "triage")
"""The folders of guides."""
_OF_PROJECT = (
    "architecture", "glossary", "evidence", "images/screens/README", "verified-on", "machines",
    "translations",
)  # fmt: skip
"""What is about gpucheck itself; all other pages of ``docs`` are guides."""
_TRANSLATED = ROOT / "docs/zh"
"""The guides in Chinese, under the names of the English ones."""
_CODE = r"^```.*?^```$|`[^`\n]+`"
_CODE_OR_LINK = re.compile(
    rf"{_CODE}|\[(?P<text>[^\]]*)\]\((?P<link>(?!https?:|#)[^)\s]+)\)", re.MULTILINE | re.DOTALL
)
"""Code, in which nothing is a link; the words of a link may be code."""
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?=[)#])")
_FENCED = re.compile(rf"({_CODE})", re.MULTILINE | re.DOTALL)


def write(folder: Path, language: Language) -> None:
    """Write the sources of the site in one language."""
    if language == "en":
        _repository(folder)
    else:
        own = words(language)
        contents = _toctree("", ["findings/index"]) + _toctree(
            own["guides"], [f"docs/{name}" for name in translated()]
        )
        home = _linked(folder, _TRANSLATED / "README.md", ROOT / "README.md")
        _put(folder / "index.md", f"{home}- [{own['findings']}](findings/index.md)\n{contents}")
        for name in translated():
            page, english = (docs / f"{name}.md" for docs in (_TRANSLATED, ROOT / "docs"))
            _put(folder / _site_name(f"docs/{name}.md"), _linked(folder, page, english))
    for name, text in (("index", findings.index(language)), *findings.pages(language)):
        _put(folder / "findings" / f"{name}.md", text)


def _repository(folder: Path) -> None:
    """Copy the pages of the repository, README first, and the files that they link to."""
    docs = ROOT / "docs"
    files = [*docs.glob("*.md"), *(file for wing in _WINGS for file in docs.glob(f"{wing}/*.md"))]
    names = sorted(file.relative_to(docs).with_suffix("").as_posix() for file in files)
    others = [name for name in names if name not in (*_GUIDES_FIRST, *_OF_PROJECT)]
    decisions = sorted(file.stem for file in (ROOT / "docs/decisions").glob("0*.md"))
    own = words("en")
    contents = (
        _toctree("", ["findings/index"])
        + _toctree(own["guides"], [f"docs/{name}" for name in (*_GUIDES_FIRST, *others)])
        + _toctree(own["project"], [f"docs/{name}" for name in _OF_PROJECT])
        + _toctree("", ["docs/decisions/README", *_TOP])
    )
    more = {"README.md": contents, "docs/decisions/README.md": _toctree("", decisions)}
    sources = [ROOT / "README.md", *(ROOT / f"{name}.md" for name in _TOP)]
    pages = (file for file in docs.rglob("*.md") if not file.is_relative_to(_TRANSLATED))
    for file in (*sources, *sorted(pages)):
        place = file.relative_to(ROOT).as_posix()
        text = file.read_text(encoding="utf-8")
        _put(
            folder / _site_name(place),
            _on_site(folder, file, text) + more.get(place, ""),
        )


def _on_site(folder: Path, page: Path, text: str) -> str:
    """Return a page whose links fit the site; what they lead to is copied."""

    def mended(found: re.Match[str]) -> str:
        target = (page.parent / found["path"]).resolve()
        if target.is_dir():
            _listing(folder, target)
            return _from(page, target / "index.md")
        if target.name == "README.md":
            return _from(page, target.with_name("index.md"))
        if target.is_file() and target.suffix != ".md":
            _copy(folder, target)
        return found["path"]

    def to_chinese(found: re.Match[str]) -> str:
        target = (page.parent / found["link"]).resolve()
        if not target.is_relative_to(_TRANSLATED):
            return found[0]
        name = target.relative_to(_TRANSLATED).with_suffix(".html").as_posix()
        place = "zh/" + ("index.html" if name == "README.html" else _site_name(f"docs/{name}"))
        return f'<a href="{_from(page, ROOT / place)}" hreflang="zh">{found["text"]}</a>'

    return "".join(
        piece if at % 2 else _LINK.sub(mended, piece)
        for at, piece in enumerate(_FENCED.split(_links_by(to_chinese, text)))
    )


def _linked(folder: Path, page: Path, here: Path) -> str:
    """Return a translated page whose links fit its half of the site.

    It stands ``here``: where the English page stands in the other half. What is not translated is
    there.
    """

    def mended(found: re.Match[str]) -> str:
        path, sign, anchor = found["link"].partition("#")
        target = (page.parent / path).resolve()
        if target.suffix != ".md":
            _copy(folder, target)
            return f"[{found['text']}]({_from(here, target)})"
        if target.is_relative_to(_TRANSLATED):
            other = ROOT / "docs" / target.relative_to(_TRANSLATED)
            return f"[{found['text']}]({_site_name(_from(here, other))}{sign}{anchor})"
        # The Chinese half is a folder in the English one.
        up = "/".join([".."] * len(here.relative_to(ROOT).parts))
        name = _site_name(target.relative_to(ROOT).with_suffix(".html").as_posix())
        return f'<a href="{up}/{name}{sign}{anchor}" hreflang="en">{found["text"]}</a>'

    return _links_by(mended, page.read_text(encoding="utf-8"))


def _links_by(mended: Callable[[re.Match[str]], str], text: str) -> str:
    return _CODE_OR_LINK.sub(lambda found: mended(found) if found["link"] else found[0], text)


def _site_name(path: str) -> str:
    """Return the path of a page on the site, where a README is the index of its folder."""
    return path.replace("README", "index")


def _from(page: Path, target: Path) -> str:
    return Path(os.path.relpath(target, page.parent)).as_posix()


def _listing(folder: Path, linked: Path) -> None:
    """Write the page of a folder that a page links to, and copy its files."""
    place = linked.relative_to(ROOT)
    files = sorted(file for file in linked.iterdir() if file.is_file() and file.suffix != ".md")
    for file in files:
        _copy(folder, file)
    entries = "\n".join(f"- [{code(file.name)}]({file.name})" for file in files)
    title = words("en")["examples"].format(folder=code(place.as_posix()))
    _put(folder / place / "index.md", f"---\norphan: true\n---\n\n# {title}\n\n{entries}\n")


def _copy(folder: Path, file: Path) -> None:
    target = folder / file.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def _toctree(caption: str, names: list[str]) -> str:
    options = f":caption: {caption}\n" if caption else ""
    entries = "\n".join(map(_site_name, names))
    return "\n```{toctree}\n:hidden:\n" + options + "\n" + entries + "\n```\n"


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def translated() -> list[str]:
    """Return the names of the guides that there are in Chinese, the first ones first."""
    files = _TRANSLATED.rglob("*.md")
    found = {file.relative_to(_TRANSLATED).with_suffix("").as_posix() for file in files} - {
        "README"
    }
    return [*(name for name in _GUIDES_FIRST if name in found), *sorted(found - {*_GUIDES_FIRST})]


def in_both_languages() -> Iterator[str]:
    """Yield the names of the pages that exist in English and in Chinese."""
    yield "index"
    yield from (_site_name(f"docs/{name}") for name in translated())
    yield "findings/index"
    yield from (f"findings/{slug}" for slug in all_rules())
