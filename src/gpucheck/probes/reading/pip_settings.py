"""Which indexes and constraints pip is configured for, by variables and files, as pip ranks them.

A file of pip overrides the one before it: global, user, environment, ``PIP_CONFIG_FILE``. Variables
override every file, and within the files ``[install]`` overrides ``[global]``.
"""

import re
from collections.abc import Iterator

from gpucheck.facts import Answer
from gpucheck.facts.secrets import public_address
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import join

# Reads small configuration files of a user, and removes private parts of addresses in them.

# Bytes; chosen: people write these files by hand. What is larger is said to be unknown.
_LIMIT = 64 * 1024


def read_settings(host: Host, path: str) -> Answer[str]:
    """Return the text of a configuration file; one that is too large is a problem."""
    answer = host.read_bytes(path, _LIMIT + 1)
    if answer.value is not None and len(answer.value) > _LIMIT:
        return Answer(None, path, say("it has more than {limit} KiB", limit=_LIMIT >> 10))
    return answer.map(lambda data: data.decode("utf-8", "replace"))


def address_in(value: str, source: str) -> Answer[str]:
    """Return an address without private parts; text of any other form is dropped."""
    kept = public_address(value)
    if not kept:
        return Answer(None, source, say("the configured value is not a web address"))
    return Answer(kept, source)


def misunderstood(path: str) -> Answer[str]:
    """Return the problem of a file whose form is not understood."""
    return Answer(None, path, say("its form is not understood"))


_KEYS = ("index-url", "extra-index-url", "no-index", "constraint")
_SECTIONS = ("install", "global")  # as pip: its command's own section before the one for all
_NOTHING = "variables and configuration files of pip"
_TRUE = ("1", "true", "yes", "on", "y", "t")
_NO_FILES = ("/dev/null", "nul")
_MOST_EXTRA = 32  # chosen: people name a handful
_MOST_FILES = 8  # chosen: each is read
_OPTION = r"([^=:]+)[=:](.*)"


class PipSettings:
    """What pip is configured for; files are read once.

    Args:
        host: the machine.
        prefix: the folder of the target's environment, "" if unknown.
    """

    def __init__(self, host: Host, prefix: str) -> None:
        self._env = host.env()
        self._windows = host.identity().os == "windows"
        self._home = host.identity().home
        self._prefix = prefix
        self._found: dict[tuple[str, str], tuple[str, str]] = {}
        self._broken = self._read(host)

    def index(self) -> Answer[str]:
        """Return the index that stands in for PyPI, "" if none is configured."""
        off, source = self._setting("no-index")
        if off.lower() in _TRUE:
            return Answer("", source)
        value, source = self._setting("index-url")
        if self._broken is not None and not self._env.get("PIP_INDEX_URL"):
            return self._broken
        return address_in(value, source) if value else Answer("", source)

    def extra_indexes(self) -> Answer[list[str]]:
        """Return the indexes that pip searches as well."""
        value, source = self._setting("extra-index-url")
        if self._broken is not None and not self._env.get("PIP_EXTRA_INDEX_URL"):
            return Answer(None, self._broken.source, self._broken.problem)
        kept: list[str] = []
        for word in value.split()[:_MOST_EXTRA]:
            index = address_in(word, source)
            if index.value is None:
                return Answer(None, source, index.problem)
            kept.append(index.value)
        return Answer(kept, source)

    def constraints(self) -> tuple[list[str], str]:
        """Return the files that bind every installation to some versions, and who names them."""
        value, source = self._setting("constraint")
        return value.split()[:_MOST_FILES], source

    def _setting(self, key: str) -> tuple[str, str]:
        variable = f"PIP_{key.replace('-', '_').upper()}"
        if value := self._env.get(variable, "").strip():
            return value, f"environment: {variable}"
        for section in _SECTIONS:
            if (section, key) in self._found:
                return self._found[section, key]
        return "", _NOTHING

    def _read(self, host: Host) -> Answer[str] | None:
        """Read every file, the weakest first; return the problem of one that cannot be read."""
        if self._env.get("PIP_CONFIG_FILE", "").lower() in _NO_FILES:
            return None
        for path in self._files(host):
            answer = read_settings(host, path)
            if answer.value is not None:
                answer = self._parse(answer.value, path)
            if answer.value is None and not answer.missing:
                return answer
        return None

    def _files(self, host: Host) -> Iterator[str]:
        own = self._env.get("PIP_CONFIG_FILE", "")
        yield from self._global_files()
        if not (own and host.exists(own).value):
            yield from self._user_files()
        if self._prefix:
            yield join(self._prefix, "pip.ini" if self._windows else "pip.conf")
        if own:
            yield own

    def _global_files(self) -> Iterator[str]:
        if self._windows:
            yield join(self._env.get("ProgramData") or "C:\\ProgramData", "pip", "pip.ini")
            return
        folders = self._env.get("XDG_CONFIG_DIRS") or "/etc/xdg"
        for folder in folders.split(":"):
            if folder.startswith("/"):
                yield join(folder, "pip", "pip.conf")
        yield "/etc/pip.conf"

    def _user_files(self) -> Iterator[str]:
        if not self._home:
            return
        if self._windows:
            yield join(self._home, "pip", "pip.ini")
            roaming = self._env.get("APPDATA") or join(self._home, "AppData", "Roaming")
            yield join(roaming, "pip", "pip.ini")
            return
        yield join(self._home, ".pip", "pip.conf")
        yield join(self._env.get("XDG_CONFIG_HOME") or join(self._home, ".config"), "pip/pip.conf")

    def _parse(self, text: str, path: str) -> Answer[str]:
        try:
            options = _options(text)
        except ValueError:
            return misunderstood(path)
        for (section, name), value in options.items():
            key = name.removeprefix("--").replace("_", "-")
            if key in _KEYS and value:
                self._found[section, key] = (value, path)
        return Answer(text, path)


def _options(text: str) -> dict[tuple[str, str], str]:
    """Return the options of each section of an INI file, as Python's configparser reads them.

    Importing configparser would take longer than everything else that is read here.

    Raises:
        ValueError: pip does not read this file either.
    """
    found: dict[tuple[str, str], str] = {}
    section, option, indent = "", "", 0
    for line in text.splitlines():
        words = line.strip()
        if not words or words.startswith(("#", ";")):
            continue
        deep = len(line) - len(line.lstrip())
        if option and deep > indent:
            found[section, option] = f"{found[section, option]}\n{words}".strip()
            continue
        option, indent = "", deep
        if words.startswith("[") and "]" in words:
            section = words[1 : words.rindex("]")]
            continue
        pair = re.fullmatch(_OPTION, words)
        if pair is None or not section or (section, pair[1].rstrip().lower()) in found:
            raise ValueError
        option = pair[1].rstrip().lower()
        found[section, option] = pair[2].strip()
    return found
