#!/usr/bin/env python3
"""Writes the manual pages of gpucheck from the help of its commands, one page for each command.

    python tools/man_page.py FOLDER

The same gpucheck always gives the same pages: they have its version and no date. They are not
kept in the repository; whoever packages gpucheck makes them.
"""

import argparse
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from gpucheck._about import VERSION
from gpucheck.cli import gpucheck

_SECTION = 1
_ENVIRONMENT = (
    ("GPUCHECK_PYTHON", "The Python whose PyTorch is diagnosed, unless --python names one."),
    ("GPUCHECK_TABLES", "The folder of compatibility tables, as --tables names it."),
    ("GPUCHECK_WHEEL_MIRROR", "A mirror of PyTorch's wheels, as --wheel-mirror names it."),
    ("GPUCHECK_LANG", "The language of the output, as --lang names it."),
    ("GPUCHECK_PREFLIGHT_TOKEN", "The secret that all tasks of a pre-flight share."),
    ("NO_COLOR", "No colour if it is set."),
)


def commands(group: click.Group, above: click.Context) -> Iterator[tuple[str, click.Context]]:
    """Yield each command with its name, those of groups after their group."""
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        if command is None or command.hidden:
            continue
        here = click.Context(command, parent=above, info_name=name)
        yield here.command_path.replace(" ", "-"), here
        if isinstance(command, click.Group):
            yield from commands(command, here)


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    top = click.Context(gpucheck, info_name="gpucheck")
    every = [("gpucheck", top), *commands(gpucheck, top)]
    return {f"{name}.{_SECTION}": page(name, ctx, every) for name, ctx in every}


def page(name: str, ctx: click.Context, every: list[tuple[str, click.Context]]) -> str:
    """Return one page as roff for the man macros."""
    about = inspect.cleandoc(ctx.command.help or "")
    first, _, rest = about.partition("\n\n")
    summary = first if ctx.parent is None else str(ctx.command.short_help or first)
    lines = [
        f'.TH "{name.upper()}" "{_SECTION}" "" "gpucheck {VERSION}" "gpucheck"',
        ".SH NAME",
        f"{literal(name)} \\- {text(summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {literal(ctx.command_path)}",
        text(" ".join(ctx.command.collect_usage_pieces(ctx))),
        ".SH DESCRIPTION",
        *paragraphs(first if ctx.parent is not None else rest),
        *(paragraphs(rest) if ctx.parent is not None else []),
        *options(ctx),
        *below(ctx),
        *examples(ctx),
    ]
    if ctx.parent is None:
        lines += [".SH ENVIRONMENT"]
        for variable, meaning in _ENVIRONMENT:
            lines += [".TP", f".B {literal(variable)}", text(meaning)]
    others = [other for other, _ctx in every if other != name]
    linked = ", ".join(rf"\fB{literal(other)}\fP({_SECTION})" for other in others)
    return "\n".join((*lines, ".SH SEE ALSO", linked)) + "\n"


def paragraphs(words: str) -> Iterator[str]:
    """Yield paragraphs as lines of roff."""
    for part in filter(None, words.split("\n\n")):
        yield ".PP"
        yield text(part)


def options(ctx: click.Context) -> Iterator[str]:
    """Yield the options of a command."""
    records = [
        (param.get_help_record(ctx), param)
        for param in ctx.command.get_params(ctx)
        if isinstance(param, click.Option)
    ]
    shown = [record for record, _param in records if record is not None]
    if shown:
        yield ".SH OPTIONS"
    for names, help_text in shown:
        yield ".TP"
        yield rf"\fB{literal(names)}\fP"
        yield text(help_text)


def below(ctx: click.Context) -> Iterator[str]:
    """Yield the commands of a group."""
    if not isinstance(ctx.command, click.Group):
        return
    yield ".SH COMMANDS"
    for name in ctx.command.list_commands(ctx):
        command = ctx.command.get_command(ctx, name)
        if command is not None:
            yield ".TP"
            yield f".B {literal(name)}"
            yield text(command.get_short_help_str(limit=200))


def examples(ctx: click.Context) -> Iterator[str]:
    """Yield the examples at the end of a command's help."""
    found = (ctx.command.epilog or "").split("\n")[2:]
    if found:
        yield from (".SH EXAMPLES", ".nf", *(literal(line.strip()) for line in found), ".fi")


def text(words: str) -> str:
    """Return words that may be filled, without anything that roff would act on."""
    return escaped(" ".join(words.replace("\b", "").split()))


def literal(words: str) -> str:
    """Return words that are typed as they are: a hyphen is a minus sign."""
    return escaped(words)


def escaped(words: str) -> str:
    """Return text in which no character means anything to roff."""
    safe = (
        words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    )
    safe = safe.replace("^", "\\(ha").replace("~", "\\(ti")
    return re.sub(r"^\.", r"\\&.", safe)


def main() -> None:
    """Write the pages into the folder that is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, page_text in pages().items():
        (folder / name).write_text(page_text, encoding="utf-8")
        print(folder / name)


if __name__ == "__main__":
    main()
