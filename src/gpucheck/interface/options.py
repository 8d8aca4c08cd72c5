"""Options that several commands share."""

import importlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from gpucheck.interface.request import LEAST_SECONDS, MOST_SECONDS, Field, Option, WithLevel, fields
from gpucheck.interface.spelling import OneOf
from gpucheck.interface.text import language_named, named, writable
from gpucheck.language import say, speak

# The options of a command, made from the fields of its request.

F = TypeVar("F", bound=Callable[..., Any])
NAMES = "NAMES"
"""The metavar of names with commas between them; the option may be repeated instead."""


def options_of(kind: type[msgspec.Struct], *names: str) -> Callable[[F], F]:
    """Return what adds an option for each field that has one, or only for these, in their order."""

    def add(command: F) -> F:
        for field in reversed(fields(kind)):
            if field.option is not None and (not names or field.name in names):
                command = _option(field, field.option)(command)
        return command

    return add


def _option(field: Field, option: Option) -> Callable[[F], F]:
    flag = option.flag or f"--{field.name.replace('_', '-')}"
    more: dict[str, Any] = {}
    if field.choices:
        # A default that is a choice is worth showing; others are explained in the help.
        more = {
            "type": OneOf(field.choices, dict(option.also)),
            "show_default": field.default is not None,
        }
    elif field.kind is bool and field.default is False:
        more = {"is_flag": True}
    elif field.kind is bool:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    elif field.kind is int:
        more = {"type": click.IntRange(field.least, field.most)}
    elif field.kind is tuple:
        more = {"multiple": True}
    elif option.metavar == NAMES:
        more = {"multiple": True, "callback": partial(_joined, default=field.default)}
    if "multiple" not in more:
        more["default"] = field.default
    return click.option(flag, field.name, metavar=option.metavar, help=option.help or None, **more)


def _joined(
    _context: click.Context,
    _option: click.Parameter,
    given: tuple[str, ...],
    *,
    default: str | None,
) -> str | None:
    return ",".join(given) if given else default


REPORT_FORMATS = {
    "json": "gpucheck.output.json_text",
    "markdown": "gpucheck.output.markdown",
    "junit": "gpucheck.output.junit",
    "html": "gpucheck.output.html.report",
}
"""The formats of a report other than the terminal's, each with the module that renders it."""

LANGUAGE = "gpucheck.lang"
"""The key of the value of ``--lang`` in the metadata of a context; None if it was not given."""
LANGUAGES = ("auto", "en", "zh")
"""The values of ``--lang``."""
_TABLES = "gpucheck.tables"


