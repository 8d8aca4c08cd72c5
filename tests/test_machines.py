"""Every recorded machine, from its folder to its verdict, against its own ``expect.json``."""

import functools
import json
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from replies import untranslated

from gpucheck.collect import Collector
from gpucheck.engine import diagnose
from gpucheck.findings import Outcome
from gpucheck.host import RecordedHost
from gpucheck.probes.cuda_driver import CudaDriver, decode
from gpucheck.probes.request import Request
from gpucheck.report import Report, Verdict, make_report
from gpucheck.snapshot import Snapshot
from gpucheck.tables import Tables
from gpucheck.tables.cuda_errors import CudaErrors
from gpucheck.target import TargetWish
from gpucheck.verdict import open_questions

FOLDER = Path(__file__).parent / "machines"
NAMES = sorted(file.parent.name for file in FOLDER.glob("*/host.json"))
TABLES = Tables()


class Expect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``expect.json`` says: see ``docs/machines.md``."""

    verdict: Verdict
    root_causes: tuple[str, ...]
    exit: Literal[0, 1, 3]
    fine: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    no_fix: tuple[str, ...] = ()
    headline: tuple[str, ...] = ()
    absent: tuple[str, ...] = msgspec.field(default=(), name="not")
    open: tuple[str, ...] = ()
    request: Request = Request()


def expected(name: str) -> Expect:
    return msgspec.json.decode((FOLDER / name / "expect.json").read_bytes(), type=Expect)


@functools.cache
def reported(name: str) -> Report:
    host = RecordedHost(FOLDER / name)
    wish = TargetWish(python=None)
    request = expected(name).request
    return judged(Collector(host, TABLES, wish=wish, request=request).collect().snapshot)


def judged(snapshot: Snapshot) -> Report:
    return make_report(diagnose(snapshot, TABLES), snapshot, open_questions(snapshot, TABLES))


def story(report: Report) -> str:
    """Tell what was found, for a test that fails."""
    lines = [f"{finding.slug}: {finding.headline}" for finding in report.standing]
    lines += [f"open: {q.question} {q.fact}: {q.reason}" for q in report.open_questions]
    return "\n".join(lines)


def test_there_are_enough_machines() -> None:
    assert len(NAMES) >= 90


def test_no_file_is_of_a_kind_that_git_leaves_out() -> None:
    """A folder called .venv or __pycache__ would be missing from every clone."""
    left_out = {".venv", "__pycache__"}
    found = [file for file in FOLDER.rglob("*") if file.name in left_out]
    assert found == []


@pytest.mark.parametrize("name", NAMES)
def test_verdict(name: str) -> None:
    expect, report = expected(name), reported(name)
    found = (report.verdict, report.root_causes, report.exit_status("error"))
    assert found == (expect.verdict, expect.root_causes, expect.exit), story(report)


@pytest.mark.parametrize("name", NAMES)
def test_other_expectations(name: str) -> None:
    expect, report = expected(name), reported(name)
    outcomes = {check.slug: f"{check.outcome.value}: {check.reason}" for check in report.checks}
    for slug in expect.fine:
        assert outcomes.get(slug, "no such rule").startswith("fine"), f"{slug} {outcomes.get(slug)}"
    fired = {finding.slug: finding.headline for finding in report.standing}
    for slug in expect.absent:
        assert slug not in fired
    headlines = "\n".join(fired.values())
    for words in expect.headline:
        assert words in headlines
    fixes = "\n".join(
        "\n".join((fix.text, *fix.commands)) for finding in report.standing for fix in finding.fixes
    )
    for words in expect.fix:
        assert words in fixes
    for words in expect.no_fix:
        assert words not in fixes
    questions = "\n".join(f"{q.question} {q.fact}: {q.reason}" for q in report.open_questions)
    for words in expect.open:
        assert words in questions


@pytest.mark.parametrize("name", NAMES)
def test_nothing_crashed(name: str) -> None:
    report = reported(name)
    crashed = [check for check in report.checks if check.outcome is Outcome.CRASHED]
    crashed_probes = [run for run in report.snapshot.runs.runs if run.status == "crashed"]
    assert (crashed, crashed_probes) == ([], [])


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_has_evidence_and_a_fix(name: str) -> None:
    for finding in reported(name).findings:
        shown = [evidence for evidence in finding.evidence if evidence.value is not None]
        assert shown, f"{finding.slug} shows no evidence"
        assert all(evidence.source for evidence in shown), f"{finding.slug}: {shown}"
        assert finding.fixes, f"{finding.slug} has no fix"
        assert all(fix.text.strip() for fix in finding.fixes), finding.slug


@pytest.mark.parametrize("name", NAMES)
def test_no_chinese_stands_beside_a_different_english_fix(name: str) -> None:
    assert untranslated(reported(name)) == []


def failing_libcudas() -> list[CudaDriver]:
    """Return what libcuda may say where CUDA does not work."""
    good = json.loads((FOLDER / "r535-cu124" / "cuinit.json").read_bytes())
    codes = [row.code for row in TABLES.get(CudaErrors).rows if row.code] + [43210]
    loaded = {key: good[key] for key in ("library", "load_error", "cuda_version")}
    return [
        *(decode({**loaded, "init_code": code}) for code in codes),
        decode({**good, "device_count": 0, "devices": []}),
        decode({"library": "", "load_error": "libcuda.so.1: file too short"}),
        CudaDriver(problems={"*": "crashed: killed by SIGSEGV in cuInit"}),
        CudaDriver(problems={"*": "timed-out: no answer in cuInit after 30 s"}),
    ]


@pytest.mark.parametrize("name", ["r535-cu124", "docker-with-gpu-64mb-shm", "windows-ok"])
def test_a_cuda_driver_that_fails_is_never_healthy(name: str) -> None:
    good = reported(name).snapshot
    for failing in failing_libcudas():
        sections = {**good.sections, CudaDriver.name: failing}
        bad = Snapshot(sections, good.runs, tables=TABLES.version, origin=good.origin)
        assert judged(bad).verdict in ("broken", "unknown"), failing


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name: str) -> None:
    assert len((FOLDER / name / "README.md").read_text(encoding="utf-8")) > 80
