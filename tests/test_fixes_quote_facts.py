"""Whatever a text of a machine or of a saved report contains, no shell executes a part of it.

Each text of a snapshot gets a marker that every wrong quoting lets out, and the machine is judged
again: one text after another, because a marker in a version or a name may hide the finding that
puts the other texts into commands.
"""

import functools
import re
import shlex
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from each import each
from rule_facts import A100, nvml
from rules_machines import UBUNTU
from rules_support import snapshot
from selftest_facts import failed, ran, result
from test_machines import EACH, judged, reported

from gpucheck.derived.surroundings import set_in_shell
from gpucheck.engine import Report
from gpucheck.facts import Section
from gpucheck.facts.preflight import Culprit, OwnFailure, Preflight, RankOutcome, culprit_data
from gpucheck.facts.selftests import SelfTest
from gpucheck.facts.snapshot import decode
from gpucheck.findings.witnesses.selftest_says import MEETING
from gpucheck.language import plain

pytestmark = pytest.mark.every_finding

POSIX = "x';$(touch PWNED)\"&"
WINDOWS = "x;$(calc PWNED)&'"  # a path of Windows has no double quote
WINDOWS_QUOTED = f'{WINDOWS}"&calc'
_SEPARATORS = ("|", "||", "&&", ";")
_IN_SINGLE = re.compile(r"'(?:[^']|'')*'")
ADVICE = {"text": "Do it.", "commands": ["PWNED"], "verify": "PWNED"}
_UNSAFE = re.compile(r"[^A-Za-z0-9._:,-]")
OFTEN = (
    "nodes-eacces-mode", "pcie-x4-of-x16", "fabric-manager-other-release", "wsl1",
    "libcuda-missing-nvml-there", "windows-cpu-build", "torch-py-shadow", "cvd-bad-uuid",
)  # fmt: skip
"""Machines whose commands are made of many kinds of facts."""
Path_ = tuple[str | int, ...]


def texts(value: object, path: Path_ = ()) -> Iterator[tuple[Path_, str]]:
    """The texts of facts; sources and reasons are shown and get into no command."""
    if isinstance(value, str):
        yield path, value
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        if key not in ("sources", "problems"):
            yield from texts(inner, (*path, key))


def changed(document: dict[str, Any], paths: list[Path_], marker: str) -> dict[str, Any]:
    """The document with the marker at the end of these texts."""
    facts = msgspec.json.encode(document["facts"], enc_hook=plain)  # a fifth of what a copy takes
    other = {**document, "facts": msgspec.json.decode(facts)}
    for path in paths:
        owner = functools.reduce(lambda part, key: part[key], path[:-1], other["facts"])
        owner[path[-1]] += marker
    return other


def commands(document: dict[str, Any]) -> list[str]:
    """The commands and the verifications; none if the marker makes the document another form."""
    try:
        taken = decode(msgspec.json.encode(document, enc_hook=plain))
    except msgspec.ValidationError:
        return []
    return printed(judged(taken))


def printed(report: Report) -> list[str]:
    fixes = [fix for finding in report.findings for fix in finding.fixes]
    return [command for fix in fixes for command in (*fix.commands, fix.verify)]


def kinds(document: dict[str, Any]) -> Iterator[list[Path_]]:
    """The paths of texts that are the same fact of several items, together."""
    found: dict[tuple[str, ...], list[Path_]] = {}
    for path, _text in texts(document["facts"]):
        kind = tuple("*" if isinstance(key, int) else key for key in path)
        found.setdefault(kind, []).append(path)
    yield from found.values()


def in_commands(document: dict[str, Any], report: Report) -> Iterator[list[Path_]]:
    """Those of which a part stands in a command as it is."""
    whole = "\n".join(printed(report))
    of = dict(texts(document["facts"]))
    for paths in kinds(document):
        if any(of[path] and of[path] in whole for path in paths):
            yield paths


def check_posix(command: str, marker: str = POSIX) -> None:
    if "PWNED" not in command:
        return
    words = shlex.split(command)
    marked = [at for at, word in enumerate(words) if "PWNED" in word]
    assert marked, command
    for at in marked:
        assert marker in words[at] or not _UNSAFE.search(words[at]), command
        head = at == 0 or words[at - 1] in _SEPARATORS
        assert not head or "/" in words[at], command  # the Python itself may have any path


def check_windows(command: str) -> None:
    """Neither shell may see a part outside quotes, PowerShell none in double quotes."""
    if command.startswith("$env:"):
        assert "calc" not in _IN_SINGLE.sub("", command), command
    elif command.startswith('set "'):  # for cmd alone
        assert command.count('"') == 2, command
        assert command.endswith('"'), command
    else:
        assert "calc" not in command, command


