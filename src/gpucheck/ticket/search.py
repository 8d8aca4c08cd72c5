"""Finds the signatures that stand in a text: by a rare word first, then literal, then pattern."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gpucheck.readers.pasted._source_code import is_code
from gpucheck.readers.pasted._words import ByPiece, has_piece
from gpucheck.readers.pasted.base import Line, Text
from gpucheck.signatures import all_signs
from gpucheck.signatures.base import Signature, compiled

_MOST_LINES, _MOST_CHARACTERS = 200, 64 * 1024
_MOST_OF_WEAK = 40
_WEAK = 75
"""Of one signature's lines that hold its literal, so much is looked at; of a weak one less."""
_MOST_MATCHES = 4
_CONTEXT = (
    "torch", "cuda", "nvidia", "gpu", "nccl", "cudnn", "cublas", "nvrm", "xid", "nvcc", "triton",
    "c10d", "tensor", "deepspeed", "transformers", "vllm", "dataloader", "rank", "diffus", "nvml",
    "显卡", "显存", "site-packages", "nvtop", "infiniband", "ibv_", "numpy", "slurm", "libcu",
    "raylet", "master_port", "server socket has failed", "c++ ops", "bitsandbytes", "onnxruntime",
    "scalar type", "mat1", "state_dict", "not implemented for 'half'", ".cu:", "thread: [",
    "finished reduction", "process group", "mmcv", "huggingface", "device-plugin",
)  # fmt: skip
"""A text without any of these may be about any program."""
_WHOLE_WORD = "word:"
_NOT_IN_CODE = "said:"
_MOST_SAID = 20
_OF_ANY_PROGRAM = (
    "application-bug", "container-no-gpu", "nccl-timeout", "not-gpu-related", "rendezvous-failed",
    "shm-too-small",
)  # fmt: skip
"""Causes whose messages other programs print as well."""


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
"""A text with a wish and none of these complains of nothing."""
_NAMES_IT = 84
"""From this weight on a message names its cause whatever else a text says."""
_INFORMS = "] NCCL INFO "


class Match(msgspec.Struct, frozen=True):
    """A line in which a signature was found, with the named groups of its pattern."""

    slug: str
    signature: Signature
    line: Line
    values: dict[str, str]


class _Candidate(NamedTuple):
    slug: str
    signature: Signature
    anchor: str
    """The rarest word of the literal, "" where it has none (other scripts)."""


@functools.cache
def _every_signature() -> tuple[ByPiece[_Candidate], dict[str, list[_Candidate]]]:
    """Return the signatures by a piece of their literal, those of a short one by its word."""
    of_piece: list[tuple[str, _Candidate]] = []
    of_word: dict[str, list[_Candidate]] = {}
    for slug, signs in all_signs().items():
        for signature in signs.signatures:
            one = _Candidate(slug, signature, signature.anchor)
            if one.anchor and not has_piece(signature.literal):
                of_word.setdefault(one.anchor, []).append(one)
            else:
                of_piece.append((signature.literal, one))
    return ByPiece(of_piece), of_word


def candidates(text: Text) -> list[tuple[str, Signature]]:
    """Return the signatures whose literal stands in a text, its rarest word as a whole one."""
    words = text.words()
    of_piece, of_word = _every_signature()
    short = [one for word in of_word.keys() & words for one in of_word[word]]
    return [
        (slug, signature)
        for slug, signature, anchor in (*text.possible(of_piece), *short)
        if (not anchor or anchor in words) and text.holds(signature.literal)
    ]


def search(text: Text, facts: Sequence[str] = ()) -> list[Match]:
    """Return what matches, at most a few lines of each signature.

    ``facts`` are words such as ``fact:wsl`` that signatures may want beside them.
    """
    found = []
    elsewhere = "fact:gpu" not in facts and not text.held(_CONTEXT)
    around = _Around(text, "\n".join(facts))
    wish = bool(text.held(_WISHES)) and not text.held(_FAILURES)
    for slug, signature in candidates(text):
        if signature.elsewhere != elsewhere and (signature.elsewhere or slug in _OF_ANY_PROGRAM):
            continue
        if wish and signature.weight < _NAMES_IT:
            continue
        if around.fits(signature):
            found.extend(_matches(slug, signature, text))
    return sorted(found, key=lambda match: (match.slug, match.signature.name, match.line.number))


class _Around:
    """What stands anywhere in a text; signatures often want the same words beside them."""

    def __init__(self, text: Text, facts: str) -> None:
        self._text = text
        self._facts = facts
        self._known: dict[str, bool] = {}
        self._words: set[str] | None = None

    def fits(self, signature: Signature) -> bool:
        """Whether what must stand beside a signature does, and what must not does not."""
        for one in signature.unless:
            if self._has(one):
                return False
        return all(map(self._has, signature.beside))

    def _has(self, words: str) -> bool:
        """Whether one of these stands there, parted by ``|``."""
        known = self._known.get(words)
        if known is None:
            known = self._known[words] = self._looked_for(words)
        return known

    def _looked_for(self, words: str) -> bool:
        if words.startswith(_NOT_IN_CODE):
            parts = _parted(words.removeprefix(_NOT_IN_CODE))
            return _is_fact(self._facts, parts) or self._is_said(parts)
        parts, whole = _parted(words), _whole_words(words)
        if _is_fact(self._facts, parts) or self._text.held(parts):
            return True
        if whole and self._words is None:
            self._words = self._text.words()
        return bool(whole) and not whole.isdisjoint(self._words or ())

    def _is_said(self, parts: Sequence[str]) -> bool:
        """Whether one of these stands in a line that is no source code."""
        found = self._text.find(*parts, most=_MOST_SAID)
        return any(not is_code(self._text, index) for index in found)


@functools.lru_cache(maxsize=4096)
def _parted(words: str) -> tuple[str, ...]:
    return tuple(words.split("|"))


@functools.lru_cache(maxsize=4096)
def _whole_words(words: str) -> frozenset[str]:
    parts = (part for part in _parted(words) if part.startswith(_WHOLE_WORD))
    return frozenset(part.removeprefix(_WHOLE_WORD) for part in parts)


@functools.lru_cache(maxsize=16 * 1024)
def _is_fact(facts: str, parts: tuple[str, ...]) -> bool:
    """Whether one of these stands in the facts, which are the same few in most texts."""
    return any(map(facts.__contains__, parts))


def _may_inform(signature: Signature) -> bool:
    """Whether it counts in a line that tells what NCCL does, not that something fails."""
    return signature.weight >= _NAMES_IT or _INFORMS.strip("] ") in signature.sample


def _matches(slug: str, signature: Signature, text: Text) -> list[Match]:
    pattern = compiled(signature.pattern)
    found: list[Match] = []
    left = _MOST_CHARACTERS
    most = _MOST_LINES if signature.weight >= _WEAK or signature.distinct else _MOST_OF_WEAK
    for index in text.find(signature.literal, most=most):
        enough = len(found) == _MOST_MATCHES and not signature.distinct
        if left <= 0 or enough:
            break
        line = text.lines[index]
        left -= len(line.text)
        match = pattern.search(line.text)
        if match is None or (not signature.code and is_code(text, index)):
            continue
        if _INFORMS in line.text and not _may_inform(signature):
            continue
        values = {name: value for name, value in match.groupdict().items() if value}
        if signature.check is None or signature.check(values):
            found.append(Match(slug, signature, line, values))
    if signature.distinct and len({match.values[signature.distinct] for match in found}) == 1:
        return []
    return found
