"""The bundle for a ticket: redacted in every file, and triage finds the same cause in it."""

import io
import json
import re
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import msgspec
import preflight_samples as samples
from each import each
from rules_support import TABLES

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import RankResult, Step, StepResult
from gpucheck.cluster.pages.bundle import Public, bundle
from gpucheck.facts.preflight import FailedGroup, Look, OwnFailure, Route
from gpucheck.facts.snapshot import load
from gpucheck.programs.schema import schema
from gpucheck.ticket.given import saved
from gpucheck.ticket.judge import judge_saved

_FILES = ["README.txt", "report.txt", "report.json", "ranks.jsonl"]


def unpacked(data: bytes) -> dict[str, str]:
    """Return the files of a zip archive, by their names without the folder."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {Path(name).name: archive.read(name).decode("utf-8") for name in archive.namelist()}


def files_of(result: Result, history: list[StepResult] | None = None) -> Mapping[str, str]:
    return unpacked(bundle("x.zip", result, history or [])[0])


def test_both_forms_hold_the_same_files() -> None:
    packed, sentence = bundle("/somewhere/x.zip", samples.hang())
    assert list(unpacked(packed)) == _FILES
    assert sentence == f"x.zip has {', '.join(_FILES)}, all of it redacted"
    for name in ("x.tar.gz", "X.TGZ"):
        with tarfile.open(fileobj=io.BytesIO(bundle(name, samples.hang())[0])) as archive:
            assert [Path(member).name for member in archive.getnames()] == _FILES
            assert {Path(member).parts[0] for member in archive.getnames()} == {
                "gpucheck-preflight"
            }


@each("name", ["hang", "several", "misconfigured", "slow", "warned"])
def test_triage_of_the_report_inside_names_the_same_cause(name: str, tmp_path: Path) -> None:
    result = samples.ALL[name]()
    text = files_of(result)["report.json"]
    snapshot = saved(text.encode())
    assert snapshot is not None
    anew = judge_saved(snapshot, TABLES)
    assert anew.root_causes == result.report.root_causes
    assert anew.root_causes
    (tmp_path / "report.json").write_text(text)
    assert load(tmp_path / "report.json").redacted


def test_nothing_of_the_cluster_leaves_it() -> None:
    ranks = samples.ranks(2, 8, r3={"status": "crashed", "detail": "on gpu-0001, /home/alice/x.so"})
    words = f"gpu-0000 and gpu-0001 differ: {samples.uuid(3)}, /home/alice/venv/lib/x.so"
    result = samples.result(
        ranks, samples.culprit("rank-crashed", ranks[3], words), samples.link(ranks[0], ranks[9])
    )
    detail = f"GPU {samples.uuid(4)} of gpu-0000: /home/alice/train.py"
    failed = RankResult(rank=4, status="failed", detail=detail, data={"printed": [detail]})
    step = Step(number=0, kind="alone", groups=((4,),), backend="nccl", seconds=30)
    files = files_of(result, [StepResult(step=step, results={4: failed})])
    assert list(files) == [*_FILES, "steps.jsonl"]
    for name, text in files.items():
        for private in ("gpu-0000", "gpu-0001", "alice", samples.uuid(3)[4:], samples.uuid(4)[4:]):
            assert private not in text, name
    lines = [json.loads(line) for line in files["ranks.jsonl"].splitlines()]
    assert len(lines) == 16
    assert len({line["host"] for line in lines}) == 2
    saved_step = json.loads(files["steps.jsonl"])
    assert (saved_step["step"], saved_step["number"], saved_step["rank"], saved_step["status"]) == (
        "alone",
        0,
        4,
        "failed",
    )
    assert lines[0]["host"] in files["report.txt"]


def test_what_a_rank_printed_before_it_was_ended_is_redacted() -> None:
    look = {
        "error": "OSError: no route to gpu-0001, /home/alice/x.so",
        "python": ["alice/x.py:1 f"],
    }
    ranks = samples.ranks(2, 8, r3={"status": "timed-out", "look": msgspec.convert(look, Look)})
    failed = RankResult(rank=3, status="timed-out", look=msgspec.convert(look, Look))
    step = Step(number=0, kind="alone", groups=((3,),), backend="nccl", seconds=30)
    history = [StepResult(step=step, results={3: failed})]
    result = samples.result(ranks, samples.culprit("rank-hangs", ranks[3], "x"))
    text = "".join(files_of(result, history).values())
    assert text.count("OSError: no route to") > 1
    assert "gpu-0001" not in text
    assert "/home/alice" not in text


def test_names_that_could_be_any_word_have_stand_ins_as_well() -> None:
    """Nodes are called n1, and a launcher may say master."""
    named = {"r0": {"host": "n1"}, "r1": {"host": "master"}, "r2": {"host": "copy"}}
    ranks = samples.ranks(3, 1, **named)  # type: ignore[arg-type]  # fields of many types
    words = "n1 differs from master, copy and n12; rank 1 (host n1)"
    culprit = msgspec.structs.replace(
        samples.culprit("rank-crashed", ranks[0], words), data=OwnFailure(printed="on n1")
    )
    files = files_of(samples.result(ranks, culprit))
    text = " ".join(files["report.txt"].split())
    assert "host2 differs from host3, host4 and n12; rank 1 (host host2)" in text
    for file in files.values():
        assert not re.search(r"\b(n1|master)\b", file)
    report = json.loads(files["report.json"])
    assert report["snapshot"]["facts"]["preflight"]["culprits"][0]["data"]["printed"] == "on host2"


def test_hosts_whose_names_are_stand_ins_of_others_are_not_mixed_up() -> None:
    """In a fix as well, whose words were redacted once already."""
    named = {f"r{at}": {"host": f"host{at + 1}", "address": f"10.77.0.{at + 1}"} for at in range(4)}
    ranks = samples.ranks(4, 1, **named)  # type: ignore[arg-type]  # fields of many types
    route = Route(
        near="host3", near_address="10.77.0.3", far="host2", address="10.77.0.2", port=4000
    )
    cut_off = FailedGroup(kind="store", group=[1, 2], route=route)
    detail = "rank 2 did not reach rank 1 at 10.77.0.2 port 4000"
    culprit = msgspec.structs.replace(
        samples.link(ranks[1], ranks[2], slug="nccl-network-interface"),
        evidence=detail, addresses=("10.77.0.3", "10.77.0.2"), data=cut_off,
    )  # fmt: skip
    files = files_of(samples.result(ranks, culprit))
    for name, text in files.items():
        assert "10.77.0" not in text, name
    report = json.loads(files["report.json"])
    ends = {end["rank"]: end for end in report["ranks"]}
    text = " ".join(files["report.txt"].split())
    near, far = ends[2], ends[1]
    assert f"keeps {near['host']} ({near['address']}) from {far['host']} ({far['address']})" in text
    assert f"nc -l 4000 # on {far['host']}" in text
    assert f"rank 2 did not reach rank 1 at {far['address']} port 4000" in text


def test_addresses_of_peers_have_stand_ins_and_versions_have_none() -> None:
    ranks = samples.ranks(2, 2)
    detail = (
        "connect [10.4.7.9]:51234 and [fd00::12]:80 failed, 10.4.7.9 too; 127.0.0.1:80; "
        "cuDNN 9.10.2.21"
    )
    files = files_of(samples.result(ranks, samples.culprit("rank-hangs", ranks[3], detail)))
    shown = " ".join(files["report.txt"].split())
    assert re.search(
        r"\[(address\d)\]:51234 and \[address\d\]:80 failed, \1 too; 127.0.0.1:80; cuDNN 9.10.2.21",
        shown,
    )
    assert "10.4.7.9" not in "".join(files.values())
    assert "fd00" not in "".join(files.values())


def test_what_stands_in_it_fits_its_schema_and_says_that_it_is_redacted() -> None:
    files = files_of(samples.several())
    report = json.loads(files["report.json"])
    jsonschema.Draft202012Validator(schema("report")).validate(report)
    assert report["snapshot"]["redacted"] is True
    assert "pseudonyms" in files["README.txt"]
    assert (report["exit"], report["class"]) == (1, "culprit")


def test_a_drill_is_loud_in_the_bundle_as_well() -> None:
    files = files_of(samples.drill())
    for name in ("README.txt", "report.txt", "report.json"):
        assert "THIS IS A DRILL: hang:rank=3" in files[name], name


@each("name", samples.ALL)
def test_there_is_a_bundle_of_everything(name: str) -> None:
    files = files_of(samples.ALL[name]())
    assert "\x1b" not in "".join(files.values())
    shown = Public(samples.ALL[name]()).result()
    assert shown.report.snapshot.redacted
    assert shown.ending.status == samples.ALL[name]().ending.status
