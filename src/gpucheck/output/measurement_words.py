"""The names of measurements in words: the data has them in English, for programs."""

from gpucheck.language import Sentence, say
from gpucheck.output.words import clean

_WHOLE: dict[str, Sentence] = {
    str(name): name
    for name in (
        say("copy speed within the memory"),
        say("copy within the memory, read and written"),
        say("import"),
        say("largest batch"),
        say("lowest rate of a second"),
        say("memory for it, at most"),
        say("memory tested"),
        say("rate at the end"),
        say("speed against this machine's CPU"),
        say("sustained rate"),
        say("pageable memory from the GPU"),
        say("pageable memory to the GPU"),
        say("pinned memory from the GPU"),
        say("pinned memory to the GPU"),
        say("training step"),
        say("training step on this machine's CPU"),
    )
}


def measured_what(name: str) -> str:
    """Return the name of a measurement; one that is not known stays as it is."""
    if name in _WHOLE:
        return _WHOLE[name]
    before, comma, last = clean(name).rpartition(", ")
    if comma and last == "time":
        return say("{what}, time", what=before)
    rate_of, rate, rest = clean(name).rpartition(" rate")
    if rate and not rest:
        return say("{what} rate", what=rate_of)
    of, error, rest = clean(name).rpartition(": largest error")
    if error and not rest:
        return say("{what}: largest error", what=of)
    return clean(name)
