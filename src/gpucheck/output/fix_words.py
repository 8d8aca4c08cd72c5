"""How every format names a fix: its number, and what its commands do to the machine and others."""

from gpucheck.facts.claims import CommandClass, Fix
from gpucheck.language import in_turn, say

REACH: dict[CommandClass, str] = {
    "reads": say("the commands only read"),
    "environment": say("changes your environment"),
    "machine": say("changes the machine"),
    "interrupts": say("interrupts others"),
}


def label(fix: Fix, number: int, count: int) -> str:
    """Return the name of a fix, such as "Fix 2 (changes the machine)"."""
    name = say("Fix {number}", number=number) if count > 1 else say("Fix")
    return say("{fix} ({reach})", fix=name, reach=REACH[fix.reach]) if fix.reach else name


def caution(fix: Fix) -> str:
    """Return what to know before the commands are run; "" if there is nothing."""
    return in_turn(fix.cautions)


def with_colon(name: str) -> str:
    """Return what stands before a text, with the sign and the blank between them."""
    return say("{name}: ", name=name)
