"""The frame of every page: what it may load (nothing), its style, its first line, its last line.

Style and script are constants, so that a policy names their hashes. Every colour of text has a
contrast of 4.5 to 1 at least with what is behind it, in both themes.
"""

import base64
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from gpucheck.language import current_language, spoken
from gpucheck.output.html.elements import BLANK, Element, Node, el, ours, rendered
from gpucheck.output.words import clean, headed

# Chosen: a tab shows some dozens of characters, and the first line is a paragraph.
_LONGEST_TITLE, _LONGEST_FIRST = 120, 2000
_LANGUAGES = {"en": "en", "zh": "zh-CN"}

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --card: #f5f7f9; --text: #1b1f24; --dim: #55606b;
 --line: #c4ccd4; --bad: #b42318; --warn: #855300; --ask: #0b57d0; --good: #1a6b30;
 --mark: #0b57d0; --bar: #2f6fb5; --soft: #d5e3f3; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --card: #1e2328; --text: #e6e8ea;
 --dim: #a6afb8; --line: #49525b; --bad: #ff8f85; --warn: #e8b339; --ask: #8ab4f8;
 --good: #6fcf8a; --mark: #8ab4f8; --bar: #6ba3e0; --soft: #2c3e52; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
 color: var(--text); background: var(--page); max-width: 60rem; margin: 0 auto;
 padding: 1rem 1rem 3rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; line-height: 1.3; margin: .25rem 0 .75rem; font-weight: 600; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
p, ul, dl { margin: .5rem 0; }
ul { padding-left: 1.25rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; }
dt { color: var(--dim); }
dd { margin: 0; min-width: 0; }
header, footer { color: var(--dim); }
header h1 { color: var(--text); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .5rem;
 font-size: .875rem; }
.state { font-weight: 700; }
.broken, .error, .failed, .crashed, .timed-out, .lost, .absent { color: var(--bad); }
.warning, .stopped { color: var(--warn); }
.unknown, .info, .note { color: var(--ask); }
.healthy, .ok, .passed { color: var(--good); }
header .state { display: inline-block; border: 2px solid; border-radius: .375rem;
 padding: 0 .5rem; margin-right: .25rem; font-size: 1rem; vertical-align: .1em; }
dl.facts { display: flex; flex-wrap: wrap; gap: .125rem 1.5rem; font-size: .9375rem; }
dl.facts div { display: flex; gap: .5rem; }
dl.facts dt { white-space: nowrap; }
dl.facts dd { color: var(--text); margin: 0; }
article, .notice { background: var(--card); border: 1px solid var(--line);
 border-left: .375rem solid var(--line); border-radius: .375rem; padding: .25rem 1rem .75rem;
 margin: 1rem 0; }
article.is-error { border-left-color: var(--bad); }
article.is-warning, .notice { border-left-color: var(--warn); }
article.is-info { border-left-color: var(--ask); }
.notice { color: var(--text); }
article > h2 { margin-top: .5rem; }
.command { position: relative; margin: .5rem 0; }
pre { font: .875rem/1.5 ui-monospace, Consolas, monospace; background: var(--page);
 border: 1px solid var(--line); border-radius: .375rem; padding: .5rem .75rem; margin: 0;
 white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-family: ui-monospace, Consolas, monospace; font-size: .9em; }
pre code { font-size: 1em; }
.command:has(button:not([hidden])) pre { padding-right: 5.5rem; }
button { font: inherit; font-size: .8125rem; position: absolute; top: .25rem; right: .25rem;
 min-height: 1.75rem; padding: 0 .625rem; color: var(--text); background: var(--card);
 border: 1px solid var(--dim); border-radius: .25rem; cursor: pointer; }
:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--mark); padding: .25rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9375rem; margin: .5rem 0; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;
 border-bottom: 1px solid var(--line); }
th { overflow-wrap: normal; }
thead th { color: var(--dim); font-weight: 600; white-space: nowrap; }
.state { white-space: nowrap; }
tbody th code { overflow-wrap: anywhere; }
tbody th { font-weight: 500; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums;
 white-space: nowrap; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
 gap: 0 2rem; align-items: start; }
figure { margin: 1rem 0; min-width: 0; }
figcaption { font-size: .875rem; color: var(--dim); }
svg { display: block; width: 100%; max-width: 34rem; height: auto; margin: .25rem 0; }
svg.bar { height: .75rem; min-width: 4rem; }
svg text { fill: var(--text); font: 10.5px system-ui, "Noto Sans CJK SC", "PingFang SC",
 "Microsoft YaHei", sans-serif; }
