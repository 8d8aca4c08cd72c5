"""The questions of an assistant: typed, bounded, redacted; none can choose what is run."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest
import test_machines
from each import each

from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter
from gpucheck.interface.errors import UsageError
from gpucheck.programs.functions import compat
from gpucheck.programs.questions import (
    QUESTIONS,
    Setting,
    _diagnosis,
    asked,
    schema_of,
    schema_of_answer,
)
from gpucheck.programs.results import check_report

NO_CUDA_CODE = "CUDA error: no kernel image is available for execution on the device"
GOOD: list[tuple[str, dict[str, Any]]] = [
    ("compat", {"facts": {"gpu": "RTX 5090", "driver": "535.104.05", "torch": "2.5.1"}}),
    ("recommend", {"gpu": ["RTX 4090"], "driver": "570", "os": "linux"}),
    ("triage", {"text": f"RuntimeError: {NO_CUDA_CODE}"}),
    ("explain", {"slug": "Driver_Too_Old"}),
    ("list", {}),
]


@each(("name", "arguments"), GOOD)
def test_answers_have_the_form_that_is_announced(name: str, arguments: dict[str, Any]) -> None:
    jsonschema.validate(arguments, schema_of(name))
    answer = asked(name, arguments).answer(Setting())
    data = json.loads(json.dumps(answer.data))
    jsonschema.validate(data, schema_of_answer(name))
    assert answer.text


@each("name", QUESTIONS)
def test_no_question_names_a_program_a_folder_or_an_address(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(name))
    jsonschema.Draft202012Validator.check_schema(schema_of_answer(name))
    names = set(schema_of(name).get("properties", {}))
    assert not names & {"python", "tables", "wheel_mirror", "sysroot", "file", "path", "output"}
    with pytest.raises(UsageError, match="unknown field"):
        asked(name, {"python": "/bin/sh"})


@each("deep", [500, 100_000])
def test_facts_deeper_than_a_stack_are_refused(deep: int) -> None:
    nested: list[Any] = []
    for _ in range(deep):
        nested = [nested]
    for facts in ({"torch": nested}, {"gpu": [nested]}, {"torch": 10**5000}):
        with pytest.raises(UsageError):
            asked("compat", {"facts": facts}).answer(Setting())
        with pytest.raises(UsageError):
            compat(facts)


@each(
    ("name", "arguments", "words"),
    [
        ("chekc", {}, "There is no question called 'chekc'. Did you mean check?"),
        ("a\x1b[2J", {}, "called 'a"),
        ("check", {"gpus": -1}, r"check: Expected `int` >= 0 - at `\$.gpus`"),
        ("check", {"only": ["x" * 300]}, "length <= 200"),
        ("compat", {}, "missing required field `facts`"),
        ("compat", {"facts": {}}, "length >= 1"),
        ("compat", {"facts": {"dirver": "1"}}, "Did you mean driver"),
        ("compat", {"facts": {"torch": "x" * 2_000_000}}, "facts has more than 1 MiB"),
        ("triage", {"text": "x" * (16 * 1024 * 1024 + 1)}, "text has more than 16 MiB"),
        ("recommend", {"gpu": ["nonsense"]}, "'nonsense' is not a GPU"),
        ("recommend", {"companions": ["evil"]}, "Invalid enum value"),
        ("explain", {"slug": "driver-to-old"}, "Did you mean driver-too-old"),
    ],
)
def test_nonsense_is_one_sentence(name: str, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        asked(name, arguments).answer(Setting())
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)


def test_names_of_this_machine_are_redacted_unless_its_owner_wants_them() -> None:
    report = test_machines.reported("h100x8-r580-cu130")
    system = msgspec.structs.replace(report.snapshot.get(System), hostname="secret-host")
    python = msgspec.structs.replace(
        report.snapshot.get(Interpreter), executable="/home/alice/venv/bin/python"
    )
    snapshot = report.snapshot.with_section(system).with_section(python)
    shown = check_report(test_machines.judged(snapshot))
    public = _diagnosis(shown, Setting())
    assert "alice" not in str(public)
    assert "secret-host" not in str(public)
    assert "/home/alice/venv/bin/python" in _diagnosis(shown, Setting(redacted=False)).text