class Seconds(click.FloatRange):
    """A time limit, with the limit that the API has too; click's own range lets NaN through."""

    def __init__(self, least: float) -> None:
        super().__init__(min=least, max=MOST_SECONDS, max_open=True)

    def convert(
        self,
        value: Any,  # noqa: ANN401  # click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401  # click's signature
        """Return the time limit.

        Raises:
            click.BadParameter: it is not a number, or out of the range.
        """
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(say("{value} is not a number of seconds.", value=value), param, ctx)
        return seconds


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _remember_tables(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta[_TABLES] = value


def _tables(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Use the value given before the command if the command itself has none."""
    own = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
    return value if own else ctx.meta.get(_TABLES, value)


def tables_asked_for(ctx: click.Context) -> str | None:
    """Return the folder of tables that is named before a command, or in the environment."""
    from gpucheck.machine import LiveHost  # noqa: PLC0415  # --help does not need it

    named: str | None = ctx.meta.get(_TABLES)
    return named or LiveHost().env().get("GPUCHECK_TABLES")


tables_before = click.option(
    "--tables",
    metavar="DIR",
    expose_value=False,
    is_eager=True,
    callback=_remember_tables,
    help=say("Compatibility tables to use; also accepted after the command."),
)
"""For groups: their subcommands take the option over."""
_tables_option = click.option(
    "--tables",
    metavar="DIR",
    envvar="GPUCHECK_TABLES",
    callback=_tables,
    help=say("Compatibility tables to use instead of the built-in ones ($GPUCHECK_TABLES)."),
)


def _output_option(callback: Callable[..., Any] | None) -> Callable[[F], F]:
    words = say("Write to FILE instead of stdout; - is stdout.")
    return click.option("-o", "--output", metavar="FILE", callback=callback, help=words)


def _verbose_option(words: str) -> Callable[[F], F]:
    return click.option("-v", "--verbose", count=True, help=words)


def _wheel_mirror(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    """Return the base of a mirror of PyTorch's wheels; "" if none is named."""
    if not value:
        return ""
    from gpucheck.interface.request import wheel_mirror  # noqa: PLC0415  # rarely named

    return wheel_mirror(value)


def _speak(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    """Speak the language that is asked for; without the option it stays that of the user."""
    if value is not None:
        ctx.meta[LANGUAGE] = value
        speak(language_named(value))


def _language(*, hidden: bool = False) -> Callable[[F], F]:
    return click.option(
        "--lang",
        type=OneOf(LANGUAGES),
        expose_value=False,
        is_eager=True,
        hidden=hidden,
        callback=_speak,
        help=say("Language of the output; auto: the language of the locale ($GPUCHECK_LANG)."),
    )


language_option = _language()
language_before = _language(hidden=True)
"""For the group of all commands, whose subcommands show it."""
_COMMON = (
    _tables_option,
    language_option,
    click.option("--no-color", is_flag=True, help=say("No colour (NO_COLOR does the same).")),
    click.option("-q", "--quiet", is_flag=True, help=say("Only the result, no progress.")),
)


def output_options_with(verbose: str) -> Callable[[F], F]:
    """Return the options of every command; ``verbose`` says what -v adds to this one."""
    return _options(_output_option(writable), *_COMMON, _verbose_option(verbose))


output_options = _options(
    _output_option(writable),
    *_COMMON,
    click.option("-v", "--verbose", count=True, hidden=True),
)
"""The same where -v adds nothing; it is accepted, so that scripts can always give it."""
preflight_output_options = _options(
    _output_option(named), *_COMMON, _verbose_option(say("Every rank, step and figure."))
)
"""The same where not every process writes the file."""
_python_option = click.option(
    "--python",
    metavar="PATH",
    help=say("The Python whose PyTorch is diagnosed: an interpreter or a virtual environment."),
)
_mirror_option = click.option(
    "--wheel-mirror",
    metavar="URL",
    envvar="GPUCHECK_WHEEL_MIRROR",
    callback=_wheel_mirror,
    help=say(
        "What replaces https://download.pytorch.org/whl in commands ($GPUCHECK_WHEEL_MIRROR)."
    ),
)
machine_options = _options(
    _python_option,
    click.option(
        "--sysroot",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help=say("Read the machine's files below DIR (a container that mounts its host there)."),
    ),
    _mirror_option,
    click.option(
        "--timeout",
        metavar="SECONDS",
        type=Seconds(LEAST_SECONDS),
        default=120.0,
        show_default=True,
        help=say("Time limit of the whole run."),
    ),
)
server_options = _options(_python_option, _mirror_option, _tables_option, language_option)
"""Of a command that answers questions: they have no output, no progress and no colour."""


def examples(*lines: str) -> str:
    """Return the end of a command's help: commands to copy, each on a line of its own."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


format_option = click.option(
    "--format",
    "form",
    type=OneOf(["terminal", "json", "markdown"]),
    default="terminal",
    show_default=True,
)


def format_option_of(modules: Mapping[str, str]) -> Callable[[F], F]:
    """Return ``--format`` of a command that prints what one of these modules renders."""
    return click.option(
        "--format",
        "form",
        type=OneOf(["terminal", *modules]),
        default="terminal",
        show_default=True,
    )


def rendered(modules: Mapping[str, str], form: str, what: object, **more: bool) -> str:
    """Return something in one of these formats.

    ``more`` are further arguments of the format.
    """
    text: str = importlib.import_module(modules[form]).render(what, **more)
    return text


report_format_option = format_option_of(REPORT_FORMATS)
no_redact_option = click.option(
    "--no-redact",
    is_flag=True,
    help=say("Keep names, paths, addresses and UUIDs in every format: for yourself."),
)
level_option = options_of(WithLevel)
fail_on_option = click.option(
    "--fail-on",
    type=OneOf(["error", "warning", "never"]),
    default="error",
    show_default=True,
    help=say("The lowest severity that makes the exit status 1."),
)
