from collections.abc import Callable
from typing import Any

import pytest
from rules_machines import A100, NO_TORCH, RTX_4090, UBUNTU, nvml, torch_of
from rules_support import TABLES, snapshot

from gpucheck import engine
from gpucheck.derived import Gpus
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns, Snapshot
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Outcome, Rule
from gpucheck.tables import Tables
from gpucheck.tables.cuda import CudaDrivers

Rules = Callable[..., None]
HIT = Hit(headline="broken", evidence=(), fixes=(Fix(text="mend it"),))


def rule(slug: str, judge: Callable[..., Judgement], **header: Any) -> Rule:  # noqa: ANN401  # a header
    fields = {"title": slug, "severity": Severity.ERROR, "family": "torch", **header}
    made = Rule(slug, **fields)
    made.check(judge)
    return made


def fires(slug: str, hit: Hit = HIT, **header: Any) -> Rule:  # noqa: ANN401  # a header
    def judge() -> Judgement:
        return hit

    return rule(slug, judge, **header)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    """Put these rules in the place of all."""

    def put(*made: Rule) -> None:
        monkeypatch.setattr(
            "gpucheck.engine.diagnosis.all_rules",
            lambda: {section.slug: section for section in made},
        )

    return put


def diagnose(machine: Snapshot | None = None, **choice: Any) -> engine.Diagnosis:  # noqa: ANN401  # only, skip
    return engine.diagnose(machine or snapshot(), TABLES, **choice)


def outcome(diagnosis: engine.Diagnosis, slug: str) -> tuple[Outcome, str]:
    check = next(check for check in diagnosis.checks if check.slug == slug)
    return check.outcome, check.reason


def test_every_answer_has_its_outcome(rules: Rules) -> None:
    def is_fine() -> Judgement:
        return Fine("all is well")

    def has_nothing() -> Judgement:
        return NotApplicable("no such thing here")

    def lacks(torch: TorchBuild) -> Judgement:
        known(torch.version, "torch.version")
        return Fine()

    def crashes() -> Judgement:
        raise ZeroDivisionError("of a bug")

    rules(
        fires("hit"),
        rule("fine", is_fine),
        rule("nothing", has_nothing),
        rule("lacking", lacks),
        rule("crash", crashes),
    )
    diagnosis = diagnose()
    assert outcome(diagnosis, "hit") == (Outcome.FIRED, "broken")
    assert outcome(diagnosis, "fine") == (Outcome.FINE, "all is well")
    assert outcome(diagnosis, "nothing") == (Outcome.NOT_APPLICABLE, "no such thing here")
    assert outcome(diagnosis, "lacking")[0] is Outcome.UNKNOWN
    assert outcome(diagnosis, "crash") == (Outcome.CRASHED, "ZeroDivisionError: of a bug")
    assert [finding.slug for finding in diagnosis.findings] == ["hit"]


def lacks_release(gpu: Nvml) -> Judgement:
    known(gpu.driver_release, "nvml.driver_release")
    return Fine()


def lacks_with_reason() -> Judgement:
    raise UnknownFactError("nvml.gpus", "the rule's own reason")


def lacks_a_detail(gpu: Nvml) -> Judgement:
    known((gpu.gpus or [])[0].throttle, "nvml.gpus.0.throttle")
    return Fine()


@pytest.mark.parametrize(
    ("judge", "reason"),
    [
        (lacks_release, "nvml.driver_release: NVML: driver not loaded"),
        (lacks_with_reason, "nvml.gpus: the rule's own reason"),
        (lacks_a_detail, "nvml.gpus.0.throttle: Not Supported"),
    ],
)
def test_an_unknown_outcome_says_which_fact_and_why(
    rules: Rules, judge: Callable[..., Judgement], reason: str
) -> None:
    rules(rule("lacking", judge))
    gpu = NvmlGpu(index=0, problems={"throttle": "Not Supported"})
    machine = snapshot(Nvml(gpus=[gpu], problems={"*": "NVML: driver not loaded"}))
    assert outcome(diagnose(machine), "lacking") == (Outcome.UNKNOWN, reason)


def test_an_unknown_fact_without_a_reason_says_so(rules: Rules) -> None:
    rules(rule("lacking", lacks_release))
    assert outcome(diagnose(), "lacking")[1].endswith("no information was given")


def test_evidence_carries_the_value_and_its_source(rules: Rules) -> None:
    facts = ("nvml.driver_release", "nvml.gpus.0.device_name", "torch.installed")
    rules(fires("hit", Hit(headline="x", evidence=facts, fixes=())))
    (finding,) = diagnose(snapshot(nvml(A100), NO_TORCH)).findings
    quoted = {evidence.fact: (evidence.value, evidence.source) for evidence in finding.evidence}
    assert quoted["nvml.driver_release"] == ("580.95.05", "NVML")
    assert quoted["nvml.gpus.0.device_name"] == (A100, "NVML")
    assert quoted["torch.installed"] == (False, "")


