"""The command line: finds the commands of all wings. Data goes to stdout, the rest to stderr.

One module in the folder ``commands`` of a wing is one command.
"""

import contextlib
import errno
import functools
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gpucheck._about import modules_of
from gpucheck.cli.version import version_options
from gpucheck.interface.errors import BY_SIGNAL, ENDING
from gpucheck.interface.options import LANGUAGES, examples, language_before, tables_before
from gpucheck.interface.spelling import CommandGroup, is_file, slug_of
from gpucheck.interface.text import (
    NO_ROOM,
    language_named,
    no_room,
    page_width,
    printable,
    to_nowhere,
    words_of,
)
from gpucheck.language import Language, Sentence, current_language, say, speak, spoken

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

WINGS = ("doctor", "cluster", "ticket", "describe", "fixing", "baselines", "programs")
"""The packages that have commands; the one whose commands are typed most often is asked first."""
_FIRST = ("check", "selftest", "preflight", "triage", "recommend", "lint", "fix", "explain")
"""What most people need, in the order in which they meet it; the help has the others below."""
_NEXT = "node"
"""What heads the others: a site writes it into its Prolog once."""
_EARLIER = ("collect", "diff", "env")
"""What is a verb of ``baseline`` now: it is understood as before, and not listed."""
_AS_ELSEWHERE = {"--json": "--format=json", "-f": "--format"}
"""What gh, kubectl and others call the option, and what it is called here."""
_PACKAGE = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120  # no pathlib here
_OWN = ("--help", "-h", "--version")
"""Options that only the group has."""
_WINDOWS = os.name == "nt"
# Exit statuses: docs/architecture.md, 1.2. 130 is what a shell says after Ctrl-C.
_INTERNAL_FAULT = 3
_UNREADABLE = 2
_SOON = 0.01
"""Seconds until a callback of Python has ended."""
_INTERRUPTED = 130  # as a shell says after Ctrl-C
# Chosen: a refusal quotes what was typed or read; the list of all keys still fits (740 characters).
_LONGEST_MESSAGE = 2000
_SHORT_HELP = 70  # longer than any; in a narrow terminal it is wrapped, not cut
_NO_SPACE = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
_READER_LEFT = 141
"""The exit statuses of a shell after SIGINT (130) and SIGPIPE (141)."""


def _commands_of(wing: str) -> list[str]:
    """Return the names of the commands of a wing, without importing it."""
    return modules_of([f"{_PACKAGE}/{wing}/commands"])


