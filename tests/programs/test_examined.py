"""A snapshot comes from the process that examined the machine, with all its sentences."""

import msgspec
import pytest
import test_machines
from each import each
from msgspec.structs import replace

from gpucheck.facts.preflight import Preflight
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import Snapshot, decode
from gpucheck.interface.errors import NoAnswerError, RefusedError, UsageError
from gpucheck.language import as_said, say
from gpucheck.output.json_text import json_text, with_said
from gpucheck.programs.examination import _understood
from gpucheck.programs.examiner import Reply

SOME = ("h100x8-r580-cu130", "nvml-hangs", "nothing-readable", "cuda-build-no-gpu-vm")
MARK = b"0123"


def written(snapshot: Snapshot) -> bytes:
    return json_text(snapshot.as_json(), indent=None).encode()


def same(name: str) -> None:
    snapshot = test_machines.reported(name).snapshot
    again = decode(written(snapshot), is_own=True)
    assert with_said(again.as_json()) == with_said(snapshot.as_json())
    report = test_machines.judged(snapshot)
    assert test_machines.judged(again).root_causes == report.root_causes
    assert with_said(test_machines.judged(again).as_json()["checks"]) == with_said(
        report.as_json()["checks"]
    )


@each("name", SOME)
def test_it_comes_back_as_it_went(name: str) -> None:
    same(name)


@pytest.mark.exhaustive
def test_so_does_every_machine() -> None:
    for name in test_machines.NAMES:
        same(name)


def test_sentences_in_lists_and_what_a_file_of_others_may_not_have() -> None:
    base: Snapshot = test_machines.reported(SOME[0]).snapshot
    first = say("{name} cannot be written in UTF-8.", name="x")
    request = replace(base.get(Request), wheel_mirror="https://mirror.example/whl")
    snapshot = base.with_sections([Preflight(notices=["plain", first]), request])
    again = decode(written(snapshot), is_own=True)
    plain, sentence = again.get(Preflight).notices or []
    assert (plain, as_said(sentence)) == ("plain", as_said(first))
    assert again.get(Request) == request
    assert decode(written(snapshot)).get(Request).wheel_mirror == ""


def answered(reply: Reply) -> Snapshot:
    printed = b"printed before" + MARK + msgspec.msgpack.encode(reply) + MARK
    return _understood(printed, MARK, lambda: "")


def test_a_reply_is_a_snapshot_a_refusal_or_a_fault() -> None:
    snapshot = test_machines.reported(SOME[0]).snapshot
    assert answered(Reply(snapshot=written(snapshot))).runs == snapshot.runs
    refused = as_said(say("{name} must be a text or a list of texts.", name="x"))
    with pytest.raises(UsageError, match=r"^x must be"):
        answered(Reply(refused=refused, usage=True))
    with pytest.raises(RefusedError, match=r"^x must be"):
        answered(Reply(refused=refused))
    with pytest.raises(NoAnswerError, match=r"fault of gpucheck itself.*KeyError"):
        answered(Reply(fault="KeyError: 'x'"))


@each("printed", [b"", MARK, MARK + b"\xc1" + MARK, MARK + b"\x80" + MARK])
def test_what_is_damaged_is_one_sentence(printed: bytes) -> None:
    with pytest.raises(NoAnswerError) as error:
        _understood(printed, MARK, lambda: "first\nlast\x1b")
    assert "\n" not in str(error.value)


def test_a_damaged_snapshot_is_one_sentence() -> None:
    whole = written(test_machines.reported(SOME[0]).snapshot)
    for cut in (1, len(whole) // 2, len(whole) - 3):
        with pytest.raises(NoAnswerError, match="damaged"):
            answered(Reply(snapshot=whole[:cut]))
