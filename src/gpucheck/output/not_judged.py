"""The values given to ``gpucheck compat`` that this version does not judge, in one line."""

from collections.abc import Mapping

from gpucheck.output.words import clean


def sentence(not_judged: Mapping[str, str]) -> str:
    """Return the line; "" if everything that was given is judged."""
    if not not_judged:
        return ""
    names = [f"{name} ({why})" if why else name for name, why in not_judged.items()]
    return clean(f"Not judged by this version: {', '.join(names)}.", 1000)
