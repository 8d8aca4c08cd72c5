"""The last line of a report: written, broken, quoted, and read again."""

import textwrap
import time
from collections.abc import Callable

import preflight_samples
import report_samples
from each import each
from readers_support import TABLES

from gpucheck.cluster.pages import markdown as preflight_markdown
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.cluster.pages import words
from gpucheck.engine import Report
from gpucheck.engine.report import MARK, Trailer, parse, start_of, trailer
from gpucheck.findings import all_rules
from gpucheck.output import markdown, terminal, ticket_text
from gpucheck.ticket import ticket_reply
from gpucheck.ticket.judge import triage

LINE = trailer("broken", ("driver-too-old", "nccl-timeout"), "BROKEN   The driver is too old")
FACES: dict[str, Callable[[Report], str]] = {
    "terminal": terminal.render,
    "quiet": lambda report: terminal.render(report, quiet=True),
    "verbose": lambda report: terminal.render(report, verbose=2),
    "narrow": lambda report: terminal.render(report, width=40),
    "color": lambda report: terminal.render(report, color=True),
    "markdown": markdown.render,
    "triage": ticket_text.render,
    "triage-quiet": lambda report: ticket_text.render(report, quiet=True),
    "reply": ticket_reply.reply,
    "zh": lambda report: ticket_reply.reply(report, "zh"),
}


def _wrapped(text: str) -> str:
    """Break lines between words, as a mailer does."""
    return "\n".join("\n".join(textwrap.wrap(line, 60) or [""]) for line in text.splitlines())


def _cut(text: str) -> str:
    """Break lines after 72 columns, in the middle of a word, as a terminal does."""
    return "\n".join(
        line[at : at + 72] for line in text.splitlines() for at in range(0, max(1, len(line)), 72)
    )


PASTED: dict[str, Callable[[str], str]] = {
    "plain": str,
    "quoted": lambda text: textwrap.indent(text, "> ", lambda _line: True),
    "indented": lambda text: textwrap.indent(text, "    "),
    "wrapped": _wrapped,
    "cut": _cut,
    "quoted and wrapped": lambda text: textwrap.indent(_wrapped(text), "> ", lambda _line: True),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "rendered": lambda text: text.replace("**", "").replace("`", "").replace("### ", ""),
}


def pasted(text: str) -> Report:
    return triage(f"Hello,\n\nthis is what I get:\n\n{text}\n\nRegards", TABLES)


@each("face", FACES)
@each("name", report_samples.ALL)
def test_every_face_is_read_back(name: str, face: str) -> None:
    report = report_samples.ALL[name]()
    if name == "unknown" and face.startswith("triage"):
        report = triage("Is CUDA available: False\n")  # its face shows texts only
    text = FACES[face](report)
    assert any(MARK in line for line in text.splitlines()[-4:])  # then the verdict
    found = {form: pasted(paste(text)).root_causes for form, paste in PASTED.items()}
    first = report.root_causes[:1]
    wrong = {
        form: causes
        for form, causes in found.items()
        if set(causes) != set(report.root_causes) or causes[:1] != first
    }
    assert wrong == {}


@each("name", preflight_samples.ALL)
def test_every_pre_flight_is_read_back(name: str) -> None:
    result = preflight_samples.ALL[name]()
    causes = (
        () if words.drill_words(result) else tuple(cause.slug for cause in words.causes(result))
    )
    for text in (preflight_text.render(result, verbose=1), preflight_markdown.render(result)):
        assert MARK in text.splitlines()[-1]
        found = {form: pasted(paste(text)).root_causes for form, paste in PASTED.items()}
        wrong = {
            form: named
            for form, named in found.items()
            # for a text, some of them are suppressed
            if bool(named) != bool(causes) or not set(named) <= set(causes)
        }
        assert wrong == {}


def test_one_form_for_all() -> None:
    assert f"{MARK} verdict=broken causes=driver-too-old,nccl-timeout start=062c" == LINE
    assert trailer("healthy", (), "HEALTHY  x").startswith(f"{MARK} verdict=healthy causes=none ")
    assert trailer("broken", ("x",), "感谢反馈。").isascii()
    assert start_of("**BROKEN**: a") == start_of("> BROKEN   b") != start_of("HEALTHY")
    assert start_of("---") == ""


