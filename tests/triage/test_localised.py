"""What an operating system prints in the language of its user counts like the English words."""

from each import each

from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.judge import triage
from gpucheck.ticket.plain_words import in_english

_BEFORE = "Training with PyTorch on my NVIDIA GPU fails with this, what can I do about it?\n\n"
_LINES = {
    "ImportError: libcudart.so.11.0: 无法打开共享对象文件: 没有那个文件或目录": (
        "cuda-library-missing"
    ),
    "ImportError: libcublas.so.12: Kann die Shared-Object-Datei nicht öffnen: "
    "Datei oder Verzeichnis nicht gefunden": "cuda-library-missing",
    "Error: libcudnn_ops_infer.so.8: 共有オブジェクトファイルを開けません: "
    "そのようなファイルやディレクトリはありません": "cudnn-missing",
    "由于找不到 cudnn64_7.dll": "cudnn-missing",
    "由于找不到MSVCP140.dll": "torch-import-broken",
    "bash: nvcc: 未找到命令": "toolkit-missing",
    "'nvcc' 不是内部或外部命令": "toolkit-missing",
    "nvcc : 无法将“nvcc”项识别为 cmdlet、函数、脚本文件或可运行程序的名称。": "toolkit-missing",
    "RuntimeError: 地址已在使用 (torch.distributed)": "rendezvous-failed",
    "OSError: [Errno 12] 无法分配内存": "host-out-of-memory",
}


@each("line", list(_LINES))
def test_a_translated_line_names_the_cause(line: str) -> None:
    assert triage(_BEFORE + line + "\n").root_causes == (_LINES[line],)


def test_the_line_is_quoted_as_it_stands() -> None:
    line = next(iter(_LINES))
    (evidence,) = triage(_BEFORE + line + "\n").causes[0].evidence
    assert evidence.value == line


def test_a_text_in_english_stays_the_same() -> None:
    text = Text([Line(1, "bash: nvcc: command not found"), Line(2, "libcuda.so.1: 找到了")])
    assert in_english(text) is text
