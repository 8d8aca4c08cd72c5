"""No fix names a stranger's package, guesses a name, or removes what it does not replace."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from each import each
from rules_support import TABLES
from test_machines import EACH, reported

from gpucheck.facts.claims import Fix
from gpucheck.log_patterns.form import fixes as fixes_of
from gpucheck.log_patterns.loading import all_messages
from gpucheck.output import json_text, junit, markdown, terminal, ticket_text
from gpucheck.output.public import public as redacted
from gpucheck.output.redact.public_names import is_public
from gpucheck.ticket.judge import triage
from gpucheck.ticket.ticket_reply import reply

pytestmark = pytest.mark.every_finding

ROOT = Path(__file__).parent.parent
_TEXTS = (".md", ".py", ".toml", ".yaml", ".yml", ".sh", ".html", ".json")
_FROM_THE_INDEX = re.compile(
    r"(?<!Do not `)(?<!不要运行 `)pip3? install (?:-\S+ )*[\"']?gpucheck\b|pipx install gpucheck\b"
)
_GUESSED = re.compile(
    r"\beth0\b|\bPACKAGE\b|\bCAPABILITY\b|\bNAME_OF|\bADDRESS_OF|\bGROUP\b|\bPROFILE\b|=MIG-\.\.\."
)
_TORCH_UNPINNED = re.compile(r"--force-reinstall\b.* torch(?=\s|$)")
_REMOVES = re.compile(r"\b(?:uninstall|conda remove|purge|rmmod)\b")


def of_messages() -> Iterator[tuple[str, Fix]]:
    """Return the fixes of every message, by slug."""
    for slug, finding in all_messages().items():
        for message in finding.messages:
            for there in (False, True):
                for fix in fixes_of(finding, message, {}, on_windows=there):
                    yield slug, fix


def test_nothing_says_to_install_gpucheck_from_the_public_index() -> None:
    files = [
        file
        for folder in ("src", "docs")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in _TEXTS
    ]
    named = [file.name for file in (*files, ROOT / "README.md") if _says(file)]
    assert len(files) > 100
    assert named == []


def test_the_readme_says_in_bold_not_to() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "**Do not `pip install gpucheck`." in text


def test_a_reply_names_no_command_that_its_reader_may_not_have() -> None:
    own = [(slug, fix.commands) for slug, fix in of_messages() if "gpucheck recommend" in str(fix)]
    assert own == []


def test_a_reply_guesses_nothing() -> None:
    commands = [(slug, command) for slug, fix in of_messages() for command in fix.commands]
    assert [command for command in commands if _GUESSED.search(command[1])] == []
    assert [command for command in commands if _TORCH_UNPINNED.search(command[1])] == []


def test_a_reply_removes_nothing() -> None:
    removing = [(slug, fix) for slug, fix in of_messages() if "uninstall" in str(fix.commands)]
    assert removing == []


@EACH
def test_what_is_uninstalled_is_installed_by_the_same_fix(name: str) -> None:
    for finding in reported(name).findings:
        for fix in finding.fixes:
            at = [n for n, command in enumerate(fix.commands) if " uninstall " in command]
            asked_for = re.search(r"\bremove the\b|^Uninstall ", fix.text)
            if at and not asked_for:
                later = fix.commands[at[-1] + 1 :]
                assert any(re.search(r" install .*==", command) for command in later), (name, fix)


@EACH
def test_a_fix_for_a_machine_guesses_nothing(name: str) -> None:
    for finding in reported(name).findings:
        for fix in finding.fixes:
            assert not any(_GUESSED.search(command) for command in fix.commands), (
                finding.slug,
                fix,
            )
            assert not any(_TORCH_UNPINNED.search(command) for command in fix.commands)


def _says(file: Path) -> bool:
    return bool(_FROM_THE_INDEX.search(file.read_text(encoding="utf-8")))


def test_a_reply_names_the_exact_build_where_the_text_has_the_facts() -> None:
    text = """
    OS: Ubuntu 22.04.4 LTS (x86_64)
    Python version: 3.11.9 (64-bit runtime)
    GPU models and configuration: GPU 0: NVIDIA GeForce RTX 4090
    Nvidia driver version: 550.54.15
    AssertionError: Torch not compiled with CUDA enabled
    """
    found = triage(textwrap.dedent(text), TABLES)
    (fix,) = found.standing[0].fixes
    assert found.root_causes == ("torch-cpu-only",)
    assert re.search(r"pip install torch==\S+ --index-url \S+/cu12", fix.commands[-1])


@each(
    ("name", "public"),
    [
        ("flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so", True),
        ("flash_attn_cuda.abi3.so", True),
        ("xformers.pyd", True),
        ("flash_attn_acme.so", False),
        ("acme_ops.cpython-311-x86_64-linux-gnu.so", False),
        ("ops.so", False),
    ],
)
def test_the_module_of_a_public_package_keeps_its_name(name: str, public: bool) -> None:  # noqa: FBT001
    assert is_public(name) is public


@EACH
def test_a_redacted_command_can_still_be_run(name: str) -> None:
    report = reported(name)
    for mine, shown in zip(report.findings, redacted(report).findings, strict=True):
        for fix, other in zip(mine.fixes, shown.fixes, strict=True):
            for command, public in zip(fix.commands, other.commands, strict=True):
                assert ("sed " in command) <= (command == public), public


def test_the_driver_that_a_build_needs_stands_beside_it_in_every_form() -> None:
    text = """
    PyTorch version: 2.5.1+cu124
    OS: Ubuntu 22.04.4 LTS (x86_64)
    Python version: 3.11.9 (64-bit runtime)
    GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090
    RuntimeError: CUDA error: no kernel image is available for execution on the device
    """
    report = triage(textwrap.dedent(text), TABLES)
    fix = report.standing[0].fixes[0]
    (needs,) = re.findall(r"needs driver ([0-9.]+) or newer", fix.text)
    forms = (
        terminal.render(report, width=300),
        markdown.render(report),
        junit.render(report),
        json_text.render(report),
        ticket_text.render(report),
        reply(report),
        reply(report, "zh"),
    )
    assert [form for form in forms if needs not in form] == []


@EACH
def test_conda_takes_no_dependent_along(name: str) -> None:
    for finding in reported(name).findings:
        for fix in finding.fixes:
            removed = [command for command in fix.commands if command.startswith("conda remove")]
            assert all(" --force " in command for command in removed)
            assert not removed or "depend on it stay" in fix.text
