"""Saved snapshots and reports: judged again, shown, compared, redacted."""

import functools
import json
from unittest import mock

import machine_files
import msgspec
import preflight_samples
import report_samples
from fuzz_target import Target, none_crashed
from rules_support import TABLES

from gpucheck.baselines import diff, diff_html
from gpucheck.doctor.collector import Collector
from gpucheck.engine import Report, judge_machine
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import Snapshot, decode
from gpucheck.language import speaking
from gpucheck.machine.candidates import TargetWish
from gpucheck.output import json_text, junit, markdown, terminal
from gpucheck.output.html import report as html_report
from gpucheck.output.public import public
from gpucheck.output.redact import Redaction

MACHINES = (
    "a100-mig-instance", "cpu-build-no-gpu", "cudnn-wheel-older", "jetson-orin-own-wheel",
    "mixed-gpus-index-mask", "nccl-p2p-hangs", "nvlink-six-links-down", "library-mismatch",
    "selftest-cudnn-fails", "gtx1080-windows-cu130", "build-gcc-newer-than-nvcc",
    "flash-attn-cu12-beside-cu13", "ecc-rowremap-failed", "slurm-one-of-eight",
)  # fmt: skip
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What ``load`` puts into a sentence."""


@functools.cache
def machines() -> tuple[Snapshot, ...]:
    """Return the snapshots of some test machines."""
    wish = TargetWish(python=None)
    hosts = [machine_files.host(name) for name in MACHINES]
    return tuple(
        Collector(host, TABLES, wish=wish, request=Request()).collect().snapshot for host in hosts
    )


def _saved(data: bytes) -> None:
    """A saved file, as ``diff`` and ``triage`` read it."""
    try:
        snapshot = decode(data)
    except _REFUSALS:
        return
    before = machines()[0]
    report = judge_machine(snapshot, TABLES)
    none_crashed(report.checks)
    for face in (json_text, terminal, markdown, junit, html_report):
        face.render(report).encode("utf-8", "surrogatepass")
    with speaking("zh"):
        terminal.render(report, verbose=2, color=True, width=40)
        for face in (markdown, html_report):
            face.render(report).encode("utf-8", "surrogatepass")
    changes = diff.compare(before, snapshot)
    json.dumps(diff.as_json(changes))
    diff.render(_first(), report, changes, verbose=True, color=False, width=80)
    diff_html.render_html(_first(), report, changes).encode()


@functools.cache
def _first() -> Report:
    return judge_machine(machines()[0], TABLES)


def _redacted(data: bytes) -> None:
    """An arbitrary machine: redaction raises for none, not also where it would hide one."""
    try:
        snapshot = decode(data)
    except _REFUSALS:
        return
    with mock.patch("gpucheck.output.redact._or_hidden", lambda replace, value: replace(value)):
        redaction = Redaction(snapshot)
        redacted = redaction.snapshot()
        assert redacted.redacted
        for text in _texts(snapshot):
            redaction.text(text)
    public(judge_machine(snapshot, TABLES))


def _texts(snapshot: Snapshot) -> list[str]:
    """Return texts in which the words of the machine stand."""
    plain = json.dumps(snapshot.as_json(), ensure_ascii=False)
    return [
        plain[:2000],
        plain[-2000:],
        "cannot open /home/alice/x: GPU-8f2c1c55 of node7 (10.0.0.1)",
    ]


def _snapshots() -> list[bytes]:
    return [_small(snapshot) for snapshot in machines()]


def _small(snapshot: Snapshot) -> bytes:
    """Return a snapshot without what nobody said, so that most changes meet a fact."""
    return json.dumps(_said(snapshot.as_json())).encode()


def _said(value: object) -> object:
    if isinstance(value, dict):
        return {key: _said(item) for key, item in value.items() if item not in (None, {}, ())}
    return [_said(item) for item in value] if isinstance(value, list | tuple) else value


_FORGED = json.dumps(
    {
        "schema": "gpucheck.snapshot/1", "gpucheck": {"version": "0.1.0"}, "origin": "recorded",
        "facts": {"selftests": {
            "problems": {"results": "X and one more symbol"},
            "said": {"problems": {"results": {
                "key": "{symbol} and one more symbol", "params": {"symbol": "X"},
            }}},
        }},
    }
).encode()  # fmt: skip
"""A sentence without the parameters that its translation has."""


def _reports() -> list[bytes]:
    made = [sample() for sample in report_samples.ALL.values()]
    made += [preflight_samples.hang(2, 2).report, preflight_samples.several().report]
    return [
        _FORGED,
        *_snapshots(),
        *(json.dumps(_said(report.as_json())).encode() for report in made),
    ]


TARGETS = (
    Target("saved", _saved, _reports, "json"),
    Target("redaction", _redacted, _snapshots, "json"),
)
