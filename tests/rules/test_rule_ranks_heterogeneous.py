"""ranks-heterogeneous: what a program printed names it, nothing that is read of a machine."""

from rules_support import ask

from gpucheck import triage
from gpucheck.findings import NotApplicable

SLUG = "ranks-heterogeneous"
SHOWN = """
node1:1:1 [0] NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so
node2:1:1 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network \
plugin.
"""
OTHER = """
NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.
"""


def test_a_text_that_shows_it_names_it() -> None:
    report = triage(SHOWN)
    found = next(one for one in report.findings if one.slug == SLUG)
    assert found.evidence[0].source.startswith("line ")
    assert found.fixes
    assert SLUG in report.root_causes


def test_a_text_that_only_sounds_like_it_does_not() -> None:
    assert SLUG not in triage(OTHER).root_causes


def test_a_machine_alone_shows_nothing_of_it() -> None:
    assert isinstance(ask(SLUG), NotApplicable)
