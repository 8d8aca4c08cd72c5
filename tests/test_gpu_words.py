"""What to do with each GPU: keep, watch, drain or replace, from the findings that name it."""

from collections.abc import Callable

from each import each
from gpu_samples import NODE, with_gpus, with_xids, xid
from msgspec.structs import replace
from slugs import SLUGS
from test_machines import NAMES, TABLES, judged, reported

from gpucheck.cluster.session import of_report
from gpucheck.engine import GpuVerdict, Report, judge_machine
from gpucheck.facts.driver import Nvml
from gpucheck.facts.selftests import GpuUnderLoad, SelfTest, SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Pci
from gpucheck.findings import all_rules

HOUR = 3600.0


def words(report: Report) -> list[str | None]:
    return [gpu.verdict for gpu in report.gpus]


def only(at: int, word: str) -> list[str]:
    return ["keep"] * at + [word] + ["keep"] * (7 - at)


def test_nothing_was_found_and_every_gpu_is_kept() -> None:
    found = reported(NODE).gpus
    assert [(gpu.index, gpu.verdict, gpu.findings) for gpu in found] == [
        (at, "keep", ()) for at in range(8)
    ]


CASES: dict[str, tuple[Callable[[], Snapshot], str, str]] = {
    "failed remapping": (
        lambda: with_gpus(g2={"rows_failed": True}), "replace", "gpu-hardware-fault",
    ),
    "uncorrected": (
        lambda: with_gpus(g2={"ecc_uncorrected": 3, "rows_remapped_uncorrected": 0}),
        "drain", "gpu-hardware-fault",
    ),
    "pending remapping": (
        lambda: with_gpus(g2={"rows_pending": True}), "watch", "gpu-memory-pending-repair",
    ),
    "overheated": (
        lambda: with_gpus(g2={"throttle": ["hw-thermal-slowdown"]}),
        "watch", "thermal-or-power-throttle",
    ),
    "lost": (lambda: with_gpus(g2={"lost": True}), "drain", "gpu-fallen-off-bus"),
    "links": (
        lambda: with_gpus(g2={"nvlinks": [True] * 12 + [False] * 6}), "watch", "nvlink-down",
    ),
    "Xid 48": (lambda: with_xids(xid(48, 2, HOUR)), "drain", "gpu-hardware-fault"),
    "Xid 95": (lambda: with_xids(xid(95, 2, HOUR)), "drain", "gpu-hardware-fault"),
    "Xid 119": (lambda: with_xids(xid(119, 2, HOUR)), "drain", "gpu-hardware-fault"),
    "old Xid": (lambda: with_xids(xid(48, 2, 7 * 24 * HOUR)), "watch", "gpu-hardware-fault"),
    "undated Xid": (lambda: with_xids(xid(48, 2, None)), "watch", "gpu-hardware-fault"),
}  # fmt: skip


@each("name", CASES)
def test_a_finding_says_what_it_means_for_the_gpu_that_it_names(name: str) -> None:
    taken, word, slug = CASES[name]
    found = judged(taken())
    assert words(found) == only(2, word)
    assert (found.gpus[2].findings, bool(found.gpus[2].reason)) == ((slug,), True)


@each("number", [13, 31, 43, 45, 63, 74, 94, 154])
def test_an_xid_for_which_nvidia_asks_for_no_reset_takes_no_gpu_out_of_service(number: int) -> None:
    assert words(judged(with_xids(xid(number, 2, HOUR)))) == ["keep"] * 8


def test_every_gpu_at_fault_is_named_and_not_only_that_of_the_headline() -> None:
    taken = with_gpus(
        g0={"rows_failed": True},
        g3={"rows_failed": True},
        g5={"ecc_uncorrected": 1, "rows_remapped_uncorrected": 0},
        g6={"rows_pending": True},  # its finding is suppressed by that of the others
        g7={"throttle": ["hw-slowdown"]},
    )
    found = judged(with_xids(xid(62, 1, HOUR), taken=taken))
    assert words(found) == [
        "replace", "drain", "keep", "replace", "keep", "drain", "watch", "watch",
    ]  # fmt: skip


def test_the_worst_word_of_a_gpu_counts_and_its_finding_comes_first() -> None:
    found = judged(
        with_gpus(g2={"throttle": ["hw-slowdown"], "rows_failed": True, "nvlinks": [True] * 9})
    )
    assert words(found) == only(2, "replace")
    assert found.gpus[2].findings[0] == "gpu-hardware-fault"
    assert "thermal-or-power-throttle" in found.gpus[2].findings


def test_what_explains_a_fault_of_the_same_gpu_says_it_all() -> None:
    found = judged(with_gpus(g2={"lost": True, "rows_pending": True}))
    assert found.gpus[2].findings == ("gpu-fallen-off-bus",)


def test_a_gpu_that_has_left_the_list_of_the_driver_has_a_line() -> None:
    *others, last = reported("gpu-lost-xid79").gpus
    assert [gpu.verdict for gpu in others] == ["keep"] * 7
    assert (last.index, last.pci_address, last.verdict) == (None, "0000:bb:00.0", "drain")


def test_a_gpu_that_could_not_be_read_is_not_kept() -> None:
    blank = dict.fromkeys(("memory_total_bytes", "temperature_c"))
    assert words(judged(with_gpus(g2=blank)))[2] is None
    taken = with_gpus()
    bus = taken.get(Pci)
    nvml = taken.get(Nvml)
    hidden = taken.with_sections([replace(nvml, gpus=(nvml.gpus or [])[:7]), bus])
    found = judged(hidden).gpus[7]  # the bus has it
    assert (found.index, found.verdict == "keep") == (None, False)


