"""What a finding and its fixes say in Chinese, as far as the messages of the finding have it."""

from gpucheck.messages.loading import all_messages


def cause_in_chinese(slug: str) -> str | None:
    """Return the cause as a short sentence; None where no text says anything of it."""
    known = all_messages().get(slug)
    return known.zh if known is not None else None


def fix_in_chinese(slug: str, text: str) -> str | None:
    """Return the Chinese of the fix with exactly this English text; None without such."""
    known = all_messages().get(slug)
    return known.in_chinese(text) if known is not None else None
