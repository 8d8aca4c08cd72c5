#!/usr/bin/env python3
"""Builds the documentation site: the pages of the repository, and one page for each finding.

    build_site.py                       build/site/index.html can be opened in a browser
    build_site.py --out DIR --url URL   with the address at which it will stand

It needs the packages of the extra ``docs`` and no network. It ends with 1 if a page is missing, a
link leads nowhere, no page leads to a page, or a page loads something from elsewhere.
"""

import argparse
import io
import shutil
import sys
import tempfile
from pathlib import Path

import translations
from docs_site import check, search, sources
from sphinx.application import Sphinx
from sphinx.util.console import nocolor
from sphinx.util.docutils import docutils_namespace

from gpucheck._about import VERSION
from gpucheck.facts.secrets import is_plain
from gpucheck.language import Language

LANGUAGES: tuple[Language, ...] = ("en", "zh")
_TOOLS = Path(__file__).parent
_MADE_BY_SPHINX = (
    ".buildinfo", "objects.inv", ".buildinfo.bak", "searchindex.js", "_static/searchtools.js",
    "_static/language_data.js", "_static/base-stemmer.js", "_static/english-stemmer.js",
)  # fmt: skip
"""Files for Sphinx itself, for other sites that it makes, and of its search: not for readers."""
_SIGN = "_static/search-data.js"
"""A file by which a folder is known to be a site."""


def build(out: Path, url: str = "") -> list[str]:
    """Build the site into a folder and return what is wrong with it.

    An older site in the folder is removed, and nothing else.
    """
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / _SIGN).is_file()):
        return [f"{out} has something else than a site in it"]
    shutil.rmtree(out, ignore_errors=True)
    if translations.is_stale():
        translations.compile_all()
    warnings: list[str] = []
    for language in LANGUAGES:
        with tempfile.TemporaryDirectory() as folder:
            sources.write(Path(folder, "source"), language)
            warnings += _html(Path(folder), out, language, url)
    missing = [
        f"{place} is missing"
        for name in sources.in_both_languages()
        for place in (f"{name}.html", f"zh/{name}.html")
        if not (out / place).is_file()
    ]
    return [*warnings, *missing, *check.problems(out.resolve(), url)]


def _html(folder: Path, out: Path, language: Language, url: str) -> list[str]:
    """Make HTML of the sources in one language, and return the warnings."""
    target = out if language == "en" else out / language
    warnings = io.StringIO()
    nocolor()
    with docutils_namespace():  # Sphinx runs more than once in this process
        Sphinx(
            srcdir=folder / "source", confdir=None, outdir=target, doctreedir=folder / "doctrees",
            buildername="html", confoverrides=_settings(language, url),
            status=None, warning=warnings,
        ).build()  # fmt: skip
    text = search.script(folder / "source")
    (target / _SIGN).write_text(text, encoding="utf-8", newline="\n")
    for name in _MADE_BY_SPHINX:
        (target / name).unlink(missing_ok=True)
    shutil.rmtree(target / "_sources", ignore_errors=True)
    return warnings.getvalue().replace(f"{folder}/source/", "").splitlines()


def _settings(language: Language, url: str) -> dict[str, object]:
    address = f"{url}/" if language == "en" else f"{url}/{language}/"
    return {
        "project": "gpucheck",
        "release": VERSION,
        "html_title": "gpucheck",
        "extensions": ["myst_parser", "docs_site.extension"],
        "source_suffix": {".md": "markdown"},
        "root_doc": "index",
        "language": "en" if language == "en" else "zh_CN",
        "html_theme": "furo",
        "html_theme_options": {"top_of_page_buttons": []},
        "templates_path": [str(_TOOLS / "docs_site" / "templates")],
        "html_static_path": [str(_TOOLS / "docs_site" / "static")],
        "html_css_files": ["site.css"],
        "html_js_files": ["scrolling.js"],
        "html_baseurl": address if url else "",
        "site_url": url,
        "html_copy_source": False,
        "html_show_sourcelink": False,
        "html_show_copyright": False,
        "html_use_index": False,
        "smartquotes": False,
        "myst_heading_anchors": 6,
        # Recorded output and shortened examples are not always what their language allows.
        "suppress_warnings": ["misc.highlighting_failure"],
    }


def main() -> int:
    """Build the site and say what is wrong with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=_TOOLS.parent / "build" / "site")
    parser.add_argument("--url", default="", help="http(s) address at which the site will stand")
    options = parser.parse_args()
    url = options.url.rstrip("/")
    if url and not is_plain(url):
        parser.error("--url expects a plain address that begins with https:// or http://")
    found = build(options.out, url)
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        print(f"{options.out / 'index.html'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
