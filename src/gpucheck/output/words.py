"""Values in words. What was read from a machine is untrusted; it is cleaned here and only here."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, islice
from typing import Any

from gpucheck.derived.gpu_labels import products_of
from gpucheck.engine import Verdict
from gpucheck.language import (
    Sentence,
    any_of,
    folded,
    in_series,
    in_their_words,
    listed,
    phrase,
    say,
    say_many,
    spoken,
)
from gpucheck.language.visible import is_visible, made_visible

# The fixed words of reports: verdicts, severities, states, areas. Slugs are none of them.

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


LONGEST = 300
"""Maximum number of characters shown of one value."""
LONGEST_WORDS, LONGEST_COMMAND = 1000, 10_000
"""The same of a paragraph, and of a command: a command that is cut off cannot be copied."""
MOST_ITEMS = 12
"""Maximum number of items shown of one list; equal neighbours count once."""
_KB = 1000  # bytes; below a MiB nobody compares with a limit, so the decimal unit does
_GIB = 1024**3
_MIB = 1024**2
_STATUS = "timed-out: "
"""How the collector begins the reason of a probe that did not answer."""
_BLANKS = re.compile(r"\s+")
_ENDS_OF_LINES = re.compile(r"[^\S ]+")
_NAMES = ("device_name", "product", "project", "library", "executable", "path", "command",
          "address", "xid", "uuid", "process_name", "pid")  # fmt: skip
"""Fields that identify an item of a list, the best first."""
_OPERATORS = ("==", ">=", "<=", "!=", "~=", "<", ">")
"""With which a requirement of a version begins."""
_OUR_WORDS = frozenset(("why", "chosen_by", "selected_via", "found_via", "searched"))
"""Fields whose values are phrases of gpucheck, not names or words of other programs."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def clean(text: str, limit: int = LONGEST) -> str:
    """Return the text on one line, harmless to a terminal and to a reader.

    Blanks of every kind become one space. A sentence is looked at as a whole, too: not everything
    that has its type is our words.
    """
    if isinstance(text, Sentence):
        return _on_one_line(text, limit)
    return _on_one_line(text, limit).strip()


def _on_one_line(text: str, limit: int) -> str:
    if isinstance(text, Sentence):
        ours = text.mapped(lambda part: _on_one_line(part, limit))
        return ours if is_visible(ours) else printable(_ENDS_OF_LINES.sub(" ", ours))
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    if "  " not in text and is_visible(text):
        return text  # most are: a job of ten thousand ranks has a hundred thousand
    return printable(_BLANKS.sub(" ", text))


def without_status(why: str, limit: int = LONGEST) -> str:
    """Return why a fact is unknown, without the status that the reason of a probe begins with."""
    if why.startswith(_STATUS):
        part = why.params.get("problem") if isinstance(why, Sentence) else None
        why = part if isinstance(part, str) else why[len(_STATUS) :]
    return in_their_words(clean(why, limit))


def printable(text: str) -> str:
    """Return the text with escapes in place of characters that are not seen.

    These are control characters, escape sequences, bidirectional overrides, invisible characters
    and lone surrogates: nothing is hidden, and nothing takes effect. What a :class:`Page` prints
    goes through here, whoever wrote it.
    """
    return made_visible(text, _escaped)


def _escaped(char: str) -> str:
    return repr(char)[1:-1] if char.isascii() else char.encode("ascii", "backslashreplace").decode()


def shown(value: object, field: str = "") -> str:
    """Return a value in a form for people; ``field`` is the last part of its path."""
    if value is None:
        return say("unknown")
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, int) and field.endswith("_bytes"):
        return size(value)
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, str):
        words = clean(value)
        if field in _OUR_WORDS and words and not isinstance(words, Sentence):
            return phrase(words)
        if not words and _VARIABLE.fullmatch(field):
            return '""'  # a variable that is set and empty is not one that is missing
        return words or say("none")
    if isinstance(value, Sequence):
        return _items(value)
    return clean(str(value))


def size(number: int) -> str:
    """Return a number of bytes in a form for people; -1 is unlimited."""
    if number < 0:
        return say("unlimited")
    for unit, name in ((_GIB, "GiB"), (_MIB, "MiB")):
        if number >= unit:
            return f"{number / unit:.1f}".removesuffix(".0") + f" {name}"
    if number >= _KB:
        return f"{number / _KB:.0f} kB"
    return say_many(number, "{count} byte", "{count} bytes")