def test_evidence_that_does_not_exist_is_a_crash_of_the_rule(rules: Rules) -> None:
    rules(fires("hit", Hit(headline="x", evidence=("torch.colour",), fixes=())))
    diagnosis = diagnose()
    assert outcome(diagnosis, "hit")[0] is Outcome.CRASHED
    assert diagnosis.findings == ()


def test_a_hit_may_change_the_severity(rules: Rules) -> None:
    milder = Hit(headline="x", evidence=(), fixes=(), severity=Severity.INFO)
    rules(fires("plain"), fires("milder", milder))
    severities = {finding.slug: finding.severity for finding in diagnose().findings}
    assert severities == {"plain": Severity.ERROR, "milder": Severity.INFO}


def test_an_explained_finding_is_suppressed_but_kept(rules: Rules) -> None:
    rules(fires("cause"), fires("explained", suppressed_by=("absent", "cause")))
    diagnosis = diagnose()
    assert [finding.slug for finding in diagnosis.standing] == ["cause"]
    assert [finding.silenced_by for finding in diagnosis.findings] == [None, "cause"]
    assert outcome(diagnosis, "explained") == (Outcome.SILENCED, "explained by cause")


def test_a_chain_of_explanations_names_its_root(rules: Rules) -> None:
    rules(
        fires("explained", suppressed_by=("middle",)),
        fires("middle", suppressed_by=("root",)),
        fires("root"),
    )
    silenced = {finding.slug: finding.silenced_by for finding in diagnose().findings}
    assert silenced == {"root": None, "middle": "root", "explained": "root"}


def test_a_warning_does_not_suppress_an_error(rules: Rules) -> None:
    mild = Hit(headline="odd", evidence=(), fixes=(), severity=Severity.WARNING)
    rules(fires("mild", mild), fires("grave", suppressed_by=("mild",)))
    found = engine.diagnose(snapshot(), TABLES)
    assert [finding.slug for finding in found.standing] == ["grave", "mild"]


def test_what_did_not_fire_suppresses_nothing(rules: Rules) -> None:
    def is_fine() -> Judgement:
        return Fine()

    rules(rule("cause", is_fine), fires("explained", suppressed_by=("cause",)))
    assert [finding.slug for finding in diagnose().standing] == ["explained"]


def test_a_rule_that_is_skipped_suppresses_nothing(rules: Rules) -> None:
    rules(fires("cause"), fires("explained", suppressed_by=("cause",)))
    assert [finding.slug for finding in diagnose(skip=("cause",)).standing] == ["explained"]
    assert [check.slug for check in diagnose(only=("cause",)).checks] == ["cause"]


def test_findings_come_in_the_order_of_their_weight(rules: Rules) -> None:
    likely = Hit(headline="x", evidence=(), fixes=(), confidence=Confidence.LIKELY)
    rules(
        fires("a-warning", severity=Severity.WARNING, family="driver"),
        fires("explained", suppressed_by=("z-driver",), family="driver"),
        fires("b-torch"),
        fires("a-torch"),
        fires("likely", likely, family="driver"),
        fires("z-driver", family="driver"),
    )
    assert [finding.slug for finding in diagnose().findings] == [
        "z-driver",
        "a-torch",
        "b-torch",
        "likely",
        "a-warning",
        "explained",
    ]


def test_a_rule_gets_what_its_parameters_name(rules: Rules) -> None:
    seen: list[object] = []

    def judge(  # one of each kind
        torch: TorchBuild,
        gpus: Gpus,
        drivers: CudaDrivers,
        tables: Tables,
        probes: ProbeRuns,
        request: Request,
    ) -> Judgement:
        seen.extend((torch.version, gpus.present(), drivers, tables, probes.runs, request.gpus))
        return Fine()

    rules(rule("curious", judge))
    runs = ProbeRuns((ProbeRun(name="nvml", status="ok"),))
    torch = torch_of("2.6.0+cu124", "12.4")
    diagnose(snapshot(torch, nvml(RTX_4090), UBUNTU, Request(gpus=3), runs=runs))
    assert seen == [
        "2.6.0+cu124",
        True,
        TABLES.get(CudaDrivers),
        TABLES,
        runs.runs,
        3,
    ]


def test_a_rule_that_asks_for_something_else_crashes(rules: Rules) -> None:
    def judge(number: int) -> Judgement:
        return Fine(str(number))

    empty = Rule("empty", title="empty", severity=Severity.ERROR, family="torch")
    rules(rule("greedy", judge), empty)
    diagnosis = diagnose()
    assert outcome(diagnosis, "greedy") == (
        Outcome.CRASHED,
        "TypeError: a rule cannot ask for int",
    )
    assert outcome(diagnosis, "empty")[0] is Outcome.CRASHED


def test_the_real_rules_know_nothing_of_an_empty_snapshot() -> None:
    diagnosis = diagnose()
    assert diagnosis.findings == ()
    crashed = [check for check in diagnosis.checks if check.outcome is Outcome.CRASHED]
    assert crashed == []
