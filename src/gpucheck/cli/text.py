"""Text output of the command line: colour, stream or file, control characters."""

import sys
from typing import Any

import click


def colored(options: dict[str, Any]) -> bool:
    """Whether to colour: on a terminal, unless the user or NO_COLOR disables it."""
    from gpucheck.machine import LiveHost  # noqa: PLC0415

    env = LiveHost().env()
    return bool(
        sys.stdout.isatty()
        and not options["output"]
        and not options["no_color"]
        and not env.get("NO_COLOR")
        and env.get("TERM") != "dumb"
    )


def write_out(text: str, output: str | None) -> None:
    """Write to stdout or to a file; characters that the stream cannot encode are replaced."""
    from gpucheck.output.layout import encodable  # noqa: PLC0415

    if output is None:
        click.echo(encodable(text, sys.stdout.encoding), nl=False, color=True)
        return
    from pathlib import Path  # noqa: PLC0415  # every check would pay two milliseconds for it

    try:
        Path(output).write_text(encodable(text, "utf-8"), encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise click.UsageError(f"{output} cannot be written: {why}") from error


def printable(text: str, *, limit: int = 300, keep: str = "") -> str:
    """Return untrusted text without control characters, except those to keep, cut to a length."""
    return "".join(char if char.isprintable() or char in keep else "?" for char in text[:limit])
