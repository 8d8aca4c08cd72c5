"""Words of the command line that are almost right: refused with what was probably meant."""

import contextlib
import os.path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.interface.errors import meant, printable, there_are, with_hint
from gpucheck.language import current_language, in_turn, say, spoken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "CommandGroup",
    "OneOf",
    "Renamed",
    "is_file",
    "meant",
    "slug_of",
    "there_are",
    "with_hint",
]


class OneOf(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2 only
    """A choice in any case; a value that is none gets "Did you mean".

    Args:
        choices: the values.
        also: other names that people use for some of them.
    """

    def __init__(self, choices: "Sequence[str]", also: "Mapping[str, str] | None" = None) -> None:
        super().__init__(choices, case_sensitive=False)
        self._also = also or {}

    def convert(
        self,
        value: Any,  # noqa: ANN401  # click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401  # click's signature
        """Return the choice that was meant.

        Raises:
            click.BadParameter: the value is no choice.
        """
        try:
            return super().convert(self._also.get(str(value).lower(), value), param, ctx)
        except click.BadParameter as error:
            near = meant(str(value), [str(choice) for choice in self.choices])
            words = spoken(in_turn([error.message, near])) if near else error.message
            raise click.BadParameter(words, ctx=ctx, param=param) from error


class Renamed(click.Option):
    """An option that had another name: that is understood, and shown nowhere.

    Args:
        args: of click.
        earlier: the earlier name.
        more: of click.
    """

    def __init__(self, *args: Any, earlier: str, **more: Any) -> None:  # noqa: ANN401  # click's
        super().__init__(*args, **more)
        self._earlier = earlier

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:  # noqa: ANN401  # its class was renamed
        """Let the parser know both names."""
        super().add_to_parser(parser, ctx)
        parser.add_option(obj=self, opts=[self._earlier], dest=self.name, action="store", nargs=1)


class CommandGroup(click.Group):
    """A group of commands that says what an unknown command may have meant."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, whose help is in the current language."""
        command = self.found(ctx, cmd_name)
        if command is None or current_language() == "en":
            return command
        from gpucheck.interface.help_page import in_language  # noqa: PLC0415  # English needs none of it

        return in_language(command)

    def found(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command of this name."""
        return super().get_command(ctx, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command.

        Raises:
            click.UsageError: there is none of this name.
        """
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            refused = say("No such command {name}.", name=repr(printable(args[0])))
            ctx.fail(with_hint(refused, self.probably(ctx, args[0])))
        return super().resolve_command(ctx, args)

    def probably(self, ctx: click.Context, word: str) -> str:
        """Return the question which command was meant; "" without one."""
        return meant(word, self.list_commands(ctx))


def slug_of(name: str) -> str:
    """Return the finding of this name in whatever case, else the name as it is."""
    from gpucheck.findings import RETIRED, all_rules  # noqa: PLC0415
    from gpucheck.tables.meant_products import same_name  # noqa: PLC0415

    return same_name(name, (*all_rules(), *RETIRED.names)) or name


def is_file(word: str) -> bool:
    """Whether a word names a file or folder here."""
    with contextlib.suppress(OSError, ValueError):
        return os.path.exists(word)  # noqa: PTH110  # every check would pay two milliseconds for pathlib
    return False
