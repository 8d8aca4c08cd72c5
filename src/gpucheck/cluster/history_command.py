"""``gpucheck preflight --history FILE``: which nodes did earlier runs name?"""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gpucheck.cluster.files import LONGEST_LINE, History, Past, json_text, of_lines
from gpucheck.facts import builtins
from gpucheck.facts.streams import reading
from gpucheck.interface.text import printable, write_out
from gpucheck.language import say, say_many, spoken

_ROWS = 50
"""Chosen: a screen of hosts, the worst first."""
_LARGEST = 512 << 20
"""Bytes. Chosen: years of records of a large cluster."""


def show(options: dict[str, Any]) -> None:
    """Print what the records say.

    Raises:
        click.UsageError: the file cannot be read, or there is no such page of it.
    """
    if options["form"] == "html":
        raise click.UsageError(say("--history has no page: use --format terminal or json."))
    name = options["history"]
    try:
        with reading(Path(name)) as opened:
            found = of_lines(_lines(opened))
    except OSError as error:
        raise click.UsageError(
            say("{file} cannot be read: {why}", file=printable(name), why=error.strerror)
        ) from error
    as_json = options["form"] == "json"
    write_out(json_text(builtins(found)) if as_json else _text(found), options["output"])


def _lines(opened: Any) -> Iterator[bytes]:  # noqa: ANN401  # a binary file
    read = 0
    while line := opened.readline(LONGEST_LINE):
        read += len(line)
        if read > _LARGEST:
            raise OSError(errno.EFBIG, say("it is larger than {size} MiB", size=_LARGEST >> 20))
        yield line


def _text(found: History) -> str:
    sentences = [_line(past) for past in found.hosts[:_ROWS]]
    if len(found.hosts) > _ROWS:
        sentences.append(say("and {hosts:,} more hosts", hosts=len(found.hosts) - _ROWS))
    if not sentences:
        sentences.append(say("No node was named."))
    sentences.append(
        say_many(found.runs, "{count} run is recorded.", "{count:,} runs are recorded.")
    )
    if found.unread:
        sentences.append(
            say_many(
                found.unread,
                "{count} line is not a record of gpucheck and was not read.",
                "{count:,} lines are not records of gpucheck and were not read.",
            )
        )
    return "".join(f"{printable(spoken(sentence), limit=300)}\n" for sentence in sentences)


def _line(past: Past) -> str:
    return say(
        "{host}: took part in {runs}, was named in {blamed}, last at {time} ({slugs}); passed "
        "since then: {since}",
        host=printable(past.host),
        blamed=past.blamed,
        runs=past.runs,
        time=printable(past.last),
        slugs=", ".join(map(printable, past.slugs[:4])),
        since=past.passed_since,
    )
