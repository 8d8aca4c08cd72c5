"""Whether the libraries fit: an open question where what a CUDA build loads was not followed."""

from each import each
from working_machine import CPU_BUILD, report, serving

from gpucheck.facts.base import NOT_RECORDED
from gpucheck.facts.libraries import Loading
from gpucheck.facts.selftests import SelfTest, SelfTests

A100 = ("NVIDIA A100-SXM4-80GB", "8.0")
QUESTION = "Are the libraries that PyTorch loads compatible?"
WHY = "torch/__init__.py: _load_global_deps has a form that is not understood"
UNKNOWN = Loading(problems={"*": WHY})


@each("why", [WHY, "timed-out: no answer after 5 s", "skipped by --skip"])
def test_a_loading_that_could_not_be_followed_leaves_it_open(why: str) -> None:
    found = report(*serving(A100), Loading(problems={"*": why}))
    assert (found.verdict, found.exit_status("error")) == ("unknown", 3)
    (question,) = found.open_questions
    assert (question.question, question.fact, question.reason) == (
        QUESTION, "loading.libraries", why,
    )  # fmt: skip


@each(
    "loading",
    [
        Loading(libraries=[], missing=[], symbol_versions_missing=[]),
        Loading(problems={"*": f"/v/bin/python: it cannot be read: {NOT_RECORDED}"}),
        Loading(),  # a snapshot from before this section
    ],
)
def test_where_it_was_followed_or_nobody_asked_it_is_not_open(loading: Loading) -> None:
    assert report(*serving(A100), loading).verdict == "healthy"


def test_a_cpu_build_has_no_such_question() -> None:
    questions = report(CPU_BUILD, *serving(A100), UNKNOWN).open_questions
    assert QUESTION not in [open_question.question for open_question in questions]


def test_a_self_test_that_passed_answers_it() -> None:
    passed = SelfTest(name="cublas-matmul", device="cuda:0", status="passed")
    tests = SelfTests(devices=["cuda:0"], results=[passed], level="quick", seconds=2.0)
    assert report(*serving(A100), UNKNOWN, tests).verdict == "healthy"
