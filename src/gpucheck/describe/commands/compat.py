"""``gpucheck compat``: what if, judged by the same rules as a live machine."""

import codecs
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from gpucheck.doctor.commands.check import show_report
from gpucheck.doctor.run import open_tables
from gpucheck.interface.options import examples, fail_on_option, format_option, output_options_with
from gpucheck.interface.text import printable, words_of, write_out
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.describe.judge import WhatIf
    from gpucheck.tables import Tables

# Bytes. Chosen: a described machine has some hundred bytes, so 1 MiB is never met by a real one; a
# batch is read line by line, so its limit bounds the time only.
_FACTS_LIMIT = 1024 * 1024
_BATCH_LIMIT = 64 * 1024 * 1024
_LINE_LIMIT = 1024 * 1024
_HEAD = 8192
"""Bytes at the beginning of a batch that show its encoding."""
_STDIN = "-"
_LONGEST_MESSAGE = 10_000
"""Of one of our messages, which may list every key."""


class _Facts(click.Command):
    """A command whose facts are no options: ``--gpu X`` is refused with how to write it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words.

        Raises:
            click.UsageError: one of them is no option, or a key that is written like one.
        """
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from gpucheck.describe.keys import KEYS  # noqa: PLC0415

            key = error.option_name.lstrip("-").replace("-", "_")
            if key not in KEYS:
                raise
            words = say("compat takes its facts without dashes: {key}=VALUE.", key=key)
            raise click.UsageError(words, ctx) from error


