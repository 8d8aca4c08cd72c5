"""Saved snapshots and reports, however somebody handed them on."""

import json
import time
from collections.abc import Callable

import pytest
from each import each
from test_machines import NAMES, TABLES, expected, reported

from gpucheck.facts.snapshot import decode
from gpucheck.output import json_text
from gpucheck.ticket.given import IntakeError, find_saved
from gpucheck.ticket.judge import triage

NAME = "r535-cu124" if "r535-cu124" in NAMES else NAMES[0]
BROKEN = "gtx1080-cu130"
REPORT = json_text.render(reported(BROKEN))
SNAPSHOT = json.dumps(json.loads(REPORT)["snapshot"], indent=2)
CAUSES = reported(BROKEN).root_causes
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


def again(text: str, **how: object) -> str:
    return json.dumps(json.loads(text), **how)  # type: ignore[arg-type]


AS_FILE: dict[str, Callable[[str], bytes]] = {
    "as it is": str.encode,
    "a mark of UTF-8": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 without its mark": lambda text: text.encode("utf-16-le"),
    "UTF-16 of the other order": lambda text: text.encode("utf-16-be"),
    "sorted": lambda text: again(text, sort_keys=True, indent=2).encode(),
    "sorted, in one line": lambda text: again(text, sort_keys=True, separators=(",", ":")).encode(),
    "in one line": lambda text: again(text).encode(),
    "blank lines first": lambda text: b"\n\r\n \t\n" * 300 + text.encode(),
}
IN_A_TEXT: dict[str, Callable[[str], bytes]] = {
    "log lines first": lambda text: f"$ gpucheck collect\nNote: slow\n{text}".encode(),
    "words after it": lambda text: f"{text}\nThank you!\n".encode(),
    "a fence": lambda text: f"Hello,\n\n```json\n{text}\n```\nThank you\n".encode(),
    "a list": lambda text: f"- here:\n  ```\n{text}\n  ```\n".encode(),
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()).encode(),
    "quoted twice": lambda text: "".join(f"> > {line}\n" for line in text.splitlines()).encode(),
    "in a line": lambda text: f"mine: {again(text)} thank you\nbye\n".encode(),
    "sorted": lambda text: f"mine:\n{again(text, sort_keys=True, indent=4)}\nbye\n".encode(),
    "UTF-16": lambda text: f"PS C:\\> gpucheck\r\n{text}".encode("utf-16"),
}


@each("saved", [REPORT, SNAPSHOT], ids=["report", "snapshot"])
@each("form", AS_FILE)
def test_a_saved_file_is_judged_anew(form: str, saved: str) -> None:
    found = triage(AS_FILE[form](saved), TABLES)
    assert (found.root_causes, found.snapshot.origin) == (CAUSES, "recorded")


@each("saved", [REPORT, SNAPSHOT], ids=["report", "snapshot"])
@each("form", IN_A_TEXT)
def test_what_was_pasted_into_a_text_is_judged_anew(form: str, saved: str) -> None:
    found = triage(IN_A_TEXT[form](saved), TABLES)
    assert (found.root_causes, found.snapshot.origin) == (CAUSES, "recorded")


@each("saved", [REPORT, SNAPSHOT], ids=["report", "snapshot"])
def test_what_stands_around_it_counts_and_keeps_its_lines(saved: str) -> None:
    text = f"```\n{saved}\n```\n{OUT_OF_MEMORY}"
    found = triage(text, TABLES)
    assert {*CAUSES, "out-of-memory"} <= {finding.slug for finding in found.findings}
    sources = {evidence.source for finding in found.findings for evidence in finding.evidence}
    assert f"line {text.count(chr(10))}" in sources


def test_a_healthy_machine_does_not_hide_what_failed() -> None:
    healthy = json_text.render(reported(NAME))
    assert reported(NAME).verdict == "healthy"
    assert triage(healthy, TABLES).verdict == "healthy"
    found = triage(f"{OUT_OF_MEMORY}```\n{healthy}\n```\n", TABLES)
    assert found.root_causes == ("out-of-memory",)


@each("name", lambda: [name for name in NAMES if expected(name).verdict == "unknown"])
def test_an_undecided_machine_stays_so_in_a_text(name: str) -> None:
    found = triage(f"My training fails:\n```\n{json_text.render(reported(name))}\n```\n", TABLES)
    assert (found.verdict, found.snapshot.origin) == ("unknown", "recorded")


def test_the_machines_of_several_reports_are_all_judged() -> None:
    two = f"{SNAPSHOT}\n{json_text.render(reported(NAME))}\n"
    assert triage(two, TABLES).root_causes == CAUSES
    assert len(find_saved(two)) == 2


def test_the_end_of_a_report_that_was_cut_off_is_still_read() -> None:
    rest = REPORT[40:]
    (found,) = find_saved(rest)
    assert found.begin > rest.index('"snapshot": {')


def test_a_file_that_was_cut_short_is_one_sentence() -> None:
    with pytest.raises(
        IntakeError, match=r"The input is not a readable gpucheck snapshot or report"
    ):
        triage(SNAPSHOT[: len(SNAPSHOT) // 2], TABLES)


@each("text", ['{"facts": 1}', '{"schema": "x"}\nCUDA', '{"probes": [], "a": 2}'])
def test_other_json_is_text(text: str) -> None:
    assert triage(text, TABLES).snapshot.origin == "pasted"
    assert find_saved(text) == []


def test_diff_reads_what_a_windows_shell_wrote() -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-8-sig"):
        assert decode(SNAPSHOT.encode(encoding)).origin == "recorded"


@pytest.mark.hostile
@each(
    "part",
    ['{"schema": ', '{"facts": {', '{"checks": [[', "{" + " " * 79, '{"schema": "', "> {\n> "],
)
def test_what_only_looks_like_it_takes_no_time(part: str) -> None:
    text = f'"gpucheck.report/1"\n{part * (1_900_000 // len(part))}'
    begun = time.process_time()
    assert find_saved(text) == []
    assert time.process_time() - begun < 3
