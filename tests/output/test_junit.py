"""JUnit XML: valid whatever stands in it, redacted, and with the right outcomes."""

from xml.etree import ElementTree as ET  # what gpucheck itself has written

import report_samples as samples
from rules_support import TABLES
from selftest_facts import failed, ran, result

from gpucheck.engine import Diagnosis, Report, diagnose, make_report, open_questions, untested
from gpucheck.facts.selftests import Measurement, SelfTest
from gpucheck.output import junit, markdown, terminal

HOSTILE = "]]> <!-- \x1b[2J\x00 & \"'\ud800</testcase>"


def report(*results: SelfTest) -> Report:
    snapshot = samples.healthy().snapshot.with_section(ran(*results))
    return make_report(diagnose(snapshot, TABLES), snapshot, open_questions(snapshot, TABLES))


def suites(text: str) -> dict[str | None, ET.Element]:
    return {suite.get("name"): suite for suite in ET.fromstring(text)}  # noqa: S314  # our own


def test_each_self_test_is_a_case_with_its_outcome() -> None:
    crashed = result("training-step", "crashed", "signal", detail="killed by SIGSEGV", stage="s")
    skipped = result("peer-copy", "skipped", detail="one GPU")
    took = result(
        "cublas-matmul", measurements=[Measurement(name="fp32", value=9.5, unit="TFLOP/s")]
    )
    text = junit.render(report(took, failed("memory", "wrong-value", "bit 3"), crashed, skipped))
    suite = suites(text)["gpucheck.selftest"]
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == list("4111")
    cases = {case.get("name"): case for case in suite}
    assert set(cases) == {
        "cublas-matmul [cuda:0]", "memory [cuda:0]", "training-step [cuda:0]", "peer-copy [cuda:0]",
    }  # fmt: skip
    assert cases["cublas-matmul [cuda:0]"].findtext("system-out") == "fp32 9.5 TFLOP/s"
    failure = cases["memory [cuda:0]"].find("failure")
    assert failure is not None
    assert failure.get("message") == "wrong-value: bit 3"


def test_what_xml_cannot_hold_is_written_out() -> None:
    case = junit.Case("c", HOSTILE).ends("failure", HOSTILE, f"one{HOSTILE}\ntwo\x0b\ufffe")
    text = junit.document("n\x00", {"s": [case], "empty": []})
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="n\\x00">\n')
    (suite,) = suites(text).values()
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert failure.text.splitlines()[1] == "two \\ufffe"
    assert failure.get("message") == r"""]]> <!-- \x1b[2J\x00 & "'\ud800</testcase>"""


def test_findings_are_failures_and_what_is_fine_is_not() -> None:
    suite = suites(junit.render(samples.old_driver()))["gpucheck.check"]
    failures = {case.get("name") for case in suite if case.find("failure") is not None}
    assert "driver-too-old" in failures
    assert int(suite.get("failures") or 0) == len(failures)
    assert int(suite.get("tests") or 0) == len(suite)


def test_hostile_words_stay_words() -> None:
    bad = failed("memory", "wrong-value", HOSTILE, stage=HOSTILE, data={"frames": [HOSTILE]})
    text = junit.render(report(bad))
    suites(text)
    assert "\x1b" not in text
    assert "\x00" not in text
    for shown in (terminal.render(report(bad), verbose=1), markdown.render(report(bad))):
        assert "\x1b" not in shown


def test_nothing_private_leaves_the_machine() -> None:
    words = f"/home/alice/venv/x.so on h100-node-3, {samples.UUIDS[0]}"
    bad = failed("memory", "wrong-value", words, data={"frames": [words], "printed": words})
    whole = samples.old_driver().snapshot.with_section(ran(bad))
    private = make_report(diagnose(whole, TABLES), whole, ())
    for shown in (junit.render(private), markdown.render(private)):
        for value in ("alice", "h100-node-3", *samples.UUIDS):
            assert value not in shown


def test_the_terminal_groups_what_is_alike() -> None:
    many = [result("cublas-matmul", device=f"cuda:{at}", seconds=0.5) for at in range(8)]
    bad = failed("cudnn-convolution", "wrong-value", "3.1 at (4, 5)", device="cuda:3")
    text = terminal.render(report(*many, bad), verbose=1)
    assert "  cublas-matmul       passed    8 GPUs, cuda:0 to cuda:7, 0.50 s\n" in text
    assert "  cudnn-convolution   failed    cuda:3: 3.1 at (4, 5)\n" in text
    assert "Self-tests (quick): 1 passed, 1 failed in" in text


def asked(*results: SelfTest, devices: tuple[str, ...] = ("cuda:0",)) -> str:
    """Return what the command selftest shows, on one line."""
    whole = samples.old_driver().snapshot.with_section(ran(*results, devices=devices))
    healthy = make_report(Diagnosis((), ()), whole, untested(whole), about="self-tests")
    return " ".join(terminal.render(healthy, width=200).split())


H100 = {"devices": [{"device": "cuda:0", "name": "NVIDIA H100"}]}


def test_the_command_selftest_says_what_passed_where_and_what_was_left_out() -> None:
    first = result("import-torch", device="cpu", data=H100)
    partly = result("cublas-matmul", data={"not_tested": {"fp8": "from 8.9", "tf32": "from 8.0"}})
    text = asked(first, partly, result("memory", "skipped", detail="no room"))
    assert text.startswith(
        "HEALTHY 2 self-tests passed on cuda:0 (NVIDIA H100) in 5.0 s; 1 skipped"
    )
    assert "Tested Level quick, import torch in 2.0 s. More gpucheck -v Self-tests" in text
    assert "memory skipped cuda:0: no room" in text
    assert "left out of cublas-matmul: fp8 (from 8.9); tf32 (from 8.0)" in text


def test_a_gpu_on_which_nothing_passed_is_named() -> None:
    none = result("cublas-matmul", "skipped", device="cuda:1", detail="its compute mode is ...")
    text = asked(result("cublas-matmul"), none, devices=("cuda:0", "cuda:1"))
    assert "1 self-test passed on cuda:0 (GPU) in 5.0 s; cuda:1 not tested" in text


def test_on_the_cpu_it_says_that_no_gpu_was_tested() -> None:
    on_cpu = result("cublas-matmul", device="cpu", data={"not_tested": ["no mapping"]})
    assert "Torch sees no GPU: a test on the CPU says nothing" in asked(on_cpu, devices=())
    assert "No GPU was tested: a test on the CPU" in asked(on_cpu)


def test_without_a_test_that_could_be_run() -> None:
    text = asked(result("cublas-matmul", "skipped", detail="torch sees no cuda:7"))
    assert text.startswith("UNKNOWN No self-test could be run: torch sees no cuda:7")
