"""Patterns that find UUIDs, paths, addresses of indexes and names in a text of others."""

import re
from collections.abc import Iterable

_SUFFIXES = r"\.(?:py|so|dll|exe|egg|zip|whl|pth|json|txt|log|sif|img|conf|xml|sh|ko)"
SUFFIX = re.compile(rf"{_SUFFIXES}$")
"""The end of the name of a file, which its pseudonym keeps."""
WHOLE_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ENDS = r"\x00-\x20\"'<>|:;,()\[\]{}=`\\"
_RUN = rf"[^{_ENDS}]*"
# At most three blanks: a longer run is a sentence in which a path stands.
_BLANKS = r"[^\s\\/:*?\"<>|]{1,100}(?: [^\s\\/:*?\"<>|]{1,100}){1,3}"
_WITH_BLANKS = rf"{_BLANKS}(?=\\)"
"""A folder such as ``C:\\Users\\Ana Lima\\x``: the separator behind it tells it from a sentence."""
_OF_WINDOWS = rf"(?:{_WITH_BLANKS}|{_RUN})"
_IN_WSL = rf"/mnt/[a-z]/Users/{_BLANKS}(?=/){_RUN}"
"""The home of a user of Windows, seen from WSL."""


def ends_early(path: str) -> bool:
    """Whether a path has a character at which one in a text would end, such as a blank."""
    return re.search(f"[{_ENDS}]", path[2:]) is not None  # C: has one of its own


def places(bodies: Iterable[str], paths: Iterable[str], indexes: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for what is in a text: an index, a UUID, a file of a package, a path.

    Its groups are ``index``, ``uuid``, ``file``, ``cut`` (a path whose start was cut off) and
    ``path``.

    Args:
        bodies: UUIDs that do not have the usual form.
        paths: those that have characters at which others end.
        indexes: addresses of package indexes.
    """
    uuids = f"(?:{WHOLE_UUID.pattern}|{_alternatives(bodies)})"
    before = r"(?<![\w/.~-])"
    file = rf"[\w.+-]{{1,100}}(?:/[\w.+-]{{1,100}}){{1,20}}{_SUFFIXES}"
    # nvidia-smi cuts off the start of a long path
    cut = rf"(?<![\w.])\.\.\.(?P<cut>(?=[\w.+-]{{1,100}}/){_RUN})"
    return re.compile(
        rf"(?P<index>{_alternatives(indexes)})|(?P<uuid>(?<!\w){uuids})"
        rf"|{before}(?P<file>{file})(?![\w/+-])"
        rf"|{cut}|(?P<path>{_alternatives(paths)}(?:[\\/]{_RUN})*"
        rf"|{before}(?:{_IN_WSL}|[A-Za-z]:(?:\\\\{_RUN})+|[A-Za-z]:(?:[\\/]{_OF_WINDOWS})+"
        rf"|(?<!\\)\\\\(?:\\\\)?[\w.$-]{{1,64}}(?:\\\\?{_OF_WINDOWS})+|~[\w.-]{{0,32}}/{_RUN})"
        # <product_name>x</product_name>: a closing tag is no path
        rf"|(?:{before}|(?<=file://))/(?![/\s]|(?<=</)[\w:.-]{{1,80}}>){_RUN})"
    )


def _alternatives(values: Iterable[str]) -> str:
    """Return a pattern of any of these values, the longest first; without values, of nothing."""
    ordered = sorted(values, key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, ordered))})" if ordered else r"(?!)"


def whole_words(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of any of these names, where none is a part of another one."""
    return re.compile(rf"(?<![\w.-]){_alternatives(words)}(?![\w-])")


def parts_of_words(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of any of these names, in capitals as well: ``ALICE_ENV``, ``x-alice``."""
    return re.compile(rf"(?i)(?<![A-Za-z0-9]){_alternatives(words)}(?![A-Za-z0-9])")