def check(document: dict[str, Any], paths: list[Path_]) -> None:
    if document["facts"]["system"].get("os") != "windows":
        for command in commands(changed(document, paths, POSIX)):
            check_posix(command)
        return
    for marker in (WINDOWS, WINDOWS_QUOTED):
        for command in commands(changed(document, paths, marker)):
            check_windows(command)


def check_machine(name: str) -> None:
    document = reported(name).snapshot.as_json()
    for paths in in_commands(document, reported(name)):
        check(document, paths)


@each("name", OFTEN)
def test_no_text_that_stands_in_a_command_is_executed(name: str) -> None:
    check_machine(name)


@pytest.mark.exhaustive
@EACH
def test_nor_is_one_of_any_machine(name: str) -> None:
    check_machine(name)


@pytest.mark.exhaustive
@each("name", OFTEN)
def test_nor_is_a_text_that_stands_in_no_command_yet(name: str) -> None:
    document = reported(name).snapshot.as_json()
    for paths in kinds(document):
        check(document, paths)


def saved() -> Iterator[Section]:
    """Sections that no recorded machine has: of self-tests and of a pre-flight."""
    wrong = failed("cublas-matmul", "wrong-value")
    yield ran(wrong, devices=("cuda:0", "cuda:1"))
    yield ran(failed("onnx-export", "wrong-value"), result("cublas-matmul"))
    held = "Process 7 has 20.0 GiB memory in use. GPU 0 has a total capacity of 23.64 GiB"
    yield ran(failed("cublas-matmul", "out-of-memory", held))
    control = {"cured_by": {"NCCL_SHM_DISABLE": "1"}, "goes_wrong_again": True}
    yield ran(*ranks("wrong-value", "wrong-value", data={"control": control}))
    yield ran(*ranks("collective-timeout", "collective-timeout"))
    for kind in ("collective-timeout", "signal"):
        yield ran(*ranks(kind, ""))
    yield ran(*ranks("collective-timeout", "", data={"waited_in": MEETING}))
    way = {"from": "n2", "to": "n1", "address": "fe80::1%eth0", "port": 4000, "from_address": "::2"}
    off = {"NCCL_P2P_DISABLE": "1"}
    group: dict[str, object] = {"kind": "store", "group": [0, 1]}
    cut_off, without = (
        culprit_data({**group, "way": way}),
        culprit_data({**group, "variables": off}),
    )
    traced = OwnFailure(look={"state": "traced"})
    yield Preflight(
        launcher="slurm",
        finished=True,
        ranks=[RankOutcome(rank=rank, task=rank, host=f"n{rank}") for rank in range(4)],
        culprits=[
            Culprit(
                slug="nccl-network-interface",
                host="n1",
                is_link=True,
                data=cut_off,
            ),
            Culprit(
                slug="nccl-p2p-broken",
                host="n2",
                hosts=("n2",),
                data=without,
            ),
            Culprit(slug="rank-hangs", rank=3, host="n3", data=traced),
            Culprit(slug="torch-missing", host="n3", data=OwnFailure(fixes=[ADVICE])),
        ],
    )


def ranks(*kinds: str, **more: Any) -> list[SelfTest]:  # noqa: ANN401
    more = {"world_size": len(kinds), **more}
    return [
        failed("all-reduce", kind, rank=rank, device=f"cuda:{rank}", **more)
        if kind
        else result("all-reduce", rank=rank, device=f"cuda:{rank}", world_size=len(kinds))
        for rank, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize("section", [*saved()], ids=lambda case: case.name)
def test_no_text_of_a_saved_report_is_executed(section: Section) -> None:
    document = snapshot(UBUNTU, nvml(A100, A100), section).as_json()
    for paths in kinds(document):
        check(document, paths)
    assert any(
        "gpucheck selftest" in command or "NodeName=" in command for command in commands(document)
    )


def test_a_value_that_begins_with_an_equals_sign_stays_one_word() -> None:
    """It is quoted for zsh; a quote within it must not end that."""
    for value in ("=mlx5_0", "='; touch x; '", "=a b", "plain"):
        words = shlex.split(set_in_shell("NCCL_IB_HCA", value))
        assert words == ["export", f"NCCL_IB_HCA={value}"]
    assert set_in_shell("NCCL_IB_HCA", "=mlx5_0") == "export NCCL_IB_HCA='=mlx5_0'"
