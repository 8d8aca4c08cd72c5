"""The command line. Data goes to stdout, progress and notes to stderr."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

import click

from gpucheck import __version__

if TYPE_CHECKING:  # these cost time, and --help needs none of them
    from gpucheck.collect import Collected
    from gpucheck.host import Host
    from gpucheck.report import Report
    from gpucheck.snapshot import Snapshot
    from gpucheck.tables import Tables

_INTERNAL_FAULT = 3
_UNREADABLE = 2
_DIFFERENT = 1
_SLOW = 3.0
_NOTE_NO_SELFTEST = "this version has no run-time self-test yet: use --no-selftest"

F = TypeVar("F", bound=Callable[..., Any])


class DefaultGroup(click.Group):
    """A group whose default command is ``check``: ``gpucheck -v`` is ``gpucheck check -v``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``check`` in front of options that are not the group's own."""
        own = ("--help", "-h", "--version")
        if not args or (args[0].startswith("-") and args[0] not in own):
            args.insert(0, "check")
        return super().parse_args(ctx, args)


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_output = _options(
    click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout."),
    click.option(
        "--tables",
        metavar="DIR",
        envvar="GPUCHECK_TABLES",
        help="Compatibility tables to use instead of the built-in ones ($GPUCHECK_TABLES).",
    ),
    click.option("--no-color", is_flag=True, help="No colour (NO_COLOR does the same)."),
    click.option("-v", "--verbose", count=True, help="More: every check; twice: every fact."),
    click.option("-q", "--quiet", is_flag=True, help="Only the verdict, no progress."),
)
_machine = _options(
    click.option(
        "--python",
        metavar="PATH",
        help="The Python whose PyTorch is diagnosed: an interpreter or a virtual environment.",
    ),
    click.option(
        "--sysroot",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help="Read the machine's files below DIR (a container that mounts its host there).",
    ),
    click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0.1),
        default=120.0,
        show_default=True,
        help="Time limit of the whole run.",
    ),
)
_format = click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "json", "markdown"]),
    default="terminal",
    show_default=True,
)


@click.group(
    cls=DefaultGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
)
@click.version_option(__version__, message="gpucheck %(version)s")
def gpucheck() -> None:
    """Why does PyTorch not use my NVIDIA GPUs properly, and what do I do about it?

    Without a command it runs ``check``. Exit status: 0 healthy, 1 a finding stands, 2 usage or
    unreadable input, 3 not enough could be read to say.
    """


