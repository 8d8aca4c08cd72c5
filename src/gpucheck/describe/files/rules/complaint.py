"""What a rule says about a line of a file, and what the files are meant for."""

import msgspec

from gpucheck.facts.claims import Severity


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """A fault in a line; ``rule`` is a finding's slug if there is one for it."""

    line: int
    severity: Severity
    rule: str
    sentence: str
    fix: str = ""


class FileTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What the user says about the machine that the files are for; empty means unknown."""

    gpus: tuple[str, ...] = ()
    driver: str = ""
    python: str = ""