@click.command(
    cls=_Facts,
    short_help=say("What if: judge a machine that you describe."),
    epilog=examples(
        "gpucheck compat gpu=4090 driver=535.104.05 torch=2.9.1",
        'gpucheck compat gpu="GTX 1080" torch=2.9.1+cu130 python=3.12',
        "gpucheck compat --facts machine.json driver=580",
    ),
)
@click.argument("words", metavar="KEY=VALUE...", nargs=-1)
@click.option("--facts", "facts", metavar="FILE", help=say("Take the keys from a JSON object."))
@click.option(
    "--batch",
    "batch",
    metavar="FILE",
    help=say('Judge each line {"id": ..., "facts": {...}}, and print one line for each.'),
)
@fail_on_option
@format_option
@output_options_with(say("Every check with its reason; twice: every fact."))
@click.pass_context
def compat(ctx: click.Context, /, words: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401  # click's options
    """Judge a machine that you describe by keys such as driver=535.104.05 torch=2.9.1.

    "none" means that something does not exist; a missing key means that it is unknown. Separate the
    items of a list by commas, or repeat the key. An unknown key prints the list of keys.
    """
    tables = open_tables(options["tables"])
    if options["batch"] is not None:
        if words or options["facts"] is not None:
            raise click.UsageError(say("--batch takes its facts only from its file."))
        _answer_batch(options, tables)
        return
    asked = _ask(words, options["facts"], tables)
    _show(asked, options)
    ctx.exit(asked.report.exit_status(options["fail_on"]))


def _ask(words: tuple[str, ...], file: str | None, tables: "Tables") -> "WhatIf":
    from gpucheck.describe.judge import judge_described  # noqa: PLC0415
    from gpucheck.describe.keys import GivenError, read_object, read_words  # noqa: PLC0415

    if not words and file is None:
        raise click.UsageError(
            say("say what to judge: KEY=VALUE..., --facts FILE or --batch FILE.")
        )
    try:
        given = {} if file is None else read_object(_object(file))
        given.update(read_words(words))
        return judge_described(given, tables)
    except GivenError as error:
        raise click.UsageError(words_of(error, limit=_LONGEST_MESSAGE)) from error


def _object(file: str) -> Any:  # noqa: ANN401  # any JSON value
    data = _content(file)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(
            say("{file} is not JSON: {error}", file=printable(file), error=words_of(error))
        ) from error


def _content(file: str) -> bytes:
    try:
        if file == _STDIN:
            data = sys.stdin.buffer.read(_FACTS_LIMIT + 1)
        else:
            from gpucheck.facts.streams import reading  # noqa: PLC0415

            with reading(Path(file)) as opened:
                data = opened.read(_FACTS_LIMIT + 1)
    except OSError as error:
        why = error.strerror or error
        raise click.UsageError(
            say("{file} cannot be read: {why}", file=printable(file), why=why)
        ) from error
    if len(data) > _FACTS_LIMIT:
        raise click.UsageError(
            say(
                "{file} is larger than {size} MiB.",
                file=printable(file),
                size=_FACTS_LIMIT >> 20,
            )
        )
    return data


def _answer_batch(options: dict[str, Any], tables: "Tables") -> None:
    file = options["batch"]
    lines: list[str] = []
    try:
        if file == _STDIN:
            lines.extend(_answers(sys.stdin.buffer, tables))
        else:
            from gpucheck.facts.streams import reading  # noqa: PLC0415

            with reading(Path(file)) as opened:
                lines.extend(_answers(opened, tables))
    except OSError as error:
        why = error.strerror or error
        raise click.UsageError(
            say("{file} cannot be read: {why}", file=printable(file), why=why)
        ) from error
    write_out("".join(lines), options["output"])


def _answers(source: BinaryIO, tables: "Tables") -> Iterator[str]:
    """Answer each line that is not empty; a bad one gets its own answer and stops no other."""
    read, number = 0, 0
    source = _in_utf_8(source)
    while line := source.readline(_LINE_LIMIT + 1):
        number += 1
        read += len(line)
        too_long = len(line) > _LINE_LIMIT
        while too_long and line and not line.endswith(b"\n") and read <= _BATCH_LIMIT:
            line = source.readline(_LINE_LIMIT)  # skip the rest of the line
            read += len(line)
        if read > _BATCH_LIMIT:
            raise click.UsageError(
                say("the batch is larger than {size} MiB.", size=_BATCH_LIMIT >> 20)
            )
        if too_long:
            yield _line(
                _error(None, number, say("it is longer than {size} MiB", size=_LINE_LIMIT >> 20))
            )
        elif line.strip():
            yield _line(_answer(line, number, tables))


def _in_utf_8(source: BinaryIO) -> BinaryIO:
    """Return a stream of UTF-8: in UTF-16, which Windows PowerShell writes, no byte ends a line."""
    from gpucheck.facts.streams import ReadOnce, Rejoined  # noqa: PLC0415
    from gpucheck.log_patterns.text import Transcoded, utf_16  # noqa: PLC0415

    given = ReadOnce(source)
    head = given.read(_HEAD)
    whole, encoding = Rejoined(head.removeprefix(codecs.BOM_UTF8), given), utf_16(head)
    return io.BufferedReader(Transcoded(whole, encoding) if encoding else whole)


def _line(answer: dict[str, Any]) -> str:
    from gpucheck.output.json_text import json_text  # noqa: PLC0415

    return json_text(answer, indent=None)


def _answer(line: bytes, number: int, tables: "Tables") -> dict[str, Any]:
    from gpucheck.describe.judge import judge_described  # noqa: PLC0415
    from gpucheck.describe.keys import GivenError, read_object  # noqa: PLC0415

    name = None
    try:
        item = json.loads(line)
        if not isinstance(item, dict) or "facts" not in item:
            return _error(None, number, say('it is not an object with "id" and "facts"'))
        name = item.get("id")
        if not isinstance(name, (str, int, type(None))):
            name = None
        return judge_described(read_object(item["facts"]), tables).report.as_line(name)
    except GivenError as error:
        return _error(name, number, words_of(error))
    except (ValueError, RecursionError):
        return _error(name, number, say("it is not JSON"))


def _error(name: object, number: int, why: str) -> dict[str, Any]:
    return {
        "id": name,
        "verdict": "unknown",
        "root_causes": [],
        "confidence": None,
        "error": say("line {number}: {why}", number=number, why=printable(why)),
    }


def _show(asked: "WhatIf", options: dict[str, Any]) -> None:
    """Print the report; what this version does not judge is listed in one line."""
    from gpucheck.output.words import sentence  # noqa: PLC0415

    if options["form"] == "json":
        from gpucheck.output.public import public  # noqa: PLC0415

        data = {**public(asked.report).as_json(), "not_judged": sorted(asked.not_judged)}
        from gpucheck.output.json_text import json_text  # noqa: PLC0415

        write_out(json_text(data), options["output"])
        return
    show_report(asked.report, options, after=sentence(asked.not_judged))


COMMAND = compat
