"""Replies to whoever reported a problem, in two languages."""

import pasted_samples
import pytest
from replies import untranslated

from gpucheck import triage
from gpucheck.messages.loading import all_messages
from gpucheck.output.ticket_reply import reply

K40M = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.256.02   Driver Version: 470.256.02   CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
|   0  Tesla K40m          Off  | 00000000:03:00.0 Off |                    0 |
| N/A   31C    P0    62W / 235W |      0MiB / 11441MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+

PyTorch version: 2.6.0+cu124
Is CUDA available: False
UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).
"""
SAMPLES = {
    **{
        name: text
        for name, text in vars(pasted_samples).items()
        if isinstance(text, str) and text and not name.startswith("__")
    },
    "K40M": K40M,
}


def test_a_gpu_that_no_newer_driver_drives_is_not_cured_by_a_newer_driver_in_chinese() -> None:
    report = triage(K40M)
    assert report.root_causes == ("driver-too-old",)
    no_newer = "branch 470 is the last that does"
    assert no_newer in reply(report)
    chinese = reply(report, "zh")
    assert no_newer in chinese
    assert "NVIDIA 驱动" not in chinese
    assert "升级" not in chinese
    assert "更新" not in chinese


@pytest.mark.parametrize("name", SAMPLES)
def test_no_chinese_stands_beside_a_different_english_fix(name: str) -> None:
    assert untranslated(triage(SAMPLES[name])) == []


@pytest.mark.parametrize("slug", all_messages())
def test_a_fix_of_a_message_has_its_own_chinese(slug: str) -> None:
    message = all_messages()[slug].messages[0]
    beside = (text for condition in message.beside for text in condition.any_of)
    assert untranslated(triage("\n".join((message.sample, *beside)))) == []


@pytest.mark.parametrize("slug", all_messages())
def test_one_english_sentence_has_one_chinese(slug: str) -> None:
    finding = all_messages()[slug]
    chinese: dict[str, str] = {}
    of_messages = (fix for one in finding.messages for fix in one.fixes)
    for fix in (*finding.fixes, *finding.named_fixes, *of_messages):
        assert chinese.setdefault(fix.text, fix.zh) == fix.zh
