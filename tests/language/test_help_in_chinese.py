"""The help and the refusals of every command in Chinese; the columns fit wide characters."""

import re
from collections.abc import Iterator

import click
import pytest
from each import each
from language.english_left import english_left
from language.running import Run

from gpucheck import cli
from gpucheck.language import speaking
from gpucheck.language.columns import width_of

_TERM = re.compile(r"^  (-[^ ]|[a-z])")


def commands(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, and of the group itself."""
    yield above
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)
        else:
            yield (*above, name)


COMMANDS = list(commands(cli.gpucheck))


@each("words", COMMANDS, ids=" ".join)
def test_the_help_of_each_command(words: tuple[str, ...], run: Run) -> None:
    text = run(*words, "--help", "--lang", "zh")
    assert english_left(_without_examples(text), "") == []
    assert "Project-Id-Version" not in text  # the header of a catalogue, under the key ""
    assert text.startswith(f"用法：{' '.join(('gpucheck', *words))} [OPTIONS]")
    assert "\n选项：\n" in text
    assert all(width_of(line) <= 80 for line in text.splitlines())
    english = run(*words, "--help", "--lang", "en")
    assert english.startswith("Usage: gpucheck")
    assert "Show this message and exit." in english  # click keeps an option as it made it first
    assert options_in(text) == options_in(english)


def _without_examples(text: str) -> str:
    """Return a page of help with the comments of its examples, but without their commands."""
    page, _heading, examples = text.partition("\n  示例：\n")
    return page + "".join(line.partition("  # ")[2] for line in examples.splitlines())


def options_in(text: str) -> list[str]:
    """Return the options that a page of help lists."""
    listed = re.split(r"\n(?:Options:|选项：)\n", text)[1]
    return re.findall(r"^  ((?:-\w, )?--[\w-]+)", listed, re.MULTILINE)


@each("words", COMMANDS, ids=" ".join)
def test_each_explanation_begins_in_the_same_column(words: tuple[str, ...], run: Run) -> None:
    text = run(*words, "--help", "--lang", "zh")
    listed = re.split(r"\n\n  示例：", text.partition("\n选项：\n")[2])[0]
    columns = set()
    for line in listed.splitlines():
        if found := re.match(r"  [-a-z][^ ]*(?: [^ ]+)*?  +(?=[^ ])", line):
            columns.add(width_of(found[0]))
        elif found := re.match(r" {5,}", line):
            columns.add(len(found[0]))
    assert len(columns) <= 1 + listed.count("\n命令：\n")


def test_comments_of_examples_stay_in_their_column(run: Run) -> None:
    lines = [line for line in run("--help", "--lang", "zh").splitlines() if "  # " in line]
    assert lines
    assert {line.index("#") for line in lines} == {40}
    assert not any(re.search("# [a-z]", line) for line in lines)


@pytest.mark.parametrize("words", [("--lang", "zh", "--help"), ("--help", "--lang=zh"),
                                   ("--tables", ".", "--lang", "zh", "--help")])  # fmt: skip
def test_the_language_may_stand_anywhere(words: tuple[str, ...], run: Run) -> None:
    assert run(*words).startswith("用法：gpucheck [OPTIONS] COMMAND")


def test_the_language_before_a_command(run: Run) -> None:
    assert run("--lang", "zh", "schema") == run("schema", "--lang", "zh")
    assert run("--lang", "zh", "explain", "--help").startswith("用法：gpucheck explain")


@pytest.mark.parametrize("variable", ["GPUCHECK_LANG", "LC_ALL", "LANG"])
def test_the_environment_names_the_language(
    variable: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GPUCHECK_LANG", raising=False)
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv(variable, "zh" if variable == "GPUCHECK_LANG" else "zh_CN.UTF-8")
    assert run("--help").startswith("用法：")
    assert run("--help", "--lang", "en").startswith("Usage: ")


def test_another_language_is_refused(run: Run) -> None:
    assert "'fr' is not one of 'auto', 'en', 'zh'" in run("list", "--lang", "fr")


@each(
    ("words", "refusal"),
    [
        (("check", "--nope"), "错误：没有选项"),
        (("explain",), "错误：缺少参数 'SLUG'。"),
        (("explain", "driver-to-old"), "没有名为 'driver-to-old' 的问题。是不是 driver-too-old？"),
        (("cheek",), "错误：没有命令 'cheek'。是不是 check？"),
        (("check", "--level", "quik"), "不是 'quick', 'standard', 'stress' 之一。是不是 quick？"),
        (("check", "--timeout", "0"), "不在范围 0.1<=x<1000000 内。"),
        (("check", "--timeout", "soon"), "'soon' 不是有效的小数范围。"),
        (("check", "--timeout"), "需要一个值。"),
        (("check", "--no-color=1"), "不带值。"),
        (("check", "more"), "多余的参数（more）"),
        (("diff", "not-there.json"), "文件 'not-there.json' 不存在。"),
        (("check", "--skip", "nothing-such"), "'nothing-such' 既不是问题，也不是探测项。"),
        (("compat",), "请说明要判断什么"),
        (("compat", "driver=x", "--batch", "f"), "--batch 只从它的文件中读取信息。"),
        (("recommend", "--jetpack", "99"), "兼容性表中没有 JetPack 99。"),
        (("recommend", "--with", "torchaudo"), "--with 只支持 torchvision、torchaudio、"),
        (("schema", "reprot"), "是不是 report？"),
        (("selftest", "--device", "gpu"), "请写 cuda、cpu，或 GPU"),
        (("selftest", "--tests", "nothing"), "没有名为 'nothing' 的自检。可用的有："),
        (("tables", "show", "nothing"), "没有表 'nothing'。"),
        (("tables", "show", "xid", "a=b"), "不是以此表的列为键的 KEY=VALUE"),
        (("triage", "--summary"), "--summary 统计的是 --batch 的工单。"),
        (("triage", "--format", "csv"), "单个工单没有格式 csv"),
        (("list", "-o", "/nowhere/f"), "无法写入 /nowhere/f："),
    ],
)  # fmt: skip
def test_a_refusal(words: tuple[str, ...], refusal: str, run: Run) -> None:
    text = run("--lang", "zh", *words)
    assert refusal in text
    assert english_left(text, "No such file or directory") == []


@each("words", [("--lang=zh", "list"), ("--lang", "zh", "list")], ids=" ".join)
def test_a_language_before_the_command_is_no_option_of_check(
    words: tuple[str, ...], run: Run
) -> None:
    assert run(*words) == run("list", "--lang", "zh")


def test_english_is_not_changed_by_chinese_before_it(run: Run) -> None:
    before = run("triage", "--help", "--lang", "en")
    run("triage", "--help", "--lang", "zh")
    assert run("triage", "--help", "--lang", "en") == before
    with speaking("en"):
        assert run("explain", "--lang", "en").endswith("Error: Missing argument 'SLUG'.\n")