def counted(names: Sequence[str]) -> str:
    """Return ``2 x NVIDIA H100, 1 x NVIDIA T4``; without counts if each is there once."""
    kinds = Counter(names)
    if len(kinds) == len(names) <= MOST_ITEMS:
        return listed([clean(name) for name in names])
    some = [(kind, kinds[kind]) for kind in islice(kinds, MOST_ITEMS)]
    words = in_series([times(count, clean(kind)) for kind, count in some])
    return and_more(words, len(names) - sum(count for _kind, count in some))


def product_named(product: str) -> str:
    """Return the product of a GPU, or the products that share its device ID."""
    return any_of([clean(name) for name in products_of(product)])


def times(count: int, name: str) -> str:
    """Return ``12 x NVIDIA H100``."""
    return say("{count} x {name}", count=count, name=name)


def headed(name: str, text: str) -> str:
    """Return ``name: text``; only the name without a text."""
    return say("{name}: {text}", name=name, text=text) if text else name


def bracketed(text: str, more: str) -> str:
    """Return ``text (more)``; only the text without more."""
    return say("{text} ({more})", text=text, more=more) if more else text


def document(title: str, url: str, read: str) -> str:
    """Return a source of the tables: its title, its address, and the day it was read."""
    address = "" if url in title else url
    return in_parts([clean(title), clean(address), say("read on {day}", day=clean(read))])


def in_line(parts: Sequence[str]) -> str:
    """Return ``A, B, C``: several things about one thing, not several things of one kind."""
    return folded(parts, lambda first, then: say("{first}, {then}", first=first, then=then))


def listing(names: Sequence[str], limit: int = LONGEST) -> str:
    """Return ``A, B, C``, and after so many characters how many more there are."""
    some = [clean(name) for name in names]
    while len(some) > 1 and sum(map(len, some)) > limit:
        some.pop()
    return and_more(in_series(some), len(names) - len(some))


def in_parts(parts: Sequence[str]) -> str:
    """Return ``A; B; C`` without the empty parts."""
    some = [part for part in parts if part]
    return folded(some, lambda first, next_: say("{those}; {next}", those=first, next=next_))


def and_more(words: str, count: int) -> str:
    """Return ``A, B and 3 more``; only those without more."""
    return say("{those} and {count} more", those=words, count=count) if count else words


def _items(values: Sequence[Any]) -> str:
    if not values:
        return say("none")
    runs = in_runs(values)
    words = [in_words(run) for run in runs[:MOST_ITEMS]]
    return and_more(in_series(words), sum(count for _words, count in runs[MOST_ITEMS:]))


def in_runs(values: Sequence[Any]) -> list[tuple[str, int]]:
    """Return the items in words, and how often each follows itself."""
    return [(words, len(list(alike))) for words, alike in groupby(map(item, values))]


def in_words(run: tuple[str, int]) -> str:
    """Return an item, with a number if it follows itself: ``12 x yes``."""
    words, count = run
    return words if count == 1 else times(count, words)


def item(value: object) -> str:
    """Return one item of a list by its name, with its version if it has one."""
    if not isinstance(value, Mapping):
        return shown(value)
    name = next((value[key] for key in _NAMES if value.get(key) not in (None, "")), None)
    if name is None:
        return _mapping(value)
    if "pid" in value and "process_name" in value:
        return _process(value)
    if name == value.get("product"):
        return product_named(name)
    version = value.get("version") or value.get("release")
    if version:
        return say("{name} {version}", name=shown(name), version=shown(version))
    return shown(name)


def _process(values: Mapping[str, Any]) -> str:
    """Return ``python3 (pid 4242): 23.5 GiB``, as far as it is known."""
    pid, name, used = shown(values["pid"]), values["process_name"], values.get("used_bytes")
    bare = say("pid {pid}", pid=pid)
    words = say("{name} (pid {pid})", name=shown(name), pid=pid) if name else bare
    return words if used is None else headed(words, shown(used, "used_bytes"))


def _mapping(values: Mapping[str, Any]) -> str:
    given = {
        key: value
        for key, value in values.items()
        if value is not None and key not in ("sources", "problems")
    }
    return _items([_pair(key, value) for key, value in given.items()])


def _pair(key: str, value: object) -> str:
    """Return ``key=value``; quotes or brackets keep together what has several parts."""
    words = shown(value, key)
    if isinstance(value, str):
        is_operator = value.startswith(_OPERATORS)
        if is_operator and key != "specifier":  # torch and ==2.5.1: torch==2.5.1
            return say("{key}{value}", key=key, value=words)
        words = say('"{text}"', text=words) if is_operator or ", " in value else words
    elif isinstance(value, Mapping) or (isinstance(value, Sequence) and ", " in words):
        words = say("[{items}]", items=words)
    return say("{key}={value}", key=key, value=words)


# The values given to ``gpucheck compat`` that this version does not judge, in one line.


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
