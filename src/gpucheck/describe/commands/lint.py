"""``gpucheck lint``: project files, judged before anything is built."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucheck.doctor.run import open_tables
from gpucheck.interface.options import examples, fail_on_option, output_options
from gpucheck.interface.spelling import OneOf
from gpucheck.interface.text import colored, echo, words_of, write_out
from gpucheck.language import say, say_many

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.describe.files.complaint import FileTarget
    from gpucheck.describe.lint_text import LintedFile
    from gpucheck.engine import FailOn
    from gpucheck.tables import Tables

_UNREADABLE = 2  # exit status: docs/architecture.md, 1.2


@click.command(
    short_help=say("Judge project files before anything is built."),
    epilog=examples(
        "gpucheck lint Dockerfile requirements.txt",
        "gpucheck lint --gpu 5090 --driver 570 Dockerfile compose.yaml",
        "gpucheck lint --format github --fail-on warning pyproject.toml",
    ),
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--gpu",
    "gpus",
    metavar="NAME",
    multiple=True,
    help=say("A GPU that the files are for; repeat it for several."),
)
@click.option(
    "--driver", metavar="RELEASE", help=say("The driver of the machine, such as 570 or 570.86.15.")
)
@click.option(
    "--python-version",
    metavar="VERSION",
    help=say("The Python, where a file does not say it."),
)
@click.option(
    "--format",
    "form",
    type=OneOf(["terminal", "json", "github"]),
    default="terminal",
    show_default=True,
    help=say("github: annotations of a workflow."),
)
@fail_on_option
@output_options
@click.pass_context
def lint(ctx: click.Context, /, files: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401  # click's options
    """Judge project files: Dockerfiles, requirements, pyproject.toml, Compose, Kubernetes, Slurm.

    Nothing is executed. Apart from these files, only the override file of a Compose project is
    read. What is not certain is not reported.
    """
    from gpucheck.describe.files.lint import compose_files  # noqa: PLC0415
    from gpucheck.describe.lint_text import shown_name  # noqa: PLC0415

    tables = open_tables(options["tables"])
    target = _target(options, tables)
    given = compose_files(files)
    found = [_linted(file, given, target, tables) for file in files]
    _write(found, options, tables)
    for linted in found:
        name = shown_name(linted.file)
        if linted.problem:
            echo(say("{file}: {problem}.", file=name, problem=linted.problem))
        elif not linted.kind and not options["quiet"]:
            echo(say("{file} is not a kind of file that lint knows.", file=name))
        elif not options["quiet"]:
            _explain(linted)
    if not options["quiet"]:
        _sum_up(found)
    ctx.exit(_status(found, options["fail_on"]))


def _target(options: dict[str, Any], tables: "Tables") -> "FileTarget":
    from gpucheck.advice.situations import GpuNameError, cards_named  # noqa: PLC0415
    from gpucheck.describe.files.complaint import FileTarget  # noqa: PLC0415
    from gpucheck.describe.keys import GivenError, read_words  # noqa: PLC0415

    words = [
        f"{key}={value}"
        for key, value in (("driver", options["driver"]), ("python", options["python_version"]))
        if value is not None
    ]
    try:
        given = read_words(words)
        cards = cards_named(options["gpus"], tables) or ()
    except (GivenError, GpuNameError) as error:
        raise click.UsageError(words_of(error)) from error
    return FileTarget(
        gpus=tuple(card.label for card in cards),
        driver="".join(given.get("driver", [])),
        python="".join(given.get("python", [])),
    )


def _explain(file: "LintedFile") -> None:
    from gpucheck.describe.lint_text import reasons  # noqa: PLC0415

    for line in reasons(file):
        echo(line)


def _linted(
    file: str, given: Mapping[str, Sequence[str]], target: "FileTarget", tables: "Tables"
) -> "LintedFile":
    from gpucheck.describe.files.lint import beside  # noqa: PLC0415
    from gpucheck.describe.files.lint import lint as judge  # noqa: PLC0415
    from gpucheck.describe.files.text import UnreadableError  # noqa: PLC0415
    from gpucheck.describe.lint_text import LintedFile  # noqa: PLC0415

    try:
        linted = judge(file, _content(file), target, tables, beside(file, given, _content))
    except OSError as error:
        why = error.strerror or error
        return LintedFile(file=file, problem=say("it cannot be read: {why}", why=why))
    except UnreadableError as error:
        return LintedFile(file=file, problem=error.args[0])
    return LintedFile(
        file=file, kind=linted.kind, complaints=linted.complaints, unjudged=linted.unjudged
    )


def _content(file: str) -> bytes:
    """Return the content of a regular file, and not more of it than is read.

    Raises:
        OSError: it cannot be read.
        UnreadableError: it is a directory, a pipe or a device.
    """
    from gpucheck.describe.files.text import LARGEST, UnreadableError  # noqa: PLC0415

    try:
        is_file = stat.S_ISREG(os.stat(file).st_mode)  # noqa: PTH116  # a name may have a NUL
    except ValueError as error:
        raise UnreadableError(say("it is not a regular file")) from error
    if not is_file:
        raise UnreadableError(say("it is not a regular file"))
    with Path(file).open("rb") as opened:
        return opened.read(LARGEST + 1)


def _write(found: "list[LintedFile]", options: dict[str, Any], tables: "Tables") -> None:
    from gpucheck.describe import lint_text  # noqa: PLC0415

    if options["form"] == "json":
        text = lint_text.as_json(found, tables=tables.version)
    elif options["form"] == "github":
        text = lint_text.github(found)
    else:
        text = lint_text.terminal(found, color=colored(options))
    write_out(text, options["output"])


def _sum_up(found: "list[LintedFile]") -> None:
    read = sum(bool(linted.kind) for linted in found)
    faults = sum(len(linted.complaints) for linted in found)
    if read and not faults:
        echo(say_many(read, "No fault in {count} file.", "No fault in {count} files.", count=read))


def _status(found: "list[LintedFile]", fail_on: "FailOn") -> int:
    if any(linted.problem for linted in found) or not any(map(_may_be_judged, found)):
        return _UNREADABLE
    from gpucheck.engine import counts  # noqa: PLC0415

    return int(
        any(counts(complaint.severity, fail_on) for file in found for complaint in file.complaints)
    )


def _may_be_judged(file: "LintedFile") -> bool:
    """Whether it is of a known kind; a YAML file of another kind may be anybody's."""
    return bool(file.kind) or file.file.lower().endswith((".yaml", ".yml"))


COMMAND = lint
