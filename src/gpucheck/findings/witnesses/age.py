"""How long ago something happened, for a headline."""

from gpucheck.language import say

_HOUR, _MINUTE = 3600, 60  # seconds


def with_age(headline: str, seconds: float) -> str:
    """Add to a headline how long ago it happened."""
    if seconds >= 2 * _HOUR:
        hours = int(seconds // _HOUR)
        return say("{headline}, {hours} hours ago", headline=headline, hours=hours)
    minutes = max(int(seconds // _MINUTE), 1)
    return say("{headline}, {minutes} min ago", headline=headline, minutes=minutes)
