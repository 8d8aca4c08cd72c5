"""What the headers say to the modules that once listed slugs: each question has one answer."""

from typing import get_args

from each import each

from gpucheck.cluster.diagnose import naming
from gpucheck.cluster.diagnose.control_runs import VARIABLES, ControlRun
from gpucheck.findings import all_rules
from gpucheck.findings.form import GroupFailure, InPreflight, Rule
from gpucheck.log_patterns.loading import all_messages

RULES = all_rules()


@each("failure", get_args(GroupFailure))
def test_every_failure_of_a_group_is_of_one_finding(failure: GroupFailure) -> None:
    of_ranks = [slug for slug, rule in RULES.items() if failure in rule.preflight.of_ranks]
    of_links = [slug for slug, rule in RULES.items() if failure in rule.preflight.of_links]
    assert (of_ranks, of_links) == ([naming.of_rank(failure)], [naming.of_link(failure)])


def test_a_way_that_is_not_found_is_of_one_finding() -> None:
    assert [slug for slug, rule in RULES.items() if rule.preflight.is_of_ways] == [
        naming.of_route()
    ]


def test_every_control_run_that_passes_is_of_one_finding() -> None:
    named = [name for rule in RULES.values() for name in rule.preflight.passes_without]
    assert len(named) == len(set(named))
    assert set(named) <= VARIABLES | {"gloo"}
    assert naming.of_control_run(ControlRun(env={}, backend="gloo")) == "nccl-transport-broken"
    assert naming.of_control_run(ControlRun(env={"NCCL_IB_DISABLE": "1"})) == "nccl-infiniband"


def test_what_a_text_alone_shows_has_messages_and_no_check() -> None:
    for slug, rule in RULES.items():
        if rule.seen_in == ("text",):
            assert rule.judge is None
            assert slug in all_messages()


def test_what_a_library_names_has_messages() -> None:
    assert {slug for slug, rule in RULES.items() if rule.named_by} <= all_messages().keys()


def test_a_fix_of_a_preflight_stands_where_its_commands_stand() -> None:
    assert [
        slug for slug, rule in RULES.items() if rule.preflight.commands and not rule.preflight.fix
    ] == []


def test_a_node_is_left_out_for_what_breaks_it() -> None:
    def breaks(**stated: object) -> bool:
        header = {"title": "x", "severity": "error", "family": "cluster"}
        return Rule("x", **header, preflight=InPreflight(**stated)).breaks_node  # type: ignore[arg-type]

    assert breaks()
    assert not breaks(exit_class=4)
    assert breaks(exit_class=5, breaks_node=True)
