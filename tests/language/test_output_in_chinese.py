"""What commands print in Chinese: whole sentences, aligned columns, the same JSON."""

import html
import json
import re
from pathlib import Path

import html_samples
import pytest
import report_samples as samples
from each import each
from html_support import Markup
from language import pseudo
from language.english_left import english_left, foreign_words, half_width_left
from language.running import Run
from language.said import foreign_in

from gpucheck.findings import all_rules
from gpucheck.language import Sentence, say, speaking, spoken
from gpucheck.language.columns import padded, width_of, wrapped
from gpucheck.language.paragraphs import paragraphs, parts, template_of
from gpucheck.output import json_text, junit, markdown, pages, terminal
from gpucheck.output.html import report as html_report
from gpucheck.output.json_text import with_said
from gpucheck.output.layout import Page
from gpucheck.output.public import public

_WIDTHS = (40, 57, 80, 120)
_TEXTS = (
    "驱动 535.104.05 只支持 CUDA 12.2，而 PyTorch（2.9.1+cu130）需要 CUDA 13.0：请安装 cu126 版。",
    "程序（train.py）在 /opt/venv/bin/python 中运行；“显存不足”出现在第 3 行。",
    "一二三四五六七八九十" * 20,
    "a b c 甲 d 乙 e 丙。" * 20,
)
_LOG = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    model.cuda()
RuntimeError: The NVIDIA driver on your system is too old (found version 11040).
"""
_COMMANDS = (
    ("recommend", "--gpu", "4090", "--driver", "580"),
    ("recommend", "--gpu", "4090", "--driver", "580", "--tool", "conda"),
    ("recommend", "--jetpack", "6.2"),
    ("recommend", "--gpu", "GTX 780"),
    ("compat", "gpu=4090", "driver=535.104.05", "torch=2.9.1+cu130", "python=3.12"),
    ("compat", "gpu=H100", "torch=2.9.1"),
    ("tables", "show"),
    ("tables", "check"),
    ("tables", "show", "xid", "xid=79"),
)
_TAKEN = re.compile(r'"taken": "[^"]*"')


@each("width", _WIDTHS)
@each("text", _TEXTS)
@each(("indent", "hang"), [(0, 0), (2, 4), (9, 9)])
def test_no_line_is_wider_than_the_page(text: str, width: int, indent: int, hang: int) -> None:
    lines = wrapped(text, width, indent, hang)
    assert all(width_of(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    for line in lines[1:]:
        assert line.strip()[0] not in "，。；：）”"
    for line in lines[:-1]:
        assert line[-1] not in "（“"


def test_a_word_is_not_broken() -> None:
    path = "/" + "x" * 60
    assert path in wrapped(f"路径 {path} 很长", 40)


def test_columns_begin_below_each_other() -> None:
    page = Page(60)
    with speaking("zh"):
        page.columns([("驱动", 15, ""), ("正常", 8, "")], "甲")
        page.columns([("PyTorch", 15, ""), ("ok", 8, "")], "乙")
    lines = page.text().splitlines()
    assert {
        width_of(line[: line.index(last)]) for line, last in zip(lines, "甲乙", strict=True)
    } == {23}
    assert width_of(padded("CUDA 库", 12)) == 12


def test_what_the_catalogue_lacks_is_english_as_a_whole() -> None:
    unknown = Sentence("Nobody has translated this: {value}", {"value": say("unknown")})
    with speaking("zh"):
        assert spoken(unknown) == "Nobody has translated this: unknown"
        assert spoken(say("unknown")) == "未知"
        assert spoken("unknown") == "unknown"  # somebody else's word
        assert spoken(Sentence("")) == ""  # gettext has the header of the catalogue there
    assert spoken(say("unknown")) == "unknown"


@each("slug", all_rules())
def test_the_page_of_each_finding(slug: str) -> None:
    rule = all_rules()[slug]
    with speaking("zh"):
        text = pages.explain(slug, 60) or ""
        for part in parts(rule.page):
            if spoken(Sentence(template_of(part))) == template_of(part):  # it is English as a whole
                text = text.replace(pages.reflow(part.replace("``", "`"), 60), "")
        if spoken(rule.title) == rule.title:
            text = text.partition("\n\n")[2]
    quoted = r"`[^`]*`|\"[^\"]*\"|“[^”]*”"  # what other programs print
    assert english_left(re.sub(quoted, "", text), "") == []
    assert half_width_left(re.sub(quoted, "Q", text), "") == []
    assert "\n严重程度：" in text


def test_a_list_in_a_translated_paragraph_keeps_its_items(monkeypatch: pytest.MonkeyPatch) -> None:
    page = "Causes:\n- one thing that\n  goes on\n- another"
    (template,) = paragraphs(page)
    assert template == "Causes: - one thing that goes on - another"
    for words in ("原因： - 甲 - 乙", "原因：- 甲；- 乙", "原因：\n- 甲\n- 乙"):
        monkeypatch.setattr(pages, "spoken", {template: words}.get)
        assert [word.rstrip("；") for word in pages._in_words(page).split("\n")] == [  # noqa: SLF001
            "原因：", "- 甲", "- 乙",
        ]  # fmt: skip
    monkeypatch.setattr(pages, "spoken", {template: "只有一句。"}.get)
    assert pages._in_words(page) == "只有一句。"  # noqa: SLF001


def test_the_list(run: Run) -> None:
    text = run("list", "--lang", "zh")
    missing = " ".join(str(sentence) for sentence in _listed() if translations_lack(sentence))
    assert english_left(text, missing) == []
    starts = {
        width_of(line[: line.index(found[0])])
        for line in text.partition("\n\n")[0].splitlines()[1:]
        if (found := re.search("错误|警告|提示", line)) and line[2] != " "
    }
    assert starts == {32}


def _listed() -> list[str]:
    return [
        *(row.title for row in pages.list_rules()),
        *(row.subject for row in pages.list_probes()),
        *(row.about for row in pages.list_selftests()),
    ]


def translations_lack(sentence: str) -> bool:
    """Whether a sentence is shown in English."""
    with speaking("zh"):
        return spoken(sentence) == sentence


@each("name", [*samples.ALL, "stress"])
@each("form", ["terminal", "markdown", "junit", "html"])
def test_a_report_is_said_as_a_whole(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pseudo.use(monkeypatch)
    report = {**samples.ALL, "stress": html_samples.stress}[name]()
    with speaking("zh"):
        text = {
            "terminal": lambda: terminal.render(report, verbose=1),
            "markdown": lambda: markdown.render(report),
            "junit": lambda: junit.render(report),
            "html": lambda: Markup(html_report.render(report)).text(),
        }[form]()
    foreign = foreign_in(with_said(report.as_json()), with_said(public(report).as_json()))
    foreign += foreign_words(report.snapshot)
    lines = html.unescape(text).splitlines() if form in ("junit", "html") else [text]
    assert [word for line in lines for word in english_left(line, foreign)] == []


@each("words", _COMMANDS, ids=" ".join)
def test_a_command_says_whole_sentences(
    words: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    english = run(*words)
    foreign = foreign_in(json.loads(run(*words, "--format", "json")))
    pseudo.use(monkeypatch)
    text = run(*words, "--lang", "zh")
    assert text != english
    assert english_left(text, foreign) == []


@each("words", _COMMANDS, ids=" ".join)
def test_a_command_writes_no_half_width_signs(words: tuple[str, ...], run: Run) -> None:
    assert half_width_left(run(*words, "--lang", "zh"), "") == []


def test_triage_and_its_reply(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "error.log"
    log.write_text(_LOG, encoding="utf-8")
    foreign = foreign_in(_LOG, json.loads(run("triage", str(log), "--format", "json")))
    pseudo.use(monkeypatch)
    assert english_left(run("triage", str(log), "--lang", "zh", "--lines"), foreign) == []
    assert english_left(run("triage", str(log), "--lang", "zh", "--reply"), foreign) == []
    monkeypatch.undo()
    assert run("triage", str(log), "--reply").startswith("Thank you")
    log.write_text(
        _LOG + "请问这个问题怎么解决？训练脚本昨天还能正常运行，今天就报错了。\n", "utf-8"
    )
    assert run("triage", str(log), "--reply", "--lang", "auto").startswith("感谢反馈")
    assert run("triage", str(log), "--reply").startswith("感谢反馈")
    assert run("triage", str(log), "--reply", "--lang", "en").startswith("Thank you")


def test_a_diff(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = _saved(tmp_path)
    english = run("diff", old, new, "-v")
    foreign = foreign_in(
        json.loads(run("diff", old, new, "--format", "json")),
        *(json.loads(Path(file).read_text("utf-8")) for file in (old, new)),
    )
    pseudo.use(monkeypatch)
    text = run("diff", old, new, "-v", "--lang", "zh")
    assert english_left(text, foreign) == []
    assert len(text.splitlines()) > len(english.splitlines()) / 2


def _saved(folder: Path) -> tuple[str, str]:
    paths = []
    for name in ("healthy", "old_driver"):
        file = folder / f"{name}.json"
        file.write_text(json_text.render(samples.ALL[name]()), encoding="utf-8")
        paths.append(str(file))
    return paths[0], paths[1]


@each("name", samples.ALL)
def test_a_report_as_json_is_the_same_in_every_language(name: str) -> None:
    report = samples.ALL[name]()
    english = json_text.render(report)
    with speaking("zh"):
        assert json_text.render(report) == english


@each(
    "words",
    [
        ("list",),
        ("recommend", "--gpu", "4090", "--driver", "580"),
        ("recommend", "--gpu", "GTX 780"),
        ("compat", "gpu=4090", "driver=535.104.05", "torch=2.9.1+cu130"),
        ("diff", "OLD", "NEW"),
        ("triage", "OLD"),
        ("triage", "LOG"),
        ("tables", "show", "xid"),
        ("tables", "check"),
        ("tables", "diff", "TABLES"),
    ],
    ids=" ".join,
)
def test_json_is_the_same_in_every_language(
    words: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    from gpucheck.tables import tables_dir  # noqa: PLC0415

    old, new = _saved(tmp_path)
    log = tmp_path / "error.log"
    log.write_text(_LOG, encoding="utf-8")
    places = {"OLD": old, "NEW": new, "LOG": str(log), "TABLES": str(tables_dir())}
    asked = [places.get(word, word) for word in words]
    english, chinese = (
        _TAKEN.sub('"taken": ""', run(*asked, "--format", "json", "--lang", lang))
        for lang in ("en", "zh")
    )
    assert json.loads(english) is not None
    assert chinese == english


def test_a_line_of_a_batch_is_the_same_in_every_language(run: Run, tmp_path: Path) -> None:
    (tmp_path / "error.log").write_text(_LOG, encoding="utf-8")
    (tmp_path / "facts.jsonl").write_text('{"id": 1, "facts": {"gpu": 1}}\nno\n', encoding="utf-8")
    for words in (
        ("triage", "--batch", str(tmp_path / "error.log"), "-q"),
        ("compat", "--batch", str(tmp_path / "facts.jsonl")),
    ):
        english = run(*words)
        assert run(*words, "--lang", "zh") == english
        assert all(isinstance(json.loads(line), dict) for line in english.splitlines())
    assert '"said": {"error":' in english
