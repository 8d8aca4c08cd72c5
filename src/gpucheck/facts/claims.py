"""What every claim about a cause says: how bad it is, how sure, and what to do."""

import enum

import msgspec


class Severity(str, enum.Enum):
    """How severe a finding is; the verdict and the exit status follow from it."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Confidence(str, enum.Enum):
    """How certain the rule is of its cause."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One way to fix a finding: what to do in words, the commands to copy, how to verify."""

    text: str
    commands: tuple[str, ...] = ()
    verify: str = "gpucheck"
