"""``gpucheck baseline diff``, earlier ``gpucheck diff``: what changed between two snapshots."""

from typing import Any

import click

from gpucheck.doctor.run import load_snapshot, open_host, open_tables, run_probes
from gpucheck.interface.options import examples, machine_options, output_options_with
from gpucheck.interface.spelling import OneOf
from gpucheck.interface.text import colored, page_width, write_out
from gpucheck.language import say

_DIFFERENT = 1  # exit status: docs/architecture.md, 1.2


@click.command(
    short_help=say("Show what changed between two snapshots."),
    epilog=examples(
        "gpucheck baseline collect -o before.json",
        "gpucheck baseline diff before.json     # until now",
        "gpucheck baseline diff before.json after.json -v",
        "gpucheck baseline diff before.json --format html -o changes.html",
    ),
)
@click.argument("before", metavar="A", type=click.Path(exists=True, dir_okay=False))
@click.argument(
    "after", metavar="[B]", type=click.Path(exists=True, dir_okay=False), required=False
)
@machine_options
@click.option("--format", "form", type=OneOf(["terminal", "json", "html"]), default="terminal")
@output_options_with(
    say("Every change; otherwise those that matter most, and the number of the rest.")
)
@click.pass_context
def diff(ctx: click.Context, /, before: str, after: str | None, **options: Any) -> None:  # noqa: ANN401
    """Show what changed between two saved snapshots or reports; without B, since A until now.

    Exit status: 0 nothing changed, 1 something did.
    """
    from gpucheck.baselines.diff import as_json, compare  # noqa: PLC0415

    old = load_snapshot(before)
    tables = open_tables(options["tables"])
    if after is not None:
        new = load_snapshot(after)
    else:
        new = run_probes(open_host(options["sysroot"]), tables, options).snapshot
    if options["form"] != "terminal":  # data and pages may leave the machine
        from gpucheck.output.redact import redact_together  # noqa: PLC0415

        old, new = redact_together(old, new)
    changes = compare(old, new)
    if options["form"] == "json":
        from gpucheck.output.json_text import json_text  # noqa: PLC0415

        text = json_text(as_json(changes))
    elif options["form"] == "html":
        from gpucheck.baselines import diff_html  # noqa: PLC0415
        from gpucheck.engine import judge_machine  # noqa: PLC0415

        text = diff_html.render_html(
            judge_machine(old, tables), judge_machine(new, tables), changes
        )
    else:
        from gpucheck.baselines.diff import render  # noqa: PLC0415
        from gpucheck.engine import judge_machine  # noqa: PLC0415

        text = render(
            judge_machine(old, tables),
            judge_machine(new, tables),
            changes,
            verbose=options["verbose"],
            color=colored(options),
            width=page_width(options),
        )
    write_out(text, options["output"])
    ctx.exit(_DIFFERENT if changes else 0)


COMMAND = diff
