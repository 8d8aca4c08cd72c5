"""Culprits of a pre-flight as findings: any slug, who and where, and what to do about it."""

import json

import pytest
from each import each
from rules_machines import NO_TORCH
from rules_support import TABLES, ask, snapshot

from gpucheck.cluster.diagnose.control_runs import _CONTROL_RUNS
from gpucheck.derived.selftest_results import control_run
from gpucheck.engine import diagnose
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.preflight import (
    Culprit,
    CulpritData,
    OwnFailure,
    Preflight,
    RankOutcome,
    culprit_data,
)
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.snapshot import decode
from gpucheck.facts.system import Pci
from gpucheck.findings import all_rules
from gpucheck.findings.form import Fine, Hit, NotApplicable
from gpucheck.findings.links import REPLACE_THE_LINK
from gpucheck.findings.ranks import HELD, RAISE_THE_LIMIT
from gpucheck.findings.witnesses.preflight_says import PreflightSays
from gpucheck.output.redact import redact, redaction
from gpucheck.selftests.launcher import CONTROL_RUNS

pytestmark = pytest.mark.every_finding

UUIDS = [f"GPU-{rank:08x}-1111-2222-3333-444455556666" for rank in range(8)]
RANKS = [
    RankOutcome(
        rank=rank, task=rank // 4, host=f"node{rank // 4}", node=rank // 4, device="cuda:0",
        gpu=rank % 4, pci=f"0000:{rank % 4 + 1:02x}:00.0", uuid=UUIDS[rank], model="NVIDIA H200",
    )
    for rank in range(8)
]  # fmt: skip
HANGS = Culprit(
    slug="rank-hangs", rank=5, ranks=(5,), host="node1", hosts=("node1",), gpu=1,
    pci="0000:02:00.0", uuid=UUIDS[5], phase="enter", evidence="it never entered the all-reduce",
)  # fmt: skip


def seen(*culprits: Culprit, launcher: str = "torchrun") -> Preflight:
    return Preflight(
        culprits=list(culprits), ranks=RANKS, launcher=launcher, finished=True,
        sources={"*": "gpucheck preflight"},
    )  # fmt: skip


def hit(slug: str, preflight: Preflight) -> Hit:
    (found,) = [claim for claim in PreflightSays(preflight).claims() if claim.slug == slug]
    return found.hit


@each("slug", all_rules())
def test_every_slug_can_be_carried_by_a_culprit(slug: str) -> None:
    """Also where this machine has no GPU, is meant to use none, or has passed its self-tests."""
    culprit = Culprit(slug=slug, rank=5, ranks=(5,), host="node1", evidence="seen to fail")
    here = (
        Pci(gpus=[], nvswitches=0, other_display_vendors=[], jetson_gpu=""),
        Request(gpus=0),
        SelfTests(level="quick", devices=["cuda:0"], results=[
            SelfTest(name=name, device="cuda:0", status="passed") for name in
            ("import-torch", "device-placement", "cublas-matmul", "cudnn-convolution")]),
    )  # fmt: skip
    diagnosis = diagnose(snapshot(seen(culprit), *here), TABLES)
    (found,) = [finding for finding in diagnosis.findings if finding.slug == slug]
    assert "seen to fail" in found.headline
    assert found.fixes


def test_a_slug_of_no_rule_is_no_claim() -> None:
    assert PreflightSays(seen(Culprit(slug="of-tomorrow"), HANGS)).claims()[0].slug == "rank-hangs"


def test_a_claim_has_a_place() -> None:
    (claim,) = PreflightSays(seen(HANGS)).claims()
    assert claim.place == f"rank 5 (host node1, GPU 1, PCI 0000:02:00.0, {UUIDS[5]})"


def test_what_was_seen_elsewhere_speaks_in_place_of_what_is_known_here() -> None:
    here = snapshot(seen(Culprit(slug="torch-missing", host="node1", evidence="gone")), NO_TORCH)
    (found,) = [
        finding for finding in diagnose(here, TABLES).findings if finding.slug == "torch-missing"
    ]
    assert found.headline.endswith("host node1: gone")
    assert [evidence.fact for evidence in found.evidence] == ["preflight.culprits.0.evidence"]


def test_a_rank_is_named_with_all_that_leads_to_it() -> None:
    found = hit("rank-hangs", seen(HANGS))
    assert found.headline == (
        f"A rank is stuck: rank 5 (host node1, GPU 1, PCI 0000:02:00.0, {UUIDS[5]}): "
        "it never entered the all-reduce"
    )
    assert found.evidence == ("preflight.culprits.0.evidence",)
    diagnosis = diagnose(snapshot(seen(HANGS)), TABLES)
    (stuck,) = [finding for finding in diagnosis.findings if finding.slug == "rank-hangs"]
    assert stuck.evidence[0].value == "it never entered the all-reduce"
    assert stuck.evidence[0].source == "gpucheck preflight"


