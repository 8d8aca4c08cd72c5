"""Self-tests in saved reports, in what they are compared with, and in what leaves the machine."""

import json

import msgspec
import report_samples as samples
from rules_support import TABLES
from selftest_facts import failed, ran, result

from gpucheck.baselines import diff
from gpucheck.engine import Report, diagnose, make_report, untested
from gpucheck.facts.selftests import Measurement, SelfTests
from gpucheck.facts.snapshot import Snapshot, decode
from gpucheck.language import plain
from gpucheck.output.redact import redact


def with_tests(tests: SelfTests) -> Snapshot:
    return samples.old_driver().snapshot.with_section(tests)


def report(snapshot: Snapshot) -> Report:
    return make_report(diagnose(snapshot, TABLES), snapshot, ())


BAD = failed(
    "memory", "wrong-value", "of /home/alice/venv on h100-node-3",
    measurements=[Measurement(name="bytes", value=None, unit="B", bound=1.5, bound_from="x")],
    data={"frames": ["/home/alice/venv/lib/torch/x.py:3 f"], "cuda_code": 214},
)  # fmt: skip


def test_a_saved_report_gives_its_self_tests_back() -> None:
    whole = report(with_tests(ran(result("cublas-matmul"), BAD)))
    loaded = decode(json.dumps(whole.as_json()).encode())
    assert loaded.get(SelfTests) == whole.snapshot.get(SelfTests)
    assert report(loaded).root_causes == whole.root_causes
    assert set(whole.as_json()["selftests"][1]) >= {
        "name", "rank", "device", "status", "stage", "seconds", "measurements", "detail",
    }  # fmt: skip
    assert "sources" not in whole.as_json()["selftests"][1]


def test_a_redacted_one_names_nobody_and_means_the_same() -> None:
    whole = with_tests(ran(BAD))
    public = redact(whole)
    text = json.dumps(report(public).as_json())
    assert "alice" not in text
    assert "h100-node-3" not in text
    assert public.get(SelfTests).results is not None
    assert report(public).root_causes == report(whole).root_causes


def test_times_and_rates_are_no_change_and_an_outcome_is() -> None:
    before = with_tests(ran(result("cublas-matmul", seconds=0.4)))
    speed = [Measurement(name="fp32", value=10.0, unit="TFLOP/s")]
    after = with_tests(ran(result("cublas-matmul", seconds=0.7, measurements=speed)))
    assert diff.compare(before, after) == []
    worse = with_tests(ran(failed("cublas-matmul", "wrong-value")))
    changed = {change.fact for change in diff.compare(before, worse)}
    assert any("status" in fact for fact in changed)


def test_that_no_self_test_was_run_is_no_change() -> None:
    untried = samples.old_driver().snapshot
    assert diff.compare(with_tests(ran(result("cublas-matmul"))), untried) == []


def test_a_run_without_any_passed_test_leaves_its_question_open() -> None:
    first = result("import-torch", device="cpu")
    assert untested(with_tests(ran(first))) == ()
    assert untested(with_tests(ran(first, result("cublas-matmul")))) == ()
    (question,) = untested(with_tests(ran(first, result("a", "skipped", detail="no room"))))
    assert question.reason == "no room"
    none = SelfTests(problems={"*": "PyTorch is not installed there"})
    (question,) = untested(with_tests(none))
    assert question.reason == "PyTorch is not installed there"


def test_a_report_of_an_older_gpucheck_has_none() -> None:
    old = report(samples.old_driver().snapshot).as_json()
    del old["snapshot"]["facts"]["selftests"]
    assert decode(msgspec.json.encode(old, enc_hook=plain)).get(SelfTests).results is None
