"""``gpucheck triage`` as a maintainer uses it."""

import json
import re
from pathlib import Path

from click.testing import CliRunner, Result
from each import each
from html_support import is_sound
from markdown_support import outside_code
from test_machines import reported

from gpucheck.cli import gpucheck

MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\n"
INJECTED = (
    "Failed to initialize NVML: Driver/library version mismatch `a`<b onload=x>@team #12 "
    "![x](http://evil) \x1b[31m \u202e|x|\n"
)


def run(*words: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(gpucheck, ["triage", *words], input=text)


def test_stdin_a_file_and_several_files(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text(f"one\n{MISMATCH}")
    for found in (run(text=f"one\n{MISMATCH}"), run("-", text=f"x\n{MISMATCH}"), run(str(file))):
        assert found.exit_code == 1
        assert "[driver-library-mismatch]" in found.stdout
        assert "line 2: " in found.stdout
    other = tmp_path / "env.txt"
    other.write_text("Is CUDA available: False\n")
    several = run(str(file), str(other))
    assert "log.txt line 2: " in several.stdout


def test_nothing_recognised_is_one_sentence_and_status_3() -> None:
    found = run(text="hello\n")
    assert found.exit_code == 3
    assert " ".join(found.stdout.split()) == (
        "UNKNOWN gpucheck finds no cause in this text: no format and no message was "
        "recognised; ask for: "
        "python -m torch.utils.collect_env. "
        "gpucheck-report/1 verdict=unknown causes=none start=08c1"
    )


@each("text", ["", " \n\t\n", "\ufeff\r\n"])
def test_an_empty_input_says_so(text: str) -> None:
    found = run(text=text)
    assert found.exit_code == 2
    assert "Error: The input is empty: give the output" in found.stderr


def test_of_several_files_those_that_can_be_read_are_judged(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(MISMATCH)
    (tmp_path / "empty.log").write_text("\n")
    (tmp_path / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    names = [str(tmp_path / name) for name in ("a.log", "absent", "empty.log", "shot.png")]
    found = run(*names)
    assert found.exit_code == 2
    assert "a.log line 1: " in found.stdout
    notes = found.stderr.splitlines()
    assert notes[0] == f"Note: {names[1]} cannot be read: No such file or directory."
    assert notes[1].startswith("Note: shot.png is a picture (PNG), and")
    assert notes[2] == "Note: empty.log: it is empty."
    assert run(names[0], names[2]).exit_code == 1
    none = run(*names[1:2], *names[3:])
    assert (none.exit_code, none.stdout) == (2, "")
    assert "absent" in none.stderr
    assert "picture" in none.stderr


@each("name", ["absent.txt", "folder", "x.zip", "x.bin"])
def test_what_cannot_be_read_is_a_usage_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04rest")
    (tmp_path / "x.bin").write_bytes(b"\0\1\2")
    found = run(str(tmp_path / name))
    assert found.exit_code == 2
    assert "Traceback" not in found.output
    assert len(found.stderr.strip().splitlines()) <= 5


def test_fail_on() -> None:
    assert run("--fail-on", "never", text=MISMATCH).exit_code == 0


def test_json_is_a_report_that_triage_reads_again(tmp_path: Path) -> None:
    found = run("--format", "json", text=MISMATCH)
    report = json.loads(found.stdout)
    assert report["schema"] == "gpucheck.report/1"
    assert report["root_causes"] == ["driver-library-mismatch"]
    assert report["snapshot"]["origin"] == "pasted"
    file = tmp_path / "report.json"
    file.write_text(found.stdout)
    assert "[driver-library-mismatch]" in run(str(file)).stdout


def test_lines_shows_everything_that_decided() -> None:
    line = "step {0}\nCUDA out of memory. Tried to allocate {0}.00 GiB\n"
    text = "".join(map(line.format, "12345"))
    few, all_of_them = run(text=text).stdout, run("--lines", text=text).stdout
    assert few.count("line ") == 3
    assert all_of_them.count("line ") > 3


FORMATS = """Traceback (most recent call last):
  File "train.py", line 2, in <module>
    model.cuda()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB

PyTorch version: 2.8.0+cu128
Is CUDA available: True
"""


def test_it_says_which_formats_were_read_and_what_they_gave() -> None:
    out = run("--lines", text=FORMATS).stdout
    assert "  Python traceback: lines 1 to 4, 1 message\n" in out
    assert "  collect_env: lines 6 to 7, " in out
    assert "Python traceback" in run(text=FORMATS).stdout.splitlines()[-2]
    pasted = json.loads(run("--format", "json", text=FORMATS).stdout)["snapshot"]["facts"]["pasted"]
    assert {"collect_env", "Python traceback"} <= set(pasted["readers"])
    (found,) = [taken for taken in pasted["taken"] if taken["format"] == "Python traceback"]
    assert (found["first_line"], found["last_line"], found["messages"]) == (1, 4, 1)


@each(
    ("line", "name"),
    [
        ('docker: could not select device driver "" with capabilities: [[gpu]]. OCI runtime',
         "container error"),
        ("a:1:2 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000",
         "NCCL log"),
        ("[rank0]:[E1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)",
         "watchdog"),
        (MISMATCH.strip(), "nvidia-smi error"),
        ("ERROR: No matching distribution found for torch==2.9.9", "installer error"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "kernel log"),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "torchrun"),
    ],
)  # fmt: skip
def test_messages_count_as_formats(line: str, name: str) -> None:
    out = run("--lines", text=f"x\n{line}\n").stdout
    assert f"  {name}: line 2, " in out


def test_lines_shows_what_settled_a_text_without_a_cause() -> None:
    healthy = run("--lines", text="PyTorch version: 2.6.0+cu124\nIs CUDA available: True\n").stdout
    assert "line 2: pasted.cuda_available = yes" in healthy
    assert "line 1: torch.version = 2.6.0+cu124" in healthy
    unknown = run("-v", text="Is CUDA available: False\n").stdout
    assert "line 1: pasted.cuda_available = no" in unknown


@each("words", [(), ("--reply",), ("--format", "markdown"), ("--lines",)])
def test_nothing_in_a_text_acts_in_the_output(words: tuple[str, ...]) -> None:
    out = run(*words, text=INJECTED).stdout
    assert "\x1b" not in out
    assert "\u202e" not in out
    if words and words[0] != "--lines":
        bare = outside_code(out)
        assert not re.search(r"<b onload|(?<![&\\])#12|@team|!\[x\]\(", bare)


def test_the_reply_names_cause_evidence_fix_and_what_to_send() -> None:
    out = run("--reply", text=MISMATCH).stdout
    assert out.startswith("Thank you for the report.")
    assert "`driver-library-mismatch`" in out
    assert "`line 1: Failed to initialize NVML: Driver/library version mismatch`" in out
    assert "```sh\nsudo reboot\n```" in out
    assert "python -m torch.utils.collect_env" in out


def test_the_reply_in_chinese() -> None:
    out = run("--reply", "--lang", "zh", text=MISMATCH).stdout
    assert "感谢反馈" in out
    assert "已加载的内核模块版本不同" in out
    assert "`driver-library-mismatch`" in out
    assert "依据如下" in out
    assert "sudo reboot" in out
    assert "Thank" not in out


CHINESE = f"运行训练脚本时报错，请问如何解决？\n{MISMATCH}"  # noqa: RUF001  # Chinese has its own punctuation


@each(
    ("words", "text", "begins"),
    [
        ((), CHINESE.encode(), "感谢反馈"),
        ((), CHINESE.encode("gbk"), "感谢反馈"),
        (("--lang", "auto"), CHINESE.encode(), "感谢反馈"),
        (("--lang", "en"), CHINESE.encode(), "Thank you"),
        ((), MISMATCH.encode(), "Thank you"),
        (("--lang", "zh"), MISMATCH.encode(), "感谢反馈"),
    ],
)
def test_the_reply_is_in_the_language_of_the_ticket(
    words: tuple[str, ...], text: bytes, begins: str
) -> None:
    assert run("--reply", *words, text=text).stdout.startswith(begins)


def test_a_saved_snapshot_is_shown_as_the_machine_that_it_is(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(reported("nothing-readable").snapshot.as_json()))
    found = run(str(file))
    assert found.exit_code == 3
    assert found.stdout.startswith("UNKNOWN")
    assert "Python   /home/ana/project/venv/bin/python" in found.stdout
    assert "Read " not in found.stdout
    pasted = run(text=f"This is what I get:\n{file.read_text()}\n")
    assert "Python   /home/ana/project/venv/bin/python" in pasted.stdout


def test_the_reply_to_a_healthy_and_to_an_unknown_text() -> None:
    healthy = "PyTorch version: 2.6.0+cu124\nIs CUDA available: True\n"
    assert "PyTorch can use CUDA" in run("--reply", text=healthy).stdout
    unknown = run("--reply", text="hello").stdout
    assert "does not show the cause" in unknown
    assert "```sh\npython -m torch.utils.collect_env\n```" in unknown


def test_batch(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(MISMATCH)
    found = run("--batch", str(tmp_path))
    assert found.exit_code == 0
    assert json.loads(found.stdout)["root_causes"] == ["driver-library-mismatch"]
    assert found.stderr == "1 ticket: 1 broken\n"
    assert run("--batch").exit_code == 2
    assert run("--batch", str(tmp_path / "absent")).exit_code == 2
    partly = run("--batch", str(tmp_path), str(tmp_path / "absent"))
    assert partly.exit_code == 0
    assert [bool(json.loads(line).get("error")) for line in partly.stdout.splitlines()] == [
        False, True
    ]  # fmt: skip


def test_the_summary_of_a_batch(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(MISMATCH)
    (tmp_path / "b.txt").write_text("")
    found = run("--batch", "--summary", str(tmp_path))
    assert found.exit_code == 0
    assert found.stdout.startswith("2 tickets, 1 could not be read\n")
    assert "driver-library-mismatch       1 100 %" in found.stdout
    assert found.stderr.startswith("Note: b is empty")
    for form, begins in (("csv", "counted,"), ("json", "{"), ("html", "<!doctype html>")):
        page = run("--batch", "--summary", "--format", form, str(tmp_path)).stdout
        assert page.startswith(begins)


def test_a_ticket_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = run("--format", "html", "--lang", "zh", "-o", str(page), text=MISMATCH)
    assert (found.exit_code, found.stdout) == (1, "")
    text = page.read_text(encoding="utf-8")
    assert text.startswith('<!doctype html>\n<html lang="zh-CN">')
    assert is_sound(text).texts[1] == "有故障"
    again = run(str(page), "--format", "json")
    assert json.loads(again.stdout)["root_causes"] == ["driver-library-mismatch"]


@each(
    "words",
    [
        ("--summary",),
        ("--format", "csv"),
        ("--format", "html", "--batch", "x"),
        ("--batch", "--summary", "--format", "markdown", "x"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[str, ...]) -> None:
    found = run(*words, text=MISMATCH)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "--summary" in found.stderr or "--format" in found.stderr
