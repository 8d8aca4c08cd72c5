"""``gpucheck baseline``: states of a machine, and what has changed since."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.baselines.commands import diff, env
from gpucheck.doctor.checking import CheckRequest
from gpucheck.doctor.commands import collect
from gpucheck.doctor.run import diagnosed, open_host, open_tables, run_probes
from gpucheck.interface.options import (
    examples,
    fail_on_option,
    language_before,
    level_option,
    machine_options,
    output_options,
    output_options_with,
    tables_before,
)
from gpucheck.interface.spelling import CommandGroup, OneOf
from gpucheck.interface.text import (
    UsageRefusedError,
    colored,
    echo,
    page_width,
    printable,
    words_of,
    write_out,
)
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.baselines.store import State
    from gpucheck.engine import Report
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.tables import Tables

# Exit statuses: docs/architecture.md, 1.2.
_DIFFERENT = 1
_UNKNOWN = 3
_WORKS = ("healthy", "warning")
_form = click.option("--format", "form", type=OneOf(["terminal", "json"]), default="terminal")
_selftest = click.option(
    "--selftest/--no-selftest",
    default=None,
    help=say(
        "Run the self-tests, even if they only test the CPU; or run only static checks. By default "
        "the self-tests run if there are an NVIDIA device and a CUDA build of PyTorch."
    ),
)


@click.group(
    "baseline",
    cls=CommandGroup,
    short_help=say("Keep, compare and send states of a machine: facts, packages."),
    epilog=examples(
        'gpucheck baseline save --note "before the driver update"',
        "gpucheck baseline compare",
        "gpucheck baseline list",
        "gpucheck baseline collect --record machine.zip       # for support",
        "gpucheck baseline lock -o torch-lock.txt",
        "gpucheck baseline save --fleet /shared/gpucheck      # on each host",
        "gpucheck baseline compare --fleet /shared/gpucheck   # who differs?",
    ),
)
@tables_before
@language_before
def baseline() -> None:
    """Keep states of this machine, compare them, and write them down for elsewhere.

    save, compare and list are about states that work, in the state folder. collect and diff write
    and compare files. lock writes the packages for an installer.
    """


for _verb in (collect.COMMAND, diff.COMMAND, env.lock):
    baseline.add_command(_verb)


@baseline.command(
    short_help=say("Keep the state of this machine, if it works."),
    epilog=examples(
        "gpucheck baseline save",
        "gpucheck baseline save --level standard --timeout 600   # with figures",
    ),
)
@click.option("--note", metavar="TEXT", default="", help=say("A word about this state."))
@click.option(
    "--fleet",
    metavar="DIR",
    help=say("Write this host's file in the shared folder of a fleet, redacted."),
)
@click.option("--anyway", is_flag=True, help=say("Keep it even if something is wrong."))
@_selftest
@level_option
@machine_options
@output_options
@click.pass_context
def save(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Keep the state of this machine: its facts, and the figures of its self-tests.

    The newest 20 states of each environment are kept in the state folder
    (~/.local/state/gpucheck). Exit status: 0 kept, 1 something is wrong and nothing was kept, 3 too
    little could be read.
    """
    from gpucheck.baselines import store  # noqa: PLC0415
    from gpucheck.output.summary import verdict  # noqa: PLC0415

    report = _judged(options, open_tables(options["tables"]))
    if report.verdict not in _WORKS and not options["anyway"]:
        echo(verdict(report), limit=600)
        echo(say("Nothing was kept, because this state does not work. To keep it: --anyway"))
        ctx.exit(report.exit_status("error"))
    try:
        if options["fleet"]:
            file = store.save_for_fleet(report, Path(options["fleet"]), options["note"])
        else:
            folder = store.own_folder(open_host(None).env(), report.snapshot)
            file = store.save(report, folder, options["note"])
    except store.BaselineError as error:
        raise UsageRefusedError(words_of(error)) from error
    write_out(f"{file}\n", options["output"])


@baseline.command(
    short_help=say("What has changed since a state that worked, and what of it explains a fault."),
    epilog=examples(
        "gpucheck baseline compare                          # with the newest state",
        "gpucheck baseline compare report-of-may.json",
        "gpucheck baseline compare --fleet /shared/gpucheck",
    ),
)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--fleet",
    metavar="DIR",
    help=say("Name the hosts of a shared folder that differ from those with the same GPUs."),
)
@_selftest
@level_option
@machine_options
@fail_on_option
@_form
@output_options_with(say("Every change; otherwise the most important ones, and how many more."))
@click.pass_context
def compare(ctx: click.Context, /, file: str | None, **options: Any) -> None:  # noqa: ANN401
    """Compare this machine with a state that worked: the change that explains today's fault first.

    FILE is any saved report or snapshot; without it, the newest state of this environment. gpucheck
    puts old facts in the place of new ones and judges again: what makes the fault go away explains
    it.

    Exit status: as "check" ends. With --fleet: 0 no host differs, 1 one does, 3 no host could be
    compared.
    """
    tables = open_tables(options["tables"])
    if options["fleet"]:
        if file is not None:
            raise click.UsageError(say("give a FILE or --fleet, not both"))
        ctx.exit(_fleet(options))
    old = _state(Path(file)) if file is not None else None
    report = _judged(options, tables)
    if old is None:
        old = _newest(report.snapshot)
    write_out(_compared(old, report, tables, options), options["output"])
    ctx.exit(report.exit_status(options["fail_on"]))


