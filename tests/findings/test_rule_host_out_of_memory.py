import pytest
from each import each
from rules_machines import UBUNTU, WINDOWS, fine, hit, not_applicable
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.driver import KernelLog, OomKill
from gpucheck.findings.form import Judgement

SLUG = "host-out-of-memory"


def judge(
    *names: str,
    scope: str | None = "cgroup",
    ago: float | None = 60.0,
    own: bool | None = True,
) -> Judgement:
    kills = [
        OomKill(pid=at, process_name=name, scope=scope, seconds_ago=ago, in_own_group=own)
        for at, name in enumerate(names)
    ]
    return ask(SLUG, KernelLog(oom_kills=kills), UBUNTU)


@each("name", ["python", "python3.12", "pt_main_thread", "torchrun", "ray::IDLE", "pt_data_worker"])
def test_python_programs_are_told_as_a_warning(name: str) -> None:
    answer = hit(judge("mysqld", name))
    assert answer.severity is Severity.WARNING
    assert answer.evidence == ("kernel_log.oom_kills.1",)
    assert "its container or job reached its memory limit" in answer.headline


@each("ago", [86_400.0, None])
def test_an_old_kill_is_information_only(ago: float | None) -> None:
    assert hit(judge("python", ago=ago)).severity is Severity.INFO


def test_the_limit_of_another_group_is_no_warning() -> None:
    """Somebody else's container on the same machine: it says nothing about the programs here."""
    assert hit(judge("python", own=False)).severity is Severity.INFO
    fine(judge("python", own=False, ago=86_400.0))
    fine(judge("python", own=False, ago=None))


def test_a_group_that_is_not_known_is_no_warning() -> None:
    assert hit(judge("python", own=None)).severity is Severity.INFO
    assert hit(judge("python", own=None, ago=86_400.0)).severity is Severity.INFO


def test_a_kill_of_this_group_comes_before_a_later_one_of_another() -> None:
    kills = [
        OomKill(pid=1, process_name="python", scope=scope, seconds_ago=60.0, in_own_group=own)
        for scope, own in (("host", False), ("cgroup", False))
    ]
    answer = hit(ask(SLUG, KernelLog(oom_kills=kills), UBUNTU))
    assert answer.severity is Severity.WARNING
    assert answer.evidence == ("kernel_log.oom_kills.0",)


def test_the_last_kill_is_named_and_the_others_are_counted() -> None:
    answer = hit(judge("python", "python", "python3", scope="host"))
    assert "python3 (pid 2)" in answer.headline
    assert "3 such kills" in answer.headline
    assert "the machine ran out of memory" in answer.headline
    assert "memory ran out" in hit(judge("python", scope=None)).headline


@each("names", [(), ("mysqld", "chrome", "java"), ("",)])
def test_other_programs_are_fine(names: tuple[str, ...]) -> None:
    fine(judge(*names))


def test_a_log_that_may_not_be_read_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"kernel_log\.oom_kills"):
        ask(SLUG, UBUNTU)
    not_applicable(ask(SLUG, WINDOWS))
