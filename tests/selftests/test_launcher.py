"""Whatever a test does, it becomes its own clear result, and the other tests go on."""

import os
import signal
import time
from pathlib import Path

import pytest
from fake_patient import Patient, by_name

from gpucheck.facts.selftests import SelfTest
from gpucheck.selftests.plan import Wish

pytestmark = pytest.mark.process

FINE = "bench.measure('m', 2.0, 's', bound=3.0, bound_from='arithmetic')"
SEGFAULT = "bench.stage('a wild pointer')\nctypes.string_at(1)"
HANG = "bench.stage('a long wait')\ntime.sleep(1000)"
HANG_DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + HANG


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not give those that are killed as long as in earnest."""
    monkeypatch.setattr("gpucheck.selftests.job_runner._GRACE", 0.4)


def statuses(results: list[SelfTest] | None) -> dict[str, str]:
    return {result.name: result.status for result in results or ()}


@pytest.mark.parametrize("forks", [True, False])
def test_a_healthy_patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: bool) -> None:  # noqa: FBT001
    patient = Patient(tmp_path, monkeypatch, tests={"one": FINE, "two": "bench.skip('no need')"})
    found = patient.examine(forks=forks)
    assert statuses(found.results) == {"import-torch": "passed", "one": "passed", "two": "skipped"}
    result = by_name(found, "one")
    assert (result.device, result.stage, result.kind, result.detail) == ("cpu", "", "", "")
    assert [(m.name, m.value, m.bound) for m in result.measurements] == [("m", 2.0, 3.0)]
    assert by_name(found, "two").detail == "no need"
    assert by_name(found, "import-torch").data["torch"] == "9.9.9+fake"
    assert found.devices == []
    assert found.import_seconds is not None


NO_KERNEL = "CUDA error: no kernel image is available for execution on the device"
BAD = {
    "segfault": (SEGFAULT, "crashed", "signal", "killed by SIGSEGV in: a wild pointer"),
    "exit-7": ("bench.stage('s')\nos._exit(7)", "crashed", "exit-status", "exit status 7 in: s"),
    "exit-0": ("os._exit(0)", "crashed", "no-answer", "ended without an answer"),
    "sys-exit": ("sys.exit('so long')", "crashed", "exit-status", "exit status 1"),
    "killed": ("os.kill(os.getpid(), 9)", "crashed", "signal", "memory of the host runs out"),
    "wrong": ("raise Failed('wrong-value', '2 is not 1')", "failed", "wrong-value", "2 is not 1"),
    "required": ("bench.require(False, 'slow', 'too slow')", "failed", "slow", "too slow"),
    "exception": ("{}['x']", "failed", "python-exception", "KeyError: 'x'"),
    "cuda": (f"raise RuntimeError({NO_KERNEL!r})", "failed", "cuda-error", "no kernel image"),
    "cudnn": (
        "raise RuntimeError('cuDNN error: CUDNN_STATUS_EXECUTION_FAILED')",
        "failed", "cudnn-status", "CUDNN_STATUS_EXECUTION_FAILED",
    ),
}  # fmt: skip


@pytest.mark.parametrize("forks", [True, False])
def test_tests_that_go_wrong_each_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: bool  # noqa: FBT001
) -> None:  # fmt: skip
    tests = {name: bad[0] for name, bad in BAD.items()} | {"after": FINE}
    found = Patient(tmp_path, monkeypatch, tests=tests).examine(forks=forks)
    for name, (_body, status, kind, words) in BAD.items():
        bad = by_name(found, name)
        assert (bad.status, bad.kind) == (status, kind), bad
        assert words in bad.detail
    assert by_name(found, "after").status == "passed"
    assert [result.name for result in found.results or ()] == ["import-torch", *tests]


def test_each_test_says_when_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = {"one": "time.sleep(0.3)", "two": SEGFAULT, "three": FINE}
    patient = Patient(tmp_path, monkeypatch, tests=tests)
    results = patient.examine(forks=True).results or []
    began = [result.began for result in results]
    assert [result.name for result in results] == ["import-torch", *tests]
    assert None not in began
    assert began == sorted(began, key=lambda seconds: seconds or 0.0)
    assert (began[2] or 0.0) - (began[1] or 0.0) >= 0.25


@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize("body", [HANG, HANG_DEAF])
def test_a_hang_ends_at_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: bool, body: str  # noqa: FBT001
) -> None:  # fmt: skip
    patient = Patient(tmp_path, monkeypatch, tests={"bad": body, "after": FINE})
    start = time.monotonic()
    found = patient.examine(seconds=0.5, forks=forks)
    assert time.monotonic() - start < 10
    bad = by_name(found, "bad")
    assert (bad.status, bad.stage) == ("timed-out", "a long wait")
    assert bad.detail == "it did not end within 0.5 s, in: a long wait"
    if body == HANG:
        assert "in run" in bad.data["printed"], "the Python stack where it hung"
    assert by_name(found, "after").status == "passed"


def test_the_run_ends_at_its_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = Patient(tmp_path, monkeypatch, tests={"bad": HANG, "after": FINE})
    found = patient.examine(Wish(timeout=1.5))
    bad = by_name(found, "bad")
    limit = "stopped at the time limit of the run (1.5 s) in: a long wait"
    assert (bad.status, bad.detail) == ("timed-out", limit)
    assert by_name(found, "after").status == "skipped"


@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize(
    ("before", "status", "kind", "words"),
    [
        ("raise ImportError('libcudnn.so.9: cannot open shared object file')", "failed",
         "import-failed", "ImportError: libcudnn.so.9"),
        ("import os; os._exit(3)", "crashed", "exit-status", "exit status 3 in: import torch"),
        ("import ctypes; ctypes.string_at(1)", "crashed", "signal", "SIGSEGV in: import torch"),
        ("sys.exit(4)", "crashed", "exit-status", "exit status 4"),
    ],
)  # fmt: skip
def test_an_import_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: bool, before: str,  # noqa: FBT001
    status: str, kind: str, words: str,
) -> None:  # fmt: skip
    patient = Patient(tmp_path, monkeypatch, before=before, tests={"one": FINE})
    found = patient.examine(forks=forks)
    first = by_name(found, "import-torch")
    assert (first.status, first.kind) == (status, kind)
    assert words in first.detail
    assert by_name(found, "one").status == "skipped"


def test_an_import_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = Patient(tmp_path, monkeypatch, before="import time; time.sleep(1000)")
    found = patient.examine(Wish(timeout=1.0))
    first = by_name(found, "import-torch")
    assert (first.status, first.stage) == ("timed-out", "import torch")


NOISE = "import sys; print('{\"event\": \"result\"}'); print('x' * 100000); sys.stdout.flush()"


@pytest.mark.parametrize("forks", [True, False])
def test_prints_on_stdout_disturb_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: bool  # noqa: FBT001
) -> None:  # fmt: skip
    body = "os.write(1, b'{}' * 5000)\nprint('y' * 100000)\nos.system('echo z')"
    patient = Patient(
        tmp_path, monkeypatch, before=NOISE, ones=f"exec({NOISE!r})",
        tests={"one": body}, sitecustomize=NOISE,
    )  # fmt: skip
    found = patient.examine(forks=forks)
    assert statuses(found.results) == {"import-torch": "passed", "one": "passed"}


@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize(
    "hangs",
    [
        "import atexit, time; atexit.register(time.sleep, 60)",
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
    ],
)
def test_an_import_that_fails_and_an_exit_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: str, forks: bool  # noqa: FBT001
) -> None:  # fmt: skip
    """The error is the answer: it took the time of a self-test, and counted as a time-out."""
    patient = Patient(tmp_path, monkeypatch, before=f"{hangs}\nraise ImportError('libx.so')")
    start = time.monotonic()
    first = by_name(patient.examine(Wish(timeout=20.0), forks=forks), "import-torch")
    assert (first.status, first.kind) == ("failed", "import-failed")
    assert time.monotonic() - start < 8


def test_a_sitecustomize_that_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Patient(tmp_path, monkeypatch, sitecustomize="import os; os._exit(5)")
    first = by_name(patient.examine(), "import-torch")
    assert (first.status, first.kind) == ("crashed", "exit-status")


def test_an_interpreter_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = Patient(tmp_path, monkeypatch, tests={"one": FINE})
    found = patient.examine(python=str(tmp_path / "python"))
    first = by_name(found, "import-torch")
    assert (first.status, first.kind) == ("crashed", "not-started")
    assert by_name(found, "one").status == "skipped"


def test_an_interpreter_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = sorted(Path.home().glob(".pyenv/versions/3.7.*/bin/python"))
    if not old:
        pytest.skip("no Python 3.7 here")
    first = by_name(Patient(tmp_path, monkeypatch).examine(python=str(old[0])), "import-torch")
    assert (first.status, first.kind) == ("crashed", "too-old")
    assert "Python 3.7" in first.detail


def test_what_only_a_fork_breaks_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The importing process is remembered by torch: a forked child is another one."""
    patient = Patient(
        tmp_path, monkeypatch, before="import os; born = os.getpid()",
        tests={"one": "if bench.torch.born != os.getpid():\n    raise RuntimeError('forked')"},
    )  # fmt: skip
    result = by_name(patient.examine(), "one")
    assert result.status == "passed"
    assert result.data["after_fork"] == "RuntimeError: forked"


