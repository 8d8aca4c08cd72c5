"""gpu-slow: what the self-tests measured."""

import msgspec
from each import each
from rules_support import TABLES, ask, snapshot
from selftest_facts import ran, result

from gpucheck.engine import diagnose
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import CudaDevice, CudaDriver, GpuProcess, Nvml, NvmlGpu
from gpucheck.facts.selftests import Measurement, SelfTests
from gpucheck.findings.form import Fine, Hit, NotApplicable

SLUG = "gpu-slow"


def test_a_machine_alone_shows_nothing_of_it() -> None:
    assert isinstance(ask(SLUG), NotApplicable)


H200, A100 = "NVIDIA H200", "NVIDIA A100-SXM4-80GB"


def machine(*gpus: tuple[str, float], level: str = "standard", name: str = "bf16") -> SelfTests:
    """Return the self-tests of GPUs of these models, each with its rate."""
    devices = [{"device": f"cuda:{at}", "name": model} for at, (model, _rate) in enumerate(gpus)]
    results = [
        result(
            "sustained" if name == "sustained" else "cublas-matmul",
            device=f"cuda:{at}",
            measurements=[Measurement(name=f"{name} rate", value=rate, unit="TFLOP/s")],
        )
        for at, (_model, rate) in enumerate(gpus)
    ]
    first = result("import-torch", device="cpu", data={"devices": devices})
    return msgspec.structs.replace(ran(first, *results), level=level)


def severity(judgement: object) -> Severity | None:
    return judgement.severity if isinstance(judgement, Hit) else None


@each("name", ["bf16", "sustained"])
@each(
    ("rates", "expected"),
    [
        ((700.0, 690.0, 710.0, 705.0), None),
        ((700.0, 565.0, 710.0, 705.0), None),
        ((700.0, 550.0, 710.0, 705.0), Severity.WARNING),
        ((700.0, 340.0, 550.0, 705.0), Severity.ERROR),
        ((700.0, 300.0), Severity.ERROR),
    ],
)
def test_peers_come_first(rates: tuple[float, ...], expected: Severity | None, name: str) -> None:
    found = ask(SLUG, machine(*((H200, rate) for rate in rates), name=name))
    assert severity(found) is expected, found


def test_what_it_is_compared_with_is_told() -> None:
    found = ask(SLUG, machine((H200, 400.0), (H200, 800.0), (H200, 900.0)))
    assert isinstance(found, Hit)
    assert "47% of what 2 others of its model reach: 400 against 850 TFLOP/s" in found.headline
    assert found.evidence == ("selftests.results.1.measurements",)


@each(
    ("model", "rate", "expected"),
    [
        (H200, 745.0, None),
        (H200, 430.0, None),  # a low power limit, an old cuBLAS
        (H200, 390.0, Severity.INFO),
        (A100, 257.0, None),
        (A100, 100.0, Severity.INFO),
        ("NVIDIA H100 NVL", 300.0, None),
    ],
)
def test_alone_it_is_compared_with_what_was_published_and_never_accused(
    model: str, rate: float, expected: Severity | None
) -> None:
    found = ask(SLUG, machine((model, rate)))
    assert severity(found) is expected, found
    if isinstance(found, Hit):
        assert found.confidence is Confidence.POSSIBLE
        assert "of the highest rate that was published for this board" in found.headline
        assert [fact for fact, _row in found.rows] == [*found.evidence]
    else:
        assert isinstance(found, Fine)
        assert "that was published" in found.reason


def test_where_all_are_slow_alike_the_published_rate_shows_it() -> None:
    assert severity(ask(SLUG, machine((H200, 300.0), (H200, 300.0)))) is Severity.INFO


def test_two_models_have_no_peers_but_each_its_own_published_rate() -> None:
    found = ask(SLUG, machine((H200, 700.0), (A100, 90.0)))
    assert isinstance(found, Hit)
    assert found.severity is Severity.INFO
    assert found.headline.startswith("cuda:1 (NVIDIA A100-SXM4-80GB)")


def test_a_note_changes_no_verdict() -> None:
    tests = machine((H200, 100.0))
    found = diagnose(snapshot(tests), TABLES, only=[SLUG])
    (note,) = found.standing
    assert note.severity is Severity.INFO
    assert note.fixes


@each("model", [f"{H200} MIG 1g.18gb", "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3060", ""])
def test_without_a_published_rate_it_says_nothing(model: str) -> None:
    assert isinstance(ask(SLUG, machine((model, 1.0))), NotApplicable)


def test_the_quick_level_says_nothing() -> None:
    assert isinstance(ask(SLUG, machine((H200, 10.0), (H200, 700.0), level="quick")), NotApplicable)


def test_a_gpu_at_work_for_others_is_not_judged() -> None:
    cuda = CudaDriver(devices=[CudaDevice(uuid="GPU-1"), CudaDevice(uuid="GPU-2")])
    busy = [GpuProcess(pid=7, kind="compute")]
    nvml = Nvml(gpus=[NvmlGpu(uuid="GPU-1", processes=busy), NvmlGpu(uuid="GPU-2", processes=[])])
    assert isinstance(ask(SLUG, machine((H200, 100.0), (H200, 700.0)), cuda, nvml), Fine)
    assert isinstance(ask(SLUG, machine((H200, 100.0)), cuda, nvml), Fine)
    assert severity(ask(SLUG, machine((H200, 700.0), (H200, 100.0)), cuda, nvml)) is Severity.ERROR
