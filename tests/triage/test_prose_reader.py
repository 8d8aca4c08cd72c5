"""The second reader: what the wording of a text resembles where no rule finds a cause."""

import json
import math
from pathlib import Path

import pytest
from each import each

from gpucheck import triage
from gpucheck.facts.claims import Confidence
from gpucheck.facts.request import Lead, Pasted
from gpucheck.facts.snapshot import decode
from gpucheck.language import speaking
from gpucheck.output import ticket_text
from gpucheck.tables import Tables, tables_dir
from gpucheck.ticket import judge, prose_reader
from gpucheck.ticket.judge import judge_saved
from gpucheck.ticket.ticket_reply import reply

# Nothing in it is a message of a program.
IN_WORDS = (
    "docker container cannot see the gpu, nvidia-smi works on the host. "
    "what is wrong with my compose file?"
)
QUESTION = "Feature request: please add a dark theme and an option that hides the sidebar."


@each("text", [IN_WORDS, QUESTION, "显卡驱动装好了 但是训练的时候只用CPU", "a b c d"])
def test_shares_are_those_of_a_plain_sum_and_add_up_to_1(text: str) -> None:
    model, rows = prose_reader._model()  # noqa: SLF001
    places = prose_reader.counted(text)
    weights = {place: prose_reader.weighed(count) for place, count in places.items()}
    length = math.sqrt(sum(weight * weight for weight in weights.values()))
    lanes = len(model.causes)
    raised = [
        math.exp(
            model.sharpness
            * (
                model.base[at]
                + model.scale
                * sum(w * (rows[place * lanes + at] - 128) for place, w in weights.items())
                / length
            )
        )
        for at in range(lanes)
    ]
    found = prose_reader.shares(text)
    assert sum(found.values()) == pytest.approx(1)
    for at, cause in enumerate(model.causes):
        assert found[cause] == pytest.approx(raised[at] / sum(raised))


def test_the_longest_text_overflows_no_sum() -> None:
    words = " ".join(f"{chr(97 + at % 26)}{at:03}" for at in range(1000))
    most = max(map(prose_reader.weighed, prose_reader.counted(words).values()))
    places = prose_reader.counted(words)
    assert sum(map(prose_reader.weighed, places.values())) * 255 < 2**32
    assert prose_reader.MOST_CHARACTERS * 2 * most * 255 < 2**32  # whatever the text is


def test_a_few_words_resemble_nothing() -> None:
    assert prose_reader.shares("it fails") == {}
    assert prose_reader.leads_of("it fails") == []


def test_leads_are_the_likeliest_first_and_at_most_three() -> None:
    leads = prose_reader.leads_of(IN_WORDS.lower())
    shares = [lead.share or 0 for lead in leads]
    assert leads[0].cause == "container-no-gpu"
    assert 1 <= len(leads) <= 3
    assert shares == sorted(shares, reverse=True)


def test_a_text_in_words_that_nearly_always_mean_one_fault_has_a_possible_cause() -> None:
    report = triage(IN_WORDS)
    assert (report.verdict, report.root_causes) == ("broken", ("container-no-gpu",))
    assert report.causes[0].confidence is Confidence.POSSIBLE
    assert report.open_questions == ()
    page = ticket_text.render(report)
    assert "By its wording, the text is about this: the container has no access" in page
    assert "No line shows it. Ask for the output of `python -m" in page
    assert report.as_line("1")["leads"][0]["cause"] == "container-no-gpu"
    with speaking("zh"):
        assert "从措辞看" in ticket_text.render(report)
    answer = reply(report)
    assert "What you sent does not show the cause yet." in answer
    assert "container-no-gpu" not in answer
    assert "Please send the complete output of:" in answer


def test_an_undecided_text_shows_what_it_resembles_and_stays_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judge, "_NAMED", 1.1)
    report = triage(IN_WORDS)
    assert (report.verdict, report.root_causes) == ("unknown", ())
    page = ticket_text.render(report)
    assert "No line shows it, but by its wording the text may be about" in page
    assert "[container-no-gpu]: " in page


