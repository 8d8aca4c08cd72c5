"""What Sphinx loads: links between the languages, the words of the search, mends of the theme."""

import functools
import re
from typing import Any

from sphinx.application import Sphinx

from docs_site.sources import in_both_languages
from docs_site.words import THEME_IN_CHINESE, words
from gpucheck.language import Language

_SHORT_WORD_OF_CODE = re.compile(r'<span class="pre">(?P<word>[^<]{1,32})</span>')


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


def _mend_the_theme(
    app: Sphinx, _name: str, _template: str, context: dict[str, Any], _page: object
) -> None:
    language: Language = "en" if app.config.language == "en" else "zh"
    context["mended"] = functools.partial(mended, language=language)


def mended(body: str, language: Language) -> str:
    """Return the body of a page with what axe-core misses in furo's, and no English in Chinese.

    A landmark needs a name where there are two of its kind, and a heading its level. The empty
    corner of a Markdown table is no heading. A word of code that fits a phone's line stays whole:
    browsers break ``--gpus`` after its hyphens.
    """
    own = words(language)
    for old, new in (
        ('<aside class="sidebar', f'<aside aria-label="{own["pages"]}" class="sidebar'),
        ('<aside class="toc', f'<aside aria-label="{own["contents"]}" class="toc'),
        ('role="heading"', 'role="heading" aria-level="2"'),
        ('<th class="head"><p></p></th>', "<td></td>"),
    ):  # fmt: skip
        body = body.replace(old, new)
    body = _SHORT_WORD_OF_CODE.sub(r'<span class="pre whole">\g<word></span>', body)
    if language == "zh":
        for pattern, chinese in THEME_IN_CHINESE.items():
            body = re.sub(pattern, chinese, body)
    return body


def setup(app: Sphinx) -> dict[str, bool]:
    """Register them."""
    app.add_config_value("site_url", "", "html")
    app.connect("html-page-context", _link_languages)
    app.connect("html-page-context", _name_the_search)
    app.connect("html-page-context", _mend_the_theme)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
