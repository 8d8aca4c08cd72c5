"""The words of a finding that a message in a text points to: headline and fixes."""

from collections.abc import Mapping

import msgspec

from gpucheck.facts.claims import Fix
from gpucheck.language import Sentence
from gpucheck.log_patterns.form import FindingMessages, Message, compiled


def headline(message: Message, values: Mapping[str, str]) -> str:
    """Return the headline with the named groups of the match filled in, "?" for absent ones."""
    names = compiled(message.pattern).groupindex
    return Sentence(message.says, {name: values.get(name, "?") for name in names})


def fixes(
    finding: FindingMessages,
    message: Message,
    values: Mapping[str, str],
    *,
    on_windows: bool = False,
) -> tuple[Fix, ...]:
    """Return the fixes of this message, or of its finding if the message has none."""
    plain = [fix.plain(on_windows=on_windows) for fix in finding.fixes_for(message)]
    return tuple(
        msgspec.structs.replace(
            fix, commands=tuple(_filled(command, values) for command in fix.commands)
        )
        for fix in plain
    )


def _filled(command: str, values: Mapping[str, str]) -> str:
    """Fill numbers from the match into a command; no other text is ever filled in."""
    for name, value in values.items():
        if value.isascii() and value.isdigit():
            command = command.replace(f"{{{name}}}", value)
    return command
