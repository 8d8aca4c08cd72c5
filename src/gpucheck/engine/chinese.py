"""The Chinese words for a finding and its fixes, as far as its messages have them."""

from gpucheck.messages.loading import all_messages


def cause_in_chinese(slug: str) -> str | None:
    """Return the cause as a short sentence; None if there is none in Chinese."""
    known = all_messages().get(slug)
    return known.zh if known is not None else None


def fix_in_chinese(slug: str, text: str) -> str | None:
    """Return the Chinese words of the fix with exactly this English text; None if none."""
    known = all_messages().get(slug)
    return known.in_chinese(text) if known is not None else None
