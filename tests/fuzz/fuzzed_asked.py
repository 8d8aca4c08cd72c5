"""What people and assistants ask for, and files and pages that they name."""

import contextlib
import functools
import json
from datetime import datetime, timezone

import preflight_samples
from fuzz_target import Target
from index_server import JSON, page

from gpucheck.cluster import job_plan
from gpucheck.cluster.files import json_text, of_lines
from gpucheck.cluster.history_command import _text
from gpucheck.cluster.pages.files import run_record
from gpucheck.doctor.against_index import PageError, releases
from gpucheck.facts import builtins
from gpucheck.interface.errors import AskError
from gpucheck.output import lock
from gpucheck.programs import questions
from gpucheck.programs.questions import QUESTIONS, Setting
from gpucheck.ticket.given import IntakeError

_DESCRIBES = ("gpu", "os", "arch", "glibc", "jetpack")
_SETTING = Setting()


def _question(data: bytes) -> None:
    """A question of an assistant, of any form that JSON has; refused by AskError or IntakeError."""
    try:
        name, arguments = json.loads(data)
    except (ValueError, TypeError, RecursionError):
        return
    if not isinstance(name, str) or not isinstance(arguments, dict) or not _is_described(arguments):
        return
    with contextlib.suppress(AskError, IntakeError):
        answer = questions.asked(name, arguments).answer(_SETTING)
        answer.text.encode("utf-8", "surrogatepass")
        json.dumps(answer.data)


def _is_described(arguments: dict[str, object]) -> bool:
    """Whether a question is not about this machine, whose probes take their time."""
    return not {"gpus", "purpose", "only", "skip"} & set(arguments) and (
        any(arguments.get(name) for name in _DESCRIBES)
        or bool({"facts", "text", "slug"} & set(arguments))
    )


def _history(data: bytes) -> None:
    """The records of earlier runs: a line that is none is counted."""
    found = of_lines(data.split(b"\n"))
    _text(found).encode("utf-8", "surrogatepass")
    json_text(builtins(found))


def _lock(data: bytes) -> None:
    """A file of ``--like``; refused by lock.LockError."""
    with contextlib.suppress(lock.LockError):
        lock.read(data.decode("utf-8", "replace"))


def _drills(data: bytes) -> None:
    """Values of ``--drill``; refused by ValueError with a sentence."""
    with contextlib.suppress(ValueError):
        found = job_plan.parse_drill(data.decode("utf-8", "surrogateescape").split("\n"))
        found.problem(8)
        for fault in found.faults:
            found.for_worker(fault.rank)


def _page(data: bytes) -> None:
    """A page of a package index, behind its media type; refused by PageError."""
    kind, _line, body = data.partition(b"\n")
    with contextlib.suppress(PageError):
        releases(kind.decode("utf-8", "replace"), body, "torch")


@functools.cache
def _asked() -> list[bytes]:
    found = [
        ["compat", {"facts": {"gpu": "RTX 4090", "driver": "535.104.05", "torch": "2.9.1"}}],
        ["compat", {"facts": {"gpu": ["5090", "A100"], "torch": None, "python": "3.12"}}],
        ["recommend", {"gpu": ["RTX 4090"], "driver": "570", "python_version": "3.12"}],
        ["recommend", {"gpu": ["8.9"], "torch": "<2.9", "driver_cuda": "12.4", "os": "linux",
                       "arch": "x86_64", "glibc": "2.28", "companions": ["torchvision"],
                       "tool": "uv"}],
        ["recommend", {"jetpack": "6.2", "python_version": "3.10"}],
        ["recommend", {"gpu": ["5090"], "os": "windows", "tool": "conda"}],
        ["triage", {"text": "RuntimeError: CUDA error: out of memory"}],
        ["explain", {"slug": "driver-too-old"}],
        ["list", {"text": ""}],
    ]  # fmt: skip
    assert {name for name, _ in found} == set(QUESTIONS) - {"check"}
    return [json.dumps(request).encode() for request in found]


def _records() -> list[bytes]:
    results = [preflight_samples.hang(2, 2), preflight_samples.several()]
    lines = [
        run_record(result, datetime(2026, 11, 1, tzinfo=timezone.utc)).encode()
        for result in results
    ]
    return [b"\n".join(lines), *lines]


_LOCKS = [
    b"""# gpucheck-lock/1 torch=2.9.1+cu128 python=3.12
# then: python -m pip install -r FILE
nvidia-cudnn-cu12==9.10.2.21
torch==2.9.1
torchvision==0.24.1
""",
]
_DRILLED = [b"hang:rank=3\nslow:rank=2,factor=5", b"link:0-3\nabsent:rank=6", b"wrong:rank=1"]
_WHEELS = ("torch-2.9.1-cp312-cp312-win_amd64.whl", "!torch-2.12.0-cp312-cp312-win_amd64.whl",
           "torch-2.9.1%2Bcu126-cp312-cp312-linux_x86_64.whl", "torch-1.0.0.tar.gz")  # fmt: skip


def _pages() -> list[bytes]:
    files = [{"filename": name, "yanked": name == _WHEELS[1]} for name in _WHEELS]
    as_json = json.dumps({"meta": {"api-version": "1.1"}, "files": files}).encode()
    return [b"text/html\n" + page(*_WHEELS)[2], JSON.encode() + b"\n" + as_json]


TARGETS = (
    Target("questions", _question, _asked, "json"),
    Target("history", _history, _records, "text"),
    Target("locks", _lock, lambda: _LOCKS, "text"),
    Target("drills", _drills, lambda: _DRILLED, "text"),
    Target("index-pages", _page, _pages, "text", (b"<a href=", b'"files"', b"data-yanked")),
)
