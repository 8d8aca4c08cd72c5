"""Every test machine in Chinese: no English sentence of ours is left."""

import functools

import machine_files
import pytest
from language.english_left import english_left, foreign_words, in_chinese

from gpucheck.engine import Report, judge_machine
from gpucheck.machine.target import TargetWish
from gpucheck.probes.collector import Collector
from gpucheck.tables import Tables

TABLES = Tables()
NAMES = machine_files.names()


@functools.cache
def report_of(name: str) -> Report:
    from test_machines import expected  # noqa: PLC0415

    host = machine_files.host(name)
    wish = TargetWish(python=None)
    snapshot = Collector(host, TABLES, wish=wish, request=expected(name).request).collect().snapshot
    return judge_machine(snapshot, TABLES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_no_english_sentence_is_left(name: str) -> None:
    report = report_of(name)
    text = in_chinese(report, verbose=1, width=120)
    assert english_left(text, foreign_words(report.snapshot)) == []