svg text.dim { fill: var(--dim); }
svg text.strong { font-weight: 700; }
svg .axis { stroke: var(--dim); fill: none; }
svg .grid { stroke: var(--line); stroke-width: .5; fill: none; }
svg .bar { fill: var(--bar); }
svg .soft { fill: var(--soft); stroke: var(--line); stroke-width: .5; }
svg .named { fill: var(--bad); }
svg .waits { fill: var(--soft); stroke: var(--warn); stroke-dasharray: 3 2; }
svg .line { fill: none; stroke-width: 2; }
svg .c0 { stroke: var(--bar); } svg .c1 { stroke: var(--bad); } svg .c2 { stroke: var(--good); }
svg .c3 { stroke: var(--warn); } svg .c4 { stroke: var(--dim); } svg .c5 { stroke: var(--text); }
svg .limit { stroke: var(--text); stroke-width: 1.5; stroke-dasharray: 5 3; fill: none; }
svg .h0 { fill: #eef4fb; } svg .h1 { fill: #c3dbf5; } svg .h2 { fill: #93bdea; }
svg .h3 { fill: #2f6fb5; } svg .h4 { fill: #174a85; } svg .none { fill: var(--card); }
svg text.on0, svg text.on1, svg text.on2 { fill: #10233a; }
svg text.on3, svg text.on4 { fill: #fff; }
svg .mark { stroke: #10233a; stroke-width: 1.5; fill: none; }
svg .mark.on3, svg .mark.on4 { stroke: #fff; }
@media (max-width: 40rem) {
 header h1 .state { display: table; margin-bottom: .25rem; }
 td:has(> svg.bar), table:has(svg.bar) thead td { display: none; }
 thead th { white-space: normal; }
 dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; }
 table.wide thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }
 table.wide, table.wide tbody, table.wide tr, table.wide th, table.wide td { display: block;
  border: 0; text-align: left; padding: 0; }
 table.wide tr { border-bottom: 1px solid var(--line); padding: .375rem 0; }
 table.wide tbody th { font-weight: 600; }
 table.wide td:empty { display: none; }
 table.wide th:has(+ td > .state), table.wide th + td:has(> .state) { display: inline; }
 table.wide th + td:has(> .state) { margin-left: .5rem; }
 table.wide td[data-label]:not(:has(> .state))::before { content: attr(data-label);
  color: var(--dim); margin-right: .5rem; }
}
@media print {
 :root { color-scheme: light; --page: #fff; --card: #fff; --text: #000; --dim: #444;
  --line: #999; --bad: #a01010; --warn: #6b4300; --ask: #0b4ab0; --good: #14562a;
  --mark: #000; --bar: #2f6fb5; --soft: #dde8f4; }
 body { font-size: 10.5pt; max-width: none; padding: 0; }
 button { display: none; }
 h1 { font-size: 1.2rem; }
 .command:has(button:not([hidden])) pre { padding-right: .75rem; }
 article, figure, tr, pre { break-inside: avoid; }
 h2, h3 { break-after: avoid; }
 details::details-content { content-visibility: visible; height: auto; }
}
"""

_SCRIPT = """
document.querySelectorAll("button[data-done]").forEach(function (button) {
  var code = button.parentElement.querySelector("code"), words = button.textContent;
  function said(text) {
    button.textContent = text;
    setTimeout(function () { button.textContent = words; }, 2000);
  }
  function select() {
    var range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    if (document.execCommand("copy")) { said(button.dataset.done); }
  }
  button.hidden = false;
  button.addEventListener("click", function () {
    if (!navigator.clipboard) { select(); return; }
    navigator.clipboard.writeText(code.textContent).then(function () {
      said(button.dataset.done);
    }, select);
  });
});
var closed = [];
addEventListener("beforeprint", function () {
  closed = Array.from(document.querySelectorAll("details:not([open])"));
  closed.forEach(function (one) { one.open = true; });
});
addEventListener("afterprint", function () {
  closed.forEach(function (one) { one.open = false; });
});
"""


class First(NamedTuple):
    """The first line: a word, its class in the style ("" without), and what the page says."""

    state: str
    word: str
    sentence: str


def page(first: First, main: Sequence[Node], end: Sequence[Node], top: Sequence[Node] = ()) -> str:
    """Return a whole page; ``top`` is below its first line, ``end`` in its footer."""
    content = el(
        "html",
        el("head", *_head(first)),
        el(
            "body",
            el("header", _heading(first), *top),
            el("main", *main),
            el("footer", *end),
            ours("script", _SCRIPT),
        ),
        lang=_LANGUAGES[current_language()],
    )
    return f"<!doctype html>\n{rendered(content)}"


def title(first: First) -> str:
    """Return what a tab of a browser, or a frame, is called."""
    words = headed(first.word, first.sentence) if first.word else first.sentence
    return f"{clean(spoken(words), _LONGEST_TITLE)} - gpucheck"


def _heading(first: First) -> Element:
    heading = clean(spoken(first.sentence), _LONGEST_FIRST)
    if not first.word:
        return el("h1", heading)
    return el("h1", el("span", first.word, class_=f"state {first.state}"), BLANK, heading)


def _head(first: First) -> list[Element]:
    return [
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy()),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="robots", content="noindex"),
        el("title", title(first)),
        ours("style", _STYLE),
    ]


def _policy() -> str:
    """Return what the page may load: nothing; what it may run: its own style and script."""
    return (
        f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
