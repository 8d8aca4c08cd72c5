"""``gpucheck baseline collect``, earlier ``gpucheck collect``: the snapshot, or a recording."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.doctor.run import open_tables, run_probes
from gpucheck.interface.options import examples, machine_options, output_options
from gpucheck.interface.text import echo, words_of, write_out
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.doctor.collector import Collected
    from gpucheck.tables import Tables


@click.command(
    short_help=say("Save what is known of this machine as JSON."),
    epilog=examples(
        "gpucheck baseline collect -o before.json",
        "gpucheck baseline diff before.json              # later: what has changed",
        "gpucheck triage before.json                     # elsewhere: judge it",
        "gpucheck baseline collect --record machine.zip  # for --machine",
    ),
)
@machine_options
@click.option(
    "--record",
    metavar="DIR",
    help=say(
        "Write this machine as a folder, or as a zip file if the name ends with .zip: for gpucheck "
        "--machine, and for tests."
    ),
)
@click.option("--no-redact", is_flag=True, help=say("Keep names, paths, addresses and UUIDs."))
@output_options
def collect(**options: Any) -> None:  # noqa: ANN401  # click's options
    """Collect what is known about this machine as JSON, without your names, paths and UUIDs."""
    from gpucheck.machine import LiveHost, RecordingHost  # noqa: PLC0415
    from gpucheck.output.redact import redact  # noqa: PLC0415

    tables = open_tables(options["tables"])
    live = LiveHost(options["sysroot"] or "")
    host = RecordingHost(live) if options["record"] else live
    collected = run_probes(host, tables, options)
    snapshot = collected.snapshot if options["no_redact"] else redact(collected.snapshot)
    if isinstance(host, RecordingHost):
        _record(host, collected, tables, options)
        return
    from gpucheck.output.json_text import json_text  # noqa: PLC0415

    write_out(json_text(snapshot.as_json()), options["output"])


def _record(
    host: Any,  # noqa: ANN401  # a RecordingHost, imported late
    collected: "Collected",
    tables: "Tables",
    options: dict[str, Any],
) -> None:
    from gpucheck.engine import judge_machine  # noqa: PLC0415
    from gpucheck.output.machine_folder import RecordError, write  # noqa: PLC0415
    from gpucheck.output.redact import redaction  # noqa: PLC0415

    report = judge_machine(collected.snapshot, tables)
    try:
        write(
            Path(options["record"]),
            host,
            collected.log,
            collected.snapshot,
            expect={"verdict": report.verdict, "root_causes": list(report.root_causes)},
            redaction=None if options["no_redact"] else redaction(collected.snapshot),
        )
    except RecordError as error:
        raise click.UsageError(words_of(error)) from error
    echo(say("recorded as {folder}", folder=options["record"]))


COMMAND = collect
