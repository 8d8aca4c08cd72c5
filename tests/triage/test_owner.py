"""Whose concern a ticket is: the header of its first root cause says it."""

from typing import get_args

from each import each

from gpucheck import triage
from gpucheck.findings import all_rules
from gpucheck.findings.form import Owner
from gpucheck.ticket.failure import owner_of

TEXTS = {
    "Failed to initialize NVML: Driver/library version mismatch": "environment",
    "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.": "hardware",
    "a:1:2 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000":
        "cluster",
    "PyTorch version: 2.6.0+cu124\nIs CUDA available: True": "none",
    "my screen is black": "unknown",
}  # fmt: skip


@each("text", TEXTS)
def test_the_owner_of_a_text(text: str) -> None:
    assert owner_of(triage(text)) == TEXTS[text]


@each(
    ("slug", "owner"),
    [
        ("application-bug", "code"),
        ("not-gpu-related", "other"),
        ("gpu-hardware-fault", "hardware"),
        ("nvlink-down", "hardware"),
        ("rendezvous-failed", "cluster"),
        ("driver-too-old", "environment"),
    ],
)
def test_the_owner_of_a_finding(slug: str, owner: str) -> None:
    assert all_rules()[slug].owner == owner


def test_every_kind_of_owner_has_a_finding() -> None:
    assert {rule.owner for rule in all_rules().values()} == set(get_args(Owner))
