"""gpucheck for programs: any thread, a process that must not be forked, one sentence of refusal."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine_files
import msgspec
import pytest
from demo_data import as_archive
from each import each
from left_behind import MARK, alive, wait_until

import gpucheck
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.torch import Interpreter
from gpucheck.interface.errors import AskError, NoAnswerError, RefusedError, UsageError
from gpucheck.machine import supervised
from gpucheck.programs.examination import _understood
from gpucheck.programs.examiner import Order

process = pytest.mark.process


def static(**options: Any) -> Any:  # noqa: ANN401  # a CheckReport
    return gpucheck.check(selftest=False, **options)


@process
def test_importing_gpucheck_costs_nothing() -> None:
    code = "import sys; before = set(sys.modules); import gpucheck; gpucheck.__version__; "
    code += "print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if "gpucheck." in name or name == "msgspec"}
    assert loaded == {"gpucheck._about"}


def test_the_functions_are_there_whatever_was_imported() -> None:
    import gpucheck.cluster  # noqa: PLC0415
    import gpucheck.selftests  # noqa: PLC0415

    names = ("check", "compat", "preflight", "recommend", "selftest", "triage")
    assert all(callable(getattr(gpucheck, name)) for name in names)
    assert set(names) <= set(dir(gpucheck))
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        gpucheck.chekc  # noqa: B018


@process
def test_a_check_is_that_of_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    report = static(skip="kernel_log")  # what happened on this machine gets older meanwhile
    assert capfd.readouterr() == ("", "")
    done = subprocess.run(
        [sys.executable, "-m", "gpucheck", "--no-selftest", "--format", "json", "--fail-on",
         "never", "--python", sys.executable, "--skip", "kernel_log"],
        capture_output=True, check=True,
    )  # fmt: skip
    by_command, own = json.loads(done.stdout), json.loads(json.dumps(report.as_data()))
    for key in ("schema", "verdict", "root_causes", "findings", "open_questions"):
        assert own[key] == by_command[key], key
    outcomes = [
        [(check["slug"], check["outcome"]) for check in each["checks"]]
        for each in (own, by_command)
    ]
    assert outcomes[0] == outcomes[1]
    assert [probe["name"] for probe in own["probes"]] == [
        probe["name"] for probe in by_command["probes"]
    ]


@process
def test_the_target_is_the_calling_python_unless_another_is_named(tmp_path: Path) -> None:
    python = static(only="interpreter").snapshot.get(Interpreter)
    assert (python.executable, python.chosen_by) == (sys.executable, "the calling Python")
    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    python = static(only="interpreter", python=str(other)).snapshot.get(Interpreter)
    assert (python.executable, python.chosen_by) == (str(other), "the argument python")


@process
def test_what_is_asked_for_reaches_the_machine() -> None:
    report = static(gpus=3, purpose="build", wheel_mirror="https://m.example/whl")
    request = report.snapshot.get(Request)
    assert (request.gpus, request.purpose) == (3, "build")
    assert request.wheel_mirror == "https://m.example/whl"
    assert report.verdict == "broken"
    assert "they were not asked for" in report.snapshot.get(SelfTests).problems["*"]


@process
def test_a_recorded_machine_in_place_of_this_one(tmp_path: Path) -> None:
    file = tmp_path / "sent.zip"
    file.write_bytes(as_archive(machine_files.load("rtx5090-cu124").recording))
    report = gpucheck.check(machine=str(file), gpus=1)
    assert (report.root_causes, report.snapshot.origin) == (("gpu-too-new-for-torch",), "recorded")
    assert "Not this one: it was recorded" in report.text()
    for more in ({"python": sys.executable}, {"selftest": True}):
        with pytest.raises(UsageError, match=f"it does not go with {next(iter(more))}"):
            gpucheck.check(machine=str(file), **more)
    with pytest.raises(RefusedError, match="is not a recorded machine"):
        gpucheck.check(machine=str(tmp_path))


@process
def test_the_calling_process_is_never_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise AssertionError("this process has threads and perhaps CUDA")

    monkeypatch.setattr(os, "fork", fork)
    assert static(only="driver-missing").verdict == "healthy"
    assert gpucheck.recommend(torch="2.6", python_version="3.12").outcome == "command"


@process
def test_several_threads_at_once() -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(static(only="driver-missing").verdict))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == ["healthy"] * 3


@process
def test_modules_in_the_current_folder_are_not_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("gpucheck", "msgspec", "click", "select"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a stray module')\n")
    monkeypatch.chdir(tmp_path)
    assert static(only="driver-missing").verdict == "healthy"


@process
def test_what_a_start_file_prints_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('x' * 100000)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert static(only="driver-missing").verdict == "healthy"


@process
def test_a_process_that_ends_early_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    start = tmp_path / "sitecustomize.py"
    start.write_text("import os, sys; print('no licence\\x1b[2J', file=sys.stderr); os._exit(3)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(NoAnswerError, match=r"ended without an answer: no licence\?\[2J$"):
        static()


def _checks_for_ever() -> None:
    while True:
        static()


class Stop(Exception):  # noqa: N818  # what a program of others might raise
    pass


@process
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_interrupted_check_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, mark := os.urandom(8).hex())

    def stop(_number: int, _frame: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.7)
        with pytest.raises(Stop):
            _checks_for_ever()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    gc.collect()  # of what is interrupted before it is known, it closes the pipes
    # This process itself has its environment from before.
    assert wait_until(lambda: not alive(mark), 10)


@process
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_check_interrupted_before_its_process_is_known_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(MARK, mark := os.urandom(8).hex())
    seen = []

    def stop(process: "subprocess.Popen[bytes]") -> None:
        seen.append(process.pid)
        raise Stop

    monkeypatch.setattr(supervised, "Supervised", stop)
    with pytest.raises(Stop):
        static()
    gc.collect()
    assert len(seen) == 1
    assert wait_until(lambda: not alive(mark), 10)


@process
def test_a_process_that_is_never_told_what_to_examine_ends() -> None:
    """A program may be interrupted between the start and the order, and keep the pipe open."""
    code = "from gpucheck.programs import examiner; examiner._PATIENCE = 0.2; examiner.main()"
    popen = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        assert popen.wait(30) == 1
    finally:
        popen.kill()
        popen.communicate()


@process
def test_pipes_that_cannot_be_waited_for_stop_no_check() -> None:
    """As on Windows, whose select takes sockets only."""
    code = "import select; from gpucheck.programs import examiner; examiner._SELECTS = False; "
    code += "select.select = None; examiner.main()"
    order = msgspec.json.encode(Order(what="facts", python=sys.executable))
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"mark\n" + order, capture_output=True, check=True
    )
    assert _understood(done.stdout, b"mark", str).get(Interpreter).executable


@process
def test_a_killed_program_takes_its_check_with_it(tmp_path: Path) -> None:
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    mark = os.urandom(8).hex()
    code = f"import gpucheck; gpucheck.check(python={str(slow)!r}, timeout=60)"
    program = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, MARK: mark})
    try:
        assert wait_until(lambda: len(alive(mark)) >= 4, 30)
    finally:
        program.kill()
        program.wait()
    assert wait_until(lambda: not alive(mark), 15)


@process
def test_signal_handlers_and_threads_stay_as_they_were() -> None:
    handlers = [
        signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
    ]
    before = set(threading.enumerate())
    begun = time.monotonic()
    static(only="driver-missing")
    assert time.monotonic() - begun < 60
    now = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)]
    assert now == handlers
    assert set(threading.enumerate()) == before


@process
def test_self_tests_alone() -> None:
    report = gpucheck.selftest(devices="cpu", tests=("import-torch", "cublas-matmul"))
    assert report.about == "self-tests"
    results = report.snapshot.get(SelfTests).results or []
    assert {(result.name, result.status) for result in results} == {
        ("import-torch", "passed"), ("cublas-matmul", "passed"),
    }  # fmt: skip


def test_a_described_machine_is_not_examined() -> None:
    found = gpucheck.recommend(gpu="RTX 5090", driver="580", os="linux")
    assert found.outcome == "command"
    assert found.described
    assert "pip install torch==" in found.commands[-1]


def test_compat_takes_an_object_and_keys() -> None:
    report = gpucheck.compat({"gpu": "RTX 5090", "driver": "535.104.05"}, torch="2.5.1")
    assert report.verdict == "broken"
    assert "driver-too-old" in report.root_causes


def test_triage_returns_a_report_as_before() -> None:
    from gpucheck.engine import Report  # noqa: PLC0415
    from gpucheck.ticket.judge import triage  # noqa: PLC0415

    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    own, plain = gpucheck.triage(text), triage(text)
    assert isinstance(own, Report)
    for field in Report.__struct_fields__:
        if field != "snapshot":
            assert getattr(own, field) == getattr(plain, field)


HUGE = 10**5000
"""Python does not write it out."""
ITSELF: list[Any] = []
ITSELF.append(ITSELF)
REFUSED: list[tuple[Callable[[], Any], type[AskError], str]] = [
    (lambda: gpucheck.check(level="fast"), UsageError, "level must be quick, standard or stress"),  # type: ignore[arg-type]
    (lambda: gpucheck.check(timeout=float("nan")), UsageError, "timeout must be a number"),
    (lambda: gpucheck.check(timeout=-1), UsageError, "timeout must be a number"),
    (lambda: gpucheck.check(timeout=1e6), UsageError, "from 0.1 to less than 1000000, not 1000000"),
    (lambda: gpucheck.check(gpus=-1), UsageError, "gpus must be a whole number from 0 to 1024"),
    (lambda: gpucheck.check(gpus=True), UsageError, "gpus must be a whole number"),
    (lambda: gpucheck.check(selftest="no"), UsageError, "selftest must be None, True or False"),  # type: ignore[arg-type]
    (lambda: gpucheck.check(only="driver-to-old"), UsageError, "Did you mean driver-too-old"),
    (lambda: gpucheck.check(only=[3]), UsageError, "only must be a text or a list"),  # type: ignore[list-item]
    (lambda: gpucheck.check(only=3), UsageError, "only must be a text or a list"),  # type: ignore[arg-type]
    (lambda: gpucheck.check(skip=None), UsageError, "skip must be a text or a list"),  # type: ignore[arg-type]
    (lambda: gpucheck.check(tables="/nonsense"), UsageError, "/nonsense does not exist"),
    (lambda: gpucheck.check(wheel_mirror="x y"), UsageError, "plain address"),
    (lambda: gpucheck.selftest(tests="nonsense"), UsageError, "There is no self-test 'nonsense'"),
    (lambda: gpucheck.selftest(devices="gpu0"), UsageError, "cuda:0"),
    (lambda: gpucheck.recommend(os="beos"), UsageError, "os must be"),  # type: ignore[arg-type]
    (lambda: gpucheck.recommend(gpu="nonsense"), UsageError, "'nonsense' is not a GPU"),
    (lambda: gpucheck.recommend(gpu="4090", driver="x"), UsageError, "driver"),
    (gpucheck.compat, UsageError, "say what to judge"),
    (lambda: gpucheck.compat([1]), UsageError, "must be a dictionary"),  # type: ignore[arg-type]
    (lambda: gpucheck.compat(dirver="1"), UsageError, "Did you mean driver"),
    (lambda: gpucheck.preflight(device="tpu"), UsageError, "device must be cuda or cpu"),  # type: ignore[arg-type]
    (lambda: gpucheck.preflight(require="x=1"), UsageError, "is not one of gpus-per-node"),
    (lambda: gpucheck.preflight(drill="x"), UsageError, "drill"),
    (lambda: gpucheck.preflight(timeout=1), UsageError, "from 10 to less than"),
    (lambda: gpucheck.check(gpus=HUGE), UsageError, "gpus must be a whole number from 0 to 1024"),
    (lambda: gpucheck.check(timeout=-HUGE), UsageError, "not a value that is too long to show"),
    (lambda: gpucheck.check(timeout=HUGE), UsageError, "not a value that is too long to show"),
    (lambda: gpucheck.check(python="/a\ud800b"), UsageError, "'/a.b' cannot be written in UTF-8"),
    (lambda: gpucheck.compat({"gpu_count": HUGE}), UsageError, "not a number this large"),
    (lambda: gpucheck.compat({HUGE: 1}), UsageError, "a number with too many digits"),  # type: ignore[dict-item]
    (lambda: gpucheck.compat({"gpu": ITSELF}), UsageError, "not a list of lists"),
    (
        lambda: gpucheck.preflight(require="a\0b", device="cpu", ranks=1),
        UsageError,
        "--require a.b: neither KEY=VALUE nor a file",
    ),
    (
        lambda: gpucheck.preflight(require=f"gpu-modell={'x' * 300}", device="cpu", ranks=1),
        UsageError,
        "is not one of gpus-per-node",
    ),
]


@each(("ask", "kind", "words"), REFUSED)
def test_nonsense_is_one_sentence(ask: Callable[[], Any], kind: type[AskError], words: str) -> None:
    with pytest.raises(kind, match=words.replace("(", r"\(")) as error:
        ask()
    assert isinstance(error.value, ValueError)
    assert "\n" not in str(error.value)


def test_what_is_no_text_is_no_input() -> None:
    from gpucheck.ticket.given import IntakeError  # noqa: PLC0415

    for nonsense in (None, 3, ["a"]):
        with pytest.raises(IntakeError, match=r"^the input must be a text or bytes\.$"):
            gpucheck.triage(nonsense)  # type: ignore[arg-type]


@process
def test_a_python_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"^the argument python: /nonsense does not exist$"):
        static(python="/nonsense")
