"""The values given to ``gpucheck compat`` that this version does not judge, in one line."""

from collections.abc import Mapping

from gpucheck.language import in_series, say, spoken
from gpucheck.output.words import bracketed, clean


def sentence(not_judged: Mapping[str, str]) -> str:
    """Return the line; "" if everything that was given is judged."""
    if not not_judged:
        return ""
    names = [bracketed(name, why) for name, why in not_judged.items()]
    return clean(say("Not judged by this version: {names}.", names=in_series(names)), 1000)


def before_the_trailer(text: str, words: str) -> str:
    """Return a report for people with a line before its last one; "" adds none."""
    if not words:
        return text
    report_text, _, last = text.rstrip("\n").rpartition("\n")
    return f"{report_text.rstrip()}\n\n{spoken(words)}\n\n{last}\n"
