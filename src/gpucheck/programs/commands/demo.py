"""``gpucheck demo``: what gpucheck says of recorded machines, for whoever has no GPU at hand."""

from pathlib import Path
from typing import Any

import click
import msgspec

from gpucheck.interface.options import (
    REPORT_FORMATS,
    examples,
    format_option_of,
    output_options_with,
)
from gpucheck.interface.spelling import OneOf
from gpucheck.interface.text import colored, page_width, write_out
from gpucheck.language import say

# What can be shown: each demo is a recorded machine of the tests, or a pre-flight.

DATA = Path(__file__).parents[1] / "demo" / "data"
PREFLIGHT = DATA / "preflight-hang.json"
_BY_HAND = say("Made by hand after reports of such machines.")
_OF_A_REAL_ENVIRONMENT = say(
    "The Python environment is a real one that was broken on purpose; the machine around it was "
    "made by hand."
)


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be shown."""

    title: str
    machine: str
    """The test machine that it is made from; "" of a pre-flight."""
    origin: str = _BY_HAND
    command: str = "gpucheck"
    """What a user would have typed."""
    gpus: int | None = None
    """The value of ``--gpus`` in it."""


DEMOS = {
    "rtx5090": Demo(
        title=say("A student's RTX 5090, and a PyTorch that is older than it"),
        machine="rtx5090-cu124",
    ),
    "cpu-build": Demo(
        title=say("GPU and driver work, but PyTorch is the build for the CPU"),
        machine="cpu-build-with-gpu",
    ),
    "windows": Demo(
        title=say("Windows, where pip install torch brings the build for the CPU"),
        machine="windows-cpu-build",
    ),
    "wsl": Demo(
        title=say("WSL 2 in which somebody has installed a driver for Linux"),
        machine="wsl2-linux-driver-inside",
    ),
    "docker": Demo(
        title=say("A container that was started without its GPU"),
        machine="docker-no-gpu",
    ),
    "old-driver": Demo(
        title=say("A driver that is too old for the CUDA of PyTorch"),
        machine="r470-cu121",
    ),
    "updated-driver": Demo(
        title=say("A driver that was updated while its old kernel module is still loaded"),
        machine="library-mismatch",
    ),
    "hidden-gpus": Demo(
        title=say("CUDA_VISIBLE_DEVICES that hides every GPU"),
        machine="cvd-all-word",
    ),
    "broken-wheel": Demo(
        title=say("A CUDA library that a full disk has cut off"),
        machine="cuda-library-cut-off",
        origin=_OF_A_REAL_ENVIRONMENT,
    ),
    "foreign-library": Demo(
        title=say("A package that has replaced a CUDA library of PyTorch"),
        machine="torch26-nvjitlink-older",
        origin=_OF_A_REAL_ENVIRONMENT,
    ),
    "healthy-node": Demo(
        title=say("A node with eight H100, and nothing is wrong"),
        machine="h100x8-r580-cu130",
        command="gpucheck --gpus 8",
        gpus=8,
    ),
    "fallen-gpu": Demo(
        title=say("A node with eight H100, one of which has fallen off the bus"),
        machine="gpu-lost-xid79",
        command="gpucheck --gpus 8",
        gpus=8,
    ),
    "fabric-manager": Demo(
        title=say("A node with NVSwitch whose fabric manager does not run"),
        machine="fabric-manager-802",
    ),
    "hanging-driver": Demo(
        title=say("A driver that hangs: much stays unknown, and gpucheck says so"),
        machine="nvml-hangs",
    ),
    "preflight-hang": Demo(
        title=say("A pre-flight of 64 ranks, one of which never comes"),
        machine="",
        origin=say("The job is simulated; the judgement is that of a real pre-flight."),
        command="srun gpucheck preflight",
    ),
}
"""By name, in the order in which they are listed."""


def machine_file(name: str) -> Path:
    """Return where the machine of a demo is."""
    return DATA / f"{name}.zip"


_NAME_COLUMN = 2 + max(map(len, DEMOS))


@click.command(
    short_help=say("Show what gpucheck says of recorded machines; needs no GPU."),
    epilog=examples(
        "gpucheck demo                    # what can be shown",
        "gpucheck demo rtx5090",
        "gpucheck demo preflight-hang --format html -o hang.html",
    ),
)
@click.argument("name", metavar="[NAME]", required=False, type=OneOf(list(DEMOS)))
@format_option_of(REPORT_FORMATS)
@output_options_with(say("Every check with its reason; twice: every fact."))
def demo(name: str | None, **options: Any) -> None:  # noqa: ANN401  # click's options
    """Show what gpucheck says of a recorded machine; without NAME, list what can be shown.

    The machines are some of those that gpucheck is tested with. They are judged now, as "gpucheck
    check --machine" does it; nothing on this machine is looked at.

    Exit status: 0, whatever is wrong with the machine. The line of the command says with which
    status that one would end.
    """
    if name is None:
        if options["form"] != "terminal":
            raise click.UsageError(say("--format needs the NAME of what is to be shown."))
        write_out(_listing(options), options["output"])
        return
    entry = DEMOS[name]
    text, status = _checked(name, entry, options) if entry.machine else _preflight(options)
    heading = "" if options["quiet"] else _heading(entry, status, options)
    is_page = options["form"] == "terminal"
    if heading and not is_page:
        click.echo(heading, err=True)
    write_out(f"{heading}\n{text}" if heading and is_page else text, options["output"])


# What a demo works with is imported late: --help does not need it.


def _checked(name: str, entry: Demo, options: dict[str, Any]) -> tuple[str, int]:
    """Return what ``check`` says of a recorded machine, and its exit status."""
    from gpucheck.doctor.checking import CheckRequest  # noqa: PLC0415
    from gpucheck.doctor.commands.check import report_text  # noqa: PLC0415
    from gpucheck.doctor.run import diagnosed, open_tables  # noqa: PLC0415

    request = CheckRequest(machine=str(machine_file(name)), gpus=entry.gpus)
    of_this_machine = {"python": None, "sysroot": None}
    report = diagnosed({**options, **of_this_machine}, request, open_tables(options["tables"]))
    return report_text(report, options), report.exit_status("error")


def _preflight(options: dict[str, Any]) -> tuple[str, int]:
    """Return the page of a recorded pre-flight, which is judged now, and its exit status."""
    from gpucheck.cluster.judgement import judged  # noqa: PLC0415
    from gpucheck.cluster.run_command import result_text  # noqa: PLC0415
    from gpucheck.doctor.run import open_tables  # noqa: PLC0415
    from gpucheck.facts.snapshot import load  # noqa: PLC0415

    result = judged(load(PREFLIGHT), open_tables(options["tables"]))
    return result_text(result, options), result.ending.status


def _listing(options: dict[str, Any]) -> str:
    from gpucheck.output.layout import Page  # noqa: PLC0415

    page = Page(page_width(options), color=colored(options))
    page.words(say("What gpucheck can show without a GPU: gpucheck demo NAME"))
    page.blank()
    for name, entry in DEMOS.items():
        page.columns([(name, _NAME_COLUMN, "bold")], entry.title, indent=2)
    return page.text()


def _heading(entry: Demo, status: int, options: dict[str, Any]) -> str:
    """Return what is shown, where it comes from, and the command that a user would have typed."""
    from gpucheck.output.layout import Page  # noqa: PLC0415

    page = Page(page_width(options), color=colored(options))
    page.labelled(say("Demo"), entry.title)
    page.labelled("", entry.origin)
    page.blank()
    page.verbatim(
        say("$ {command}    # exit status {status}", command=entry.command, status=status)
    )
    return page.text()


COMMAND = demo