@gpucheck.command()
@_machine
@click.option(
    "--gpus",
    metavar="N",
    type=click.IntRange(min=0),
    help="How many GPUs must be here; 0: this host only builds or submits.",
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["run", "build"]),
    default="run",
    show_default=True,
    help="Whether PyTorch is to run here, or extensions are to be built as well.",
)
@click.option(
    "--no-selftest/--selftest", default=True, help="Static checks only; nothing runs on a GPU."
)
@click.option("--only", metavar="NAME", multiple=True, help="Only this finding or probe.")
@click.option("--skip", metavar="NAME", multiple=True, help="Not this finding or probe.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    default="error",
    show_default=True,
    help="The least severity that makes the exit status 1.",
)
@_format
@_output
@click.pass_context
def check(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Diagnose this machine: the root cause first, its evidence, the command that fixes it."""
    if not options["no_selftest"]:
        raise click.UsageError(_NOTE_NO_SELFTEST)
    from gpucheck.probes.request import Request  # noqa: PLC0415

    tables = _tables(options["tables"])
    request = Request(gpus=options["gpus"], purpose=options["purpose"])
    only, skip, probes_skipped = _chosen(options["only"], options["skip"])
    host = _host(options["sysroot"])
    collected = _collect(host, tables, options, request=request, skip=probes_skipped)
    report = _report(collected.snapshot, tables, only=only, skip=skip)
    _show(report, options)
    ctx.exit(report.exit_status(options["fail_on"]))


@gpucheck.command()
@_machine
@click.option("--record", metavar="DIR", help="Write this machine as a folder for tests.")
@click.option("--no-redact", is_flag=True, help="Keep names, paths, addresses and UUIDs.")
@_output
def collect(**options: Any) -> None:  # noqa: ANN401  # click's options
    """Collect what is known of this machine as JSON, without names, paths and UUIDs of yours."""
    from gpucheck.host import LiveHost, RecordingHost  # noqa: PLC0415
    from gpucheck.redact import redact  # noqa: PLC0415

    tables = _tables(options["tables"])
    live = LiveHost(options["sysroot"] or "")
    host = RecordingHost(live) if options["record"] else live
    collected = _collect(host, tables, options)
    snapshot = collected.snapshot if options["no_redact"] else redact(collected.snapshot)
    if isinstance(host, RecordingHost):
        _record(host, collected, tables, options)
        return
    _write(json.dumps(snapshot.as_json(), indent=2) + "\n", options["output"])


@gpucheck.command()
@click.argument("before", metavar="A", type=click.Path(exists=True, dir_okay=False))
@click.argument(
    "after", metavar="[B]", type=click.Path(exists=True, dir_okay=False), required=False
)
@_machine
@click.option("--format", "form", type=click.Choice(["terminal", "json"]), default="terminal")
@_output
@click.pass_context
def diff(ctx: click.Context, /, before: str, after: str | None, **options: Any) -> None:  # noqa: ANN401
    """Show what changed between two saved snapshots or reports; without B, since A until now.

    Exit status: 0 nothing changed, 1 something did.
    """
    from gpucheck.diff import as_json, compare  # noqa: PLC0415
    from gpucheck.render import diff_text  # noqa: PLC0415

    old = _load(before)
    if after is not None:
        new = _load(after)
    else:
        new = _collect(_host(options["sysroot"]), _tables(options["tables"]), options).snapshot
    changes = compare(old, new)
    if options["form"] == "json":
        text = json.dumps(as_json(changes), indent=2) + "\n"
    else:
        text = diff_text.render(changes, color=_colored(options))
    _write(text, options["output"])
    ctx.exit(_DIFFERENT if changes else 0)


@gpucheck.command()
@click.argument("slug")
@_output
def explain(slug: str, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Print the page of a finding: what it means, what you see, why, and the cure."""
    from gpucheck.render.pages import explain as page_of  # noqa: PLC0415

    page = page_of(slug)
    if page is None:
        raise click.UsageError(
            f"there is no finding called {_printable(slug)!r}: see gpucheck list"
        )
    _write(page, options["output"])


@gpucheck.command("list")
@click.option("--format", "form", type=click.Choice(["terminal", "json"]), default="terminal")
@_output
def list_all(**options: Any) -> None:  # noqa: ANN401  # click's options
    """List every finding that gpucheck can name, and every probe."""
    from gpucheck.render.pages import listing, listing_json  # noqa: PLC0415

    if options["form"] == "json":
        _write(json.dumps(listing_json(), indent=2) + "\n", options["output"])
    else:
        _write(listing(), options["output"])


@gpucheck.command("schema")
@click.argument("name", required=False)
@_output
def show_schema(name: str | None, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Print a JSON Schema; without NAME, the names."""
    from gpucheck.render.schema import names, schema  # noqa: PLC0415

    if name is None:
        _write("\n".join(names()) + "\n", options["output"])
    elif name in names():
        _write(json.dumps(schema(name), indent=2) + "\n", options["output"])
    else:
        known = ", ".join(names())
        raise click.UsageError(f"there is no schema called {_printable(name)!r}; there are {known}")


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; whatever goes wrong inside is one sentence, never a traceback."""
    from gpucheck.tables import TablesError  # noqa: PLC0415

    try:
        gpucheck.main(args=list(args) if args is not None else None, prog_name="gpucheck")
    except SystemExit:
        raise
    except TablesError as error:
        click.echo(f"Error: {_printable(str(error))}", err=True)
        sys.exit(_UNREADABLE)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001  # the last line of defence
        words = _printable(f"{type(error).__name__}: {error}")
        click.echo(f"gpucheck: a fault of gpucheck itself, please report it: {words}", err=True)
        sys.exit(_INTERNAL_FAULT)
    sys.exit(0)


def _tables(directory: str | None) -> "Tables":
    from gpucheck.tables import Tables, TablesError, tables_dir  # noqa: PLC0415

    try:
        tables = Tables(tables_dir(directory))
        tables.index()
    except TablesError as error:
        raise click.UsageError(str(error)) from error
    return tables


def _host(sysroot: str | None) -> "Host":
    from gpucheck.host import LiveHost  # noqa: PLC0415

    return LiveHost(sysroot or "")


def _chosen(only: Sequence[str], skip: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Split names into slugs asked, slugs skipped and probes skipped.

    Raises:
        click.UsageError: a name is neither a slug nor a probe.
    """
    if not only and not skip:
        return [], [], []
    from gpucheck.probes import all_probes  # noqa: PLC0415
    from gpucheck.rules import all_rules  # noqa: PLC0415

    slugs, probes = set(all_rules()), {probe.name for probe in all_probes()}
    for name in (*only, *skip):
        if name not in slugs | probes:
            raise click.UsageError(
                f"{_printable(name)!r} is neither a finding nor a probe: see gpucheck list"
            )
    wanted = {name for name in only if name in probes}
    probes_skipped = {name for name in skip if name in probes}
    if wanted:
        probes_skipped |= probes - wanted
    return (
        [name for name in only if name in slugs],
        [name for name in skip if name in slugs],
        sorted(probes_skipped),
    )


def _collect(
    host: "Host",
    tables: "Tables",
    options: dict[str, Any],
    *,
    request: Any = None,  # noqa: ANN401  # a Request, imported late
    skip: Sequence[str] = (),
) -> "Collected":
    from gpucheck.collect import Collector  # noqa: PLC0415
    from gpucheck.probes.request import Request  # noqa: PLC0415
    from gpucheck.target import TargetWish  # noqa: PLC0415

    progress = _Progress(sys.stderr) if sys.stderr.isatty() and not options["quiet"] else None
    collector = Collector(
        host,
        tables,
        wish=TargetWish(python=options["python"]),
        request=request or Request(),
        timeout=options["timeout"],
        skip=skip,
        progress=progress,
        meanwhile=_load_rules,
    )
    try:
        return collector.collect()
    finally:
        if progress is not None:
            progress.clear()


def _load_rules() -> None:
    """Import what judges and prints while the probes are under way."""
    from gpucheck.render import terminal  # noqa: F401, PLC0415
    from gpucheck.rules import all_rules  # noqa: PLC0415

    all_rules()


class _Progress:
    """One line on a terminal that says what is still awaited, once it takes long."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown = False

    def __call__(self, names: Sequence[str], seconds: float) -> None:
        if seconds < 1:
            return
        slow = "; GPUs without persistence mode wake slowly" if seconds > _SLOW else ""
        self._out.write(f"\r\x1b[Kwaiting for {', '.join(names)} ({seconds:.0f} s{slow})")
        self._out.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._out.write("\r\x1b[K")
            self._out.flush()


def _report(
    snapshot: "Snapshot", tables: "Tables", *, only: Sequence[str] = (), skip: Sequence[str] = ()
) -> "Report":
    from gpucheck.engine import diagnose  # noqa: PLC0415
    from gpucheck.report import make_report  # noqa: PLC0415
    from gpucheck.verdict import open_questions  # noqa: PLC0415

    diagnosis = diagnose(snapshot, tables, only=only, skip=skip)
    return make_report(diagnosis, snapshot, open_questions(snapshot, tables))


def _show(report: "Report", options: dict[str, Any]) -> None:
    """Print the report in the format asked for; what leaves this machine as data is redacted."""
    if options["form"] == "terminal":
        from gpucheck.render import terminal  # noqa: PLC0415

        text = terminal.render(
            report,
            verbose=options["verbose"],
            quiet=options["quiet"],
            color=_colored(options),
        )
    elif options["form"] == "json":
        from gpucheck.render import json_format  # noqa: PLC0415

        text = json_format.render(report)
    else:
        from gpucheck.render import markdown  # noqa: PLC0415

        text = markdown.render(report)
    _write(text, options["output"])


def _record(
    host: Any,  # noqa: ANN401  # a RecordingHost, imported late
    collected: "Collected",
    tables: "Tables",
    options: dict[str, Any],
) -> None:
    from gpucheck.record import RecordError, write  # noqa: PLC0415
    from gpucheck.redact import redaction  # noqa: PLC0415

    report = _report(collected.snapshot, tables)
    public = (lambda text: text) if options["no_redact"] else redaction(collected.snapshot).text
    try:
        write(
            Path(options["record"]),
            host,
            collected.log,
            collected.snapshot,
            expect={"verdict": report.verdict, "root_causes": list(report.root_causes)},
            redact=public,
        )
    except RecordError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"recorded as {options['record']}", err=True)


def _load(file: str) -> "Snapshot":
    from gpucheck.snapshot import SnapshotError, load  # noqa: PLC0415

    try:
        return load(Path(file))
    except SnapshotError as error:
        raise click.UsageError(_printable(str(error))) from error


def _colored(options: dict[str, Any]) -> bool:
    from gpucheck.host import LiveHost  # noqa: PLC0415

    env = LiveHost().env()
    return bool(
        sys.stdout.isatty()
        and not options["output"]
        and not options["no_color"]
        and not env.get("NO_COLOR")
        and env.get("TERM") != "dumb"
    )


def _write(text: str, output: str | None) -> None:
    if output is None:
        click.echo(text, nl=False, color=True)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror or error}") from error


def _printable(text: str) -> str:
    """Return untrusted text without control characters, cut at 300 characters."""
    return "".join(char if char.isprintable() else "?" for char in text[:300])
