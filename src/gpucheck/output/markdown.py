"""A report to paste into an issue: redacted, and nothing in it acts as markup or as a mention."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import msgspec

from gpucheck.engine import Report
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Finding
from gpucheck.language import Sentence, in_series, say, spoken
from gpucheck.output import blocks, report_blocks
from gpucheck.output.blocks import Block, Box, LineBlock, Words
from gpucheck.output.gpu_table import gpu_table
from gpucheck.output.machine_summary import areas
from gpucheck.output.public import public, whose_names
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.selftest_lines import lines_of
from gpucheck.output.summary import footer, headline, reach, recorded, target, trailer_of, verdict
from gpucheck.output.words import LONGEST_COMMAND, LONGEST_WORDS, VERDICTS, clean, headed, term

# An underscore within a word is one in every Markdown.
_SPECIAL = re.compile(r"([\\`*\[\]<>|~$&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
# What GitHub turns into a mention or a link to another issue.
_REFERS = re.compile(r"@(?=\w)|#(?=[0-9])|(?<=GH)-(?=[0-9])", re.IGNORECASE)
# GitHub makes a link of a bare address as well.
_LINKS = re.compile(r"(?<=[a-z]):(?=//)|(?<=www)\.", re.IGNORECASE)
# Pages to which only their owners lead anybody. A link to a tracker would be a reference there.
_OF_NOBODY_ELSE = re.compile(
    r"https://(?:[a-z0-9-]{1,40}\.){0,4}(?:nvidia\.com|pytorch\.org|nixos\.org|ray\.io|aka\.ms)"
    r"(?:/[\w./#?=%-]{0,200}[\w/#])?(?![\w@:/-]|\.\w)",
    re.ASCII,
)
_SPAN = re.compile(r"(?<!`)`[\w ./=:;,()+\"'-]{1,200}`(?!`)", re.ASCII)
"""Code in a sentence of ours; what it may hold takes no effect anywhere."""
_NO_WIDTH = "&#8203;"
"""Trackers look for mentions and issue numbers after entities have become characters: an entity for
the sign itself changes nothing, a space of no width behind it does."""
_BACKTICKS = re.compile(r"`+")
_FENCE = re.compile(r"`{3,}")  # a fence around it must be longer


def render(report: Report, *, redacted: bool = True) -> str:
    """Return the report as GitHub's Markdown."""
    report = public(report) if redacted else report
    elsewhere = recorded(report)
    parts = [
        strong(VERDICTS[report.verdict], verdict(report)),
        escaped(headed(say("Machine"), elsewhere)) if elsewhere else "",
        escaped(headed("Python", target(report))),
        escaped(reach(report)),
        *written(map(partial(_finding, report), report.standing)),
        *written(report_blocks.questions(report)),
        _selftests(report),
        _gpus(report),
        _table(report),
        escaped(footer(report.snapshot, whose_names(report.snapshot))),
        code(trailer_of(report)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str, limit: int = LONGEST_WORDS) -> str:
    """Return untrusted text, escaped so that it is shown literally.

    Markup, tables, HTML, mentions, issue numbers and bare links lose their meaning. Code in the
    templates of sentences, and pages of NVIDIA and of PyTorch, keep theirs.
    """
    spans = "|".join(re.escape(span) for span in sorted(_spans(text)))
    kept = re.compile(f"({_OF_NOBODY_ELSE.pattern}{'|' if spans else ''}{spans})", re.ASCII)
    parts = kept.split(clean(spoken(text), limit))
    return "".join(
        (f"<{part}>" if part[0] == "h" else part) if at % 2 else _harmless(part)
        for at, part in enumerate(parts)
    )


def _harmless(text: str) -> str:
    harmless = _SPECIAL.sub(_literal, text)
    harmless = _REFERS.sub(lambda found: found[0] + _NO_WIDTH, harmless)
    return _LINKS.sub(lambda found: f"&#{ord(found[0])};", harmless)


def _spans(text: object) -> set[str]:
    """Return the code in the template of a sentence, and of the phrases in it."""
    if not isinstance(text, Sentence):
        return set()
    return set(_SPAN.findall(text.key)).union(*map(_spans, text.params.values()))


def code(text: str, limit: int = LONGEST_WORDS) -> str:
    """Return untrusted text as inline code, between more backticks than it has in a row."""
    inner = clean(spoken(text), limit)
    if not inner:
        return escaped(say("(nothing)"))
    longest = max(map(len, _BACKTICKS.findall(inner)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{inner}{space}{fence}"


def strong(lead: str, text: str, limit: int = LONGEST_WORDS) -> str:
    """Return ``lead: text``, untrusted, with the lead in bold."""
    bold = escaped(lead, limit)
    return f"**{bold}**{escaped(headed(lead, text), limit).removeprefix(bold)}"


def block(lines: tuple[str, ...]) -> str:
    """Return lines as a fenced block with a fence that no line can close."""
    cleaned = [clean(line, LONGEST_COMMAND) for line in lines]
    longest = max((len(run) for line in cleaned for run in _FENCE.findall(line)), default=2)
    fence = "`" * (longest + 1)
    return "\n".join((f"{fence}sh", *cleaned, fence))


def written(tree: Iterable[Block]) -> Iterator[str]:
    """Yield blocks as paragraphs; what a box says beyond its fixes is for whoever ran gpucheck."""
    for part in tree:
        match part:
            case Words(text=text, lead=lead, below=below):
                bold = f"**{escaped(say('{name}.', name=lead))}** " if lead else ""
                yield bold + escaped(text)
                yield from written(below)
            case blocks.Items(texts=texts) | blocks.Quoted(lines=texts):
                yield items(texts)
            case blocks.Commands(lines=lines, lead=""):
                yield block(lines)
            case blocks.Commands(lines=lines, lead=lead):
                yield " ".join((escaped(with_colon(lead)).rstrip(), *map(code, lines)))
            case blocks.Evidence(lines=lines):
                yield "\n".join(map(_evidence, lines))
            case blocks.Sources(lines=known):
                yield items(headed(*line) for line in known)
            case blocks.SectionBlock(heading=heading, content=content):
                yield f"### {escaped(heading)}"
                yield from written(content)
            case Box():
                yield f"### {escaped(part.title)}"
                yield from written((*part.intro, *part.evidence, *part.fixes))


def items(texts: Iterable[str], limit: int = LONGEST_WORDS) -> str:
    """Return a list of untrusted texts."""
    return "\n".join(f"- {escaped(text, limit)}" for text in texts)


def _evidence(line: LineBlock) -> str:
    fact = code(say("{fact} = {value}", fact=line.fact, value=line.value))
    return f"- {fact} {escaped(say('from'))} {code(line.source)}" if line.source else f"- {fact}"


def _literal(found: re.Match[str]) -> str:
    return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(found[0], f"\\{found[0]}")


def _finding(report: Report, finding: Finding) -> Box:
    """Return a finding; in an issue its headline stands beside it, as in the verdict."""
    found = report_blocks.box(report, finding, every_fix=False)
    return msgspec.structs.replace(found, intro=(Words(headline(finding)),))


def _selftests(report: Report) -> str:
    tests = report.snapshot.get(SelfTests)
    if not tests.results:
        return ""
    rows = [(line.name, term(line.status), line.words) for line in lines_of(tests)]
    return table((say("Self-test"), "", ""), rows)


def _gpus(report: Report) -> str:
    """Return the table of several GPUs, with why a GPU is not kept."""
    found = gpu_table(report)
    if found is None:
        return ""
    rows = [(*row.cells, row.why) for row in found.rows]
    return f"{strong(say('GPUs'), found.title)}\n\n{table((*found.heads, say('Why')), rows)}"


def _table(report: Report) -> str:
    rows = [
        (term(area.name), term(area.status), area.words, in_series(area.slugs))
        for area in areas(report)
    ]
    return table((say("Area"), say("State"), say("Facts"), say("Findings")), rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of untrusted cells."""
    lines = [_row(heads), "|" + "---|" * len(heads), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "|" + "".join(f" {escaped(cell)} |" if cell else " |" for cell in cells)
