"""Sentences that a user reads, and the language they are shown in.

Code makes an English sentence with :func:`say`. Whatever shows it calls :func:`spoken`, which
returns it in the language that :func:`speaking` has set.
"""

from gpucheck.language.catalogue import (
    Language,
    catalogue_of,
    current_language,
    language_is_set,
    language_of_locale,
    speak,
    speaking,
    spoken,
)
from gpucheck.language.sentence import (
    Part,
    Sentence,
    and_more,
    any_of,
    as_said,
    folded,
    from_said,
    in_clauses,
    in_series,
    in_their_words,
    in_turn,
    listed,
    phrase,
    plain,
    say,
    say_many,
)

__all__ = [
    "Language",
    "Part",
    "Sentence",
    "and_more",
    "any_of",
    "as_said",
    "catalogue_of",
    "current_language",
    "folded",
    "from_said",
    "in_clauses",
    "in_series",
    "in_their_words",
    "in_turn",
    "language_is_set",
    "language_of_locale",
    "listed",
    "phrase",
    "plain",
    "say",
    "say_many",
    "speak",
    "speaking",
    "spoken",
]
