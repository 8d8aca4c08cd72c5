"""What was begun ahead of a question is an answer to that question alone."""

from rules_support import TABLES

from gpucheck.doctor.collector import Collector
from gpucheck.facts.request import Request
from gpucheck.machine import RecordedHost, Recording
from gpucheck.machine.candidates import TargetWish


def test_what_was_begun_is_for_the_same_question_only() -> None:
    begun = Collector(RecordedHost(Recording()), TABLES, wish=TargetWish(), request=Request())
    assert begun.is_for(TABLES, TargetWish(), Request())
    assert not begun.is_for(TABLES, TargetWish(python="/opt/other/bin/python"), Request())
    assert not begun.is_for(TABLES, TargetWish(), Request(gpus=0))
