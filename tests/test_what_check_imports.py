"""What ``gpucheck check`` imports before it knows whether it is needed: every module costs time."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

LOADED = """
import sys, click, msgspec
before = set(sys.modules)
import gpucheck.cli, gpucheck.cli.check, gpucheck.engine
from gpucheck.cli.run import prepare_judgement
from gpucheck.probes import all_probes
from gpucheck.tables import Tables
all_probes()
list(prepare_judgement(Tables()))
print(*sys.modules.keys() - before, sep="\\n")
"""
NOT_NEEDED = (
    "ctypes", "gpucheck.advice.command_class", "gpucheck.api.examination", "gpucheck.api.functions",
    "gpucheck.api.preflight", "gpucheck.api.recommending", "gpucheck.cli.completion",
    "gpucheck.cli.mcp", "gpucheck.cli.mcp_server", "gpucheck.cli.triage",
    "gpucheck.engine.exact_fix", "gpucheck.messages.form", "gpucheck.messages.loading",
    "gpucheck.output.evidence", "gpucheck.output.html", "gpucheck.output.junit",
    "gpucheck.output.machine_folder",
    "gpucheck.probes.loading.reading.windows", "gpucheck.selftests", "gpucheck.ticket",
    "gpucheck.whatif", "gpucheck.worker", "mcp", "pathlib", "pkgutil", "pynvml", "queue",
    "statistics", "subprocess",
)  # fmt: skip


def test_check_imports_only_what_every_run_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "gpucheck.findings.driver_too_old" in loaded
    assert not loaded.intersection(NOT_NEEDED)
