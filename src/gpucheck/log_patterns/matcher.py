"""Finds messages in a text: first by a rare word, then by literal, then by pattern."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from gpucheck.log_patterns.form import (
    Condition,
    KnownFacts,
    Message,
    NamedCondition,
    Strength,
    compiled,
)
from gpucheck.log_patterns.loading import all_messages
from gpucheck.log_patterns.source_code import is_code
from gpucheck.log_patterns.text import ByPiece, Line, Text, has_piece
from gpucheck.tables.packages import is_kept_compatible
from gpucheck.tables.versions import at_least, parse

# Named conditions: numbers in a message that decide between two causes.

_UNITS = {"bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_HELD = 0.3
"""A share of the GPU's memory. If more is neither free nor torch's, another process has it."""
_NAMED_CONDITIONS_CONTEXT = 1.0 * 2**30
"""Bytes that a CUDA context and its libraries may use besides the memory that torch counts."""
_LITTLE_FREE = 0.1  # chosen: with 0.8, one of 752 labelled tickets gets another answer
# Chosen: a share of the GPU's memory without which this process would run out as well.
_LITTLE = 0.1
_OWN = 0.5
"""The share of a process's memory above which the tensors that torch counts are in it."""


def holds(name: NamedCondition, values: Mapping[str, str]) -> bool:
    """Whether a condition holds for the named groups of a match."""
    return _CONDITIONS[name](values)


def _held_by_others(values: Mapping[str, str]) -> bool:
    """Whether an out-of-memory message shows memory that is neither free nor of this process."""
    if _asks_for_more_than_all(values):
        return False
    total, own = _bytes(values, "total"), _bytes(values, "reserved")
    free = _bytes(values, "free")
    if total is None or own is None or free is None or free > _LITTLE_FREE * total:
        return False
    others = total - own - free
    return others > _HELD * total and others > _NAMED_CONDITIONS_CONTEXT


def _held_by_a_process(values: Mapping[str, str]) -> bool:
    """Whether another process holds more than a gibibyte, and not only little of the GPU.

    In a container a process does not know its own number: what its own tensors explain is its own.
    """
    if _asks_for_more_than_all(values):
        return False
    number, _, unit = values.get("held", "").partition(" ")
    held, own = _size(number, unit), _bytes(values, "reserved") or 0.0
    least = max(_NAMED_CONDITIONS_CONTEXT, _LITTLE * (_bytes(values, "total") or 0.0))
    return held > least and own < _OWN * held


def _fits_into_what_is_free(values: Mapping[str, str]) -> bool:
    """Whether less is requested than is free: it lies in several pieces."""
    asked, free = _bytes(values, "asked"), _bytes(values, "free")
    return asked is not None and free is not None and asked <= free


def _fewer_workers(values: Mapping[str, str]) -> bool:
    """Whether fewer workers came than the world has."""
    return int(values["count"]) < int(values["world"])


def _not_a_newer_wheel(values: Mapping[str, str]) -> bool:
    """Whether a wheel is not what torch pins, nor a newer one that its makers keep compatible."""
    have, pinned = parse(values.get("have")), parse(values.get("pinned"))
    if have is None or pinned is None or not is_kept_compatible(values.get("wheel") or ""):
        return True
    return have[0] != pinned[0] or not at_least(have, pinned)


def _asks_for_more_than_all(values: Mapping[str, str]) -> bool:
    """Whether more is requested at once than the GPU has: then other processes do not matter."""
    asked, total = _bytes(values, "asked"), _bytes(values, "total")
    return asked is not None and total is not None and asked > total


def _bytes(values: Mapping[str, str], name: str) -> float | None:
    if name not in values:
        return None
    return _size(values[name], values.get(f"{name}_unit", "bytes"))


def _size(number: str, unit: str) -> float:
    try:
        return float(number) * _UNITS.get(unit, 0.0)
    except ValueError:
        return 0.0


_CONDITIONS: dict[NamedCondition, Callable[[Mapping[str, str]], bool]] = {
    "memory-held-by-others": _held_by_others,
    "memory-held-by-a-process": _held_by_a_process,
    "fits-into-what-is-free": _fits_into_what_is_free,
    "fewer-workers-than-expected": _fewer_workers,
    "not-a-newer-wheel": _not_a_newer_wheel,
}


