"""The fixed words of reports: verdicts, severities, states, areas. Slugs are none of them."""

from gpucheck.engine import Verdict
from gpucheck.language import say

VERDICTS: dict[Verdict, str] = {
    "broken": say("BROKEN"),
    "warning": say("WARNING"),
    "unknown": say("UNKNOWN"),
    "healthy": say("HEALTHY"),
}
"""The first word of a report."""
_TERMS: dict[str, str] = {
    term: term
    for term in (
        say("broken"), say("healthy"),
        say("error"), say("warning"), say("info"), say("note"),
        say("certain"), say("likely"), say("possible"),
        say("ok"), say("unknown"), say("none"),
        say("passed"), say("failed"), say("skipped"), say("timed-out"), say("crashed"),
        say("lost"), say("absent"), say("stopped"),
        say("fired"), say("fine"), say("not-applicable"), say("silenced"),
        say("not-found"), say("not-asked"),
        say("GPUs"), say("Driver"), say("CUDA libraries"), say("Toolkit"), say("System"),
        say("keep"), say("watch"), say("drain"), say("reset"), say("replace"),
        say("driver"), say("libraries"), say("runtime"), say("cluster"),
    )
}  # fmt: skip


def term(word: str) -> str:
    """Return a word of ours as a sentence; any other as it is."""
    return _TERMS.get(word, word)
