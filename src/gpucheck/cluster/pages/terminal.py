"""A pre-flight for a person at a terminal: one line if all is well, else the culprits first."""

from collections.abc import Iterator
from itertools import groupby

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import tables, words
from gpucheck.facts.preflight import RankOutcome
from gpucheck.language import in_series, say, spoken
from gpucheck.language.columns import padded
from gpucheck.output.blocks import Items, SectionBlock
from gpucheck.output.layout import STATES, Page
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.terminal import show_footer
from gpucheck.output.words import bracketed, clean, headed, in_line, term

_VERDICT_COLUMN = _SEVERITY_COLUMN = 9
"""Columns of the word at the start of a line."""
_RANK_COLUMNS = 9, 11
"""Columns of a rank and of its status."""
_SAID, _IN_FULL = 8, 2
"""How many findings are shown, and how many slugs with their fixes."""
_ROWS = 8
"""Chosen: hosts, or bandwidths, of a screen."""
_LONGEST_LOOK = 400
"""Characters. Chosen: some lines for each look; the JSON has all."""
_FEW_RANKS = 16
"""Up to this many ranks have a line each; otherwise only those that failed, by host."""


def render(
    result: Result,
    *,
    verbose: int = 0,
    quiet: bool = False,
    color: bool = False,
    width: int | None = None,
) -> str:
    """Return the pre-flight as text, at most a screen or two of it whatever the number of ranks.

    Args:
        result: what to show; nothing is redacted, because a cluster's operators need its names.
        verbose: adds the table, every step and all figures even if all is well.
        quiet: only the verdict.
        color: with SGR codes; no meaning depends on them.
        width: columns; 80 if unknown.
    """
    page = Page(width, color=color)
    found = words.causes(result)
    drill = words.drill_words(result)
    _drill(page, drill, in_one_line=quiet)
    is_good = not (result.ending.status or found)
    _verdict(page, result, in_one_line=quiet or (is_good and not verbose))
    if not quiet:
        _findings(page, found, result)
        for notice in words.notices(result):
            page.labelled(say("notice"), notice, column=_SEVERITY_COLUMN)
        _open_end(page, result)
        if verbose or result.ending.status:
            _ranks(page, result)
        if verbose:
            _figures(page, result)
        if verbose or found or result.ending.status:
            page.blank()
            page.words(words.exit_words(result))
            show_footer(page, result.report)
    _drill(page, drill, in_one_line=quiet)
    if not quiet and (verbose or found or result.ending.status):
        page.verbatim(words.trailer_of(result), style="dim")
    return page.text()


def _drill(page: Page, drill: str, *, in_one_line: bool) -> None:
    if drill and in_one_line:
        page.verbatim(spoken(drill), style="yellow")
    elif drill:
        page.words(drill, style="yellow")


def _verdict(page: Page, result: Result, *, in_one_line: bool) -> None:
    """Write the verdict; the part that scripts search for in a log is always on one line."""
    word = words.verdict_word(result)
    label, sentence, style = words.label(result), words.verdict(result), STATES[word]
    if in_one_line:
        page.verbatim(spoken(sentence), lead=padded(spoken(label), _VERDICT_COLUMN), style=style)
    else:
        page.labelled(label, sentence, column=_VERDICT_COLUMN, style=style)


def _findings(page: Page, found: list[words.ShownCause], result: Result) -> None:
    """Write who else is to blame, and the fixes for the most severe causes."""
    named = words.verdict_word(result) == "broken" and not result.ending.why
    rest = words.cause_lines(found)[1 if named else 0 :]
    if rest:
        page.blank()
    for severity, sentence in rest[:_SAID]:
        style = STATES[severity]
        page.labelled(term(severity), sentence, column=_SEVERITY_COLUMN, style=style)
    if len(rest) > _SAID:
        page.words(say("and {rest:,} more: --format json has all", rest=len(rest) - _SAID))
    page.write([words.box(cause, result) for cause in found[:_IN_FULL]])
    if len(found) > _IN_FULL:
        page.blank()
        page.words(
            say("What to do about the rest: {explain}", explain=_explain(found[_IN_FULL:])), hang=2
        )


def _explain(causes: list[words.ShownCause]) -> str:
    slugs = [cause.slug for cause in causes if cause.finding is not None][:_SAID]
    return in_series([f"gpucheck explain {slug}" for slug in slugs])


def _open_end(page: Page, result: Result) -> None:
    """Write what could not be determined, what is known nevertheless, and the next steps."""
    for sentence in words.still_open(result):
        page.blank()
        page.words(sentence, hang=2)
    steps = words.next_steps(result)
    if steps:
        page.heading(say("Next"))
        for step in steps:
            page.words(step, lead="- ", indent=2, hang=4)