_MOST_LINES, _MOST_LINES_OF_WEAK = 200, 40
"""The number of lines with the literal of a message that are matched."""
# Of the lines that a message is tried on; a hostile text has the literal everywhere.
_MOST_CHARACTERS = 64 * 1024
_MOST_MATCHES = 4  # with one, 3 of 752 labelled tickets get another answer; with 32 none
_CONTEXT = (
    "torch", "cuda", "nvidia", "gpu", "nccl", "cudnn", "cublas", "nvrm", "xid", "nvcc", "triton",
    "c10d", "tensor", "deepspeed", "transformers", "vllm", "dataloader", "rank", "diffus", "nvml",
    "显卡", "显存", "site-packages", "nvtop", "infiniband", "ibv_", "numpy", "slurm", "libcu",
    "raylet", "master_port", "server socket has failed", "c++ ops", "bitsandbytes", "onnxruntime",
    "scalar type", "mat1", "state_dict", "not implemented for 'half'", ".cu:", "thread: [",
    "finished reduction", "process group", "mmcv", "huggingface", "device-plugin",
    "train.py", "nvlink", "received by pid", "batch_size", "num_workers", "train_steps",
    "omp_num_threads", "caffe", "exits with return code",
    "runtimeerror: address already in use",
)  # fmt: skip
"""A text without any of these may be about any program."""
_MOST_OUTSIDE_CODE = 20  # chosen: lines with such words; one that is no source code is enough
_NEAR = {Strength.POINTS: 80, Strength.FITS: 12, Strength.SYMPTOM: 12}
"""Lines from a message to the words that must stand beside it.

In a log of thousands of lines every word stands somewhere. Of 752 labelled tickets none needs the
words farther away. At 40 and at 8 lines one ticket does, and nine need them farther than one line.
"""
_WISHES = (
    "feature request", "documentation:", "documentation issue", "typo", "please add",
    "please document", "please support", "proposal", "rfc:", "[rfc]", "would be nice",
    "would like to have", "is this expected",
)  # fmt: skip
_FAILURES = (
    "traceback", "error:", "exception", "fatal", "failed", "core dumped", "segmentation fault",
    "killed", "timed out", "stuck", "hangs", "crash", "false", "not work", "n't work",
    "not available", "unavailable", "not detected", "not recogni",
)  # fmt: skip
"""A text with a wish and none of these does not complain about anything."""
_INFORMS = "] NCCL INFO "
_SPACED_COLON = " : "
"""How people set a colon who type a message, in French always."""


class Match(msgspec.Struct, frozen=True):
    """A line in which a message was found, with the named groups of its pattern."""

    slug: str
    message: Message
    line: Line
    values: dict[str, str]
    index: int = -1
    """The index of the line in the text; -1 if the match was read from a saved report."""


class _Candidate(msgspec.Struct, frozen=True, gc=False):
    slug: str
    message: Message
    anchor: str
    """The rarest word of the literal, "" if it has none (other scripts)."""
    any_program: bool


class _Index:
    """Returns the few messages that a text may contain, without testing each of them."""

    def __init__(self) -> None:
        of_piece: list[tuple[str, _Candidate]] = []
        self._of_word: dict[str, list[_Candidate]] = {}
        for slug, finding in all_messages().items():
            for message in finding.messages:
                candidate = _Candidate(
                    slug, message, message.anchor, finding.of_any_program(message)
                )
                if candidate.anchor and not has_piece(message.literal):
                    self._of_word.setdefault(candidate.anchor, []).append(candidate)
                else:
                    of_piece.append((message.literal, candidate))
        self._of_piece = ByPiece(of_piece)

    def possible(self, text: Text) -> list[_Candidate]:
        """Return the messages whose literal, and its rarest word as a whole word, is in a text."""
        words = text.words()
        short = [
            candidate for word in self._of_word.keys() & words for candidate in self._of_word[word]
        ]
        return [
            candidate
            for candidate in (*text.possible(self._of_piece), *short)
            if (not candidate.anchor or candidate.anchor in words)
            and text.holds(candidate.message.literal)
        ]


@functools.cache
def _index() -> _Index:
    return _Index()


def candidates(text: Text) -> list[tuple[str, Message]]:
    """Return the messages whose literal occurs in a text, each with the slug of its finding."""
    return [(candidate.slug, candidate.message) for candidate in _index().possible(text)]


