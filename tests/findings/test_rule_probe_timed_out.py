from each import each
from rules_machines import DOCKER, UBUNTU, WINDOWS, commands, fine, hit, not_applicable
from rules_support import ask

from gpucheck.facts.claims import Severity
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns
from gpucheck.facts.system import Pci, PciGpu
from gpucheck.findings.own_limits import _DRIVER, _FILES, _PROBE_TIMED_OUT_DRIVER
from gpucheck.probes import all_probes

SLUG = "probe-timed-out"


def runs(*names: str, problem: str | None = "hung while asking nvmlInit") -> ProbeRuns:
    late = [
        ProbeRun(name=name, status="timed-out", seconds=30.02, problem=problem) for name in names
    ]
    return ProbeRuns((ProbeRun(name="system", status="ok"), *late))


def test_the_probe_and_its_stage_are_named() -> None:
    answer = hit(ask(SLUG, UBUNTU, runs=runs("nvml")))
    assert "nvml (after 30 s; hung while asking nvmlInit)" in answer.headline
    assert commands(answer)[0] == "timeout 60 nvidia-smi"
    assert "after 30 s" in hit(ask(SLUG, UBUNTU, runs=runs("pci", problem=None))).headline


@each(("name", "word"), [("packages", "disk"), ("container", "less busy"), ("nvml", "nvidia-smi")])
def test_the_advice_fits_the_probe(name: str, word: str) -> None:
    assert word in hit(ask(SLUG, UBUNTU, runs=runs(name))).fixes[0].text


def test_a_driver_that_hangs_with_a_gpu_on_the_bus_is_an_error() -> None:
    pci = Pci(gpus=[PciGpu(address="0000:01:00.0")])
    assert hit(ask(SLUG, UBUNTU, pci, runs=runs("nvml"))).severity is Severity.ERROR
    assert hit(ask(SLUG, UBUNTU, pci, runs=runs("packages"))).severity is None
    assert hit(ask(SLUG, UBUNTU, Pci(gpus=[]), runs=runs("nvml"))).severity is None


def test_windows_and_containers() -> None:
    assert commands(ask(SLUG, WINDOWS, runs=runs("nvml"))) == ("nvidia-smi",)
    assert "on the host" in hit(ask(SLUG, UBUNTU, DOCKER, runs=runs("nvml"))).fixes[0].text


def test_every_probe_that_answered_is_fine() -> None:
    fine(ask(SLUG, runs=ProbeRuns((ProbeRun(name="nvml", status="unknown"),))))
    fine(ask(SLUG, runs=ProbeRuns((ProbeRun(name="nvml", status="crashed"),))))
    not_applicable(ask(SLUG))


def test_the_probes_that_rules_name_exist() -> None:
    named = {*_PROBE_TIMED_OUT_DRIVER, *_FILES, *_DRIVER}  # their lists
    assert named <= {probe.name for probe in all_probes()}
