"""Why PyTorch does not use the NVIDIA GPUs of a machine, and what to do about it."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # whoever wants a version only should not pay for the rest
    from gpucheck.engine import Report

__version__: Final = "0.1.0"


def triage(text: "str | bytes") -> "Report":
    """Name the cause of what a pasted text shows: program output, logs, a whole ticket.

    Gzip is unpacked, and bytes need not be valid UTF-8. A snapshot or report that gpucheck saved is
    judged again. Nothing in the text is executed.

    Args:
        text: the text, or its bytes.

    Raises:
        gpucheck.ticket.IntakeError: it is not a text (a ValueError).
    """
    from gpucheck.ticket import triage as name_the_cause  # noqa: PLC0415

    return name_the_cause(text)
