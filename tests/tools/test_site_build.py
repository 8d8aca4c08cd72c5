"""Sites of two pages, built by Sphinx. The whole one: ``test_whole_site.py``."""

import re
from html import unescape
from pathlib import Path

import pytest
from docs_site import findings, sources

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import Rule
from gpucheck.language import Language
from gpucheck.log_patterns.form import FindingMessages, Message, MessageFix, Strength

pytest.importorskip("sphinx")  # fast tests run without the extra docs

import build_site
from docs_site import extension

pytestmark = [
    pytest.mark.process,
    # Extensions of Sphinx use what Sphinx is going to rename.
    pytest.mark.filterwarnings("default::DeprecationWarning"),
    pytest.mark.filterwarnings("default::PendingDeprecationWarning"),
]

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=y> ``` `code` {ref}`x` [a](javascript:b) "
    "&amp; {{ name }} $x$ | **b** \\ <!-- c -->"
)


def test_what_the_theme_lacks_is_mended() -> None:
    body = (
        '<a>Skip to content</a><aside class="sidebar-drawer"><aside class="toc-drawer no-toc">'
        '<th class="head"><p></p></th><code><span class="pre">--gpus</span></code>'
    )
    english, chinese = (extension.mended(body, language) for language in ("en", "zh"))
    assert english == (
        '<a>Skip to content</a><aside aria-label="Pages" class="sidebar-drawer">'
        '<aside aria-label="On this page" class="toc-drawer no-toc">'
        '<td></td><code><span class="pre whole">--gpus</span></code>'
    )
    assert "<a>跳到正文</a>" in chinese


def _one_page(monkeypatch: pytest.MonkeyPatch, home: str, page: str) -> None:
    """Let a site have two pages."""

    def write(folder: Path, _language: Language) -> None:
        (folder / "findings").mkdir(parents=True)
        (folder / "index.md").write_text(home, encoding="utf-8")
        (folder / "findings/index.md").write_text(page, encoding="utf-8")

    monkeypatch.setattr(sources, "write", write)
    monkeypatch.setattr(sources, "in_both_languages", list)
    extension._both.cache_clear()  # noqa: SLF001


def test_hostile_text_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = re.sub("[{}]|``` ", "", HOSTILE)  # a page is a template
    page = f"{ours}\n\n- {ours}\n\n    {ours}\n"
    message = Message(
        name="x", strength=Strength.NAMES, literal="script", says="<b>x", sample=HOSTILE, other=""
    )
    found = FindingMessages(fixes=(MessageFix(text="x"),), messages=(message,))
    rule = Rule("a-page", title=HOSTILE, severity=Severity.ERROR, family="driver", page=page)
    home = "# Home\n\n[x](findings/index.md)\n\n```{toctree}\n:hidden:\n\nfindings/index\n```\n"
    _one_page(monkeypatch, home, findings.page(rule, found, "en"))
    assert build_site.build(tmp_path) == []
    text = (tmp_path / "findings/index.html").read_text(encoding="utf-8")
    article = text.partition("<article")[2].partition("</article>")[0]
    seen = " ".join(unescape(re.sub("<[^>]+>", "", article)).split())
    assert seen.count(" ".join(HOSTILE.split())) == 2  # title and sample
    assert not re.search('<script>alert|<img|javascript:b"|onerror=y>', text)
    blocks = re.findall(r"<pre><span></span>(.*?)\n?</pre>", article, re.DOTALL)
    assert [unescape(block) for block in blocks] == [ours, HOSTILE]


def test_a_site_with_a_dead_link_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _one_page(monkeypatch, "# Home\n\n[x](nowhere.md)\n", "---\norphan: true\n---\n\n# Page\n")
    found = "\n".join(build_site.build(tmp_path))
    assert "index.md:3: WARNING: " in found
    assert "nowhere.md" in found
    assert "findings/index.html: no page leads to it" in found


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    assert build_site.build(tmp_path) == [f"{tmp_path} has something else than a site in it"]
    assert (tmp_path / "thesis.txt").read_text() == "x"


def test_the_address_of_a_site_is_in_its_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = "# Home\n\n```{toctree}\nfindings/index\n```\n"
    _one_page(monkeypatch, home, "# Page\n")
    assert build_site.build(tmp_path, "https://docs.test/g") == []
    text = (tmp_path / "zh/findings/index.html").read_text(encoding="utf-8")
    assert (
        '<link rel="alternate" hreflang="en" href="https://docs.test/g/findings/index.html">'
        in text
    )
    assert '<link rel="canonical" href="https://docs.test/g/zh/findings/index.html">' in text
