"""The search of the site: what people paste finds the page that helps, in a browser."""

import json
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from browser_support import opened
from docs_site import search, sources

from gpucheck.findings import all_rules
from gpucheck.language import Language

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("browser")]

_HERE = Path(__file__).parent
_SCRIPT = _HERE.parents[1] / "tools/docs_site/static/search.js"
_RUN = """
const find = gpucheckSearch(gpucheckPages), said = document.createElement("pre");
said.id = "said";
said.textContent = JSON.stringify(queries.map((query) => find(query)));
document.body.append(said);
"""
SEARCHES = tomllib.loads((_HERE / "site_searches.toml").read_text(encoding="utf-8"))["search"]


def found(queries: list[str], language: Language, folder: Path) -> list[list[dict[str, Any]]]:
    """Return what the search finds for each of some queries."""
    sources.write(folder / "source", language)
    page = folder / "page.html"
    (folder / "data.js").write_text(search.script(folder / "source"), encoding="utf-8")
    run = f"const queries = {json.dumps(queries)};{_RUN}"
    (folder / "run.js").write_text(run, encoding="utf-8")
    places = ((folder / "data.js").as_uri(), _SCRIPT.as_uri(), (folder / "run.js").as_uri())
    body = "".join(f'<script src="{place}"></script>' for place in places)
    page.write_text(f"<!doctype html><meta charset=utf-8><body>{body}", encoding="utf-8")
    said = re.search(r'<pre id="said">(.*?)</pre>', opened(page, folder), re.DOTALL)
    assert said is not None
    results: list[list[dict[str, Any]]] = json.loads(unescape(said[1]))
    return results


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_right_page_is_first(language: Language, tmp_path: Path) -> None:
    wanted = [one for one in SEARCHES if one.get("lang", "en") == language]
    results = found([one["text"] for one in wanted], language, tmp_path)
    for one, pages in zip(wanted, results, strict=True):
        first = pages[0]["at"].removeprefix("findings/").removesuffix(".html")
        assert first in one["first"], one["text"]
        assert pages[0]["excerpt"]


def test_there_are_forty_searches_in_both_languages_that_name_pages() -> None:
    assert len(SEARCHES) >= 40
    assert sum(one.get("lang") == "zh" for one in SEARCHES) >= 5
    named = {name for one in SEARCHES for name in one["first"] if "/" not in name}
    assert named <= set(all_rules())


def test_odd_queries(tmp_path: Path) -> None:
    """What is not there finds nothing; a long traceback finds its last line, code stays text."""
    traceback = "\n".join(f'  File "/home/a/x{at}.py", line {at}, in f' for at in range(60))
    pasted = f"{traceback}\nAssertionError: Torch not compiled with CUDA enabled"
    nothing, empty, long, code = found(
        ["zzqqx", "", pasted, "<script>alert(1)</script>"], "en", tmp_path
    )
    assert nothing == empty == []
    assert long[0]["at"] == "findings/torch-cpu-only.html"
    assert isinstance(code, list)


def test_markdown_becomes_words() -> None:
    text = (
        "| a | `b c` |\n|---|---|\n\n> [link](x.md#y) \\_z\n\n```sh\nrun --it\n```\n<a id='q'></a>"
    )
    assert search.plain(text) == "a b c link _z run --it"
