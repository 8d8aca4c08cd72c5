"""What Sphinx loads: links between the languages, and the words of the page that searches."""

import functools
from typing import Any

from sphinx.application import Sphinx

from docs_site.sources import in_both_languages
from docs_site.words import words
from gpucheck.language import Language


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


def _name_the_search(
    app: Sphinx, name: str, _template: str, context: dict[str, Any], _page: object
) -> None:
    if name == "search":
        context["search_words"] = words("en" if app.config.language == "en" else "zh")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both."""
    app.add_config_value("site_url", "", "html")
    app.connect("html-page-context", _link_languages)
    app.connect("html-page-context", _name_the_search)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
