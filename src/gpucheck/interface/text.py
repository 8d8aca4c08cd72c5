"""Text output of the command line: colour, stream or file, control characters."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import click

from gpucheck.interface.errors import NO_ROOM, AskError, UsageError, no_room, printable, words_of
from gpucheck.language import Language, Sentence, language_is_set, language_of_locale, say, spoken

# The language that a user reads.


def language_named(name: str = "") -> Language:
    """Return the language of this name; of any other that of the locale.

    Args:
        name: ``en``, ``zh`` or ``auto``; "" for what ``GPUCHECK_LANG`` says.
    """
    # Not through the door to the machine: help would wait for its import.
    variables = os.environ  # noqa: TID251
    named = (name or variables.get("GPUCHECK_LANG", "")).strip().lower()
    if named in ("en", "zh"):
        return "zh" if named == "zh" else "en"
    if sys.platform == "win32" and not language_is_set(variables):
        from gpucheck.machine.windows import speaks_chinese  # noqa: PLC0415

        return "zh" if speaks_chinese() else "en"
    return language_of_locale(variables)


__all__ = [
    "NO_ROOM", "NotWrittenError", "UsageRefusedError", "colored", "echo", "language_named", "named",
    "no_room", "page_width", "printable", "refuse_unwritable", "words_of", "writable", "write_out",
]  # fmt: skip

_WINDOWS = os.name == "nt"
_OF_OPEN_MPI = "OMPI_COMM_WORLD_RANK"
"""mpirun of Open MPI gives its processes a terminal of its own, wherever their output goes."""

_LONGEST_MESSAGE = 10_000
"""Of one of our messages, which may list every key."""


def colored(options: dict[str, Any]) -> bool:
    """Whether to colour: on a terminal that can, unless the user or NO_COLOR disables it."""
    from gpucheck.machine import LiveHost  # noqa: PLC0415
    from gpucheck.machine.windows import takes_escapes  # noqa: PLC0415

    env = LiveHost().env()
    return bool(
        sys.stdout.isatty()
        and not options["output"]
        and not options["no_color"]
        and not env.get("NO_COLOR")
        and env.get("TERM") != "dumb"
        and _OF_OPEN_MPI not in env  # its terminal is a pipe's: mpirun may write to a file
        and takes_escapes(sys.stdout)
    )


def echo(sentence: str, *, limit: int = 300) -> None:
    """Write a sentence to stderr in the current language."""
    click.echo(printable(spoken(sentence), limit=limit), err=True)


def page_width(options: dict[str, Any]) -> int | None:
    """Return the columns of the terminal; None where the output goes elsewhere."""
    if options["output"] or not sys.stdout.isatty():
        return None
    import shutil  # noqa: PLC0415  # most output goes elsewhere or is not laid out

    from gpucheck.language.columns import page_columns  # noqa: PLC0415

    return page_columns(shutil.get_terminal_size().columns)


def page_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return how a report for people is laid out, as the command line wants it."""
    return {
        "verbose": options["verbose"], "quiet": options["quiet"],
        "color": colored(options), "width": page_width(options),
    }  # fmt: skip


class UsageRefusedError(click.ClickException):
    """What the user named cannot be used. One sentence: how the command is used would not help."""

    exit_code = 2


class NotWrittenError(UsageRefusedError):
    """What was asked for could not be written to its file, and was printed instead."""