def _ranks(page: Page, result: Result) -> None:
    ranks = result.preflight.ranks
    if not ranks:
        return
    page.heading(words.population(result))
    if result.preflight.steps:
        done = in_series(list(_counted_steps(result.preflight.steps)))
        page.words(
            say("Steps: {done}; {seconds}", done=done, seconds=words.seconds(result.seconds)),
            indent=2,
            hang=4,
        )
    if found := tables.counted_gpus(result):
        page.words(headed(say("GPUs"), found), indent=2, hang=4)
        page.write([Items(tuple(tables.gpu_lines(result)[:_ROWS]))], 4)
    page.write([Items(tuple(clean(look, _LONGEST_LOOK) for look in result.preflight.looks))])
    if len(ranks) > _FEW_RANKS:
        _hosts(page, ranks)
        return
    for status, outcomes in words.by_status(ranks):
        for outcome in outcomes:
            _rank(page, outcome, status)


def _hosts(page: Page, ranks: list[RankOutcome]) -> None:
    """Write where the failures were, the worst host first, and how many others there are."""
    groups = words.by_status(ranks)
    hosts = _by_host([rank for rank in ranks if rank.status in words.BAD])
    if len(hosts) > 1:
        bad = [
            words.counted_status(len(outcomes), status)
            for status, outcomes in groups
            if status in words.BAD
        ]
        page.words(in_series(bad), indent=2)
    for host, outcomes in hosts[:_ROWS]:
        page.words(words.host_words(outcomes), lead=with_colon(host), indent=2, hang=4)
    if len(hosts) > _ROWS:
        page.words(say("and {hosts:,} more hosts", hosts=len(hosts) - _ROWS), indent=2)
    for status, members in groups:
        if sentence := _others(status, len(members), more=bool(hosts)):
            page.words(sentence, indent=2)


def _others(status: str, count: int, *, more: bool) -> str:
    """Return how many ranks did not fail; "" for a status of those that did."""
    if status == "stopped":
        if more:
            return say("and {count:,} more stopped while waiting for others", count=count)
        return say("{count:,} stopped while waiting for others", count=count)
    if status == "passed":
        if more:
            return say("and {count:,} more passed", count=count)
        return say("{count:,} passed", count=count)
    return ""


def _rank(page: Page, outcome: RankOutcome, status: str) -> None:
    where: list[str] = []
    if outcome.host:
        where.append(_place(words.host(outcome.host), outcome.gpu))
    elif outcome.gpu is not None:
        where.append(f"GPU {outcome.gpu}")
    is_known = (status, outcome.phase) != ("lost", "done")  # nobody saw how far task 0 was
    if status in words.BAD and status != "absent" and is_known:
        where.append(words.phase_words(outcome.phase))
    sentence, detail = in_line(where), clean(outcome.detail, 200)
    style = "red" if status in words.BAD else ""
    rank = say("rank {rank}", rank=outcome.rank)
    cells = [(rank, _RANK_COLUMNS[0], ""), (term(status), _RANK_COLUMNS[1], style)]
    page.columns(cells, headed(sentence, detail) if sentence else detail, indent=2)


def _place(host: str, gpu: int | None) -> str:
    if gpu is None:
        return say("on {host}", host=host)
    return say("on {host} GPU {gpu}", host=host, gpu=gpu)


def _by_host(ranks: list[RankOutcome]) -> list[tuple[str, list[RankOutcome]]]:
    """Return the ranks by their hosts; the host with the most of them first."""
    ordered = sorted(
        ranks, key=lambda outcome: (outcome.host or "", words.WORST_FIRST.index(outcome.status))
    )
    found = [
        (words.host(name) or say("host unknown"), list(of_host))
        for name, of_host in groupby(ordered, key=lambda outcome: outcome.host or "")
    ]
    return sorted(found, key=lambda pair: -len(pair[1]))


def _counted_steps(steps: list[str]) -> Iterator[str]:
    """Return the steps in order, repeated ones once with their count."""
    for step, same in groupby(steps):
        count = len(list(same))
        yield bracketed(clean(step), say("{count} rounds", count=count) if count > 1 else "")


def _figures(page: Page, result: Result) -> None:
    preflight = result.preflight
    bandwidths = sorted(
        preflight.bandwidths or (),
        key=lambda bandwidth: (bandwidth.ranks, bandwidth.size),
        reverse=True,
    )
    measured = [words.measured(bandwidth) for bandwidth in bandwidths[: 2 * _ROWS]]
    if left := len(bandwidths) - len(measured):
        measured.append(say("and {bandwidths} more: --format json has all", bandwidths=left))
    rates = list(words.rate_lines(preflight.ranks or ()))
    lists = (
        (say("Bandwidth"), measured),
        (say("Each rank alone"), rates[: 2 * _ROWS]),
        (say("Required"), [clean(required) for required in result.requirements]),
    )
    page.write(
        SectionBlock(heading, (Items(tuple(sentences)),))
        for heading, sentences in lists
        if sentences
    )
