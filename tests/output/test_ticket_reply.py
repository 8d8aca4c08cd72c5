"""Replies to whoever reported a problem, in two languages."""

import pasted_samples

from gpucheck import triage
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
    assert "470" in chinese
    assert "最后一个分支" in chinese
    assert "更新驱动" not in chinese
    assert "升级" not in chinese