def writable(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Check the value of an option that names a file to write; None stands for stdout (``-``)."""
    if value == "-":
        return None
    refuse_unwritable(value)
    return value


def named(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the value of an option that names a file to write; None stands for stdout (``-``)."""
    return None if value == "-" else value


def refuse_unwritable(path: str | None) -> None:
    """Refuse a file that cannot be written, before the work is done.

    Raises:
        RefusedError: it cannot; the sentence says why.
    """
    try:
        if path is not None:
            _try_to_open(path)
    except (OSError, ValueError) as error:
        raise UsageRefusedError(_not_written(str(path), error)) from error


def _try_to_open(path: str) -> None:
    """Open a file as if to write it; a file that this creates is removed again.

    A pipe or a device is not opened, because its reader would take that for the output.
    """
    from pathlib import Path  # noqa: PLC0415  # every check would pay two milliseconds for it

    from gpucheck.facts.streams import open_descriptor  # noqa: PLC0415

    handle = open_descriptor(path)
    if handle is not None:
        os.close(handle)
        return
    file = Path(path)
    if file.exists():
        if file.is_file() or file.is_dir():
            os.close(os.open(file, os.O_WRONLY))
        return
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    file.unlink()


def _not_written(path: str, error: Exception) -> Sentence:
    why = getattr(error, "strerror", None) or error
    return say("{file} cannot be written: {why}", file=printable(path), why=why)


def write_out(text: str, output: str | None) -> None:
    """Write to stdout or to a file; characters that the stream cannot encode are replaced.

    A file has its old content until all of the new one is written.

    Raises:
        NotWrittenError: the file cannot be written; the text has been printed, so it is not lost.
    """
    if output is None:
        _print(text)
        return
    from gpucheck.language.visible import encodable  # noqa: PLC0415

    try:
        _replace(output, encodable(text, "utf-8").encode("utf-8"))
    except (OSError, ValueError) as error:
        _print(text)
        raise NotWrittenError(
            say(
                "{file} cannot be written: {why}. It was printed instead, to stdout.",
                file=printable(output),
                why=getattr(error, "strerror", None) or error,
            )
        ) from error


def _replace(path: str, data: bytes) -> None:
    """Replace a file at once; a descriptor, pipe, device or file in a locked folder is written to.

    Raises:
        OSError, ValueError: it cannot be written; the file is as it was.
    """
    from pathlib import Path  # noqa: PLC0415  # as above

    from gpucheck.facts.streams import open_descriptor, write_into  # noqa: PLC0415

    descriptor = open_descriptor(path)
    if descriptor is not None:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(data)
        return
    named = Path(path)
    if named.exists() and not named.is_file():  # by its own name: a shell's >(command) has no other
        write_into(named, data)
        return
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".gpucheck-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except PermissionError:
        target.write_bytes(data)
        return
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o7777)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _print(text: str) -> None:
    from gpucheck.language.visible import encodable  # noqa: PLC0415

    shown = encodable(text, sys.stdout.encoding)
    try:
        click.echo(shown, nl=False, color=True)
    except OSError as error:
        if not _says_that_the_reader_left(error):
            raise
        # Without its number: of that, click makes the status of an error that was found.
        raise BrokenPipeError(None, os.strerror(errno.EPIPE)) from error
    if shown != text and any("\u4e00" <= char <= "\u9fff" for char in text):
        # In English, which every encoding has.
        note = say(
            "gpucheck: stdout is {encoding}, which has no Chinese characters: they are printed as "
            "\\u codes. PYTHONUTF8=1, --lang en or -o FILE (UTF-8) avoids it.",
            encoding=sys.stdout.encoding,
        )
        click.echo(str(note), err=True)


def _says_that_the_reader_left(error: OSError) -> bool:
    """Whether a pipe was closed by its reader; Python on Windows calls that a wrong argument."""
    return error.errno == errno.EPIPE or (_WINDOWS and error.errno == errno.EINVAL)


@contextlib.contextmanager
def in_the_words_of_click() -> Iterator[None]:
    """Turn what was asked wrongly into a refusal of the command line."""
    try:
        yield
    except AskError as error:
        words = words_of(error, limit=_LONGEST_MESSAGE)
        kind = click.UsageError if isinstance(error, UsageError) else UsageRefusedError
        raise kind(words) from error


# What is drawn on a terminal while gpucheck works; a terminal that is gone ends nothing.


class LiveOut:
    """A terminal for lines that come and go. After the first failure nothing is drawn any more."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_gone = False

    def write(self, text: str) -> None:
        """Write the text at once, if anybody can still see it."""
        if self._is_gone:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except BlockingIOError:
            self._is_gone = True
        except (OSError, ValueError):
            self._is_gone = True
            to_nowhere(self._out)


def to_nowhere(stream: TextIO) -> None:
    """Have the rest of a stream go nowhere: what it still holds would fail at the exit, too."""
    with contextlib.suppress(OSError, ValueError):
        from gpucheck.machine.children import nothing  # noqa: PLC0415  # rarely needed

        null = nothing()
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)
