"""The second reader: what the wording of a text resembles where no rule finds a cause.

People describe a fault in words that no list of patterns has. A linear model learned from labelled
tickets which words go with which cause (``tools/train_prose_reader.py``; the model card is
``docs/triage/prose-reader.md``). It reads what the rules leave open or are vague about, and what it
says is never a finding: it orders the causes to ask about.
"""

import importlib.resources
import itertools
import math
import re
import sys
import zlib
from collections import Counter
from functools import cache, lru_cache

import msgspec

from gpucheck.facts.request import Lead
from gpucheck.ticket.failure import accuses

PLACES = 1 << 14
"""Places of the hashed counts: 65,536 read no better, and 16,384 keep the model below 1 MB."""
MOST_CHARACTERS = 4000
"""People describe their problem first: 20,000 characters read no better and take longer."""
_LETTERS = 4
"""Letters in a row that are counted, too: endings and misspelt names."""
_STEPS = 16
"""Into how many steps a weight of 1 is cut, so that whole numbers can be added."""
_ZERO = 128
"""The byte of a weight of 0."""
_LANE = 4
"""Bytes for the sum of a cause: 4,000 characters cannot add up to 2**32."""
_MOST_LEADS = 3  # docs/triage/prose-reader.md has how often the cause is among so many
_FEWEST_WORDS = 4
"""Chosen: of less nobody can say what it is about."""
_FEWEST, _PART = 0.06, 0.4
"""Chosen: the share of faults of the environment among all texts in such words, and among those
that are about any fault; docs/evidence.md has what other shares miss."""
_MODEL = "prose_reader.bin"
# A word of a program or a person, a Chinese or Japanese character, a Korean word.
_WORD = re.compile(r"[a-z0-9_.\-+/]+|[\u3040-\u30ff\u4e00-\u9fff]|[\uac00-\ud7af]+")
# Sizes, addresses and identifiers differ in each text: they are one word.
_LONG_NUMBER = re.compile(r"\d{4,}")


class Model(msgspec.Struct, frozen=True):
    """The head of the file; the weights follow, a row of ``causes`` bytes for each place.

    A byte less 128, times ``scale``, is a weight. ``base`` has a number for each cause.
    """

    causes: tuple[str, ...]
    base: tuple[float, ...]
    scale: float
    sharpness: float
    """What scores are multiplied by before they become shares; it calibrates these."""


def counted(text: str) -> dict[int, int]:
    """Return how often each word, each pair of words and each four letters occur, by place.

    Of fewer than four words it returns nothing.
    """
    words = _WORD.findall(_LONG_NUMBER.sub("0", text[:MOST_CHARACTERS].lower()))
    if len(words) < _FEWEST_WORDS:
        return {}
    grams = Counter(words)
    grams.update(map(" ".join, itertools.pairwise(words)))
    for word in set(words):
        grams.update(
            "#" + word[at : at + _LETTERS]
            for at in range(len(word) - _LETTERS + 1)
            if len(word) > _LETTERS + 1
        )
    places: Counter[int] = Counter()
    for gram, count in grams.items():
        places[zlib.crc32(gram.encode()) % PLACES] += count
    return dict(places)


def weighed(count: int) -> int:
    """Return the weight of a place that occurs so often, in whole steps."""
    return round(_STEPS * (1 + math.log(count)))


@lru_cache(maxsize=4)  # a text, and the few forms of it with its lines joined
def shares(text: str) -> dict[str, float]:
    """Return for each cause how many of such texts are about it; nothing of too short a text.

    score(cause) = base + scale * sum(weight of the place * its byte) / length of all weights
    """
    places = counted(text)
    if not places:
        return {}
    model, rows = _model()
    lanes = len(model.causes)
    low = 0 if sys.byteorder == "little" else _LANE - 1
    total = together = squares = 0
    for place, count in places.items():
        weight = weighed(count)
        wide = bytearray(_LANE * lanes)
        wide[low::_LANE] = rows[place * lanes : (place + 1) * lanes]
        # One number has the sums of all causes: a loop over them takes five times as long.
        total += weight * int.from_bytes(wide, sys.byteorder)
        together += weight
        squares += weight * weight
    sums = total.to_bytes(_LANE * lanes, sys.byteorder)
    unit = model.scale / math.sqrt(squares)
    scores = [
        model.sharpness * (base + unit * (summed - _ZERO * together))
        for base, summed in zip(model.base, memoryview(sums).cast("I"), strict=True)
    ]
    most = max(scores)
    raised = [math.exp(score - most) for score in scores]
    return {cause: part / sum(raised) for cause, part in zip(model.causes, raised, strict=True)}


def may_be_of_environment(text: str) -> bool:
    """Whether a text about a failure may be about the environment, not only about a program."""
    found = shares(text[:MOST_CHARACTERS])
    accused = sum(share for cause, share in found.items() if accuses(cause))
    return accused >= _FEWEST and accused >= _PART * (1 - found.get("healthy", 0.0))


def leads_of(text: str, *, least: float = 0.0) -> list[Lead]:
    """Return the causes that a text most resembles, the likeliest first, at most three.

    ``least``: none, unless this share of such texts is about a fault of the environment.
    """
    found = shares(text[:MOST_CHARACTERS])
    if sum(share for cause, share in found.items() if accuses(cause)) < least:
        return []
    by_share = sorted(found.items(), key=lambda item: -item[1])
    return [
        Lead(cause=cause, share=round(share, 2))
        for cause, share in by_share[:_MOST_LEADS]
        if round(share, 2)
    ]


@cache
def _model() -> tuple[Model, bytes]:
    data = zlib.decompress(importlib.resources.files(__package__).joinpath(_MODEL).read_bytes())
    head, _, rows = data.partition(b"\n")
    return msgspec.json.decode(head, type=Model), rows