def search(text: Text, facts: KnownFacts | None = None) -> list[Match]:
    """Return what matches, at most a few lines of each message."""
    facts = facts or KnownFacts()
    found: list[Match] = []
    elsewhere = not facts.gpu and not names_a_part(text)
    around = _Around(text, facts)
    wish = bool(text.held(_WISHES)) and not text.held(_FAILURES)
    for candidate in _index().possible(text):
        message = candidate.message
        if message.elsewhere != elsewhere and (message.elsewhere or candidate.any_program):
            continue
        if wish and message.strength is not Strength.NAMES:
            continue
        if around.fits(message):
            matches = _matches(candidate.slug, message, text)
            found.extend(match for match in matches if around.is_beside(message, match.index))
    return sorted(found, key=lambda match: (match.slug, match.message.name, match.line.number))


def names_a_part(text: Text) -> bool:
    """Whether a text names PyTorch, CUDA, a GPU or a program that uses them."""
    return bool(text.held(_CONTEXT))


class _Around:
    """The conditions of messages on a whole text; many messages share the same ones."""

    def __init__(self, text: Text, facts: KnownFacts) -> None:
        self._text = text
        self._facts = facts
        self._known: dict[int, bool] = {}

    def fits(self, message: Message) -> bool:
        """Whether the conditions of a message hold in the text."""
        if message.unless is not None and self._holds(message.unless):
            return False
        return all(map(self._holds, message.beside))

    def is_beside(self, message: Message, index: int) -> bool:
        """Whether what must stand beside a message stands near a line, as the start of a word."""
        far = _NEAR.get(message.strength)
        if not message.beside or far is None:
            return True
        lines = self._text.lines[max(0, index - far) : index + far + 1]
        near = "\n".join(line.text for line in lines).lower()
        return all(
            (condition.facts is not None and condition.facts.holds(self._facts))
            or _begins_a_word((*condition.any_of, *condition.outside_code, *condition.words), near)
            for condition in message.beside
        )

    def _holds(self, condition: Condition) -> bool:
        """Whether a condition holds; equal conditions of a finding are one object."""
        known = self._known.get(id(condition))
        if known is None:
            known = self._known[id(condition)] = self._is_met(condition)
        return known

    def _is_met(self, condition: Condition) -> bool:
        if condition.facts is not None and condition.facts.holds(self._facts):
            return True
        if condition.any_of and self._text.held(condition.any_of):
            return True
        if condition.words and not self._text.words().isdisjoint(condition.words):
            return True
        return self._is_outside_code(condition.outside_code)

    def _is_outside_code(self, literals: Sequence[str]) -> bool:
        """Whether one of these occurs in a line that is not source code."""
        found = self._text.find(*literals, most=_MOST_OUTSIDE_CODE) if literals else ()
        return any(not is_code(self._text, index) for index in found)


def _begins_a_word(literals: Iterable[str], lower: str) -> bool:
    """Whether one of these stands in a text other than within a word: "hang" is no "change"."""
    for literal in literals:
        at = lower.find(literal)
        while at >= 0:
            if at == 0 or not ("a" <= literal[0] <= "z" and "a" <= lower[at - 1] <= "z"):
                return True
            at = lower.find(literal, at + 1)
    return False


def _may_inform(message: Message) -> bool:
    """Whether it counts in a line in which NCCL reports what it does, not an error."""
    return message.strength is Strength.NAMES or _INFORMS.strip("] ") in message.sample


def _matches(slug: str, message: Message, text: Text) -> list[Match]:
    pattern = compiled(message.pattern)
    found: list[Match] = []
    left = _MOST_CHARACTERS
    most = _MOST_LINES if message.points or message.distinct else _MOST_LINES_OF_WEAK
    for index in text.find(message.literal, most=most):
        enough = len(found) == _MOST_MATCHES and not message.distinct
        if left <= 0 or enough:
            break
        line = text.lines[index]
        left -= len(line.text)
        match = pattern.search(line.text)
        if match is None and _SPACED_COLON in line.text:
            match = pattern.search(line.text.replace(_SPACED_COLON, ": "))
        if match is None or (not message.code and is_code(text, index)):
            continue
        if _INFORMS in line.text and not _may_inform(message):
            continue
        values = {name: value for name, value in match.groupdict().items() if value}
        if message.when is None or holds(message.when, values):
            found.append(Match(slug, message, line, values, index))
    return _differing(found, message) if message.distinct else found


def _differing(found: list[Match], message: Message) -> list[Match]:
    """Return the lines that agree in the groups ``same`` and differ in the group ``distinct``."""
    values: dict[tuple[str | None, ...], set[str]] = {}
    keys = [tuple(map(match.values.get, message.same)) for match in found]
    for key, match in zip(keys, found, strict=True):
        values.setdefault(key, set()).add(match.values[message.distinct])
    return [match for key, match in zip(keys, found, strict=True) if len(values[key]) > 1]
