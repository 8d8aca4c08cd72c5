"""What is known of a culprit: typed here, and in JSON as every release has written it."""

from typing import Any

import msgspec
import preflight_samples as samples
import pytest
import report_samples
from each import each

from gpucheck.facts import builtins
from gpucheck.facts.preflight import (
    BadPorts,
    Culprit,
    CulpritData,
    Differs,
    FailedGroup,
    Late,
    LinksDown,
    NotAsRequired,
    OwnFailure,
    PacketLoss,
    Preflight,
    RateTooLow,
    SharedGpu,
    SlowGpu,
    SlowLink,
    Throttled,
    culprit_data,
    decoded,
    without_fixes,
)
from gpucheck.output.redact import redact

WAY = {"from": "n2", "to": "n1", "address": "10.0.0.2", "port": 4000, "from_address": "10.0.0.3"}
RUN = {"env": {"NCCL_P2P_DISABLE": "1"}, "backend": "nccl", "passed": None}
FIX = {
    "text": "x", "commands": [], "verify": "", "restart": "", "classes": [], "cautions": [],
}  # fmt: skip
FORMS: list[tuple[type[CulpritData], dict[str, Any]]] = [
    (FailedGroup, {"kind": "hang", "group": [0, 1]}),
    (FailedGroup, {"kind": "store", "group": [0, 1], "way": WAY, "arms": [RUN]}),
    (FailedGroup, {"kind": "hang", "group": [0], "arms": [], "variables": {}, "backend": "gloo"}),
    (SharedGpu, {"uuid": None}),
    (LinksDown, {"links": 17, "usual": 18}),
    (BadPorts, {"ports": ["mlx5_0/1"]}),
    (Differs, {"differs": ["torch"], "tied": False}),
    (Differs, {"differs": ["command line"]}),
    (NotAsRequired, {"required": 8, "found": 7}),
    (NotAsRequired, {"required": 300.0, "found": 250.5, "ratio": 0.835}),
    (SlowGpu, {"rate": "fp32 TFLOP/s", "values": [1.0], "usual": 2.0, "ratio": 0.5}),
    (RateTooLow, {"rate": "fp32 TFLOP/s", "ratio": 0.5, "usual": 2.0}),
    (SlowLink, {"ratio": 0.5, "busbw": [1.0, 2.0], "usual": 4.0, "size": 1048576}),
    (PacketLoss, {"kind": "loses-packets", "sent": 900, "lost": 300}),
    (Late, {"kind": "late", "seconds": 1.5, "times": 4}),
    (Throttled, {"kind": "throttled", "throttled": 119, "periods": 124, "fixes": [FIX]}),
    (Throttled, {"kind": "throttled", "throttled": 119, "periods": 124}),
    (OwnFailure, {"kind": "signal", "signal": 11, "look": {"state": "stopped"}, "fixes": [FIX]}),
    (OwnFailure, {}),
    (OwnFailure, {"kind": "hang", "group": "all"}),
    (OwnFailure, {"links": 17, "usual": 18, "of a later release": 1}),
]


@each(("form", "plain"), FORMS)
def test_each_form_is_told_by_its_keys_and_written_as_it_was(
    form: type[CulpritData], plain: dict[str, Any]
) -> None:
    one = Culprit(slug="rank-hangs", data=culprit_data(plain))
    assert type(one.data) is form
    text = msgspec.json.encode(one)
    assert text.endswith(b'"data":' + msgspec.json.encode(plain) + b"}")
    assert msgspec.json.decode(text, type=Culprit, dec_hook=decoded) == one
    assert msgspec.convert(builtins(one), Culprit, dec_hook=decoded) == one
    assert list(builtins(without_fixes(one.data))) == [key for key in plain if key != "fixes"]


@each(("form", "plain"), FORMS)
def test_a_redacted_culprit_keeps_its_form(form: type[CulpritData], plain: dict[str, Any]) -> None:
    one = samples.culprit("rank-hangs", samples.ranks(1, 1)[0], "x")
    known = msgspec.structs.replace(one, data=culprit_data(plain))
    whole = report_samples.healthy().snapshot.with_section(Preflight(culprits=[known]))
    shown = redact(whole).get(Preflight).culprits or []
    assert [type(one.data) for one in shown] == [form]


@each("odd", [[], "x", 3, None])
def test_data_that_are_no_object_are_refused(odd: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"slug": "rank-hangs", "data": odd}, Culprit, dec_hook=decoded)


def test_what_nobody_could_have_seen_or_advised_is_left_out() -> None:
    odd = OwnFailure(look={"state": "on fire"}, fixes=[{"text": 3}])
    assert (odd.look, odd.fixes) == (None, [])
