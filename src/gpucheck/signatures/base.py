"""What a signature is: a text that points to a cause, as data."""

import functools
import re
from collections.abc import Callable, Mapping

import msgspec

from gpucheck.findings import Severity
from gpucheck.readers.pasted._words import runs

_COMMON = frozenset(
    [
        "nvidia", "driver", "device", "version", "failed", "error", "cannot", "available", "memory",
        "module", "package", "python", "torch", "pytorch", "install", "found", "process", "loaded",
        "library", "could", "compiled", "system", "attribute", "container", "killed", "cuda",
        "no", "not", "out", "open", "kernel", "unknown", "supported", "mismatch", "runtime",
        "import", "requires", "line", "file", "from", "with", "that", "this", "have", "been",
        "does", "unsupported",
        "required", "undefined", "symbol", "object", "shared", "unable", "named", "connection",
    ]
)  # fmt: skip
"""Words that stand in most reports: a rarer one of the same literal saves looking for it."""
_ENDS = re.compile(r"^[a-z]+|[a-z]+$")


class Cure(msgspec.Struct, frozen=True, kw_only=True):
    """What to do when no fact tells more: in words (English, Chinese) and in commands."""

    text: str
    zh: str
    commands: tuple[str, ...] = ()
    verify: str = "gpucheck"


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """A text that points to the slug of its module.

    ``weight`` (1 to 99) says how much: 90 and more names the cause itself, 70 names it unless the
    facts beside it say otherwise, 50 fits it best of several causes, 30 is a symptom. ``pattern``
    is matched, without regard to case, in lines that hold ``literal`` (lower case); it has no
    nested and no adjacent unbounded repeats.
    """

    name: str
    literal: str
    pattern: str
    weight: int
    says: str
    """The headline; ``{group}`` stands for a named group of the pattern."""
    sample: str
    """A line that must match."""
    other: str
    """A line that holds something like it and must not match."""
    beside: tuple[str, ...] = ()
    """Lower-case literals that must all stand somewhere in the text; ``a|b`` is either.

    ``word:ray`` is a whole word of letters: "ray" alone stands in "array". ``said:a|b`` is either,
    in a line that is no source code.
    """
    unless: tuple[str, ...] = ()
    """Lower-case literals of which none may stand in the text."""
    stands: bool = False
    """Whether it stands even where the facts beside it look fine to the rule."""
    severity: Severity = Severity.ERROR
    check: Callable[[Mapping[str, str]], bool] | None = None
    """Asked about the named groups of a match; it does not count where this says no."""

    cures: tuple[Cure, ...] = ()
    """What to do where this message tells more than its slug; else the cures of the slug.

    ``{group}`` in a command stands for a named group, which must match digits only.
    """
    elsewhere: bool = False
    """Whether it counts only in a text that says nothing of PyTorch, CUDA or a GPU."""
    code: bool = False
    """Whether it counts in source code, too: what a program sets, not what it says."""
    distinct: str = ""
    """A named group that must be found with two different values: ranks or nodes that differ."""

    @property
    def anchor(self) -> str:
        """The rarest word of the literal that other letters of it part from its ends, else "".

        It is a whole word of every line that holds the literal; the first and the last one may go
        on beyond it: "driver" in "drivers", "oom" in "OOMKilled".
        """
        within = _ENDS.sub(" ", self.literal)
        return max(
            sorted(runs(within)), key=lambda word: (word not in _COMMON, len(word)), default=""
        )


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a module of this package says of its slug."""

    slug: str
    zh: str
    """The cause in Chinese, as a short sentence."""
    signatures: tuple[Signature, ...] = ()
    cures: tuple[Cure, ...] = ()

    def in_chinese(self, text: str) -> str | None:
        """Return the Chinese of the cure with exactly this English text, None without such."""
        every = (*self.cures, *(cure for one in self.signatures for cure in one.cures))
        return next((cure.zh for cure in every if cure.text == text), None)


@functools.lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use: most are never used in a run."""
    return re.compile(pattern, re.IGNORECASE | re.ASCII)
