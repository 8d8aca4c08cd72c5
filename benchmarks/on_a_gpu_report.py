"""The report of ``on_a_gpu.py`` as Markdown. It needs only the standard library."""

import json
from typing import Any

Json = dict[str, Any]

_LONGEST = 300
_WORDS = {True: "yes", False: "**no**", None: "unknown"}


def markdown(report: Json) -> str:
    """Return the whole report for a reader."""
    parts = [
        _head(report),
        _steps(report["steps"]),
        _facts(report["facts"]),
        _tests(report["tests"]),
        _selftests(report["selftests"]),
        *(
            f"## {step['name']}\n\n```text\n{_fenced(step['shown'])}\n```"
            for step in report["steps"]
            if step.get("shown")
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(report: Json) -> str:
    machine = report["machine"]
    lines = [
        "# gpucheck on a GPU",
        "",
        f"- Result: {report['result']}",
        f"- Not reached: {', '.join(report['not_reached']) or 'nothing'}",
        f"- Begun: {report['begun']}, {report['seconds']:.0f} s",
        f"- GPUs: {_cell(machine.get('gpus') or 'none')}",
        f"- Driver: {_cell(machine.get('driver') or 'none')}",
        f"- PyTorch: {_cell(machine.get('torch') or 'none')}",
        f"- Python: {_cell(machine.get('python') or 'unknown')}",
    ]
    return "\n".join(lines)


def _steps(steps: list[Json]) -> str:
    rows = [
        (step["name"], step["status"], f"{step['seconds']:.1f}", step["says"]) for step in steps
    ]
    return "## Steps\n\n" + _table(("step", "result", "seconds", "what it says"), rows)


def _facts(facts: list[Json]) -> str:
    if not facts:
        return ""
    order = {False: 0, None: 1, True: 2}
    rows = [
        (each["fact"], each["gpucheck"], each["by"], each["other"], _WORDS[each["agrees"]])
        for each in sorted(facts, key=lambda each: order[each["agrees"]])
    ]
    head = ("fact", "gpucheck", "by", "says", "the same")
    return "## Facts beside what others say\n\n" + _table(head, rows)


def _tests(tests: list[Json]) -> str:
    if not tests:
        return ""
    rows = [(each["name"], each["status"], each["says"]) for each in tests]
    return "## Tests in tests/gpu\n\n" + _table(("test", "result", "what it says"), rows)


def _selftests(found: list[Json]) -> str:
    if not found:
        return ""
    rows = [
        (each["step"], each["name"], each["device"], each["status"], each["seconds"],
         each["detail"], _figures(each))
        for each in found
    ]  # fmt: skip
    head = ("step", "self-test", "device", "result", "seconds", "what it says", "figures")
    return "## Self-tests\n\n" + _table(head, rows)


def _figures(result: Json) -> str:
    """Return what was measured and is held against nothing."""
    free = [each for each in result["measurements"] or () if each["bound"] is None]
    return "; ".join(f"{each['name']} {_cell(each['value'])} {each['unit']}" for each in free)


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:  # noqa: ANN401  # whatever a fact is
    if isinstance(value, float):
        value = f"{value:.4g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _fenced(text: str) -> str:
    return text.rstrip().replace("```", "'''")
