"""Requirement files of pip."""

import re

from gpucheck.whatif.files.model import Index, Install, Pin, Project
from gpucheck.whatif.files.requirement import pin_of

_OPTION = re.compile(r"(-[a-zA-Z]|--[a-z-]{2,40})(?:[ \t]{1,100}|=)?(.{0,1000})")
_ROLES = {
    "-i": "main", "--index-url": "main", "--extra-index-url": "extra",
    "-f": "extra", "--find-links": "extra",
}  # fmt: skip
_LONGEST = 8000
_COMMENT = re.compile(r"(?:^|[ \t])#")


def read(text: str) -> Project:
    """Return the packages and indexes; another file that it includes is not read."""
    pins: list[Pin] = []
    indexes: list[Index] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        number, line = at + 1, lines[at]
        while line.endswith("\\") and at + 1 < len(lines) and len(line) < _LONGEST:
            at += 1
            line = line[:-1] + lines[at]
        at += 1
        found = _COMMENT.search(line)
        line = (line[: found.start()] if found else line).strip()
        if line.startswith("-"):
            option = _OPTION.fullmatch(line)
            if option is not None and option[1] in _ROLES:
                address = option[2].strip().strip("'\"")
                indexes.append(Index(address, number, _ROLES[option[1]]))
        elif "$" not in line:
            plain = line.partition(" --hash=")[0].partition(" --config-settings")[0]
            pin = pin_of(plain, number)
            if pin is not None:
                pins.append(pin)
    if not pins:
        return Project(kind="requirements")
    one = Install(line=pins[0].line, pins=tuple(pins), indexes=tuple(indexes))
    return Project(kind="requirements", installs=(one,))