class Wings(CommandGroup):
    """The commands of all wings; ``gpucheck -v`` is ``gpucheck check -v``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert ``check`` before options that do not belong to the group.

        ``check --fix`` is ``fix``, with the options of that.
        """
        asks_for_help = ctx.resilient_parsing and not args  # by Tab
        if not asks_for_help and (
            not args or (args[0].startswith("-") and not self._is_of_group(args))
        ):
            args.insert(0, "check")
        if args[:1] == ["check"] and "--fix" in args:
            args[:] = ["fix", *(word for word in args[1:] if word != "--fix")]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return what may come first: a command, or an option of the group or of ``check``."""
        found = super().shell_complete(ctx, incomplete)
        check = self.get_command(ctx, "check") if incomplete.startswith("-") else None
        if check is not None:
            inner = click.Context(check, parent=ctx, info_name="check", resilient_parsing=True)
            own = {completion.value for completion in found}
            found += [
                completion
                for completion in check.shell_complete(inner, incomplete)
                if completion.value not in own
            ]
        return found

    def _is_of_group(self, args: list[str]) -> bool:
        """Whether the options before a command are the group's; ``check`` has some of them too."""
        if args[0] in _OWN:
            return True
        option, equals, _value = args[0].partition("=")
        if option == "--format":
            return "--version" in args
        behind = args[1 if equals else 2 :]
        if option not in ("--tables", "--lang") or not behind:
            return False
        return not behind[0].startswith("-") or self._is_of_group(behind)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of all commands."""
        every = {name for wing in WINGS for name in _commands_of(wing)}
        return sorted(every.difference(_EARLIER))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands that most people need, then the others."""
        every = self.list_commands(ctx)
        others = sorted(set(every).difference(_FIRST), key=lambda name: (name != _NEXT, name))
        width = max(map(len, every))  # one column for both lists
        for heading, names in ((say("Commands"), _FIRST), (say("More commands"), others)):
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (name.ljust(width), command.get_short_help_str(_SHORT_HELP))
                        for name, command in commands
                        if command is not None
                    ]
                )

    def found(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of one command, and only that."""
        wing = next((wing for wing in WINGS if name in _commands_of(wing)), None)
        if wing is None:
            return None
        module = importlib.import_module(f"gpucheck.{wing}.commands.{name}")
        command: click.Command = module.COMMAND
        if not ctx.resilient_parsing:
            return command
        from gpucheck.cli.shell_completion import completing  # noqa: PLC0415

        return completing(name, command)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401  # click's signature
    ) -> click.Context:
        """Read the options of the group; ``--help`` and ``--version`` print here."""
        with _past_click():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; what it was asked wrongly is a refusal."""
        from gpucheck.interface.text import in_the_words_of_click  # noqa: PLC0415

        with _past_click(), in_the_words_of_click():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; ``--json`` and ``-f`` are what other programs call its ``--format``."""
        name, command, args = super().resolve_command(ctx, args)
        options = {word for param in command.params for word in param.opts} if command else set()
        if "--format" not in options:
            return name, command, args
        end = args.index("--") if "--" in args else len(args)
        own = [_AS_ELSEWHERE.get(word, word) for word in args[:end]]
        return name, command, [*own, *args[end:]]

    def probably(self, ctx: click.Context, word: str) -> str:
        """Return what was meant by a word that is no command: a command, a file or a finding."""
        if is_file(word):
            file = printable(word)
            return say("To name the cause from a file: gpucheck triage {file}", file=file)
        if question := super().probably(ctx, word):
            return question
        from gpucheck.findings import all_rules  # noqa: PLC0415

        slug = slug_of(word)
        if slug not in all_rules():
            return ""
        return say("To read about this finding: gpucheck explain {slug}", slug=slug)


@contextlib.contextmanager
def _past_click() -> Iterator[None]:
    """Let a closed stdout reach :func:`_run`: click would end with 1, as if a finding stood.

    Click knows such an error by its number, which the new one lacks.
    """
    try:
        yield
    except BrokenPipeError as error:
        raise BrokenPipeError(str(error)) from error


@click.group(
    cls=Wings,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
    epilog=examples(
        "gpucheck                            # diagnose this machine",
        "gpucheck --python ~/venv            # the PyTorch of this environment",
        "gpucheck triage error.log           # name the cause from a text",
        "gpucheck recommend --gpu 4090 --driver 580",
        "gpucheck explain driver-too-old",
    ),
)
@tables_before
@language_before
@version_options
def gpucheck() -> None:
    """Why does PyTorch not use my NVIDIA GPUs properly, and what do I do about it?

    Without a command it runs "check", whose options "gpucheck check --help" shows. Exit status: 0
    healthy, 1 an error was found (--fail-on changes this), 2 usage error or unreadable input, 3 too
    little could be read for a diagnosis.
    """


def main(args: Sequence[str] | None = None, *, ready: Callable[[], None] | None = None) -> NoReturn:
    """Run the command line; any internal error becomes one sentence, never a traceback.

    Args:
        args: the words; None for those of this process.
        ready: called once a signal is sure to be followed by a cleanup.
    """
    if _WINDOWS:
        from gpucheck.machine.windows import no_error_dialogs  # noqa: PLC0415

        no_error_dialogs()
    _open_closed_streams()
    _let_every_character_through()
    with _leaving_on_signals():
        _run(args, ready)


def _run(args: Sequence[str] | None, ready: Callable[[], None] | None) -> NoReturn:
    from gpucheck.tables import TablesError  # noqa: PLC0415

    speak(_language_asked_for(sys.argv[1:] if args is None else args))
    if current_language() != "en":
        from gpucheck.interface.help_page import in_language  # noqa: PLC0415

        in_language(gpucheck)
    try:
        if ready is not None:
            ready()
        status = gpucheck.main(
            args=None if args is None else [*args],  # `list` may be the module of that command
            prog_name="gpucheck",
            standalone_mode=False,
            terminal_width=page_width({"output": None}),
        )
        sys.stdout.flush()
    except click.ClickException as error:
        page = io.StringIO()
        if isinstance(error.message, Sentence):
            vars(error)["message"] = spoken(error.message)  # click has it final
        error.show(page)
        words = printable(_ended(page.getvalue()), limit=_LONGEST_MESSAGE, keep="\n")
        _say(lambda: click.echo(words, err=True, nl=False))
        sys.exit(error.exit_code)
    except TablesError as error:
        words = spoken(say("Error: {message}", message=words_of(error)))
        _say(lambda: click.echo(words, err=True))
        sys.exit(_UNREADABLE)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        to_nowhere(sys.stdout)
        sys.exit(_READER_LEFT)
    except Exception as error:  # noqa: BLE001  # the last line of defence
        words = spoken(_unexpected(error))
        to_nowhere(sys.stdout)
        _say(lambda: click.echo(f"gpucheck: {words}", err=True))
        sys.exit(_INTERNAL_FAULT)
    sys.exit(status if isinstance(status, int) else 0)


def _ended(refusal: str) -> str:
    if current_language() == "en":
        return refusal
    from gpucheck.interface.help_page import with_wide_stop  # noqa: PLC0415

    return with_wide_stop(refusal)


def _language_asked_for(args: Sequence[str]) -> Language:
    """Return the language of ``--lang``, wherever it stands: ``--help`` is shown before it is read.

    A value that is none is refused later, where the option is read.
    """
    for at, word in enumerate(args):
        option, equals, value = word.partition("=")
        value = value if equals else "".join(args[at + 1 : at + 2])
        if option == "--lang" and value.lower() in LANGUAGES:
            return language_named(value)
    return language_named()


def _open_closed_streams() -> None:
    """Open the null device in place of a closed standard stream (``gpucheck >&-``).

    Otherwise one of our pipes would get the number of the stream, and our output would go into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            from gpucheck.machine.children import nothing  # noqa: PLC0415  # rarely needed

            # Opened in ascending order, each gets the number of its stream.
            setattr(sys, name, os.fdopen(nothing(), mode, encoding="utf-8"))


def _let_every_character_through() -> None:
    """Make the standard streams escape what their encoding lacks: click writes the help to them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end a run like an exception, so that everything is cleaned up.

    An ignored signal (``nohup``) stays ignored.
    """
    before = sys.unraisablehook
    sys.unraisablehook = functools.partial(_once_more, before)
    taken = []
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with contextlib.suppress(ValueError):  # only the main thread may set a handler
                signal.signal(number, leave)
                taken.append(number)
    try:
        yield
    finally:
        sys.unraisablehook = before
        for number in taken:
            if signal.getsignal(number) is leave:  # a command has replaced our handler
                signal.signal(number, signal.SIG_DFL)


def leave(number: int, _frame: FrameType | None) -> NoReturn:
    """End with the exit status of a signal; this is its handler."""
    for name in ENDING:  # a second signal, of whichever kind, must not interrupt the cleanup
        signal.signal(getattr(signal, name, number), _stay)
    sys.exit(BY_SIGNAL + number)


def _once_more(
    hook: Callable[["sys.UnraisableHookArgs"], object], lost: "sys.UnraisableHookArgs"
) -> None:
    """Send a signal again whose exception came in a callback of Python, which drops it."""
    error, number = lost.exc_value, 0
    if isinstance(error, KeyboardInterrupt):
        number = int(signal.SIGINT)
    elif isinstance(error, SystemExit) and isinstance(error.code, int):
        number = error.code - BY_SIGNAL
    if number not in {getattr(signal, name, None) for name in ENDING}:
        hook(lost)
        return
    if not isinstance(error, KeyboardInterrupt):
        signal.signal(number, leave)
    import threading  # noqa: PLC0415  # hardly ever needed

    main = threading.main_thread().ident or 0

    def send() -> None:
        # On a busy machine this hook may still run, and what is raised in it is lost for good.
        frame = sys._current_frames().get(main)  # noqa: SLF001  # there is no public way
        while frame is not None and frame.f_code is not _once_more.__code__:
            frame = frame.f_back
        if frame is not None:
            threading.Timer(_SOON, send).start()
        elif os.name == "nt":
            signal.raise_signal(number)
        else:  # to the thread that may be asleep
            signal.pthread_kill(main, number)

    threading.Timer(_SOON, send).start()


def _stay(_number: int, _frame: FrameType | None) -> None:
    """Ignore a signal. With SIG_IGN, Python prints a traceback if the signal has come already."""


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        return say("the output cannot be written: {why}", why=error.strerror)
    no_memory = OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    cause = no_memory if isinstance(error, MemoryError) else error
    if isinstance(cause, OSError) and cause.errno in NO_ROOM:
        return no_room(cause)
    words = printable(f"{type(error).__name__}: {error}")
    return say("a fault of gpucheck itself, please report it: {error}", error=words)


def _say(show: Callable[[], object]) -> None:
    """Write to stderr; if even that fails, only the exit status remains."""
    try:
        show()
        sys.stderr.flush()
    except (OSError, ValueError):
        to_nowhere(sys.stderr)
