"""What the redaction of a snapshot makes of a pre-flight: thousands of hosts and UUIDs."""

import time

import preflight_samples as samples
import pytest
from rules_support import snapshot

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Bandwidth, Preflight
from gpucheck.facts.system import Environment
from gpucheck.output.redact import redact, redact_text


def test_a_choice_among_fixed_words_stays_what_it_is() -> None:
    preflight = redact(samples.several().report.snapshot).get(Preflight)
    first = (preflight.culprits or [])[0]
    assert first.severity is Severity.ERROR
    assert first.confidence is Confidence.CERTAIN


def test_hosts_and_uuids_have_the_same_stand_in_wherever_they_stand() -> None:
    result = samples.hang(2, 4)
    private = result.report.snapshot
    preflight = redact(private).get(Preflight)
    culprit = (preflight.culprits or [])[0]
    last = (preflight.ranks or [])[7]
    assert (culprit.host, culprit.uuid) == (last.host, last.uuid)
    assert culprit.uuid != samples.uuid(7)
    words = f"{samples.uuid(7)} of gpu-0001 failed"
    assert redact_text(words, private) == f"{last.uuid} of {last.host} failed"


def test_what_a_bandwidth_was_compared_with_is_a_text_like_any_other() -> None:
    bandwidth = Bandwidth(
        collective="all-reduce", ranks=2, nodes=1, size=4, seconds=1.0, busbw=1.0,
        compared_with="what /home/alice/base.json has",
    )  # fmt: skip
    shown = redact(snapshot(Preflight(bandwidths=[bandwidth]))).get(Preflight)
    assert "alice" not in (shown.bandwidths or [bandwidth])[0].compared_with


def test_of_an_unknown_uuid_the_start_is_replaced_that_somebody_chose() -> None:
    private = snapshot(Environment(variables={"CUDA_VISIBLE_DEVICES": "GPU-8f2c1c55"}))
    words = "GPU-8f2c1c55-0b8d-4c39-9d2b-7f3f4c1e5a90 and GPU-8f2c1c55 are lost"
    assert "8f2c1c55" not in redact_text(words, private)
    unknown = "11e4aa00-0a1b-4c2d-8e3f-4a5b6c7d8e9f"
    assert redact_text(f"no {unknown} here", private) == f"no {unknown} here"


@pytest.mark.hostile
def test_thousands_of_gpus_take_seconds_at_most() -> None:
    result = samples.hang(250, 8)
    begun = time.process_time()
    redact(result.report.snapshot)
    assert time.process_time() - begun < 3
