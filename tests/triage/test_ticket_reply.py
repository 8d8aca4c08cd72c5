"""Replies to whoever reported a problem, in two languages."""

import pasted_samples

from gpucheck import triage
from gpucheck.facts.request import Pasted
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


SMI = K40M.partition("\n\n")[0].replace("470.256.02", "570.172.08").replace("11.4", "12.8")
SMI = SMI.replace("Tesla K40m ", "NVIDIA A100").replace("11441MiB", "81920MiB")


def test_only_what_was_seen_is_said_to_work() -> None:
    table = reply(triage(SMI))
    assert "the driver finds its GPU. Whether PyTorch can use it is not shown." in table
    torch = reply(triage("PyTorch version: 2.6.0+cu124\nIs CUDA available: True\n"))
    assert "PyTorch can use CUDA and the GPU there." in torch
    asked = reply(triage("How do I train on several GPUs? Is there an example for two cards?"))
    assert "works" not in asked
    assert "driver finds" not in asked
    assert all("please send" in answer for answer in (table, torch, asked))


def test_what_was_sent_is_not_asked_for_again() -> None:
    environment = "PyTorch version: 2.6.0+cu124\nIs CUDA available: True\nOS: Ubuntu 24.04\n"
    assert "collect_env" not in reply(triage(environment))
    assert "the command that you run, with its complete output" in reply(triage(environment))
    failed = "RuntimeError: Found no NVIDIA driver on your system\n"
    assert "collect_env" in reply(triage(failed))


def test_a_driver_is_asked_by_the_commands_of_its_platform() -> None:
    failed = "RuntimeError: Failed to initialize NVML: Driver/library version mismatch\n"
    assert "dmesg" in reply(triage(failed))
    assert "dmesg" not in reply(triage(f"{failed}OS: Microsoft Windows 11 Pro\n"))
    wsl = "Linux pc 5.15.153.1-microsoft-standard-WSL2 x86_64 GNU/Linux\n"
    assert "wsl.exe --version" in reply(triage(failed + wsl))
    mac = "OS: macOS 15.5 (arm64)\nAssertionError: Torch not compiled with CUDA enabled\n"
    assert triage(mac).root_causes[0] == "no-nvidia-gpu"
    assert "nvidia-smi\n" not in reply(triage(mac))


def test_who_cannot_install_and_who_waits_are_asked_for_something_else() -> None:
    assert "the command that installs it" in reply(triage("torch 装不上"))
    assert "安装时所用的命令" in reply(triage("pip install of torch fails"), "zh")
    assert "`nvidia-smi` while the program runs" in reply(triage("My GPU is slow, please help"))


def test_a_quote_keeps_its_punctuation() -> None:
    said = "[rank0]: 提示：Torch not compiled with CUDA enabled，怎么解决？急！"
    assert "`line 1: 提示: Torch not compiled with CUDA enabled，怎么解决？急！`" in reply(
        triage(said)
    )
    kernel = "IndexKernel.cu:92: operator(): block: [0,0,0], Assertion `index >= 0` failed."
    assert f"`` line 1: {kernel} ``" in reply(triage(f"torch\n{kernel}".partition("\n")[2]))


def test_a_message_ends_where_a_chinese_sentence_begins() -> None:
    report = triage("报错RuntimeError: The first array is empty，请问怎么解决，谢谢！")
    assert report.causes[0].headline.endswith("RuntimeError: The first array is empty")


def test_a_cause_within_a_sentence_begins_with_a_small_letter_unless_it_is_a_name() -> None:
    sentences = {
        "log> nvrm: xid (pci:0000:3b:00): 79, GPU has fallen off the bus.": "The cause is: Xid 79",
        "AssertionError: Torch not compiled with CUDA enabled": "likely: this PyTorch is",
        "ValueError: torch is too small": "cause is: the program fails",
    }
    for text, begins in sentences.items():
        assert begins in reply(triage(text))


def test_a_quote_shows_the_place_in_a_line_that_is_a_whole_ticket() -> None:
    told = "I followed every step of the guide and then looked at the forum. " * 8
    said = reply(triage(f"{told}CUDA out of memory. Tried to allocate 2.00 GiB. {told}"))
    assert "`line 1: ... " in said
    assert "CUDA out of memory. Tried" in said


def test_a_question_is_asked_for_no_report() -> None:
    asked = (
        "Could you please tell me with which release of PyTorch and CUDA this model was trained?"
    )
    assert triage(asked).verdict == "healthy"
    assert "collect_env" not in reply(triage(asked))


def test_a_namespace_of_torch_is_no_caffe() -> None:
    symbol = (
        "_ZN6caffe28TypeMeta21_typeMetaDataInstanceIN3c108BFloat16EEEPKNS_6detail12TypeMetaDataEv"
    )
    failed = f"ImportError: /a/iou3d_nms_cuda.cpython-36m.so: undefined symbol: {symbol}\n"
    assert "Caffe" not in reply(triage(failed))
    assert "Install the release of the extension" in reply(triage(failed))
    real = "I0101 caffe.cpp:12] Loading Caffe net: CUDNN_STATUS_NOT_INITIALIZED\n"
    assert "release of Caffe" in reply(triage(real))


def test_a_framework_in_an_address_computes_nothing() -> None:
    failed = "CUDA error: an illegal memory access was encountered\nSee {}\n"
    named = triage(failed.format("tensorflow"))
    linked = triage(failed.format("https://example.org/tensorflow-error"))
    assert named.snapshot.get(Pasted).computes_with == "TensorFlow"
    assert linked.snapshot.get(Pasted).computes_with is None


