"""``gpucheck --version`` for programs, and what a shell offers at Tab."""

import json
import os
import subprocess
import sys

import click
import jsonschema
import pytest
from click.testing import CliRunner
from each import each

from gpucheck import __version__, cli
from gpucheck.programs.schema import schema


def shown(*args: str) -> str:
    done = CliRunner().invoke(cli.gpucheck, args)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_version_is_one_line() -> None:
    assert shown("--version") == f"gpucheck {__version__}\n"
    assert shown("--version", "--format", "terminal") == f"gpucheck {__version__}\n"


@each("args", [("--version", "--format", "json"), ("--format=json", "--version")])
def test_the_version_is_data(args: tuple[str, ...]) -> None:
    data = json.loads(shown(*args))
    jsonschema.validate(data, schema("version"))
    assert data["gpucheck"] == __version__
    assert data["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"gpucheck.report/1", "gpucheck.preflight-record/1", data["schema"]} <= set(
        data["schemas"]
    )


def test_a_wrong_format_and_wrong_tables_are_refused() -> None:
    for args in (
        ("--version", "--format", "xml"),
        ("--version", "--format", "json", "--tables", "/x"),
    ):
        done = CliRunner().invoke(cli.gpucheck, args)
        assert done.exit_code == 2
        assert "Error: " in done.stderr


def test_a_format_without_version_is_that_of_check() -> None:
    assert "Usage: gpucheck check" in shown("--format", "json", "--help")


def test_the_options_of_check_come_first_as_well() -> None:
    context = click.Context(cli.gpucheck, info_name="gpucheck", resilient_parsing=True)
    options, words = (
        {offer.value for offer in cli.gpucheck.shell_complete(context, begun)}
        for begun in ("--fo", "")
    )
    assert {"--for", "--format"} <= options
    assert "check" in words
    assert not [word for word in words if word.startswith("-")]


def offered(line: str, **env: str) -> list[str]:
    """Return what click's completion for bash offers for the last word of a line."""
    words = line.split(" ")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpucheck"],
        env={
            **os.environ, **env, "_GPUCHECK_COMPLETE": "bash_complete", "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {part.rpartition("|")[2].strip() for part in done.stderr.splitlines()}
    ours = ("findings", "engine", "probes", "machine.base")
    assert not loaded & {"mcp", *(f"gpucheck.{package}" for package in ours)}
    return done.stdout.splitlines()


@pytest.mark.process
@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("gpucheck ", {"plain,check", "plain,triage", "plain,mcp"}),
        ("gpucheck --fo", {"plain,--for", "plain,--format"}),
        ("gpucheck --for ", {"plain,run", "plain,build"}),
        ("gpucheck explain driver-too", {"plain,driver-too-old"}),
        ("gpucheck check --only nv", {"plain,nvml", "plain,nvlink-down"}),
        ("gpucheck selftest --tests memory,all-r", {"plain,memory,all-reduce"}),
        ("gpucheck preflight --device c", {"plain,cuda", "plain,cpu"}),
        ("gpucheck tables ", {"plain,show", "plain,check"}),
        ("gpucheck triage err", {"file,err"}),
        ("gpucheck check --tables x", {"dir,x"}),
        ("gpucheck check --machine x", {"file,x"}),
        ("gpucheck demo rtx", {"plain,rtx5090"}),
    ],
)
def test_tab_offers_the_values(line: str, some: set[str]) -> None:
    found = offered(line)
    assert some <= set(found)
    begun = line.rpartition(" ")[2]
    assert all(one.partition(",")[2].startswith(begun) for one in found)


@pytest.mark.process
def test_bash_itself_completes(tmp_path: os.PathLike[str]) -> None:
    program = os.path.join(os.fspath(tmp_path), "gpucheck")  # noqa: PTH118
    with open(program, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(f'#!/bin/sh\nexec "{sys.executable}" -m gpucheck "$@"\n')
    os.chmod(program, 0o755)  # noqa: PTH101, S103
    script = """
eval "$(_GPUCHECK_COMPLETE=bash_source gpucheck)"
COMP_WORDS=(gpucheck explain driver-too) COMP_CWORD=2
_gpucheck_completion gpucheck driver-too explain
printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{os.fspath(tmp_path)}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout == "driver-too-old\n"


@pytest.mark.process
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_their_script(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpucheck"], capture_output=True, text=True, check=True,
        env={**os.environ, "_GPUCHECK_COMPLETE": f"{shell}_source"},
    )  # fmt: skip
    assert f"_GPUCHECK_COMPLETE={shell}_complete" in done.stdout
