"""Which indexes and channels pip, uv and conda are configured for."""

import re
from collections.abc import Iterator

from gpucheck.facts import Answer, Notes
from gpucheck.facts.secrets import public_address
from gpucheck.facts.torch import Interpreter, PackageSources
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import join
from gpucheck.probes.reading.dist_info import normalise

# Which indexes and constraints pip is configured for, by variables and files, as pip ranks them.
#
# A file of pip overrides the one before it: global, user, environment, ``PIP_CONFIG_FILE``.
# Variables override every file, and within the files ``[install]`` overrides ``[global]``.

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


DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
_CONSTRAINT = re.compile(r"([A-Za-z0-9][\w.-]{0,100}) *== *([\w.+!-]{1,100})")
_MOST_LINES = 2000  # chosen: of all constraint files together, which bounds the time
LANE = "packages"

_UV_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL")  # as uv: the second one is its older name
_UV_NOTHING = "variables and configuration files of uv"
_TOML_HEADER = r"\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?"
_TOML_PAIR = r"([\w-]+)\s*=\s*(.*)"
_TOML_VALUE = r"""(?:"([^"\\]*)"|'([^']*)'|(true|false))\s*(?:#.*)?"""
_NAMED_INDEX = r"[A-Za-z0-9_.-]+=(?=[A-Za-z]+://)"  # uv also takes NAME=ADDRESS
_READ_KEYS = {("", "index-url"), ("pip", "index-url"), ("index", "url"), ("index", "default")}
_AS_ONE_VALUE = {("", "index"), ("", "pip"), ("pip", "index")}
"""Tables that may be written as one value, which is not read."""

_CONDA_NOTHING = "configuration files of conda"
_CHANNEL_LISTS = ("channels", "default_channels")
_CHANNEL_MAPPING = "custom_channels"
_YAML_KEY = r"([\w-]+)\s*:(?:\s+(.*))?"
_YAML_SCALAR = r"""'([^']*)'|"([^"\\]*)"|([^\s'"\[\]{}&*!|>%@`#,][^'"\[\]{}]*)"""
# As YAML: a # within a word is none.
_YAML_COMMENT = r"(?:^|\s)#.*"
_CHANNEL = r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+){0,4}"
_MOST_CHANNELS = 64  # chosen: people name a handful of channels


def collect(host: Host, interpreter: Interpreter) -> PackageSources:
    """Read the variables and the few small files in which they are configured."""
    env, notes = host.env(), Notes()
    prefix = interpreter.prefix or env.get("VIRTUAL_ENV", "")
    conda = (interpreter.prefix if interpreter.kind == "conda" else None) or env.get("CONDA_PREFIX")
    pip = PipSettings(host, prefix)
    return PackageSources(
        pip_index=notes.take("pip_index", pip.index()),
        pip_extra_indexes=notes.take("pip_extra_indexes", pip.extra_indexes()),
        pip_constraints=notes.take("pip_constraints", _constraints(host, *pip.constraints())),
        uv_index=notes.take("uv_index", _uv_index(host)),
        conda_channels=notes.take("conda_channels", _conda_channels(host, conda or "")),
        sources=notes.sources,
        problems=notes.problems,
    )


def _constraints(host: Host, files: list[str], source: str) -> Answer[list[str]]:
    """Read the files that bind every installation of pip to some versions, as NGC's images do."""
    lines = [line for file in files for line in (host.read(file).value or "").splitlines()]
    bound = [found for line in lines[:_MOST_LINES] if (found := _CONSTRAINT.match(line.strip()))]
    return Answer([f"{normalise(match[1])}=={match[2]}" for match in bound], source)


# Only the lines of the TOML that name an index are read, because Python 3.10 has no TOML reader.
def _uv_index(host: Host) -> Answer[str]:
    """Return uv's default index, "" if none is configured."""
    env = host.env()
    for variable in _UV_VARIABLES:
        if value := env.get(variable, "").strip():
            return address_in(re.sub(_NAMED_INDEX, "", value, count=1), f"environment: {variable}")
    if env.get("UV_NO_CONFIG", "").lower() in ("1", "true", "yes", "on"):
        return Answer("", "environment: UV_NO_CONFIG")
    for path in _uv_files(host):
        answer = read_settings(host, path)
        if answer.missing:
            continue
        if answer.value is None:
            return answer
        try:
            address = _index_in(answer.value)
        except ValueError:
            return misunderstood(path)
        if address:
            return address_in(address, path)
    return Answer("", _UV_NOTHING)


def _uv_files(host: Host) -> Iterator[str]:
    """Yield the files of uv, the strongest first."""
    env, identity = host.env(), host.identity()
    if own := env.get("UV_CONFIG_FILE"):
        yield own
        return
    home = identity.home
    if identity.os == "windows":
        roaming = env.get("APPDATA") or (join(home, "AppData", "Roaming") if home else "")
        system = join(env.get("ProgramData") or "C:\\ProgramData", "uv", "uv.toml")
    else:
        roaming = env.get("XDG_CONFIG_HOME") or (join(home, ".config") if home else "")
        system = "/etc/uv/uv.toml"
    if roaming:
        yield join(roaming, "uv", "uv.toml")
    yield system


