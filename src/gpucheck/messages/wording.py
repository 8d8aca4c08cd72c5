"""The words of a finding that a message in a text points to: headline and fixes."""

from collections.abc import Mapping

from gpucheck.facts.claims import Fix
from gpucheck.language import Sentence
from gpucheck.messages.form import FindingMessages, Message, compiled


def headline(message: Message, values: Mapping[str, str]) -> str:
    """Return the headline with the named groups of the match filled in, "?" for absent ones."""
    names = compiled(message.pattern).groupindex
    return Sentence(message.says, {name: values.get(name, "?") for name in names})


def fixes(finding: FindingMessages, message: Message, values: Mapping[str, str]) -> tuple[Fix, ...]:
    """Return the fixes of this message, or of its finding if the message has none."""
    return tuple(
        Fix(
            text=fix.text,
            commands=tuple(_filled(command, values) for command in fix.commands),
            verify=fix.verify,
            restart=fix.restart,
        )
        for fix in finding.fixes_for(message)
    )


def _filled(command: str, values: Mapping[str, str]) -> str:
    """Fill numbers from the match into a command; no other text is ever filled in."""
    for name, value in values.items():
        if value.isascii() and value.isdigit():
            command = command.replace(f"{{{name}}}", value)
    return command
