"""Blanks in a Chinese sentence, where a parameter meets the words around it."""

from each import each

from gpucheck.language.sentence import spaced


@each(
    ("template", "value", "words"),
    [
        ("{value} 处于独占模式", "GPU 0（NVIDIA L4）", "GPU 0（NVIDIA L4）处于独占模式"),
        ("{value} 处于独占模式", "GPU 0", "GPU 0 处于独占模式"),
        ("并被{value}占用", "进程 12", "并被进程 12 占用"),
        ("可在{value}上运行", "现有的驱动", "可在现有的驱动上运行"),
        ("可在{value}上运行", "glibc 2.17", "可在 glibc 2.17 上运行"),
        ("可在 {value} 上运行", "现有的驱动", "可在现有的驱动上运行"),
        ("见 {value}。", "https://a.example/b", "见 https://a.example/b 。"),
        ("见{value}。", "（https://a.example/b）", "见（https://a.example/b）。"),
        ("见 {value} 。然后", "https://a.example/b", "见 https://a.example/b 。然后"),
        ("路径 {value}", "（未知）", "路径（未知）"),
        ("共 {value}", "", "共 "),
        ("{{{value}}} 和 {value!r}", "a", "{a} 和 'a'"),
        ("CUDA {value}.x", "12", "CUDA 12.x"),
        ("一行\n{value}", "二", "一行\n二"),
    ],
)
def test_a_parameter_meets_its_neighbours(template: str, value: str, words: str) -> None:
    assert spaced(template, {"value": value}) == words


def test_numbers_keep_their_form() -> None:
    assert spaced("用时{seconds:.1f}秒", {"seconds": 2}) == "用时 2.0 秒"


def test_two_parameters_in_a_row() -> None:
    assert spaced("{first}{then}", {"first": "句一。", "then": " 句二"}) == "句一。句二"
    assert spaced("{key}={value}", {"key": "状态", "value": 3}) == "状态=3"


def test_a_parameters_own_blanks_stay() -> None:
    assert spaced("{value}：x", {"value": "a ， b 中 c"}) == "a ， b 中 c：x"
