"""What workers answer and print: code of the target environment may have written it."""

import contextlib
import json
import time

from fuzz_target import Target
from preloading_forms import FORMS

from gpucheck.cluster.files import json_text
from gpucheck.cluster.task import rank_run
from gpucheck.cluster.task.rank_run import RankRun, read_answer, read_flight
from gpucheck.facts import builtins
from gpucheck.language import speaking, spoken
from gpucheck.machine.worker_pool.look import Looks, ProcessLook
from gpucheck.machine.worker_pool.process import WorkerProcess, read_message, worker_exit
from gpucheck.probes.reading.preloading import understand
from gpucheck.probes.reading.torch_files import _understand
from gpucheck.selftests import outcome
from gpucheck.selftests.plan import Job

_JOB = Job(tests=("cudnn-conv", "matmul"), device="cuda:0", devices=("cuda:0",))


def _answer(data: bytes) -> None:
    """The answer of a rank, of a self-test, and of the process that saw them end."""
    message = read_message(data)
    rank = read_answer(message)
    if rank is not None:
        assert rank.facts is not None
    flight = read_flight(message)
    ended = worker_exit(message, "all_reduce")
    run = RankRun(3, WorkerProcess("1.3", 30.0, time.monotonic() + 60, grace=5.0), {"start": 30.0})
    run.hear(message)
    run.hear({"event": "ended", "status": 0})
    assert run.result is not None
    tests = [outcome.answered(_JOB, message, "matmul"), outcome.ended(_JOB, "x", "", message)]
    made = builtins([rank, flight, run.result, ended.detail, tests])
    json_text(made)
    with speaking("zh"):
        for text in _texts(made):
            spoken(text).encode("utf-8", "surrogatepass")


def _texts(data: object) -> list[str]:
    """Return the texts and sentences in what was made of an answer."""
    if isinstance(data, str):
        return [data]
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [text for item in inner for text in _texts(item)]


def _printed(data: bytes) -> None:
    """The last output of a worker and what the kernel says of it: always a look."""
    text = data.decode("utf-8", "replace")
    kernel, _line, printed = text.partition("\n\n")
    first, *rest = kernel.split("\n", 1)
    both = Looks()
    look = ProcessLook(state="S", cpu=0.0, wchan=first, syscall=first, kernel="".join(rest))
    both.worker = both.zygote = (look, look)
    seen = rank_run.seen(both, printed, killed=False)
    ended = worker_exit({"printed": printed, "status": 1}, "")
    json_text(builtins([seen, ended.detail, ended.data]))


def _source(data: bytes) -> None:
    """``torch/__init__.py`` and ``torch/version.py``; refused by ValueError."""
    text = data.decode("utf-8", "surrogateescape")
    for cuda in ("12.6", None):
        with contextlib.suppress(ValueError):
            understand(text, cuda)
    with contextlib.suppress(ValueError):
        _understand(text)


_PASSED = {
    "event": "result", "test": "matmul", "status": "passed", "phase": "done", "collective": 3,
    "seconds": 0.5, "measurements": {"busbw": 12.5, "latency": 3},
    "pace": {"local": [0.1, 0.2], "arrivals": [0.1]}, "data": {"device": "cuda:0", "n": [1, 2.5]},
}  # fmt: skip
_MEASURED = {
    "event": "result", "test": "cudnn-conv", "status": "failed", "kind": "wrong-result",
    "seconds": 1.25, "detail": "max difference 3.5, bound 1e-05",
    "said": ["max difference {found}, bound {bound}", {"found": 3.5, "bound": "1e-05"}],
    "measurements": [{"name": "max difference", "value": 3.5, "unit": "", "bound": 1e-5}],
}  # fmt: skip
_FLIGHT = {
    "event": "flight",
    "begun": 7,
    "completed": 6,
    "operation": "nccl:all_reduce",
    "state": "started",
}
_ENDS = [
    {"event": "phase", "phase": "enter", "collective": 4},
    {"event": "stage", "text": "all_reduce over NCCL"},
    {"event": "ended", "signal": 11, "status": None, "printed": "Fatal Python error: Aborted\n"},
    {"event": "ended", "signal": 0, "status": 1, "printed": "RuntimeError: CUDA error\n"},
    {"event": "ended", "signal": 9, "status": 0, "printed": ""},
]
_ANSWERS = [json.dumps(document).encode() for document in (_PASSED, _MEASURED, _FLIGHT, *_ENDS)]
_OUTPUT = [
    b"""do_freezer_trap
[<0>] futex_wait_queue+0x60/0x90
[<0>] do_syscall_64+0x3c/0x90

node1:77:80 [0] NCCL WARN Call to ibv_modify_qp failed with error Connection timed out
Traceback (most recent call last):
  File "/home/alice/worker/rank.py", line 40, in work
RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:51022
Fatal Python error: Terminated

Thread 0x00007f0000000700 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
Current thread 0x00007f1111111740 (most recent call first):
  File "/opt/venv/torch/distributed/distributed_c10d.py", line 2501 in all_reduce
  File "/opt/venv/gpucheck/worker/collectives.py", line 88 in enter
""",
    b"202 0x7f 0x80\n\n\nterminate called after throwing an instance of 'c10::Error'\n",
]
_VERSION = b"""from typing import Optional
__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.9.1+cu128'
debug = False
cuda: Optional[str] = '12.8'
git_version = '5811a8d7da873dd699ff6687092c225caffcf1bb'
hip: Optional[str] = None
"""


def _sources() -> list[bytes]:
    return [_VERSION, *(form.encode() for form in FORMS.values())]


TARGETS = (
    Target("worker-answers", _answer, lambda: _ANSWERS, "json"),
    Target("worker-output", _printed, lambda: _OUTPUT, "text"),
    Target("torch-sources", _source, _sources, "text"),
)
