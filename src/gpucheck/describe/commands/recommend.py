"""``gpucheck recommend``: the exact command that installs a PyTorch that works here."""

from typing import TYPE_CHECKING, Any

import click

from gpucheck.describe.recommend_options import RecommendRequest
from gpucheck.doctor.run import open_host, open_tables, run_probes
from gpucheck.interface.options import examples, machine_options, options_of, output_options
from gpucheck.interface.spelling import OneOf
from gpucheck.interface.text import colored, page_width, write_out
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need it
    from gpucheck.facts.snapshot import Snapshot

_EXIT = {"command": 0, "nothing-fits": 1, "unknown": 3}  # docs/architecture.md, 1.2


@click.command(
    short_help=say("The exact command that installs a PyTorch that works here."),
    epilog=examples(
        "gpucheck recommend",
        "gpucheck recommend --torch 2.6 --with torchvision --tool uv",
        'gpucheck recommend --gpu "RTX 5090" --driver 580',
        "gpucheck recommend --with vllm,torchcodec",
        "gpucheck recommend --gpu V100 --driver 580 --tool conda",
        "gpucheck recommend --gpu 4090 --gpu A6000 --driver 570 --os windows",
    ),
)
@options_of(RecommendRequest)
@machine_options
@click.option("--format", "form", type=OneOf(["terminal", "json"]), default="terminal")
@output_options
@click.pass_context
def recommend(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Print the exact command that installs a PyTorch that works on every GPU of this machine.

    It is the newest build that has code for all of the GPUs, runs on the driver, and has wheels for
    the Python and the system. The output includes the reason, and what a newer driver would allow.
    --driver, --driver-cuda and --python-version replace what this machine has. With --gpu, --os,
    --arch, --glibc or --jetpack you describe a machine instead: nothing is probed, and you need not
    name a Python.

    Exit status: 0 a command was found, 1 nothing fits, 2 usage error, 3 a decisive fact is
    unknown.
    """
    from gpucheck.describe import recommendation  # noqa: PLC0415
    from gpucheck.describe.recommending import Recommending  # noqa: PLC0415

    tables = open_tables(options["tables"])

    def collect() -> "Snapshot":
        return run_probes(open_host(options["sysroot"]), tables, options).snapshot

    wish = RecommendRequest(**{name: options[name] for name in RecommendRequest.__struct_fields__})
    shown = Recommending(wish, tables, collect).shown()
    if options["form"] == "json":
        from gpucheck.output.json_text import json_text  # noqa: PLC0415

        text = json_text(recommendation.as_json(shown))
    else:
        text = recommendation.text(
            shown, quiet=options["quiet"], color=colored(options), width=page_width(options)
        )
    write_out(text, options["output"])
    ctx.exit(_EXIT[shown.outcome])


COMMAND = recommend