def test_several_are_one_finding_that_begins_with_the_gravest() -> None:
    mild = Culprit(slug="gpu-slow", ranks=(2,), rank=2, severity=Severity.WARNING, evidence="75%")
    grave = Culprit(slug="gpu-slow", ranks=(6,), rank=6, evidence="31%")
    found = hit("gpu-slow", seen(mild, HANGS, grave))
    assert found.headline.startswith("A GPU is much slower than it should be: rank 6 (host node1")
    assert found.headline.endswith("31% (and 1 more)")
    assert found.severity is Severity.ERROR
    assert found.evidence == ("preflight.culprits.2.evidence", "preflight.culprits.0.evidence")


def test_a_link_has_two_ends_a_node_its_host() -> None:
    link = Culprit(slug="link-slow", ranks=(1, 6), rank=1, is_link=True, evidence="slow")
    headline = hit("link-slow", seen(link)).headline
    assert "the link between rank 1 (host node0, GPU 1, PCI 0000:02:00.0" in headline
    assert "and rank 6 (host node1, GPU 2, PCI 0000:03:00.0" in headline
    both = Culprit(
        slug="link-slow", ranks=tuple(range(8)), is_link=True, hosts=("node0", "node1"),
        confidence=Confidence.POSSIBLE, evidence="slow",
    )  # fmt: skip
    assert "the links between node0, node1 (8 ranks): slow" in hit("link-slow", seen(both)).headline
    node = Culprit(slug="nccl-infiniband", ranks=(4, 5, 6, 7), hosts=("node1",), evidence="down")
    assert "host node1 (ranks 4, 5, 6, 7): down" in hit("nccl-infiniband", seen(node)).headline


def test_versions_that_differ_among_ranks_are_not_called_something_else() -> None:
    differs = Culprit(slug="nccl-version-mismatch", hosts=("node1",), evidence="NCCL: 2.21.5 ...")
    headline = hit("nccl-version-mismatch", seen(differs)).headline
    assert headline.startswith("The ranks have different releases of NCCL: host node1")


def commands(found: Hit) -> list[str]:
    return [command for fix in found.fixes for command in fix.commands]


def test_under_slurm_a_broken_node_is_drained_and_left_out() -> None:
    given = commands(hit("rank-hangs", seen(HANGS, launcher="slurm")))
    assert "scontrol update NodeName=node1 State=DRAIN Reason='gpucheck: rank-hangs'" in given
    assert "srun --exclude=node1 COMMAND" in given
    elsewhere = hit("rank-hangs", seen(HANGS, launcher="kubernetes"))
    assert not any("scontrol" in command for command in commands(elsewhere))
    assert any("--exclude-file" in fix.text for fix in elsewhere.fixes)


@each(
    "culprit",
    [
        Culprit(slug="rank-hangs", ranks=(5,), host="node1", confidence=Confidence.POSSIBLE),
        Culprit(slug="link-slow", ranks=(1, 6), is_link=True, hosts=("node0", "node1")),
        Culprit(slug="gpu-slow", ranks=(5,), host="node1", severity=Severity.WARNING),
        Culprit(slug="ranks-heterogeneous", ranks=(4, 5), hosts=("node1",)),
        Culprit(slug="nccl-transport-broken", hosts=("node0", "node1")),  # every node there is
        Culprit(slug="rank-crashed", ranks=(3,)),
    ],
)
def test_no_node_is_drained_that_is_not_surely_to_blame(culprit: Culprit) -> None:
    found = hit(culprit.slug, seen(culprit, launcher="slurm"))
    assert not any("scontrol" in command for command in commands(found))
    assert found.fixes


def test_a_host_with_an_odd_name_gets_into_no_shell() -> None:
    odd = Culprit(slug="rank-hangs", ranks=(5,), host="x; rm -rf /", hosts=("x; rm -rf /",))
    given = commands(hit("rank-hangs", seen(odd, launcher="slurm")))
    assert "srun --exclude='x; rm -rf /' COMMAND" in given


def of_group(**more: object) -> CulpritData:
    """Return the data of a group that fails."""
    return culprit_data({"kind": "store", "group": [0, 1], **more})


