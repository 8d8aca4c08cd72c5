"""The fixes of a finding: what each is called, its commands, and how to verify it."""

from collections.abc import Iterator, Sequence

from gpucheck.facts.claims import CommandClass, Fix
from gpucheck.language import in_turn, say
from gpucheck.output.blocks import Block, Commands, Words

_REACH: dict[CommandClass, str] = {
    "reads": say("the commands only read"),
    "environment": say("changes your environment"),
    "machine": say("changes the machine"),
    "interrupts": say("interrupts others"),
}

_GATED = ("machine", "wsl")
"""What ends the work of others when it restarts, so that its command stands apart."""
_THEN = say("Then, if that is fine:")
"""What stands between two blocks of commands."""


def fixes(offered: Sequence[Fix]) -> tuple[Block, ...]:
    """Return the fixes, each with its commands, and how to verify it."""
    return tuple(
        Words(fix.text, lead=_label(fix, number, len(offered)), hangs=True, below=tuple(steps(fix)))
        for number, fix in enumerate(offered, start=1)
    )


def steps(fix: Fix) -> Iterator[Block]:
    """Return what to know before the commands of a fix are run, the commands, how to verify it."""
    if fix.cautions:
        yield Words(in_turn(fix.cautions), lead=say("Caution"), kind="warning")
    for number, commands in enumerate(_together(fix)):
        if number:
            yield Words(_THEN)
        yield Commands(commands)
    if fix.verify:
        yield Commands((fix.verify,), lead=say("Verify"))


def _together(fix: Fix) -> list[tuple[str, ...]]:
    """Return the commands of a fix, those together that may be pasted together.

    Whoever looks wants to see before anything ends, and a restart would cut off what still runs.
    """
    if len(fix.commands) < 2:  # noqa: PLR2004
        return [fix.commands] if fix.commands else []
    from gpucheck.advice.command_class import restart_of  # noqa: PLC0415  # rarely needed

    found: list[list[str]] = []
    classes = fix.classes if len(fix.classes) == len(fix.commands) else ()
    for at, command in enumerate(fix.commands):
        looked = classes[at - 1 : at + 1] == ("reads", "interrupts")
        if not found or looked or (classes and restart_of((command,)) in _GATED):
            found.append([])
        found[-1].append(command)
    return [tuple(commands) for commands in found]


def _label(fix: Fix, number: int, count: int) -> str:
    """Return the name of a fix, such as "Fix 2 (changes the machine)"."""
    name = say("Fix {number}", number=number) if count > 1 else say("Fix")
    return say("{fix} ({reach})", fix=name, reach=_REACH[fix.reach]) if fix.reach else name


def with_colon(name: str) -> str:
    """Return what stands before a text, with the sign and the blank between them."""
    return say("{name}: ", name=name)
