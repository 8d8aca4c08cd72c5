"""What Sphinx loads: links between the languages, and a search that knows Chinese."""

import functools
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.search import SearchLanguage

from docs_site.sources import in_both_languages
from docs_site.words import words
from gpucheck.language import Language

_LATIN_OR_HAN = re.compile(r"[a-z0-9_]+|[\u4e00-\u9fff]+")
_HAN = "\u4e00"


def terms(text: str) -> list[str]:
    """Return what is looked up of a text: words of Latin letters, and pairs of Chinese characters.

    Chinese has no blanks between words; most of its words have two characters.
    """
    found: list[str] = []
    for run in _LATIN_OR_HAN.findall(text.lower()):
        if run < _HAN or len(run) == 1:
            found.append(run)
        else:
            found += [run[at : at + 2] for at in range(len(run) - 1)]
    return found


class Chinese(SearchLanguage):
    """Cuts pages, and in the browser what is searched for, into the same terms."""

    lang = "zh"
    language_name = "Chinese"
    js_splitter_code = """
function splitQuery(query) {
  const found = [];
  for (const run of query.toLowerCase().match(/[a-z0-9_]+|[\\u4e00-\\u9fff]+/g) || []) {
    if (run < "\\u4e00" || run.length === 1) found.push(run);
    else for (let at = 0; at + 1 < run.length; at++) found.push(run.slice(at, at + 2));
  }
  return found;
}
"""

    def split(self, input: str) -> list[str]:  # noqa: A002  # Sphinx's name
        """Return the terms of a text."""
        return terms(input)


def _link_languages(
    app: Sphinx, name: str, _template: str, context: dict[str, Any], _page: object
) -> None:
    """Link a page to the same page in the other language: in its head, and for its readers."""
    if name not in _both():
        return
    here: Language
    other: Language
    here, other = ("en", "zh") if app.config.language == "en" else ("zh", "en")
    up = "/".join([".."] * (name.count("/") + (here == "zh"))) or "."
    places = {"en": f"{name}.html", "zh": f"zh/{name}.html"}
    places["x-default"] = places["en"]
    context["metatags"] = context.get("metatags", "") + "".join(
        f'\n<link rel="alternate" hreflang="{language}" href="{app.config.site_url or up}/{place}">'
        for language, place in places.items()
    )
    context["body"] = (
        f'<p class="other-language"><a href="{up}/{places[other]}" hreflang="{other}" '
        f'lang="{other}">{words(here)["other"]}</a></p>\n{context["body"]}'
    )


@functools.cache
def _both() -> frozenset[str]:
    return frozenset(in_both_languages())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both."""
    app.add_config_value("site_url", "", "html")
    app.add_search_language(Chinese)
    app.connect("html-page-context", _link_languages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