def test_a_way_is_looked_at_from_both_its_ends() -> None:
    way = {
        "from": "n2", "from_address": "10.0.0.3", "to": "n1", "address": "10.0.0.2", "port": 4000
    }  # fmt: skip
    slug = "nccl-network-interface"
    [fix] = hit(slug, seen(Culprit(slug=slug, host="n1", data=of_group(way=way)))).fixes
    assert fix.text.startswith("Find out what keeps n2 (10.0.0.3) from n1 (10.0.0.2): ")
    assert fix.commands[:3] == (
        "ip route get 10.0.0.2  # on n2", "nc -l 4000  # on n1",
        "nc -vz -w 5 10.0.0.2 4000  # on n2, meanwhile",
    )  # fmt: skip


@each(
    "changed",
    [
        {"address": "$(id)"}, {"address": "host1"}, {"port": "x; id"}, {"port": None},
        {"address": None}, {"address": 7 ** 60}, {"address": "fe80::1%$(id)"},
        {"address": "fe80::1%eth0 x"}, {"address": "fe80::1%" + "a" * 16}, {"port": -1},
        {"port": 70_000},
    ],
)  # fmt: skip
def test_of_an_odd_way_only_the_usual_is_said(changed: dict[str, object]) -> None:
    way = {"from": "n2", "to": "n1", "address": "10.0.0.2", "port": 4000, **changed}
    slug = "nccl-network-interface"
    found = hit(slug, seen(Culprit(slug=slug, host="n1", data=of_group(way=way))))
    assert "Name the interface" in found.fixes[0].text
    odd = {"from": "a\n rm -rf x", "to": "`id`", "address": "10.0.0.2", "port": 1}
    found = hit(slug, seen(Culprit(slug=slug, host="n1", data=of_group(way=odd))))
    assert found.fixes[0].commands[:2] == (
        "ip route get 10.0.0.2  # on arm-rfx",
        "nc -l 1  # on id",
    )


def test_a_link_local_address_keeps_its_interface() -> None:
    way = {"from": "n2", "to": "n1", "address": "fe80::1%eth0.5", "port": 4000}
    slug = "nccl-network-interface"
    found = hit(slug, seen(Culprit(slug=slug, host="n1", data=of_group(way=way))))
    assert found.fixes[0].commands[0] == "ip route get fe80::1%eth0.5  # on n2"


@each(
    "variables",
    [
        {"NCCL;reboot;X": "1"}, {"LD_PRELOAD": "/tmp/x.so"}, {"NCCL_P2P_DISABLE": "1;reboot"},
        {"NCCL_P2P_DISABLE": 1}, {"NCCL_P2P_DISABLE": "1", "LD_PRELOAD": None}, ["x"], "x", {},
    ],
)  # fmt: skip
def test_variables_that_no_control_run_sets_get_into_no_command(variables: object) -> None:
    slug = "nccl-p2p-broken"
    odd = hit(slug, seen(Culprit(slug=slug, host="n1", data=of_group(variables=variables))))
    assert odd == hit(slug, seen(Culprit(slug=slug, host="n1")))


def test_every_control_run_is_known_to_the_findings() -> None:
    runs = [env for env, _within, _between in _CONTROL_RUNS] + [*CONTROL_RUNS]
    assert [control_run(env) for env in runs] == runs


def test_many_hosts_stand_in_a_file_not_in_a_command() -> None:
    many = [Culprit(slug="rank-crashed", host=f"n{n}", hosts=(f"n{n}",)) for n in range(40)]
    found = hit("rank-crashed", seen(*many, launcher="slurm"))
    assert not any("scontrol" in command for command in commands(found))
    assert "n0 and 39 more" in found.fixes[0].text


def test_the_control_run_that_passed_is_the_first_thing_to_do() -> None:
    passed = Culprit(
        slug="nccl-p2p-broken", hosts=("node1",), evidence="passes without P2P",
        data=of_group(variables={"NCCL_P2P_DISABLE": "1"}),
    )  # fmt: skip
    fix = hit("nccl-p2p-broken", seen(passed)).fixes[0]
    assert fix.commands == ("export NCCL_P2P_DISABLE=1",)
    assert fix.verify == "NCCL_P2P_DISABLE=1 gpucheck preflight"


def test_what_the_rules_of_the_other_node_advise_is_passed_on() -> None:
    advice = [{"text": "Install it.", "commands": ["pip install torch"], "verify": "gpucheck"}]
    there = Culprit(
        slug="torch-missing", host="node1", evidence="no torch", data=OwnFailure(fixes=advice)
    )
    assert commands(hit("torch-missing", seen(there))) == ["pip install torch"]
    for nonsense in ("rm -rf /", [{"text": 3}], {"a": 1}):
        odd = Culprit(slug="torch-missing", host="node1", data=OwnFailure(fixes=nonsense))
        (fix,) = hit("torch-missing", seen(odd)).fixes
        assert fix.text.startswith("Run a check on node1:")
        assert fix.commands == ("gpucheck",)


