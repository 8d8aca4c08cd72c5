"""Replies to whoever reported a problem, in two languages."""

import pasted_samples

from gpucheck import triage
from gpucheck.ticket.ticket_reply import reply

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


CUT_OFF = """\
Traceback (most recent call last):
  File "/home/ana/train.py", line 12, in <module>
    model.cuda()
  File "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 900, in cuda
"""


def test_what_is_no_command_is_asked_for_in_a_sentence() -> None:
    report = triage(CUT_OFF)
    assert "\n\nPlease send the end of the traceback.\n\n" in reply(report)
    assert "```" not in reply(report)
    assert "\n\n请提供 traceback 的结尾。\n\n" in reply(report, "zh")


def test_a_command_is_asked_for_in_a_block() -> None:
    report = triage("Why is CUDA not detected on this machine?\n")
    assert "output of:\n\n```sh\npython -m torch.utils.collect_env\n```" in reply(report)


def test_a_build_of_unknown_version_is_named_without_none() -> None:
    report = triage(
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current "
        "PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_50 sm_60 "
        "sm_70 sm_75 sm_80 sm_86 sm_90.\n"
    )
    assert report.root_causes == ("gpu-too-new-for-torch",)
    assert "None" not in reply(report)
    assert "PyTorch  " not in reply(report)
    assert "None" not in reply(report, "zh")


def test_a_condition_of_an_image_ends_before_its_comma() -> None:
    words = "requirement error: unsatisfied condition: cuda>=12.8, please update your driver"
    assert "cuda&gt;=12.8, which" in reply(triage(f"nvidia-container-cli: {words}"))
