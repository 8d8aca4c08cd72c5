"""Source code in a ticket is no message: scripts, Dockerfiles, configurations, diffs."""

import time
from pathlib import Path

import pytest
from each import each

from gpucheck import triage
from gpucheck.facts.request import Pasted
from gpucheck.log_patterns.loading import all_messages
from gpucheck.log_patterns.source_code import is_code, is_statement
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.intake import unwrapped

SCRIPTS = sorted((Path(__file__).parent / "harmless").glob("*.txt"))
EACH = each("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
HEALTHY = """
PyTorch version: 2.5.1+cu124
CUDA used to build PyTorch: 12.4
OS: Ubuntu 22.04.4 LTS (x86_64)
Python version: 3.11.9
Is CUDA available: True
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB
Nvidia driver version: 550.54.15

The second example could be clearer: an error in it was not found by anybody.
"""


def text(words: str) -> Text:
    return Text(Line(at, line) for at, line in enumerate(words.splitlines(), 1))


def test_there_are_scripts_of_many_kinds() -> None:
    assert len(SCRIPTS) >= 15


@EACH
def test_nothing_fires_on_a_harmless_script(path: Path) -> None:
    report = triage(path.read_text(encoding="utf-8"))
    assert report.root_causes == ()
    pasted = report.snapshot.get(Pasted)
    assert not pasted.signs
    assert pasted.cuda_available is None
    assert pasted.gpu_error is None


@EACH
def test_a_healthy_environment_stays_healthy_beside_a_script(path: Path) -> None:
    report = triage(path.read_text(encoding="utf-8") + HEALTHY)
    assert report.root_causes == ()
    assert report.verdict == "healthy"


@EACH
def test_a_message_below_a_script_is_still_read(path: Path) -> None:
    printed = "\nIt says:\n\nRuntimeError: CUDA error: device-side assert triggered\n"
    report = triage(path.read_text(encoding="utf-8") + printed)
    assert report.root_causes[:1] == ("application-bug",)


@each(
    "line",
    [
        "    dist.init_process_group('nccl', rank=rank, timeout=timedelta(seconds=30))",
        "dist.init_process_group(",
        '    raise RuntimeError("CUDA is not available")',
        "assert torch.cuda.is_available() == True",
        "except torch.cuda.OutOfMemoryError:",
        'if "CUDA out of memory" not in str(error):',
        "for batch, target in loader:",
        "async with pool.acquire() as one:",
        "if width%groups!=0:raise ValueError('the width must be divisible by the groups')",
        'if f"layer.{at}."in name:freeze=True;break',
        "if freeze:weight.requires_grad_(False)",
        "+    torch.backends.cudnn.enabled = False  # CUDNN_STATUS_NOT_INITIALIZED",
        "import torch, os",
        "from torch.utils.data import DataLoader  # hangs with workers",
        "@pytest.mark.skipif(not torch.cuda.is_available(), reason='no CUDA GPUs are available')",
        '    message: str = "no kernel image is available"',
        "RUN pip install torch || echo failed",
        "HEALTHCHECK --timeout=10s CMD nvidia-smi || exit 1",
        'while [ "$x" = 1 ]; do',
        "export NCCL_IB_TIMEOUT=22",
        "#SBATCH --time=24:00:00",
        "#include <nccl.h>",
        'case cudaErrorNoDevice: printf("no CUDA-capable device is detected"); break;',
        "static void run(int n) {",
        '  "nccl_timeout": 7200,',
        "- name: NCCL_TIMEOUT",
        ">>> torch.cuda.set_device(3)",
        "await store.wait(keys, timeout)",
    ],
)
def test_statements(line: str) -> None:
    assert is_statement(line)


@each(
    "line",
    [
        "RuntimeError: CUDA error: out of memory",
        "CUDA error: error code 34",
        "cudaGetDeviceCount returned 100",
        "cudaMalloc(&p, n) failed: out of memory (2)",
        'time="2026-03-14T10:00:00Z" level=error msg="OCI runtime create failed"',
        "level=error msg=failed reason=none",
        "init_process_group(backend=nccl) hangs forever",
        "torch.cuda.is_available() returns False (see below)",
        "If I run this on two nodes it hangs:",
        "From the second epoch on it is stuck",
        "Add more workers and it crashes",
        "For a plain user there is no GPU:",
        "error: 999",
        "Exit Code:    137",
        "exitCode: 137",
        '"message": "CUDA error: no kernel image is available"',
        "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
        "python: error while loading shared libraries: libcuda.so.1",
        "WorkNCCL(SeqNum=12, OpType=ALLREDUCE) ran for 600123 milliseconds before timing out.",
        "[rank0]: return code 1",
        "| N/A   31C    P0             62W /  400W |    4321MiB /  81920MiB |",
        "NCCL WARN Cuda failure 'out of memory'",
        "Try a smaller batch, else it runs out of GPU memory",
        "with 8 GPUs it hangs, with 4 it works:",
        "export NCCL_P2P_DISABLE=1 does not help",
    ],
)
def test_messages_and_sentences_are_no_statements(line: str) -> None:
    assert not is_statement(line)


def test_a_comment_belongs_to_the_code_around_it() -> None:
    found = text("x = model(y)\n# a rank that hangs shows here\nx.backward()")
    assert is_code(found, 1)
    alone = text("# hangs in all_reduce\n\nOn two nodes it hangs.")
    assert not is_code(alone, 0)


def test_an_error_that_is_noted_as_a_comment_is_a_message() -> None:
    found = text("x = model(y)\n# RuntimeError: CUDA error: named symbol not found")
    assert not is_code(found, 1)
    assert triage("\n".join(line.text for line in found.lines)).root_causes


def test_what_a_traceback_quotes_alone_is_a_message() -> None:
    """A line that raises was reached, where no condition stands above it."""
    quoted = text(
        '  File "a.py", line 3\n    raise AssertionError("Torch not compiled with CUDA enabled")'
    )
    assert not is_code(quoted, 1)
    script = text('if not ok:\n    raise AssertionError("Torch not compiled with CUDA enabled")')
    assert is_code(script, 1)


def test_the_rest_of_a_statement_and_a_text_in_quotes_are_code() -> None:
    found = text(
        'def f():\n    """Wait.\n\n    A stuck rank times out here.\n    """\n'
        '    return g(\n        "out of memory",\n        timeout=3,\n    )\n\nIt times out.'
    )
    assert [is_code(found, at) for at in (1, 3, 6, 7)] == [True, True, True, True]
    assert not is_code(found, len(found.lines) - 1)


def test_the_lines_of_a_message_that_opens_a_bracket_are_no_code() -> None:
    found = text(
        "Found GPU0 Tesla K40 (\n    PyTorch no longer supports this GPU because it is too old."
    )
    assert not is_code(found, 1)


def test_an_error_between_two_prompts_is_a_message() -> None:
    printed = ">>> x.cuda()\nRuntimeError: CUDA error: out of memory\n>>> y = 3\n"
    assert triage(printed).root_causes == ("out-of-memory",)


def test_statements_are_not_joined_with_the_next_line() -> None:
    wide = (
        'LOGGER.error("CUDA unknown error - this may be due to an incorrectly set up environment")'
    )
    joined = list(unwrapped(text(f"{wide}\n    return None\n{'x' * len(wide)}\n")))
    assert all(wide in [line.text for line in joined_text.lines] for joined_text in joined)


def test_what_a_program_sets_counts_in_code() -> None:
    """These samples are settings; every other message would be silent on its own sample."""
    for slug, finding in all_messages().items():
        for message in finding.messages:
            if is_statement(message.sample):
                assert message.code or message.name in ("ifname-words", "env-set"), slug


@pytest.mark.hostile
def test_hostile_lines_are_judged_quickly() -> None:
    for piece in (
        "a.",
        "(",
        "a, ",
        "x = ",
        '"""',
        "if a ",
        "- a: [",
        "export A=",
        "f(" * 3,
        " ",
        "\\",
    ):
        line = (piece * 4096)[:4096]
        begun = time.process_time()
        is_statement(line)
        is_code(Text([Line(at, line) for at in range(60)]), 59)
        assert time.process_time() - begun < 0.5


@each("line", ["cudaGetDeviceCount()", "cuInit(0).value", "cuInit(0);"])
def test_a_call_is_a_statement(line: str) -> None:
    assert is_statement(line)


def test_dots_behind_a_call_are_a_sentence() -> None:
    assert not is_statement("cudaGetDeviceCount() ... Error 802: system not yet initialized")
