"""Files of messages: a mistake is one sentence that names the file and the message."""

from pathlib import Path

import pytest
from each import each

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.log_patterns.form import Condition, FactCondition, KnownFacts, Strength, compiled
from gpucheck.log_patterns.loading import MessagesError, messages_of, read_toml
from gpucheck.log_patterns.matcher import holds

HEAD = """\
[condition.in-a-container]
any_of = ["docker"]
[[fix]]
text = "Install it."
"""
MESSAGE = """\
[[message]]
name = "no-driver"
strength = "points"
literal = "no driver"
pattern = 'no driver'
says = "There is no driver"
sample = 'no driver'
other = 'a driver'
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "driver_missing.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_what_is_not_given_has_its_default(tmp_path: Path) -> None:
    found = read_toml(written(tmp_path, HEAD + MESSAGE))
    (message,) = found.messages
    assert message.strength is Strength.POINTS
    assert message.strength.confidence is Confidence.LIKELY
    assert message.severity is Severity.ERROR
    assert message.refutable
    assert (message.beside, message.unless, message.tie_break) == ((), None, 0)
    assert found.fixes_for(message)[0].verify == "gpucheck"


def test_without_a_pattern_the_literal_is_matched_as_it_is(tmp_path: Path) -> None:
    plain = MESSAGE.replace("pattern = 'no driver'\n", "").replace('"no driver"', '"no driver (5)"')
    (message,) = read_toml(written(tmp_path, HEAD + plain)).messages
    assert compiled(message.pattern).search("No driver (5)")
    assert not compiled(message.pattern).search("no driver 5")


def test_a_message_says_itself_whether_other_programs_print_it(tmp_path: Path) -> None:
    of_file = "any_program = true\n"
    for head, line, expected in (
        ("", "", False),
        (of_file, "", True),
        (of_file, "any_program = false\n", False),
        ("", "any_program = true\n", True),
    ):
        found = read_toml(written(tmp_path, head + HEAD + MESSAGE + line))
        assert found.of_any_program(found.messages[0]) is expected


def test_conditions_and_fixes_are_taken_by_name(tmp_path: Path) -> None:
    own = '[[message.fix]]\ntext = "Restart."\n'
    other = MESSAGE.replace("no-driver", "other") + 'fixes_of = "no-driver"\n'
    conditions = 'beside = [{ named = ["in-a-container"], words = ["pod"], facts.wsl = true }]\n'
    found = read_toml(written(tmp_path, HEAD + MESSAGE + own + other + conditions))
    first, second = found.messages
    assert first.fixes == second.fixes
    assert second.fixes[0].text == "Restart."
    assert second.beside == (
        Condition(any_of=("docker",), words=("pod",), facts=FactCondition(wsl=True)),
    )


def test_equal_conditions_are_one_object(tmp_path: Path) -> None:
    lines = 'beside = [{ any_of = ["gpu"] }]\nunless = { any_of = ["gpu"] }\n'
    (message,) = read_toml(written(tmp_path, HEAD + MESSAGE + lines)).messages
    assert message.beside[0] is message.unless


@each(
    ("text", "complaint"),
    [
        (HEAD + "[[message]", "is not TOML"),
        (HEAD + MESSAGE + "literall = 'x'\n", "message 'no-driver'.*unknown field `literall`"),
        (HEAD + MESSAGE.replace('"points"', '"86"'), "message 'no-driver'.*Invalid enum"),
        (HEAD + MESSAGE.replace("name", "nam"), "message number 1"),
        (HEAD + MESSAGE + "beside = ['a|b']\n", "message 'no-driver'.*Expected `object`"),
        (HEAD + MESSAGE + 'unless = { words = "gpu" }\n', "message 'no-driver'.*array"),
        (HEAD + MESSAGE + "when = 'x > 1'\n", "message 'no-driver'.*Invalid enum"),
        (HEAD + MESSAGE + "beside = [{ facts.os = ['linus'] }]\n", "message 'no-driver'"),
        (HEAD + MESSAGE + "beside = [{ named = ['x'] }]\n", "message 'no-driver'.*named 'x'"),
        (HEAD + MESSAGE + "fixes_of = 'x'\n", "message 'no-driver'.*named 'x'"),
        (MESSAGE, "driver_missing.toml: Object missing required field `fix`"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(MessagesError, match=complaint) as failed:
        read_toml(written(tmp_path, text))
    assert str(failed.value).startswith(f"{tmp_path}/driver_missing.toml")


def test_only_one_of_several_conditions_asks_for_facts(tmp_path: Path) -> None:
    shared = "[condition.on-wsl]\nfacts.wsl = true\n"
    asks = "unless = { named = ['on-wsl'], facts.gpu = true }\n"
    with pytest.raises(MessagesError, match=r"'no-driver': .*facts"):
        read_toml(written(tmp_path, HEAD + shared + MESSAGE + asks))


def test_a_finding_without_messages_has_none() -> None:
    with pytest.raises(KeyError):
        messages_of("no-such-finding")


@each(
    ("condition", "facts"),
    [
        (FactCondition(os=("windows", "macos")), KnownFacts(os="macos")),
        (FactCondition(built_for=("cpu",)), KnownFacts(built_for="cpu")),
        (FactCondition(cuda_available=False), KnownFacts(cuda_available=False)),
        (FactCondition(gpu=True, wsl=True), KnownFacts(wsl=True)),
        (FactCondition(gpu_full=True), KnownFacts(gpu_full=True)),
        (FactCondition(jetson=True), KnownFacts(jetson=True)),
    ],
)
def test_a_condition_on_facts(condition: FactCondition, facts: KnownFacts) -> None:
    assert condition.holds(facts)
    assert not condition.holds(KnownFacts(os="linux", built_for="cuda"))
    assert not condition.holds(KnownFacts(cuda_available=True))


def test_named_conditions() -> None:
    memory = {"total": "24", "total_unit": "GiB", "free": "20", "free_unit": "MiB"}
    mine = {**memory, "reserved": "23.5", "reserved_unit": "GiB"}
    others = {**memory, "reserved": "2", "reserved_unit": "GiB"}
    assert holds("memory-held-by-others", others)
    assert not holds("memory-held-by-others", mine)
    assert not holds("memory-held-by-others", {**others, "asked": "30", "asked_unit": "GiB"})
    assert holds("memory-held-by-a-process", {"held": "2.00 GiB"})
    assert not holds("memory-held-by-a-process", {"held": "300.00 MiB"})
    assert holds("fewer-workers-than-expected", {"count": "3", "world": "4"})
    assert not holds("fewer-workers-than-expected", {"count": "4", "world": "4"})