def test_what_waits_for_the_driver_is_not_asked_for() -> None:
    hangs = reply(triage("nvidia-smi hangs on my server\n"))
    assert "collect_env" not in hangs
    assert "`sudo dmesg`" in hangs
    fails = reply(triage("ModuleNotFoundError: No module named 'torch'\n"))
    assert "collect_env" not in fails
    assert "pip list" in fails


def test_ranks_that_hang_are_asked_for_their_log() -> None:
    for said in (
        "[Bug]: training on two nodes hangs at init_process_group\n\nI start it with torchrun.",
        "多机训练卡住，torchrun 启动之后一直没有输出",
    ):
        asked = reply(triage(said))
        assert "NCCL_DEBUG=INFO" in asked
        assert "py-spy" in asked
    assert "py-spy" not in reply(triage("NCCL error: ncclInvalidUsage, torch 2.4, two GPUs\n"))
    assert "NCCL_DEBUG=INFO" in reply(triage("NCCL error: ncclInvalidUsage, torch 2.4, two GPUs\n"))


def test_a_build_is_asked_for_its_first_error() -> None:
    asked = reply(triage("I can't compile it, neither the master nor the branch for torch 1.6.\n"))
    assert "the first error on" in asked
    assert "the first error on" not in reply(
        triage("I could build it, but cannot find the problem. Compiling works with torch 1.6.\n")
    )


def test_who_is_slow_is_asked_for_times() -> None:
    asked = reply(triage("Why is training so slow with torch on two GPUs?\n\nIs that normal?\n"))
    assert "the seconds that a step takes" in asked
    assert "up to the error" not in asked


def test_an_environment_that_is_shown_in_part_is_not_asked_for() -> None:
    shown = "vLLM does not use my GPU\n\n[pip3] torch==2.7.0+cu128\n[pip3] triton==3.3.0\n"
    assert "collect_env" not in reply(triage(shown))


def test_a_short_question_is_asked_nothing() -> None:
    for question in (
        "想问下支持 AMD 的显卡吗",
        "May I use mps in place of gpu?",
        "请问需要多大的显存？",
    ):
        assert "collect_env" not in reply(triage(question))
    assert "collect_env" in reply(triage("Why does torch not find my GPU?"))


def test_a_notebook_gets_no_command_of_a_shell() -> None:
    failed = 'File "{}/main.py", line 1\nRuntimeError: No CUDA GPUs are available\n'
    notebook = reply(triage(failed.format("/content/drive")))
    assert "`import os; print(os.environ.pop('CUDA_VISIBLE_DEVICES', None))`" in notebook
    assert "unset CUDA_VISIBLE_DEVICES" not in notebook
    assert "dmesg" not in notebook
    assert "unset CUDA_VISIBLE_DEVICES" in reply(triage(failed.format("/home/ana")))


def test_a_numpy_that_fits_is_not_installed_again_but_looked_for() -> None:
    failed = "TypeError: expected np.ndarray (got numpy.ndarray)\n{}Is CUDA available: True\n"
    pins = "PyTorch version: 2.6.0+cu124\n[pip3] numpy==1.26.4\n[pip3] torch==2.6.0\n"
    in_place = reply(triage(failed.format(pins)))
    assert "numpy<2" not in in_place
    assert "numpy.__file__" in in_place
    assert "numpy<2" in reply(triage(failed.format("")))


def test_an_old_torch_gets_no_variable_of_a_newer_one() -> None:
    timeout = (
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=490, "
        "OpType=BROADCAST, {}Timeout(ms)=1800000) ran for 1806194 milliseconds before timing out.\n"
    )
    newer = timeout.format("NumelIn=8, NumelOut=8, ")
    assert "TORCH_NCCL_TRACE" in reply(triage(newer))
    assert "TORCH_NCCL_TRACE" not in reply(triage(timeout.format("")))
    assert "TORCH_NCCL_TRACE" not in reply(triage(f"PyTorch version: 2.1.2+cu121\n{newer}"))
    assert "TORCH_NCCL_TRACE" in reply(triage(f"PyTorch version: 2.2.0+cu121\n{newer}"))


NO_DEVICE = "RuntimeError: no CUDA-capable device is detected\n"


def test_the_address_of_a_notebook_is_none() -> None:
    read_there = NO_DEVICE + "I follow https://example.org/tutorials/first.ipynb in a shell.\n"
    assert "unset CUDA_VISIBLE_DEVICES" in reply(triage(read_there))
    assert "unset" not in reply(triage(NO_DEVICE + "See cell 3 of first.ipynb\n"))


BUILD = "Error! Bad return status for module build on kernel: 6.8.0-rc2 (x86_64) nvidia/545.29.06\n"


def test_headers_are_installed_with_the_package_manager_of_the_system() -> None:
    assert "sudo apt install linux-headers" in reply(triage(BUILD))
    assert "sudo pacman -S linux-headers" in reply(triage(BUILD + "OS: ArchLinux\n"))
    assert "sudo dnf install kernel-devel" in reply(triage(BUILD + "Fedora 39, updated today\n"))
    assert "pacman" not in reply(triage(BUILD + "Arch Linux and Ubuntu 22.04 alike\n"))


def test_memory_that_grows_is_told_from_the_cache_of_pytorch() -> None:
    text = "每推理一次，显存占用就会增加一些，是什么问题\n命令：python model_worker.py\n"
    assert "torch.cuda.memory_reserved()" in reply(triage(text))
    assert "memory_reserved" not in reply(triage("显存不足，怎么办\n"))
