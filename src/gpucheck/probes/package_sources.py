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
from gpucheck.probes.reading.pip_settings import (
    PipSettings,
    address_in,
    misunderstood,
    read_settings,
)

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