def test_a_zygote_that_may_not_fork_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing torch has opened a device of the driver: a forked child could not use it."""
    link = "import os; os.readlink = lambda path: '/dev/nvidia0'; born = os.getpid()"
    patient = Patient(
        tmp_path, monkeypatch, before=link,
        tests={"one": "bench.require(bench.torch.born == os.getpid(), 'forked', 'forked')"},
    )  # fmt: skip
    result = by_name(patient.examine(), "one")
    assert (result.status, result.data) == ("passed", {})


def test_after_a_failure_on_a_gpu_the_rest_gets_a_fresh_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil = "bench.torch.spoilt = True\nraise Failed('wrong-value', 'x')"
    check = "bench.require(not hasattr(bench.torch, 'spoilt'), 'spoilt', 'the old process')"
    patient = Patient(
        tmp_path, monkeypatch, gpus=2, cuda="13.0", tests={"bad": spoil, "after": check}
    )
    found = patient.examine()
    assert found.devices == ["cuda:0", "cuda:1"]
    results = [(result.name, result.device, result.status) for result in found.results or ()]
    assert sorted(results)[:2] == [
        ("after", "cuda:0", "passed"), ("after", "cuda:1", "passed"),
    ]  # fmt: skip
    assert [status for name, _d, status in results if name == "bad"] == ["failed", "failed"]
    assert not found.passed_on_every_gpu("bad")
    assert found.passed_on_every_gpu("after")


def test_a_gpu_that_is_unfit_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = Patient(tmp_path, monkeypatch, gpus=2, cuda="13.0", tests={"one": FINE})
    found = patient.examine(unfit={"cuda:1": "only 20 MiB are free"})
    results = {result.device: (result.status, result.detail) for _path, result in found.of("one")}
    assert results == {"cuda:0": ("passed", ""), "cuda:1": ("skipped", "only 20 MiB are free")}
    assert not found.passed_on_every_gpu("one")


def test_no_gpu_where_one_has_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"
    patient = Patient(tmp_path, monkeypatch, cuda="12.8", init=error, tests={"one": FINE})
    found = patient.examine(Wish(expect_gpu=True))
    first = by_name(found, "import-torch")
    assert (first.status, first.kind) == ("failed", "cuda-unavailable")
    assert first.data["cuda_code"] == 802
    assert first.data["cuda_text"] == "system not yet initialized"
    assert by_name(found, "one").status == "skipped"


RANKS = {"one": "ranks"}


def test_ranks_share_a_folder_and_know_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        "open(os.path.join(bench.folder, str(bench.rank)), 'w').close()\n"
        "while len(os.listdir(bench.folder)) < bench.world_size:\n    time.sleep(0.01)"
    )
    patient = Patient(tmp_path, monkeypatch, tests={"one": body}, per=RANKS)
    results = [result for _path, result in patient.examine(Wish(ranks=3)).of("one")]
    assert sorted((result.rank, result.world_size, result.status) for result in results) == [
        (0, 3, "passed"), (1, 3, "passed"), (2, 3, "passed"),
    ]  # fmt: skip


def test_ranks_that_wait_for_a_crashed_one_are_not_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpucheck.selftests.job_runner._PEER_SECONDS", 0.5)
    body = "if bench.rank == 1:\n    os._exit(9)\nbench.stage('all-reduce')\ntime.sleep(1000)"
    patient = Patient(tmp_path, monkeypatch, tests={"one": body}, per=RANKS)
    results = {result.rank: result for _path, result in patient.examine(Wish(ranks=3)).of("one")}
    assert results[1].status == "crashed"
    for rank in (0, 2):
        assert (results[rank].status, results[rank].kind) == ("skipped", "stopped")
        assert results[rank].detail == "stopped: rank 1 on cpu had crashed"
        assert results[rank].stage == "all-reduce"


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "pids"
    body = f"open({str(note)!r}, 'a').write(str(os.getpid()) + ' ')\n" + HANG_DEAF
    patient = Patient(tmp_path, monkeypatch, tests={"one": body}, per=RANKS)
    patient.examine(Wish(ranks=2), seconds=0.5)
    for pid in note.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), signal.SIG_DFL)


def test_a_stray_torch_in_the_current_folder_is_what_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "patient").mkdir()
    patient = Patient(tmp_path / "patient", monkeypatch)
    (tmp_path / "torch.py").write_text("raise ImportError('a file of my own')")
    monkeypatch.chdir(tmp_path)
    first = by_name(patient.examine(), "import-torch")
    assert first.kind == "import-failed"
    assert "a file of my own" in first.detail


def test_nothing_of_gpucheck_can_be_imported_by_accident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker's folder holds modules with common names: none of them is on sys.path."""
    before = """
        import sys
        for name in ("bench", "errors", "channel", "runner"):
            try:
                __import__(name)
            except ImportError:
                continue
            raise RuntimeError(name + " was found on " + repr(sys.path))
        """
    patient = Patient(tmp_path, monkeypatch, before=before)
    assert by_name(patient.examine(), "import-torch").status == "passed"


def test_a_worker_leaves_no_compiled_file_in_gpucheck_s_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    body = "import glob\nfolder = os.path.dirname(sys.modules['gpucheck_worker.bench'].__file__)\n"
    body += "found = glob.glob(folder + '/__pycache__/process.*.pyc')\n"
    body += "found += glob.glob(folder + '/__pycache__/zygote.*.pyc')\n"
    body += "bench.require(not found, 'left', str(found))"
    patient = Patient(tmp_path, monkeypatch, tests={"one": body})
    assert by_name(patient.examine(), "one").status == "passed"
