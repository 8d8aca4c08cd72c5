"""The last line in which a program shows that it goes on: a step, a progress bar, a good end.

What it warned of before that did not stop it.
"""

import re

from gpucheck.log_patterns.text import Text

_WORDS = (
    "step",
    "epoch",
    "iter",
    "batch",
    "loss",
    "%|",
    "train_runtime",
    "training",
    "run ",
    "job ",
)
# A step with its number, tqdm's bar, a loss: whoever prints these gets on.
_STEP = re.compile(
    r"\b(?:global_?)?(?:steps?|epochs?|iter(?:ation)?s?|batch)\b[\]\s:=\[(#'\"]{0,6}\d{1,9}\b"
    r"|\d{1,3}%\|[^|]{0,200}\| ?\d{1,9}/\d{1,9} ?\["
    r"|\b(?:val_|train_|eval_)?loss['\"]?\s?[:=]\s?-?\d{1,6}\.\d"
    r"|\btrain_runtime\b"
    r"|\b(?:training|run|evaluation|job)\b.{0,20}\b(?:completed|complete|finished|done|succeeded)\b",
    re.IGNORECASE,
)
_MOST, _LONGEST = 400, 400
"""Lines with one of the words that are looked at, from the end, and characters of each."""


def last_progress(text: Text) -> int:
    """Return the index of the last line that shows progress, -1 if none does."""
    for index in reversed(text.find(*_WORDS)[-_MOST:]):
        if _STEP.search(text.lines[index].text[:_LONGEST]):
            return index
    return -1
