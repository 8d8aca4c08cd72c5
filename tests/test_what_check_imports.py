"""What ``gpucheck check`` imports before it knows whether it is needed: every module costs time."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

LOADED = """
import sys, click, msgspec
before = set(sys.modules)
import gpucheck.cli, gpucheck.cli.commands.check, gpucheck.engine
from gpucheck.cli.run import prepare_judgement
from gpucheck.probes import all_probes
from gpucheck.tables import Tables
all_probes()
list(prepare_judgement(Tables()))
print(*sys.modules.keys() - before, sep="\\n")
"""
NOT_NEEDED = (
    "ctypes", "gpucheck.advice.command_class", "gpucheck.api.examination", "gpucheck.api.functions",
    "gpucheck.api.preflight", "gpucheck.api.recommending", "gpucheck.baselines",
    "gpucheck.cli.completion",
    "gpucheck.cli.commands.mcp", "gpucheck.cli.mcp_server", "gpucheck.cli.commands.triage",
    "gpucheck.engine.exact_fix", "gpucheck.messages.form", "gpucheck.messages.loading",
    "gpucheck.output.evidence", "gpucheck.output.html", "gpucheck.output.junit",
    "gpucheck.output.machine_folder",
    "gpucheck.probes.loading.reading.windows", "gpucheck.selftests", "gpucheck.ticket",
    "gpucheck.whatif", "gpucheck.worker", "mcp", "pathlib", "pkgutil", "pynvml", "queue",
    "statistics", "subprocess",
)  # fmt: skip


NOT_FOR_HELP = (
    "gpucheck.advice", "gpucheck.api.examination", "gpucheck.api.functions",
    "gpucheck.api.questions", "gpucheck.api.recommending", "gpucheck.baselines",
    "gpucheck.cli.mcp_server", "gpucheck.cli.triage_batch", "gpucheck.cluster", "gpucheck.derived",
    "gpucheck.engine", "gpucheck.facts", "gpucheck.findings", "gpucheck.machine.base",
    "gpucheck.messages", "gpucheck.output", "gpucheck.probes", "gpucheck.selftests",
    "gpucheck.ticket", "gpucheck.whatif", "mcp", "subprocess",
)  # fmt: skip
"""``gpucheck --help`` imports every command; what a command works with is imported by its run."""


def test_help_imports_no_more_than_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpucheck", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gpucheck.cli.spelling" in loaded
    assert not loaded.intersection(NOT_FOR_HELP)


def test_check_imports_only_what_every_run_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "gpucheck.findings.driver_too_old" in loaded
    assert not loaded.intersection(NOT_NEEDED)
