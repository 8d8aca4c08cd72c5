"""``gpucheck mcp``: a server for assistants."""

from typing import Any

import click

from gpucheck._about import VERSION
from gpucheck.doctor.run import open_tables
from gpucheck.interface.errors import RefusedError
from gpucheck.interface.options import examples, server_options
from gpucheck.language import say


@click.command(
    short_help=say("Answer the questions of an assistant (MCP over stdio)."),
    epilog=examples(
        "gpucheck mcp --python ~/venv",
        "gpucheck mcp --no-redact",
    ),
)
@server_options
@click.option(
    "--no-redact",
    is_flag=True,
    help=say("Keep names, paths, addresses and UUIDs, so that commands can be copied as they are."),
)
def mcp(**options: Any) -> None:  # noqa: ANN401  # click's options
    """Answer the questions of an assistant, by the Model Context Protocol on stdin and stdout.

    The tools are check (without self-tests), compat, recommend, triage, explain and list. They only
    read: nothing on this machine is changed, and an assistant can choose neither the Python that is
    diagnosed nor the tables.
    """
    try:
        from gpucheck.programs.mcp_server import serve  # noqa: PLC0415
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "anyio"):
            raise
        raise RefusedError(
            say(
                "The Python of gpucheck has no MCP SDK of version 2. Install the extra, from a "
                "clone of gpucheck with pip install '.[mcp]', or from its wheel with pip install "
                "'./gpucheck-{version}-py3-none-any.whl[mcp]'.",
                version=VERSION,
            )
        ) from error
    from gpucheck.programs.questions import Setting  # noqa: PLC0415

    open_tables(options["tables"])
    serve(
        Setting(
            python=options["python"],
            tables=options["tables"],
            wheel_mirror=options["wheel_mirror"],
            redacted=not options["no_redact"],
        )
    )


COMMAND = mcp