def test_a_cause_that_is_only_possible_has_others_beside_it() -> None:
    report = triage(
        "Why? My script ends with\nCUDA error: no kernel image is available for execution"
    )
    assert report.causes[0].confidence is Confidence.POSSIBLE
    page = ticket_text.render(report)
    assert "No line shows it, but by its wording the text may also be about" in page
    others = [lead.cause for lead in report.snapshot.get(Pasted).leads or ()]
    assert set(others) - set(report.root_causes)


def test_what_a_rule_decides_is_not_read_by_its_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_text: str) -> dict[str, float]:
        raise AssertionError

    monkeypatch.setattr(prose_reader, "shares", never)
    report = triage("AssertionError: Torch not compiled with CUDA enabled")
    assert report.root_causes == ("torch-cpu-only",)
    assert report.snapshot.get(Pasted).leads is None


def test_a_question_stays_a_healthy_text() -> None:
    report = triage(QUESTION)
    assert report.verdict == "healthy"
    assert "leads" not in report.as_line("1")


def test_a_saved_report_says_the_same_again() -> None:
    report = triage(IN_WORDS)
    saved = decode(json.dumps(report.as_json()).encode())
    again = judge_saved(saved, Tables(tables_dir(None)))
    assert again.root_causes == report.root_causes == ("container-no-gpu",)
    assert again.snapshot.get(Pasted).leads == report.snapshot.get(Pasted).leads


def test_a_cause_that_nobody_knows_is_not_shown() -> None:
    report = triage(IN_WORDS)
    pasted = report.snapshot.get(Pasted)
    changed = Pasted(leads=[Lead(cause="\x1b[31mevil", share=0.9)], readers=pasted.readers)
    other = judge_saved(report.snapshot.with_section(changed), Tables(tables_dir(None)))
    assert "evil" not in ticket_text.render(other)


def test_what_people_describe_is_no_finding() -> None:
    text = (
        "Our multi-gpu training with DDP hangs. It did so yesterday, and the week before as well, "
        "always in the night when nobody looks at the machines. Any idea what to try next?"
    )
    assert triage(text).root_causes == ()


def test_a_wish_is_not_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    doubt = [Lead(cause="driver-too-old", share=0.9)]
    monkeypatch.setattr(judge, "leads_of", lambda _text, **_how: doubt)
    wish = "[Feature]: support FP8 for GPUs with compute capability 8.9"
    assert triage(wish).verdict == "healthy"


def test_the_model_knows_the_slugs_of_today() -> None:
    from gpucheck.findings import all_rules  # noqa: PLC0415

    model, rows = prose_reader._model()  # noqa: SLF001
    assert set(model.causes) - set(all_rules()) == {"healthy"}
    assert len(rows) == prose_reader.PLACES * len(model.causes)
    assert Path(prose_reader.__file__).with_name("prose_reader.bin").stat().st_size < 1_000_000


def test_what_is_told_beside_a_table_is_doubted_and_a_short_question_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def leads_of(_text: str, *, least: float) -> list[Lead]:
        asked.append(least)
        return [Lead(cause="container-no-gpu", share=0.9)]

    monkeypatch.setattr(judge, "leads_of", leads_of)
    told = "I start the container with the tool kit that the guide names and get no card in it. "
    listed = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5c34d9a6-1f1c-4a0d-8f4e-0a0a0a0a0a0a)\n"
    assert triage(told * 2 + "\n" + listed).verdict == "unknown"
    assert asked[-1] > 0
    assert triage("May I train with it?\n" + listed).verdict == "healthy"
    assert len(asked) == 1


def test_who_speaks_is_doubted_sooner_than_what_programs_print(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def leads_of(_text: str, *, least: float) -> list[Lead]:
        asked.append(least)
        return []

    monkeypatch.setattr(judge, "leads_of", leads_of)
    listed = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5c34d9a6-1f1c-4a0d-8f4e-0a0a0a0a0a0a)\n"
    said = (
        "I start the training on the GPU as the guide says and would like to know what it does.\n"
    )
    printed = "loading the model of the training for the GPU from the cache of the folder\n" * 3
    for text in (said, printed, said + listed, printed + listed):
        triage(text)
    of_person, of_program, beside_list, of_program_beside_list = asked
    assert of_person < of_program < of_program_beside_list
    assert of_person < beside_list < of_program_beside_list
