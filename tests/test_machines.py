"""Every test machine, from its file to its verdict, against its own ``[expect]``."""

import functools
import hashlib
from collections.abc import Iterator
from typing import Literal

import machine_files
import msgspec
import pytest
from each import each
from machine_files import MACHINES

from gpucheck.doctor.collector import Collector
from gpucheck.engine import Report, Verdict, diagnose, make_report, open_questions
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Outcome
from gpucheck.machine.candidates import TargetWish
from gpucheck.probes.cuda_driver import decode
from gpucheck.tables import Tables
from gpucheck.tables.error_codes import CudaErrors

pytestmark = pytest.mark.every_finding

NAMES = machine_files.names()
EACH = each("name", NAMES, shards=3)  # a worker then examines a third of the machines
BASES = [f"base/{file.stem}" for file in sorted((MACHINES / "base").glob("*.toml"))]
TABLES = Tables()


class Expect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``[expect]`` says: see ``docs/machines.md``."""

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
    return msgspec.convert(machine_files.load(name).expect, Expect)


@functools.cache
def reported(name: str) -> Report:
    host = machine_files.host(name)
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


def test_every_blob_is_used_and_named_by_its_content() -> None:
    blobs = {file.name: file.read_bytes() for file in (MACHINES / "blobs").iterdir()}
    used = {
        blob
        for name in (*NAMES, *BASES)
        for part in ("blobs", "ranges")
        for blob in machine_files.sections(name).get(part, {}).values()
    }
    assert used == set(blobs)
    for name, data in blobs.items():
        assert name.endswith(f"-{hashlib.sha256(data).hexdigest()[:8]}")


def test_every_base_is_used_and_expects_nothing() -> None:
    assert {machine_files.chain(name)[-1] for name in NAMES} >= set(BASES)
    assert [name for name in BASES if machine_files.load(name).expect] == []


def unmet(expect: Expect, report: Report) -> Iterator[str]:
    """Yield what was expected and is not so."""
    found = (report.verdict, report.root_causes, report.exit_status("error"))
    if found != (expect.verdict, expect.root_causes, expect.exit):
        yield f"{found} instead of {(expect.verdict, expect.root_causes, expect.exit)}"
    outcomes = {check.slug: f"{check.outcome.value}: {check.reason}" for check in report.checks}
    for slug in expect.fine:
        if not outcomes.get(slug, "no such rule").startswith("fine"):
            yield f"{slug} is not fine: {outcomes.get(slug)}"
    fired = {finding.slug: finding.headline for finding in report.standing}
    yield from (f"{slug} stands" for slug in expect.absent if slug in fired)
    headlines = "\n".join(fired.values())
    yield from (
        f"no headline says {words!r}" for words in expect.headline if words not in headlines
    )
    fixes = "\n".join(
        "\n".join((fix.text, *fix.commands)) for finding in report.standing for fix in finding.fixes
    )
    yield from (f"no fix says {words!r}" for words in expect.fix if words not in fixes)
    yield from (f"a fix says {words!r}" for words in expect.no_fix if words in fixes)
    questions = "\n".join(f"{q.question} {q.fact}: {q.reason}" for q in report.open_questions)
    yield from (f"nothing open says {words!r}" for words in expect.open if words not in questions)


def crashed(report: Report) -> Iterator[str]:
    for check in report.checks:
        if check.outcome is Outcome.CRASHED:
            yield f"{check.slug} crashed: {check.reason}"
    for run in report.snapshot.runs.runs:
        if run.status == "crashed":
            yield f"the probe {run.name} crashed"


def unfounded(report: Report) -> Iterator[str]:
    """Yield the findings without evidence that has a source, or without a fix."""
    for finding in report.findings:
        shown = [evidence for evidence in finding.evidence if evidence.value is not None]
        if not shown:
            yield f"{finding.slug} shows no evidence"
        if not all(evidence.source for evidence in shown):
            yield f"{finding.slug} has evidence without a source: {shown}"
        if not finding.fixes:
            yield f"{finding.slug} has no fix"
        if not all(fix.text.strip() for fix in finding.fixes):
            yield f"{finding.slug} has an empty fix"


@EACH
def test_machine(name: str) -> None:
    """Look at all of it in one test: pytest would take longer for several than they do."""
    report = reported(name)
    wrong = [
        *unmet(expected(name), report),
        *crashed(report),
        *unfounded(report),
    ]
    if len(machine_files.load(name).about) <= 60:
        wrong.append("it does not say what it is")
    assert wrong == [], story(report)


def failing_libcudas() -> list[CudaDriver]:
    """Return what libcuda may say where CUDA does not work."""
    good = machine_files.load("r535-cu124").recording.cuinit
    assert good is not None
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
