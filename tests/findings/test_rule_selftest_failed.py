from each import each
from rules_support import TABLES, ask, snapshot
from selftest_facts import NOT_RUN, failed, ran, result

from gpucheck.engine import diagnose
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.findings.form import Fine, Hit

SLUG = "selftest-failed"


def test_what_nobody_explains_is_an_error_of_its_own() -> None:
    bad = result(
        "training-step", "crashed", "signal", detail="killed by SIGSEGV in: backward",
        stage="backward",
    )  # fmt: skip
    found = ask(SLUG, ran(result("cublas-matmul"), bad))
    assert isinstance(found, Hit)
    assert found.headline == (
        "The self-test training-step crashed on cuda:0: killed by SIGSEGV in: backward"
    )
    assert "--tests training-step --device cuda:0" in found.fixes[-1].commands[0]


def test_the_tables_say_what_a_code_usually_means() -> None:
    bad = failed("import-torch", "cuda-unavailable", device="cpu", data={"cuda_code": 802})
    found = ask(SLUG, ran(bad))
    assert isinstance(found, Hit)
    assert "gpucheck explain fabric-manager-down" in found.fixes[0].commands


def test_the_time_limit_of_the_run_is_only_a_warning() -> None:
    cut = result("sustained", "timed-out", "run-limit", detail="stopped at the time limit")
    found = ask(SLUG, ran(cut))
    assert isinstance(found, Hit)
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    worse = ask(SLUG, ran(cut, failed("x", "python-exception")))
    assert isinstance(worse, Hit)
    assert worse.severity is None


@each(
    "bad",
    [
        failed("cublas-matmul", "wrong-value"),
        failed("cudnn-convolution", "cudnn-status"),
        failed("cudnn-convolution", "cudnn-not-used"),
        failed("cublas-matmul", "cublas-status"),
        failed("memory", "out-of-memory"),
        failed("import-torch", "import-failed", device="cpu"),
        result("import-torch", "timed-out", "timed-out", device="cpu", stage="import torch"),
        failed("training-step", "python-exception"),
        result("all-reduce", "crashed", "exit-status"),
    ],
)
def test_whatever_goes_wrong_some_rule_says_so(bad: object) -> None:
    found = diagnose(snapshot(ran(bad)), TABLES)  # type: ignore[arg-type]
    assert found.standing, bad


def test_what_has_a_rule_of_its_own_is_not_told_twice() -> None:
    assert not isinstance(ask(SLUG, ran(failed("cublas-matmul", "wrong-value"))), Hit)


def test_it_stays_silent_when_all_passed_or_none_was_run() -> None:
    assert isinstance(ask(SLUG, ran(result("cublas-matmul"))), Fine)
    assert not isinstance(ask(SLUG, NOT_RUN), Hit)
    assert not isinstance(ask(SLUG, ran(result("a", "skipped", "stopped"))), Hit)


def test_a_provider_that_lacks_a_library() -> None:
    detail = "libcublasLt.so.13: cannot open shared object file: No such file or directory"
    bad = failed("onnx-export", "provider-not-loaded", detail=detail, data={"loader": detail})
    found = ask(SLUG, ran(bad))
    assert isinstance(found, Hit)
    assert "libcublasLt.so.13" in found.headline
    (fix,) = found.fixes
    assert "built for the CUDA and the cuDNN of this PyTorch" in fix.text


def test_a_provider_that_gives_no_reason() -> None:
    bad = failed("tensorrt", "provider-not-loaded", data={"loader": ""})
    found = ask(SLUG, ran(bad))
    assert isinstance(found, Hit)
    assert "prints the reason" in found.fixes[0].text


def test_compiled_code_that_may_not_be_loaded_from_tmp() -> None:
    found = ask(SLUG, ran(failed("jit", "mounted-noexec")))
    assert isinstance(found, Hit)
    assert found.fixes[0].commands == ("mkdir -p ~/.cache/tmp", "export TMPDIR=~/.cache/tmp")


def test_what_another_runtime_raises_is_not_reported_to_torch() -> None:
    found = ask(SLUG, ran(failed("onnx-export", "python-exception")))
    assert isinstance(found, Hit)
    assert "PyTorch" not in found.fixes[0].text