def test_a_host_without_a_gpu_is_told_where_to_start_the_job() -> None:
    here = Culprit(slug="no-nvidia-gpu", host="node1", evidence="has no GPU to test")
    (fix,) = hit("no-nvidia-gpu", seen(here)).fixes
    assert "where there are NVIDIA GPUs" in fix.text
    assert fix.commands == ("gpucheck preflight --device cpu",)


def test_without_a_culprit_the_rules_say_what_they_said() -> None:
    assert isinstance(ask("rank-hangs"), NotApplicable)
    fine = ask("rank-hangs", Preflight(culprits=[], finished=True))
    assert fine == Fine("the pre-flight found no sign of it")
    early = ask("rank-hangs", Preflight(culprits=[], finished=False, stopped_because="time is out"))
    assert isinstance(early, NotApplicable)
    assert "time is out" in early.reason


def test_a_rank_of_which_nothing_is_known_is_named_all_the_same() -> None:
    says = PreflightSays(Preflight())
    assert says.place(Culprit(slug="rank-missing", rank=9, ranks=(9,))) == "rank 9"
    assert says.place(Culprit(slug="rank-missing", rank=9)) == "rank 9"
    assert says.place(Culprit(slug="nccl-timeout")) == "the job"


def test_a_redacted_report_names_no_host_and_no_gpu() -> None:
    tied = Culprit(slug="ranks-heterogeneous", hosts=("node0", "node1"), evidence="on node0, node1")
    full = snapshot(seen(HANGS, tied))
    headline = diagnose(full, TABLES).findings[0].headline
    bare = redact(full)
    text = str(bare.get(Preflight)) + redaction(full).text(headline)
    for private in ("node0", "node1", UUIDS[5]):
        assert private not in text
    assert {finding.slug for finding in diagnose(bare, TABLES).findings} == {
        finding.slug for finding in diagnose(full, TABLES).findings
    }


def read_again(*culprits: Culprit) -> Preflight:
    return decode(json.dumps(snapshot(seen(*culprits)).as_json()).encode()).get(Preflight)


def test_a_saved_report_brings_no_command() -> None:
    """Of its data only what is checked gets into commands; whatever else it says is left out."""
    advice = [{"text": "Do it.", "commands": ["curl -s x | sudo sh"], "verify": "reboot"}]
    data = OwnFailure(fixes=advice, kind="import-failed", variables={"NCCL;reboot;X": "1"})
    there = Culprit(slug="torch-missing", host="node1", evidence="no torch", data=data)
    assert hit("torch-missing", seen(there)).fixes[0].commands == ("curl -s x | sudo sh",)
    again = read_again(there)
    assert again.culprits is not None
    assert again.culprits[0].data == OwnFailure(
        kind="import-failed", variables={"NCCL;reboot;X": "1"}
    )
    (fix,) = hit("torch-missing", again).fixes
    assert (fix.commands, fix.verify) == (("gpucheck",), "gpucheck preflight")


@each(
    ("slug", "data", "fix"),
    [
        (
            "rank-slow",
            {"kind": "throttled", "throttled": 9, "periods": 10},
            RAISE_THE_LIMIT,
        ),
        ("link-slow", {"kind": "loses-packets", "sent": 9, "lost": 3}, REPLACE_THE_LINK),
        ("rank-hangs", {"look": {"state": "traced"}}, HELD["traced"]),
        ("rank-hangs", {"look": {"zygote": "frozen"}}, HELD["frozen"]),
    ],
)
def test_a_saved_report_keeps_what_gpucheck_knows_against_it(
    slug: str, data: dict[str, object], fix: Fix
) -> None:
    named = Culprit(slug=slug, host="node1", data=culprit_data(data))
    assert hit(slug, read_again(named)).fixes[-1] == fix
    assert hit(slug, seen(named)).fixes[-1] == fix


def test_a_saved_report_keeps_its_way_and_its_control_run() -> None:
    way = {"from": "n2", "to": "n1", "address": "10.0.0.2", "port": 4000}
    off = {"NCCL_P2P_DISABLE": "1"}
    for culprit in (
        Culprit(slug="nccl-network-interface", host="n1", data=of_group(way=way)),
        Culprit(slug="nccl-p2p-broken", host="n1", data=of_group(variables=off)),
    ):
        assert (
            hit(culprit.slug, read_again(culprit)).fixes == hit(culprit.slug, seen(culprit)).fixes
        )


def test_a_saved_snapshot_keeps_it() -> None:
    full = snapshot(seen(HANGS))
    again = decode(json.dumps(full.as_json()).encode())
    assert again.get(Preflight) == full.get(Preflight)
