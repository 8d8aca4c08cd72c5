from rules_machines import commands, fine, hit, not_applicable
from rules_support import ask

from gpucheck.facts.snapshot import ProbeRun, ProbeRuns

SLUG = "probe-crashed"


def runs(name: str, problem: str | None) -> ProbeRuns:
    return ProbeRuns((ProbeRun(name=name, status="crashed", problem=problem),))


def test_the_probe_and_what_ended_it_are_named() -> None:
    answer = hit(ask(SLUG, runs=runs("packages", "KeyError: 'Name'")))
    assert answer.headline == "A probe crashed: packages (KeyError: 'Name')"
    assert commands(answer) == ("gpucheck baseline collect -o gpucheck-snapshot.json",)


def test_a_crash_in_the_driver_is_tried_by_hand_first() -> None:
    answer = hit(ask(SLUG, runs=runs("nvml", "signal 11 (SIGSEGV) while asking nvmlInit")))
    assert commands(answer) == ("nvidia-smi",)
    assert hit(ask(SLUG, runs=runs("nvml", None))).headline == "A probe crashed: nvml"


def test_no_crash_is_fine() -> None:
    fine(ask(SLUG, runs=ProbeRuns((ProbeRun(name="nvml", status="timed-out"),))))
    not_applicable(ask(SLUG))
