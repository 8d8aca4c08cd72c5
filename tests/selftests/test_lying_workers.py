"""Workers that send what ours never do: the launcher answers, and calls a bad answer bad."""

from pathlib import Path
from typing import Any

import pytest
from fake_patient import Patient, by_name
from lying_zygote import lying_zygote
from selftest_facts import ran, result

from gpucheck.output.selftest_lines import loaded_otherwise
from gpucheck.selftests.plan import Wish

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    "data",
    [{"devices": 5}, {"devices": [1]}, {"devices": None}, {"ranks": 5}, {"ranks": ["a"]}, 5],
)
def test_a_malformed_answer_is_a_bad_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Any  # noqa: ANN401
) -> None:  # fmt: skip
    patient = Patient(tmp_path, monkeypatch)
    found = patient.examine(python=lying_zygote(tmp_path, {"data": data}))
    rank_result = by_name(found, "import-torch")
    assert (rank_result.status, rank_result.kind) == ("crashed", "bad-answer")
    assert "is not understood" in rank_result.detail


@pytest.mark.parametrize("notes", [[1], {"import_seconds": "abc"}, {"import_seconds": True}, "x"])
def test_notes_that_are_none_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: object
) -> None:
    patient = Patient(tmp_path, monkeypatch)
    found = patient.examine(python=lying_zygote(tmp_path, ready={"notes": notes}))
    assert by_name(found, "import-torch").status == "passed"
    assert found.import_seconds is None


def test_what_only_gpucheck_adds_to_a_result_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Patient(tmp_path, monkeypatch)
    data = {"loaded_otherwise": 5, "control": {"cured_by": {}}, "forked": True, "torch": "2.9"}
    found = patient.examine(python=lying_zygote(tmp_path, {"data": data}))
    assert by_name(found, "import-torch").data == {"torch": "2.9"}


def test_no_machine_has_thousands_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = Patient(tmp_path, monkeypatch)
    devices = [{"device": f"cuda:{at}"} for at in range(2000)]
    python = lying_zygote(tmp_path, {"data": {"devices": devices}})
    found = patient.examine(Wish(devices=("cpu",)), python=python)
    assert len(found.devices or ()) == 256


def test_an_answer_that_is_repeated_is_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that never stops answering would fill the memory otherwise."""
    patient = Patient(tmp_path, monkeypatch)
    found = patient.examine(python=lying_zygote(tmp_path, times=500))
    assert by_name(found, "import-torch").status == "passed"


@pytest.mark.parametrize("libraries_reported", [5, [5], [{"soname": 1, "predicted": 5}]])
def test_a_saved_report_with_odd_libraries_is_shown(libraries_reported: object) -> None:
    odd = ran(result("import-torch", data={"loaded_otherwise": libraries_reported}))
    for line in loaded_otherwise(odd):
        assert line == "not as predicted: 1: expected 5, loaded none"
