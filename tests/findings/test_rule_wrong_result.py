from each import each
from rules_support import ask
from selftest_facts import NOT_RUN, failed, ran, result

from gpucheck.findings.form import Fine, Hit, NotApplicable

SLUG = "wrong-result"


@each("kind", ["wrong-value", "not-finite", "wrong-shape"])
def test_wrong_values_name_the_gpu(kind: str) -> None:
    bad = failed("cublas-matmul", kind, "fp32: 3.1 at (4, 5), bound 0.01", device="cuda:1")
    found = ask(SLUG, ran(result("cublas-matmul"), bad, devices=("cuda:0", "cuda:1")))
    assert isinstance(found, Hit)
    assert "computed wrong values on cuda:1: fp32: 3.1" in found.headline
    assert "--device cuda:1" in found.fixes[0].commands[0]
    assert "Take cuda:1 out of service" in found.fixes[1].text


def test_when_all_are_wrong_the_library_comes_before_the_card() -> None:
    bad = [failed("cublas-matmul", "wrong-value", device=f"cuda:{at}") for at in (0, 1)]
    found = ask(SLUG, ran(*bad, devices=("cuda:0", "cuda:1")))
    assert isinstance(found, Hit)
    assert "out of service" in found.fixes[-1].text


def test_no_card_is_suspected_of_what_the_cpu_did() -> None:
    found = ask(SLUG, ran(failed("cublas-matmul", "wrong-value", device="cpu"), devices=()))
    assert isinstance(found, Hit)
    assert all("out of service" not in fix.text for fix in found.fixes)


def test_it_stays_silent_without_one() -> None:
    assert isinstance(ask(SLUG, ran(result("cublas-matmul"))), Fine)
    assert isinstance(ask(SLUG, NOT_RUN), NotApplicable)


def test_of_several_ranks_no_card_is_suspected_but_told_apart_from_a_link() -> None:
    bad = [
        failed("all-reduce", "wrong-value", device=f"cuda:{at}", rank=at, world_size=2)
        for at in (0, 1)
    ]
    found = ask(SLUG, ran(*bad, devices=("cuda:0", "cuda:1")))
    assert isinstance(found, Hit)
    (fix,) = found.fixes
    assert "whether a GPU or a link is at fault" in fix.text
    assert fix.verify == "gpucheck selftest --tests all-reduce"


def test_ranks_on_the_cpu_are_repeated_as_such() -> None:
    bad = failed("all-reduce", "wrong-value", device="cpu", world_size=3)
    found = ask(SLUG, ran(bad, devices=()))
    assert isinstance(found, Hit)
    assert found.fixes[0].verify == "gpucheck selftest --tests all-reduce --device cpu --ranks 3"


@each("name", ["onnx-export", "tensorrt"])
def test_neither_card_nor_torch_is_suspected_of_what_another_runtime_did(name: str) -> None:
    found = ask(SLUG, ran(failed(name, "wrong-value")))
    assert isinstance(found, Hit)
    (fix,) = found.fixes
    assert "report it to that project" in fix.text
    assert fix.commands == (
        "gpucheck selftest --tests cublas-matmul,cudnn-convolution --device cuda:0",
    )
