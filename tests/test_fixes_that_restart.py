"""A fix whose words ask for a restart says so in its field ``restart``, in either language."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rules_machines import DOCKER, NO_CONTAINER, UBUNTU, WINDOWS
from rules_support import TABLES, snapshot
from test_machines import EACH, reported

import gpucheck
from gpucheck.advice import interruption
from gpucheck.advice.command_class import restart_of
from gpucheck.advice.interruption import Interruption
from gpucheck.engine import supply
from gpucheck.facts import Section
from gpucheck.facts.claims import Fix, Restart
from gpucheck.findings import all_rules
from gpucheck.language import Sentence, speaking, spoken
from gpucheck.log_patterns import form
from gpucheck.log_patterns.loading import all_messages
from gpucheck.output import terminal

pytestmark = pytest.mark.every_finding

ENGLISH = re.compile(
    r"\breboot|\brestart|\blog (?:in again|out)|--shutdown|\boff and on|firmware's setup|"
    r"machine off",
    re.IGNORECASE,
)
CHINESE = re.compile(r"重启|重新启动|重新登录|注销|断电|关机|固件设置")
SOURCE = Path(gpucheck.__file__).parent
NO_FIX = {
    "Or, without a restart, reload the modules": "what to do instead of a restart",
    "Then restart what uses the GPUs": "programs, not the machine",
    "collect the driver's bug report for NVIDIA": "a caution",
    "The restart ": "a caution",
    "Instances are gone after a reboot": "what a restart undoes",
    "Start the program again": "a program, not the machine",
    "NVIDIA's Xid catalogue asks for": "why a GPU gets no work",
    "a hardware fault that a reset or a restart may clear": "why a GPU gets no work",
}
"""How a text begins, or what is in it, that asks for no restart."""


def asks(text: str) -> bool:
    """Whether a template or its translation asks for a restart."""
    with speaking("zh"):
        translated = spoken(Sentence(text)) if "{" not in text else text
    if any(words in text for words in NO_FIX):
        return False
    return bool(ENGLISH.search(text) or CHINESE.search(translated))


def _templates(tree: ast.AST) -> Iterator[tuple[str, list[ast.AST]]]:
    """Yield each sentence of a module with the nodes around it, the nearest last."""

    def walk(node: ast.AST, above: list[ast.AST]) -> Iterator[tuple[str, list[ast.AST]]]:
        if _calls(node, "say", "say_many"):
            for argument in node.args:  # type: ignore[attr-defined]  # it is a call
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value, above
        for child in ast.iter_child_nodes(node):
            yield from walk(child, [*above, node])

    yield from walk(tree, [])


def _calls(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _is_marked(around: list[ast.AST]) -> bool:
    """Whether the fix of a sentence, or one in the same function, has the field or the command."""
    own = [node for node in around if _calls(node, "Fix", "_fix", "InPreflight")]
    frames = [node for node in around if isinstance(node, ast.FunctionDef)]
    within = (own or frames or [ast.Pass()])[-1]
    return any(
        (isinstance(node, ast.keyword) and node.arg == "restart")
        or (isinstance(node, ast.Name) and node.id in ("_REBOOT", "_RESTART", "install_commands"))
        or (isinstance(node, ast.Constant) and restart_of((str(node.value),)) is not None)
        for node in ast.walk(within)
    )


def test_every_sentence_of_the_code_that_asks_for_a_restart_is_of_a_marked_fix() -> None:
    unmarked = []
    found = 0
    for folder in ("findings", "advice", "derived", "engine", "describe", "cluster", "selftests"):
        for file in sorted((SOURCE / folder).rglob("*.py")):
            for text, around in _templates(ast.parse(file.read_text(encoding="utf-8"))):
                if asks(text) and not text.startswith("On NixOS"):  # a part of a marked fix
                    found += 1
                    unmarked += [(file.name, text)] if not _is_marked(around) else []
    assert unmarked == []
    assert found > 30


def test_every_fix_of_a_message_that_asks_for_a_restart_says_so() -> None:
    fixes = [
        (slug, fix)
        for slug, finding in all_messages().items()
        for message in finding.messages
        for there in (False, True)
        for fix in (
            *finding.named_fixes,
            *form.fixes(finding, message, {}, on_windows=there),
        )
    ]
    asking = [(slug, fix) for slug, fix in fixes if asks(str(fix.text))]
    assert len({slug for slug, _fix in asking}) >= 6
    assert [
        slug_and_fix
        for slug_and_fix in asking
        if not (slug_and_fix[1].restart or restart_of(slug_and_fix[1].commands))
    ] == []


def test_every_header_that_asks_for_a_restart_says_so() -> None:
    headers = {slug: rule.preflight for slug, rule in all_rules().items() if rule.preflight.fix}
    asking = {slug for slug, in_preflight in headers.items() if asks(str(in_preflight.fix))}
    assert asking == {slug for slug, in_preflight in headers.items() if in_preflight.restart}
    assert asking >= {"rank-hangs", "nvlink-down"}


@EACH
def test_every_fix_for_a_machine_that_asks_for_a_restart_says_so(name: str) -> None:
    for finding in reported(name).findings:
        for fix in finding.fixes:
            with speaking("zh"):
                translated = spoken(fix.text)
            has_fix = not any(words in fix.text for words in NO_FIX)
            if has_fix and (ENGLISH.search(fix.text) or CHINESE.search(translated)):
                assert fix.restart, (finding.slug, fix)
            if fix.restart and fix.restart != "session":
                assert fix.reach == "interrupts", (finding.slug, fix)
                assert fix.cautions, (finding.slug, fix)


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (("sudo apt-get update", "sudo reboot"), "machine"),
        (("wsl.exe --update", "wsl.exe --shutdown"), "wsl"),
        (("lxc restart CONTAINER",), "container"),
        (("sudo systemctl restart docker", "sudo reboot"), "machine"),
        (("sudo systemctl restart slurmd",), "service"),
        (("echo 'sudo reboot'", "last -x | grep reboot", "systemctl status docker"), None),
    ],
)
def test_what_commands_restart(commands: tuple[str, ...], expected: Restart | None) -> None:
    assert restart_of(commands) == expected


def careful(fix: Fix, *sections: Section, is_hardware: bool = False) -> Fix:
    advice: Interruption = supply(Interruption, snapshot(*sections), TABLES)
    return advice.careful(fix, is_hardware=is_hardware)


def test_words_warn_as_a_command_does() -> None:
    by_words = careful(Fix(text="Reboot the host.", restart="machine"), UBUNTU, NO_CONTAINER)
    by_command = careful(Fix(text="Reboot.", commands=("sudo reboot",)), UBUNTU, NO_CONTAINER)
    assert by_words.cautions == (interruption.RESTART_STOPS_OTHERS,)
    assert (by_words.restart, by_words.reach) == (by_command.restart, by_command.reach)
    again = careful(by_words, UBUNTU, DOCKER)  # on another node
    assert again == by_words


def test_whose_work_a_restart_ends() -> None:
    container = careful(Fix(text="Restart it.", restart="container"), UBUNTU, DOCKER)
    assert container.cautions == (interruption.ENDS_CONTAINER,)
    session = careful(Fix(text="Log in again.", restart="session"), UBUNTU, NO_CONTAINER)
    assert (session.cautions, session.reach) == ((), None)
    windows = careful(Fix(text="Restart.", restart="machine"), WINDOWS, NO_CONTAINER)
    assert windows.cautions == (interruption.RESTART_STOPS_OTHERS,)  # no scheduler to drain


def test_the_traces_of_a_fault_are_collected_before_words_ask_for_a_restart() -> None:
    fix = Fix(text="Then reboot.", restart="machine")
    assert careful(fix, UBUNTU, NO_CONTAINER, is_hardware=True).commands == (interruption.COLLECT,)
    assert careful(fix, UBUNTU, NO_CONTAINER).commands == ()


def test_a_reader_sees_it() -> None:
    report = reported("nvlink-six-links-down")
    (fix,) = report.findings[0].fixes
    assert (fix.restart, restart_of(fix.commands)) == ("machine", None)  # only its words restart
    assert "Fix (interrupts others): " in terminal.render(report, verbose=1)
    assert f"Caution {interruption.RESTART_STOPS_OTHERS}" in " ".join(
        terminal.render(report).split()
    )
    data = report.as_json()["findings"][0]["fixes"][0]
    assert (data["restart"], set(data["classes"])) == ("machine", {"reads"})


def test_all_distributions_of_wsl_stop_and_that_command_stands_apart() -> None:
    (fix,) = reported("wsl2-linux-driver-inside").findings[0].fixes
    assert fix.cautions == (interruption.ENDS_WSL,)
    page = terminal.render(reported("wsl2-linux-driver-inside"))
    assert "in all its distributions" in " ".join(page.split())
    assert "sudo ldconfig\nThen, when it disturbs nobody:\n  wsl.exe --shutdown" in page


def test_a_conversion_ends_one_distribution() -> None:
    fix = careful(Fix(text="Convert it.", commands=("wsl.exe --set-version Ubuntu 2",)), UBUNTU)
    assert fix.cautions == (interruption.CONVERTS,)


def test_a_restart_that_is_only_a_next_step_is_cautioned() -> None:
    page = " ".join(terminal.render(reported("nvml-hangs")).split())
    assert "it interrupts everyone who uses this machine" in page
    assert page.index("nvidia-bug-report.sh") > page.index("a restart")


def test_a_disabled_adapter_is_enabled() -> None:
    page = terminal.render(reported("windows-3d-controller"))
    assert "CM_PROB_DISABLED" in page


def test_a_recorded_machine_is_where_its_commands_run() -> None:
    assert "Run its commands there." in terminal.render(reported("r440-cu117"))
