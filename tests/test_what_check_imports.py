"""What ``gpucheck check`` imports before it knows whether it is needed: every module costs time."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

LOADED = """
import sys, click, msgspec
before = set(sys.modules)
import gpucheck.cli, gpucheck.doctor.commands.check, gpucheck.engine
from gpucheck.doctor.run import prepare_judgement
from gpucheck.probes import all_probes
from gpucheck.tables import Tables
all_probes()
list(prepare_judgement(Tables()))
print(*sys.modules.keys() - before, sep="\\n")
"""
NOT_NEEDED = (
    "ctypes", "difflib", "gpucheck.advice.command_class", "gpucheck.programs.examination",
    "gpucheck.programs.functions", "gpucheck.cluster.use_case", "gpucheck.describe.recommending",
    "gpucheck.baselines", "gpucheck.cli.shell_completion", "gpucheck.programs.commands.mcp",
    "gpucheck.programs.mcp_server", "gpucheck.ticket.commands.triage", "gpucheck.engine.exact_fix",
    "gpucheck.log_patterns.form", "gpucheck.log_patterns.loading", "gpucheck.machine.binaries",
    "gpucheck.machine.recorded", "gpucheck.output.evidence",
    "gpucheck.output.html", "gpucheck.output.junit", "gpucheck.output.machine_folder",
    "gpucheck.probes.torch_build", "gpucheck.probes.reading", "gpucheck.selftests",
    "gpucheck.ticket", "gpucheck.describe", "gpucheck.worker", "mcp", "pathlib", "pkgutil",
    "pynvml", "queue", "statistics", "subprocess",
)  # fmt: skip


NOT_FOR_HELP = (
    "gpucheck.advice", "gpucheck.programs.examination", "gpucheck.programs.functions",
    "gpucheck.programs.questions", "gpucheck.describe.recommending", "gpucheck.baselines",
    "gpucheck.programs.mcp_server", "gpucheck.ticket.batch", "gpucheck.cluster",
    "gpucheck.derived", "gpucheck.engine", "gpucheck.facts", "gpucheck.findings",
    "gpucheck.machine.base", "gpucheck.log_patterns", "gpucheck.output", "gpucheck.probes",
    "gpucheck.selftests", "gpucheck.ticket", "gpucheck.describe", "mcp", "subprocess",
)  # fmt: skip
"""``gpucheck --help`` imports every command; what a command works with is imported by its run."""


def test_help_imports_no_more_than_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpucheck", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gpucheck.interface.spelling" in loaded
    assert not loaded.intersection(NOT_FOR_HELP)


def test_check_imports_only_what_every_run_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "gpucheck.findings.driver_releases" in loaded
    assert not loaded.intersection(NOT_NEEDED)