@baseline.command(
    "list",
    short_help=say("The states that were kept of this environment."),
    epilog=examples("gpucheck baseline list", "gpucheck baseline list --format json"),
)
@machine_options
@_form
@output_options
def list_states(**options: Any) -> None:  # noqa: ANN401  # click's options
    """List the states that were kept of this environment, the newest first."""
    from gpucheck.baselines import store, words  # noqa: PLC0415

    snapshot = _facts(options, open_tables(options["tables"]))
    found = [*store.states(_own_folder(snapshot))]
    if options["form"] == "json":
        from gpucheck.baselines.store import States  # noqa: PLC0415

        document = States(states=tuple(store.row(state) for state in found))
        write_out(_as_json(document), options["output"])
    elif found:
        text = words.listing(found, color=colored(options), width=page_width(options))
        write_out(text, options["output"])
    else:
        echo(_none(_own_folder(snapshot)), limit=600)


def _facts(options: dict[str, Any], tables: "Tables") -> "Snapshot":
    return run_probes(open_host(options["sysroot"]), tables, options).snapshot


def _judged(options: dict[str, Any], tables: "Tables") -> "Report":
    """Judge this machine as ``check`` does."""
    names = ("wheel_mirror", "selftest", "level", "timeout")
    return diagnosed(options, CheckRequest(**{name: options[name] for name in names}), tables)


def _own_folder(snapshot: "Snapshot") -> Path:
    from gpucheck.baselines import store  # noqa: PLC0415

    try:
        return store.own_folder(open_host(None).env(), snapshot)
    except store.BaselineError as error:
        raise UsageRefusedError(words_of(error)) from error


def _newest(snapshot: "Snapshot") -> "State":
    """Return the newest state of this environment.

    Raises:
        RefusedError: there is none.
    """
    from gpucheck.baselines import store  # noqa: PLC0415

    folder = _own_folder(snapshot)
    found = next(store.states(folder), None)
    if found is None:
        raise UsageRefusedError(_none(folder))
    return found


def _none(folder: Path) -> str:
    return say(
        "No state of this environment was kept in {folder}: gpucheck baseline save keeps one",
        folder=folder,
    )


def _state(file: Path) -> "State":
    from gpucheck.baselines import store  # noqa: PLC0415

    try:
        return store.read(file)
    except store.BaselineError as error:
        raise UsageRefusedError(words_of(error)) from error


def _compared(state: "State", new: "Report", tables: "Tables", options: dict[str, Any]) -> str:
    from gpucheck.baselines import diff, words  # noqa: PLC0415
    from gpucheck.baselines.store import figures  # noqa: PLC0415
    from gpucheck.baselines.words import explain  # noqa: PLC0415
    from gpucheck.engine import judge_machine  # noqa: PLC0415

    if options["form"] == "json":
        state, new = _redacted(state, new, tables)
    changes = diff.compare(state.snapshot, new.snapshot)
    why = explain(state.snapshot, new, tables)
    rates = figures(state.snapshot, new.snapshot)
    if options["form"] == "json":
        return _as_json(words.comparison_document(state, new, why, changes, rates))
    old = judge_machine(state.snapshot, tables)
    look = {
        "verbose": options["verbose"], "color": colored(options), "width": page_width(options),
    }  # fmt: skip
    return words.comparison(state, old, new, why, changes, rates, **look)


def _redacted(state: "State", new: "Report", tables: "Tables") -> tuple["State", "Report"]:
    """Return both with the same pseudonyms; data may leave the machine."""
    from msgspec.structs import replace  # noqa: PLC0415

    from gpucheck.baselines.store import host_of  # noqa: PLC0415
    from gpucheck.engine import judge_machine  # noqa: PLC0415
    from gpucheck.output.redact import redact_text, redact_together  # noqa: PLC0415

    before, now = redact_together(state.snapshot, new.snapshot)
    file, note = (redact_text(text, new.snapshot) for text in (str(state.file), state.note))
    state = replace(state, snapshot=before, host=host_of(before), file=Path(file), note=note)
    return state, judge_machine(now, tables)


def _as_json(document: object) -> str:
    from gpucheck.facts import builtins  # noqa: PLC0415
    from gpucheck.output.json_text import json_text  # noqa: PLC0415

    return json_text(builtins(document))


def _fleet(options: dict[str, Any]) -> int:
    """Print who differs; return the exit status."""
    from gpucheck.baselines import store, words  # noqa: PLC0415
    from gpucheck.baselines.words import differences, too_few  # noqa: PLC0415

    try:
        states, refused = store.fleet(Path(options["fleet"]))
    except store.BaselineError as error:
        raise UsageRefusedError(words_of(error)) from error
    if not states and not refused:
        raise UsageRefusedError(
            say(
                "{folder} has no file of a host: gpucheck baseline save --fleet {folder} writes "
                "one",
                folder=printable(options["fleet"]),
            )
        )
    found, alone = differences(states), too_few(states)
    if options["form"] == "json":
        from gpucheck.baselines.store import Fleet  # noqa: PLC0415

        text = _as_json(
            Fleet(
                hosts=len(states), differences=tuple(found), not_compared=tuple(alone),
                unreadable=tuple(refused),
            )
        )  # fmt: skip
    else:
        text = words.fleet(
            found, len(states), alone, refused, color=colored(options), width=page_width(options)
        )
    write_out(text, options["output"])
    if found:
        return _DIFFERENT
    return 0 if len(states) > len(alone) else _UNKNOWN


COMMAND = baseline
