"""The command line. Data goes to stdout, progress and notes to stderr.

One module is one command: its name is the module's, its click command the module's ``COMMAND``.
"""

import gc
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from gpucheck import __version__
from gpucheck.cli.text import printable

_NOT_COMMANDS = ("options", "run", "text")
_INTERNAL_FAULT = 3
_UNREADABLE = 2
_INTERRUPTED = 130
_READER_LEFT = 141
"""As the shell counts SIGINT and SIGPIPE."""


class CommandFolder(click.Group):
    """The modules of this package as commands; ``gpucheck -v`` is ``gpucheck check -v``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``check`` in front of options that are not the group's own."""
        own = ("--help", "-h", "--version")
        if not args or (args[0].startswith("-") and args[0] not in own):
            args.insert(0, "check")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of all commands."""
        names = (module.name for module in pkgutil.iter_modules(__path__))
        return [name for name in names if name not in _NOT_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command, and only that."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").COMMAND
        return command


@click.group(
    cls=CommandFolder,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
)
@click.version_option(__version__, message="gpucheck %(version)s")
def gpucheck() -> None:
    """Why does PyTorch not use my NVIDIA GPUs properly, and what do I do about it?

    Without a command it runs "check". Exit status: 0 healthy, 1 a finding stands, 2 usage or
    unreadable input, 3 not enough could be read to say.
    """


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; whatever goes wrong inside is one sentence, never a traceback."""
    from gpucheck.tables import TablesError  # noqa: PLC0415

    # A run is short and makes few cycles: looking for them costs a tenth of its time.
    gc.disable()
    try:
        status = gpucheck.main(
            args=list(args) if args is not None else None,
            prog_name="gpucheck",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except TablesError as error:
        click.echo(f"Error: {printable(str(error))}", err=True)
        sys.exit(_UNREADABLE)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        # The reader has left. What is still buffered must not fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_READER_LEFT)
    except Exception as error:  # noqa: BLE001  # the last line of defence
        words = printable(f"{type(error).__name__}: {error}")
        click.echo(f"gpucheck: a fault of gpucheck itself, please report it: {words}", err=True)
        sys.exit(_INTERNAL_FAULT)
    sys.exit(status if isinstance(status, int) else 0)