def test_a_check_that_was_not_asked_lets_no_gpu_be_kept() -> None:
    taken = with_gpus(g1={"throttle": ["hw-slowdown"]})
    skipped = judge_machine(taken, TABLES, skip=["gpu-hardware-fault"])
    assert words(skipped) == [None, "watch", *[None] * 6]
    assert "gpu-hardware-fault" in skipped.gpus[0].reason
    assert words(judge_machine(taken, TABLES, skip=["torch-missing"]))[0] == "keep"


def test_a_fault_of_the_whole_machine_lets_no_gpu_be_kept() -> None:
    found = reported("fabric-manager-802").gpus
    assert {gpu.verdict for gpu in found} == {None}
    assert "fabric-manager-down" in found[0].reason


def test_a_fault_of_pytorch_says_nothing_about_a_gpu() -> None:
    assert [gpu.verdict for gpu in reported("cpu-build-with-gpu").gpus] == ["keep"]
    assert {gpu.verdict for gpu in reported("v100-torch-211-cu128").gpus} == {"keep"}


def after_tests(*results: SelfTest, under_load: list[GpuUnderLoad] | None = None) -> Snapshot:
    """Return the node with these results of self-tests on its first two GPUs."""
    devices = [{"device": f"cuda:{at}", "name": "NVIDIA H100 80GB HBM3"} for at in range(8)]
    first = SelfTest(name="import-torch", status="passed", data={"devices": devices})
    tests = SelfTests(level="quick", devices=["cuda:0", "cuda:1"], results=[first, *results])
    return with_gpus().with_section(replace(tests, under_load=under_load))


def wrong(at: int) -> SelfTest:
    return SelfTest(
        name="cublas-matmul", device=f"cuda:{at}", status="failed", kind="wrong-value", detail="bad"
    )


def test_a_gpu_that_alone_computes_wrongly_is_drained_and_a_library_blames_none() -> None:
    right = SelfTest(name="cublas-matmul", device="cuda:1", status="passed")
    assert words(judged(after_tests(wrong(0), right)))[:2] == ["drain", "keep"]
    assert words(judged(after_tests(wrong(0), wrong(1)))) == [None] * 8


def test_a_self_test_that_failed_leaves_its_gpu_unknown_where_a_library_is_at_fault() -> None:
    failed = SelfTest(
        name="cudnn-convolution", device="cuda:1", status="failed", kind="cudnn-status",
        detail="CUDNN_STATUS_EXECUTION_FAILED", data={"status": "CUDNN_STATUS_EXECUTION_FAILED"},
    )  # fmt: skip
    found = judged(after_tests(failed))
    assert words(found)[:2] == ["keep", None]
    assert "cudnn-convolution" in found.gpus[1].reason


@each("device", ["cuda:x", "cuda:-1", "cuda:9999", "cuda:", "cuda:0,cuda:x"])
def test_a_device_of_a_saved_report_may_be_anything(device: str) -> None:
    assert len(words(judged(after_tests(replace(wrong(0), device=device))))) == 8


def test_what_was_seen_under_load_names_its_gpus_by_their_uuids() -> None:
    uuids = [gpu.uuid for gpu in with_gpus().get(Nvml).gpus or ()]
    loads = [
        GpuUnderLoad(index=4, uuid=uuids[4], held_down={"hw-thermal-slowdown": 0.5}),
        GpuUnderLoad(index=6, uuid=uuids[6], held_down={"hw-thermal-slowdown": 0.5}),
        GpuUnderLoad(index=7, uuid=uuids[7], ecc_uncorrected_added=2),
    ]
    found = judged(after_tests(under_load=loads))
    assert words(found) == ["keep"] * 4 + ["watch", "keep", "watch", "drain"]


@each("name", NAMES)
def test_a_gpu_is_out_of_service_only_if_its_node_is(name: str) -> None:
    """``gpucheck node`` and the words rest on the same findings: they never contradict."""
    report = reported(name)
    bad = [gpu for gpu in report.gpus if gpu.verdict in ("drain", "replace")]
    assert not bad or of_report(report, TABLES, "error", None).unfit
    for gpu in report.gpus:
        assert gpu.reason
        assert set(gpu.findings) <= {finding.slug for finding in report.findings}
        assert bool(gpu.findings) == (gpu.verdict in ("watch", "drain", "replace"))


def test_only_a_failed_remapping_replaces_a_card() -> None:
    """A wrong "replace" costs a card: each has NVIDIA's own criterion, see docs/gpus.md."""
    assert "replace" not in {rule.on_gpu.word for rule in all_rules().values() if rule.on_gpu}
    assert {slug for slug in SLUGS if all_rules()[slug].on_gpu} == {
        "gpu-fallen-off-bus", "gpu-hardware-fault", "gpu-memory-pending-repair", "gpu-slow",
        "nvlink-down", "pcie-link-degraded", "selftest-failed", "thermal-or-power-throttle",
        "wrong-result",
    }  # fmt: skip


def test_a_text_and_a_described_machine_have_no_gpus_to_judge() -> None:
    taken = with_gpus(g2={"rows_failed": True})
    taken.origin = "pasted"
    assert judge_machine(taken, TABLES).gpus == ()
    assert GpuVerdict().verdict is None
