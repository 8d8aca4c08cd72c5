"""What a signature that was found says as a finding: its headline, how sure, and what to do."""

from collections.abc import Mapping

from gpucheck.findings import Confidence, Fix
from gpucheck.signatures.base import Signature, Signs, compiled

_CERTAIN, _LIKELY = 88, 60


def headline(signature: Signature, values: Mapping[str, str]) -> str:
    """Return the headline with the named groups of the match put in, "?" for what was not there."""
    names = compiled(signature.pattern).groupindex
    return signature.says.format(**{name: values.get(name, "?") for name in names})


def confidence(weight: int) -> Confidence:
    """Return how sure a text of this weight is."""
    if weight >= _CERTAIN:
        return Confidence.CERTAIN
    return Confidence.LIKELY if weight >= _LIKELY else Confidence.POSSIBLE


def fixes(signs: Signs, signature: Signature, values: Mapping[str, str]) -> tuple[Fix, ...]:
    """Return what to do: of this message where it tells more than its slug, else of the slug."""
    return tuple(
        Fix(
            text=cure.text,
            commands=tuple(_filled(command, values) for command in cure.commands),
            verify=cure.verify,
        )
        for cure in signature.cures or signs.cures
    )


def _filled(command: str, values: Mapping[str, str]) -> str:
    """Put numbers that the message names into a command; nothing else of a text gets there."""
    for name, value in values.items():
        if value.isascii() and value.isdigit():
            command = command.replace(f"{{{name}}}", value)
    return command