def _index_in(text: str) -> str:
    """Return the default index that a file names, "" if it names none.

    Raises:
        ValueError: it may name one in a form that is not read.
    """
    if '"""' in text or "'''" in text:
        raise ValueError
    indexes: list[dict[str, str]] = []
    values: dict[tuple[str, str], str] = {}
    table = ""
    for line in map(str.strip, text.splitlines()):
        if header := re.fullmatch(_TOML_HEADER, line):
            table = header[1]
            if table == "index":
                indexes.append({})
            continue
        pair = re.fullmatch(_TOML_PAIR, line)
        place = (table, pair[1]) if pair else ("", "")
        if pair is None or place not in _READ_KEYS | _AS_ONE_VALUE:
            continue
        value = re.fullmatch(_TOML_VALUE, pair[2]) if place in _READ_KEYS else None
        if value is None:
            raise ValueError
        if table == "index":
            indexes[-1:] = [{**indexes[-1], pair[1]: _toml_text(value)}]
        values.setdefault(place, _toml_text(value))
    default = (index.get("url", "") for index in indexes if index.get("default") == "true")
    return (
        next(default, "") or values.get(("pip", "index-url")) or values.get(("", "index-url"), "")
    )


def _toml_text(value: re.Match[str]) -> str:
    return next((text for text in value.groups() if text is not None), "")


# conda itself writes only block lists and block mappings. If one of the three keys has a value of
# any other form, the channels are unknown.
class _Condarc:
    def __init__(self) -> None:
        self.channels: list[str] = []
        self.default_channels: list[str] = []
        self.custom_channels: dict[str, str] = {}


def _conda_channels(host: Host, prefix: str) -> Answer[list[str]]:
    """Return the channels of all files, the strongest first; [] if none is configured.

    ``prefix`` is the folder of the conda environment, "" if there is none.
    """
    whole = _Condarc()
    sources: list[str] = []
    for path in _condarc_files(host, prefix):
        answer = read_settings(host, path)
        if answer.missing:
            continue
        if answer.value is None:
            return Answer(None, path, answer.problem)
        try:
            settings = _parsed_condarc(answer.value)
        except ValueError:
            return Answer(None, path, say("its form is not understood"))
        whole.channels += settings.channels
        whole.default_channels += settings.default_channels
        whole.custom_channels = {**settings.custom_channels, **whole.custom_channels}
        sources.append(path)
    source = ", ".join(sources) or _CONDA_NOTHING
    kept = [_kept_channel(channel) for channel in dict.fromkeys(_resolved_channels(whole))]
    if not all(kept):
        return Answer(None, source, say("it names a channel in a form that is not understood"))
    return Answer(kept, source)


def _condarc_files(host: Host, prefix: str) -> Iterator[str]:
    identity = host.identity()
    if prefix:
        yield join(prefix, ".condarc")
    if identity.home:
        yield join(identity.home, ".condarc")
    if identity.os == "windows":
        yield join(host.env().get("ProgramData") or "C:\\ProgramData", "conda", ".condarc")
    else:
        yield "/etc/conda/.condarc"


def _resolved_channels(found: _Condarc) -> Iterator[str]:
    """Yield every channel; a name for other channels is replaced by their addresses."""
    implied = ["defaults"] if found.default_channels else []
    for channel in (found.channels or implied)[:_MOST_CHANNELS]:
        if channel == "defaults" and found.default_channels:
            yield from found.default_channels[:_MOST_CHANNELS]
        elif channel in found.custom_channels:
            yield f"{found.custom_channels[channel].rstrip('/')}/{channel}"
        else:
            yield channel


def _kept_channel(channel: str) -> str:
    return channel if re.fullmatch(_CHANNEL, channel) else public_address(channel)


def _parsed_condarc(text: str) -> _Condarc:
    """Read the three keys.

    Raises:
        ValueError: one of them is written in another form.
    """
    found = _Condarc()
    key = ""
    for raw in text.splitlines():
        line = re.sub(_YAML_COMMENT, "", raw).rstrip()
        if not line or line in ("---", "..."):
            continue
        top = re.fullmatch(_YAML_KEY, line)
        if top is not None:
            key = top[1]
            _value_of_key(found, key, top[2] or "")
        elif key in _CHANNEL_LISTS:
            _item(getattr(found, key), line)
        elif key == _CHANNEL_MAPPING:
            _entry(found.custom_channels, line)
        elif not key or not line.startswith((" ", "\t", "-")):
            raise ValueError
    return found


def _value_of_key(found: _Condarc, key: str, value: str) -> None:
    """Return the value on the line of its key: a list in brackets, or nothing."""
    if key in _CHANNEL_LISTS and value.startswith("[") and value.endswith("]"):
        items = [_scalar(word.strip()) for word in value[1:-1].split(",") if word.strip()]
        getattr(found, key).extend(items)
    elif key in (*_CHANNEL_LISTS, _CHANNEL_MAPPING) and value not in ("", "{}"):
        raise ValueError


def _item(items: list[str], line: str) -> None:
    dash, blank, rest = line.strip(" ").partition(" ")
    if dash != "-" or not blank:
        raise ValueError
    items.append(_scalar(rest.strip(" ")))


def _entry(entries: dict[str, str], line: str) -> None:
    pair = re.fullmatch(rf" +{_YAML_KEY}", line)
    if pair is None:
        raise ValueError
    entries[pair[1]] = _scalar((pair[2] or "").strip(" "))


def _scalar(text: str) -> str:
    found = re.fullmatch(_YAML_SCALAR, text)
    if found is None or ": " in text or text.endswith(":"):
        raise ValueError
    return next(part for part in found.groups() if part is not None)
