"""Requirement files of pip."""

import re
from collections.abc import Iterator

from gpucheck.describe.files.model import Install, NamedIndex, Pin, Project
from gpucheck.describe.files.requirement import requested

_OPTION = re.compile(r"(-[a-zA-Z]|--[a-z-]{2,40})(?:[ \t]{1,100}|=)?(.{0,1000})")
_ROLES = {
    "-i": "main", "--index-url": "main", "--extra-index-url": "extra",
    "-f": "extra", "--find-links": "extra",
}  # fmt: skip
_LONGEST = 8000  # chosen: hashes of many wheels are continued so; no file is joined without end
# As pip: a # within an address is none.
_COMMENT = re.compile(r"(?:^|[ \t])#")


def read(text: str) -> Project:
    """Return the packages and indexes; another file that it includes is not read."""
    pins: list[Pin] = []
    indexes: list[NamedIndex] = []
    for number, line in lines_of(text):
        for found in asked_for(line, number):
            if isinstance(found, Pin):
                pins.append(found)
            else:
                indexes.append(found)
    if not pins:
        return Project(kind="requirements")
    install = Install(line=pins[0].line, pins=tuple(pins), indexes=tuple(indexes))
    return Project(kind="requirements", installs=(install,))


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number; a line that goes on below is one."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        number, line = at + 1, lines[at]
        while line.endswith("\\") and at + 1 < len(lines) and len(line) < _LONGEST:
            at += 1
            line = line[:-1] + lines[at]
        at += 1
        yield number, line


def asked_for(line: str, number: int) -> tuple[Pin | NamedIndex, ...]:
    """Return the package or the index that a line names; of a wheel both."""
    comment = _COMMENT.search(line)
    line = (line[: comment.start()] if comment else line).strip()
    if line.startswith("-"):
        option = _OPTION.fullmatch(line)
        if option is None or option[1] not in _ROLES:
            return ()
        return (NamedIndex(option[2].strip().strip("'\""), number, _ROLES[option[1]]),)
    if "$" in line:
        return ()
    return requested(line.partition(" --hash=")[0].partition(" --config-settings")[0], number)
