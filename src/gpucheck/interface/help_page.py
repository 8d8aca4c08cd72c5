"""The help and the refusals of click in a language other than English.

click makes its pages from English texts; here each is looked up in the catalogue when it is
written. Its own words go through ``gettext``, whose function in each of its modules is replaced.
"""

import importlib
import re
from collections.abc import Iterable

import click

from gpucheck.language import Sentence, current_language, say, spoken
from gpucheck.language.columns import padded, width_of
from gpucheck.language.paragraphs import EXAMPLES, comment_of, parts, template_of
from gpucheck.output.layout import wrapped

_MODULES = ("core", "exceptions", "formatting", "parser", "types")
"""Those that look a text up when they show it. Its decorators do so when they make an option, which
is kept; :class:`HelpFormatter` translates the words of options."""
_OF_CLICK = (
    say("."),
    say("Usage:"), say("Examples:"), say("Options"), say("Commands"), say("Missing command."),
    say("Show the version and exit."), say("Show this message and exit."),
    say("default: {default}"), say("env var: {var}"), say("required"),
    say("Error: {message}"), say("Try '{command} {option}' for help."),
    say("Invalid value: {message}"), say("Invalid value for {param_hint}: {message}"),
    say("Missing argument"), say("Missing option"), say("Missing parameter"),
    say("Choose from:\n\t{choices}"),
    say("No such option {name!r}."), say("No such option: {name}"),
    say("No such command {name!r}."),
    say("Got unexpected extra argument ({args})"), say("Got unexpected extra arguments ({args})"),
    say("Did you mean {possibility}?"), say("(Possible options: {possibilities})"),
    say("(Did you mean one of: {possibilities}?)"),
    say("Option {name!r} requires an argument."),
    say("Option {name!r} requires {nargs} arguments."),
    say("Option {name!r} does not take a value."),
    say("{value!r} is not {choice}."), say("{value!r} is not one of {choices}."),
    say("{value!r} is not a valid {number_type}."),
    say("{value} is not in the range {range}."),
    say("integer range"), say("float range"), say("integer"), say("float"),
    say("file"), say("directory"), say("path"), say("File"), say("Directory"), say("Path"),
    say("{name} {filename!r} does not exist."), say("{name} {filename!r} is a file."),
    say("{name} {filename!r} is a directory."), say("{name} {filename!r} is not readable."),
)  # fmt: skip
"""What click says, in its releases since 8.1; whatever else it says stays English."""
_KINDS = ("File", "Directory", "Path")
_EXTRA = re.compile(r"(?P<help>.*?)(?P<extra>  \[[^\[\]]*\])?", re.DOTALL)
"""The help of an option, and what click adds to it: ``[default: quick]``."""
_WIDEST_TERM = 30
_LEAST = 10
_ROOM_FOR_ARGUMENTS = 20


class HelpFormatter(click.HelpFormatter):
    """Writes the pages of click in the current language, aligned where characters are wide."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write how a command is called."""
        usage = prefix or _translated("Usage:")
        blank = "" if width_of(usage[-1:]) > 1 else " "  # a wide colon has its own
        lead = f"{usage.rstrip()}{blank}{prog} "
        hang = width_of(lead)
        if self.width - hang < _ROOM_FOR_ARGUMENTS:
            self.write(f"{lead.rstrip()}\n")
            lead, hang = "", 4
        lines = wrapped(args, self.width - hang) or [""]
        self.write(f"{lead or ' ' * hang}{lines[0]}".rstrip() + "\n")
        for line in lines[1:]:
            self.write(f"{' ' * hang}{line}\n")

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        self.write(f"{' ' * self.current_indent}{spoken(say('{heading}:', heading=heading))}\n")

    def write_text(self, text: str) -> None:
        """Write a text paragraph by paragraph; examples are copied, with their comments."""
        indent = self.current_indent
        shown = []
        for part in parts(text):
            if part.startswith(EXAMPLES):
                lines = [f"{' ' * indent}{_example(line)}" for line in part.splitlines()[1:]]
            else:
                words = _translated(template_of(part))
                lines = list(wrapped(words, self.width, indent, indent))
            shown.append("\n".join(lines))
        self.write("\n\n".join(shown) + "\n")

    def write_dl(
        self,
        rows: Iterable[tuple[str, str]],
        col_max: int = _WIDEST_TERM,
        col_spacing: int = 2,
    ) -> None:
        """Write options or commands, each with its help in a column of its own."""
        rows = list(rows)
        column = min(max(width_of(term) for term, _help in rows), col_max) + col_spacing
        before = " " * self.current_indent
        hang = " " * (self.current_indent + column)
        for name, words in rows:
            lines = wrapped(_with_extra(words), max(self.width - column - 2, _LEAST)) or [""]
            if width_of(name) > column - col_spacing:
                self.write(f"{before}{name}\n{hang}{lines[0]}\n")
            else:
                self.write(f"{before}{padded(name, column)}{lines[0]}".rstrip() + "\n")
            for line in lines[1:]:
                self.write(f"{hang}{line}\n")


class Context(click.Context):
    """A context whose pages are in the current language."""

    def make_formatter(self) -> click.HelpFormatter:
        """Return what writes a page."""
        if current_language() == "en":
            return super().make_formatter()
        return HelpFormatter(width=self.terminal_width, max_width=self.max_content_width)


def in_language(command: click.Command) -> click.Command:
    """Return the command, whose help and refusals are in the current language from now on."""
    _translate_click()
    command.context_class = Context
    return command


def with_wide_stop(refusal: str) -> str:
    """Return a refusal whose last full stop click has put there, in the current language."""
    stop = spoken(Sentence("."))
    return f"{refusal.rstrip()[:-1]}{stop}\n" if refusal.rstrip().endswith("'.") else refusal


def _translate_click() -> None:
    for name in _MODULES:
        module = importlib.import_module(f"click.{name}")
        for word, ours in (("_", _translated), ("ngettext", _either)):
            if hasattr(module, word):
                setattr(module, word, ours)


class _Template(str):
    """A template of click in the current language; what it is filled with is in it as well."""

    __slots__ = ()

    def format(self, *args: object, **params: object) -> str:
        """Fill it in, kinds of values in the current language."""
        kinds = {
            name: spoken(Sentence(value))
            for name, value in params.items()
            if isinstance(value, str) and (name == "number_type" or value in _KINDS)
        }
        return super().format(*args, **{**params, **kinds})


def _translated(message: str) -> str:
    """Return a text of click, or a text that click has taken from us, in the current language."""
    return _Template(spoken(Sentence(message)))


def _either(singular: str, many: str, count: int) -> str:
    return _translated(singular if count == 1 else many)


def _example(line: str) -> str:
    """Return an example with its comment in the current language."""
    comment = comment_of(line)
    if not comment:
        return _translated(line)  # the heading
    return f"{line[: -len(comment)]}{_translated(comment)}"


def _with_extra(words: str) -> str:
    found = _EXTRA.fullmatch(words)
    if found is None:
        return _translated(words)
    return f"{_translated(found['help'])}{found['extra'] or ''}"
