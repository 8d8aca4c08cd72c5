"""How every format names a fix: its number, and what its commands do to the machine and others."""

from gpucheck.facts.claims import CommandClass, Fix

REACH: dict[CommandClass, str] = {
    "reads": "the commands only read",
    "environment": "changes your environment",
    "machine": "changes the machine",
    "interrupts": "interrupts others",
}


def label(fix: Fix, number: int, count: int) -> str:
    """Return the name of a fix, such as "Fix 2 (changes the machine)"."""
    name = f"Fix {number}" if count > 1 else "Fix"
    return f"{name} ({REACH[fix.reach]})" if fix.reach else name


def caution(fix: Fix) -> str:
    """Return what to know before the commands are run; "" if there is nothing."""
    return " ".join(fix.cautions)
