"""What a message that was found says as a finding: its headline and what to do."""

from collections.abc import Mapping

from gpucheck.facts.claims import Fix
from gpucheck.messages.form import FindingMessages, Message, compiled


def headline(message: Message, values: Mapping[str, str]) -> str:
    """Return the headline with the named groups of the match put in, "?" for what was not there."""
    names = compiled(message.pattern).groupindex
    return message.says.format(**{name: values.get(name, "?") for name in names})


def fixes(finding: FindingMessages, message: Message, values: Mapping[str, str]) -> tuple[Fix, ...]:
    """Return what to do: of this message where it tells more than its finding."""
    return tuple(
        Fix(
            text=fix.text,
            commands=tuple(_filled(command, values) for command in fix.commands),
            verify=fix.verify,
        )
        for fix in finding.fixes_for(message)
    )


def _filled(command: str, values: Mapping[str, str]) -> str:
    """Put numbers that the message names into a command; nothing else of a text gets there."""
    for name, value in values.items():
        if value.isascii() and value.isdigit():
            command = command.replace(f"{{{name}}}", value)
    return command
