"""What ``torch-import-broken`` says when the import was tried and went wrong."""

from rules_support import ask
from selftest_facts import NOT_RUN, failed, ran, result

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.libraries import Loading
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Hit, Judgement

TORCH = TorchBuild(installed=True, version="2.9.0", built_for="cuda", cuda="12.8")
WHOLE = Loading(missing=[])


def judge(tests: SelfTests, loading: Loading = WHOLE) -> Judgement:
    return ask("torch-import-broken", TORCH, loading, tests)


def test_an_exception_in_the_import() -> None:
    why = "ImportError: libcudnn.so.9: cannot open shared object file"
    found = judge(ran(failed("import-torch", "import-failed", why, device="cpu"), devices=()))
    assert isinstance(found, Hit)
    assert found.headline == f"import torch fails: {why}"
    assert found.evidence == ("selftests.results.0.detail",)


def test_a_crash_in_the_import() -> None:
    died = result(
        "import-torch", "crashed", "signal", detail="killed by SIGSEGV in: import torch",
        stage="import torch", device="cpu",
    )  # fmt: skip
    assert isinstance(judge(ran(died, devices=())), Hit)


def test_an_import_that_takes_too_long_may_only_be_slow() -> None:
    slow = result(
        "import-torch", "timed-out", "timed-out", detail="it did not end within 60 s",
        stage="import torch", device="cpu",
    )  # fmt: skip
    found = judge(ran(slow, devices=()))
    assert isinstance(found, Hit)
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_crash_after_the_import_is_another_rule_s() -> None:
    later = result("import-torch", "crashed", "signal", stage="cuInit", device="cpu")
    assert not isinstance(judge(ran(later)), Hit)


def test_it_stays_silent_when_the_import_works() -> None:
    assert not isinstance(judge(ran(result("import-torch", device="cpu"))), Hit)
    assert not isinstance(judge(NOT_RUN), Hit)
