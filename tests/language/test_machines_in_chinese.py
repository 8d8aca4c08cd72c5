"""Every test machine in Chinese: no English sentence of ours is left."""

import machine_files
import pytest
from each import each
from language.english_left import english_left, foreign_words, half_width_left, in_chinese
from test_machines import reported

NAMES = machine_files.names()


@each(
    "line",
    [
        "已安装的驱动不支持 NVIDIA GeForce RTX 5090 at 0000:01:00.0：它只能使用开源内核模块",
        "CUDA 工具包  CUDA 12.8.1（由 nvcc on PATH 指定）",
        "/usr/bin/python3（the first python3 on PATH）中没有安装 PyTorch",
        "goes_wrong_again=是（the self-test all-reduce on rank 0）",
        "/home/ana/venv/bin/python（the active virtual environment）中没有安装 PyTorch",
    ],
)
def test_a_few_english_words_in_a_chinese_line_are_found(line: str) -> None:
    assert english_left(line, "") != []
    assert english_left("PATH 中的第一个 python3（位于 0000:01:00.0）没有响应", "") == []


@each(
    "line",
    [
        "无法使用 GPU 0 (NVIDIA GeForce RTX 3090)",
        "能运行的最新版本是 torch 2.7.1 (cu118)。",
        "被 python3 (pid 31337) 占用",
        "NVIDIA GeForce GT 710 (sm_35)（Kepler 架构）",
        "见 compute-mode-exclusive, gpu-memory-held",
        "其他显示控制器 (amd)",
        "GPU 0（NVIDIA L4） 处于独占模式",
    ],
)
def test_half_width_signs_beside_chinese_words_are_found(line: str) -> None:
    assert half_width_left(line, "") != []
    names = "Orin (nvgpu)，Debian GNU/Linux 12 (bookworm)"
    assert half_width_left(f"GPU 0（计算能力 8.7）：{names}，内核 6.8", names) == []


@pytest.mark.exhaustive
@each("name", NAMES, shards=4)
def test_no_english_sentence_is_left(name: str) -> None:
    report = reported(name)
    text = in_chinese(report, verbose=1, width=120)
    foreign = foreign_words(report.snapshot)
    assert english_left(text, foreign) == []
    assert half_width_left(text, foreign) == []