def test_a_line_that_is_broken_anywhere_is_read() -> None:
    for at in range(len(MARK), len(LINE)):
        found = parse([LINE[:at], LINE[at:], "Regards"])
        assert found is not None, at
        assert (found.verdict, found.causes) == ("broken", ("driver-too-old", "nccl-timeout")), at
        assert found.lines == 2, at


@each(
    "line",
    [
        MARK,
        f"{MARK} verdict=fine causes=none start=0000",
        f"{MARK} verdict=broken causes= start=0000",
        f"{MARK} verdict=broken start=0000",
        f"{MARK} verdict=broken causes=driver-too-old start=00",
        f"{MARK} verdict=broken causes=driver-too-old start=0000ff",
        f"{MARK} verdict=broken causes=<b> start=0000",
        f"{MARK} verdict=broken causes={'a' * 5000} start=0000",
        f"gpucheck-report/2 {LINE.partition(' ')[2]}",
    ],
)
def test_what_is_no_trailer_says_nothing(line: str) -> None:
    assert parse([line]) is None
    found = triage(
        f"BROKEN\n{line}\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    )
    assert found.root_causes[:1] == ("out-of-memory",)


def test_a_slug_that_nobody_knows_is_ignored() -> None:
    lines = trailer("broken", ("made-up", "driver-too-old"), "BROKEN")
    assert triage(f"BROKEN\n{lines}\n").root_causes == ("driver-too-old",)
    assert triage(f"BROKEN\n{trailer('broken', ('made-up',), 'BROKEN')}\n").root_causes == ()


@each("slug", sorted(all_rules()))
def test_whatever_a_report_names_is_taken(slug: str) -> None:
    """No message of a program points to some findings: gpucheck alone names them."""
    found = triage(f"Hello\n{trailer('broken', (slug,), 'BROKEN')}\n", TABLES)
    assert (found.verdict, found.root_causes) == ("broken", (slug,))
    assert found.findings[0].fixes


@each("verdict", ["unknown", "broken", "warning"])
def test_a_report_without_a_cause_is_not_healthy(verdict: str) -> None:
    """A newer gpucheck may name what this one does not know."""
    for causes in ((), ("not-yet-known",)):
        found = triage(f"My training fails.\n{trailer(verdict, causes, 'X')}\n", TABLES)
        assert (found.verdict, found.root_causes) == ("unknown", ())


def test_hostile_trailers_take_no_time() -> None:
    begun = time.process_time()
    text = f"{LINE}\n" * 3000 + f"{MARK} verdict=broken causes={'driver-too-old,' * 3000}\n" * 50
    assert triage(text).verdict != "healthy"
    assert parse([MARK, "verdict=broken causes=" + "a-," * 100_000]) is None
    assert time.process_time() - begun < 10


def test_what_stands_around_a_report_is_read() -> None:
    report = report_samples.ALL["healthy"]()
    kernel = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    for text in (f"{kernel}\n{terminal.render(report)}", f"{terminal.render(report)}\n{kernel}\n"):
        assert triage(text).root_causes[:1] == ("gpu-fallen-off-bus",)


def test_two_reports_say_what_both_say() -> None:
    healthy, broken = report_samples.ALL["healthy"](), report_samples.ALL["many"]()
    text = f"before:\n{terminal.render(healthy)}\nand now:\n{markdown.render(broken)}\n"
    assert triage(text).root_causes[:1] == broken.root_causes[:1]


def test_a_report_that_quotes_a_trailer_is_one_report() -> None:
    first = triage(terminal.render(report_samples.ALL["many"]()))
    text = ticket_text.render(first, lines=True)
    assert text.count(MARK) > 1
    assert triage(text).root_causes == first.root_causes


def test_a_report_without_a_trailer_raises_no_alarm() -> None:
    """The first version wrote none: what such a report lists is no message of this machine."""
    for make in report_samples.ALL.values():
        for face in (terminal.render, markdown.render):
            lines = face(make()).splitlines()
            older = "\n".join(line for line in lines if MARK not in line)
            assert pasted(older).root_causes == ()


def test_parsing_gives_what_was_written() -> None:
    assert parse([LINE]) == Trailer("broken", ("driver-too-old", "nccl-timeout"), "062c")
