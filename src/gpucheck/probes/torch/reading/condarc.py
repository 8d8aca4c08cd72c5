"""The channels of ``.condarc``, from the few forms of YAML in which they are written.

conda itself writes only block lists and block mappings. If one of the three keys has a value of any
other form, the channels are unknown.
"""

import re
from collections.abc import Iterator

from gpucheck.facts import Answer
from gpucheck.facts.addresses import public_address
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import join
from gpucheck.probes.torch.reading.settings_file import read_settings

_NOTHING = "configuration files of conda"
_LISTS = ("channels", "default_channels")
_MAPPING = "custom_channels"
_KEY = r"([\w-]+)\s*:(?:\s+(.*))?"
_SCALAR = r"""'([^']*)'|"([^"\\]*)"|([^\s'"\[\]{}&*!|>%@`#,][^'"\[\]{}]*)"""
_COMMENT = r"(?:^|\s)#.*"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+){0,4}"
_MOST = 64


class _Condarc:
    def __init__(self) -> None:
        self.channels: list[str] = []
        self.default_channels: list[str] = []
        self.custom_channels: dict[str, str] = {}


def conda_channels(host: Host, prefix: str) -> Answer[list[str]]:
    """Return the channels of all files, the strongest first; [] if none is configured.

    ``prefix`` is the folder of the conda environment, "" if there is none.
    """
    whole = _Condarc()
    sources: list[str] = []
    for path in _files(host, prefix):
        answer = read_settings(host, path)
        if answer.missing:
            continue
        if answer.value is None:
            return Answer(None, path, answer.problem)
        try:
            settings = _parsed(answer.value)
        except ValueError:
            return Answer(None, path, say("its form is not understood"))
        whole.channels += settings.channels
        whole.default_channels += settings.default_channels
        whole.custom_channels = {**settings.custom_channels, **whole.custom_channels}
        sources.append(path)
    source = ", ".join(sources) or _NOTHING
    kept = [_kept(channel) for channel in dict.fromkeys(_resolved(whole))]
    if not all(kept):
        return Answer(None, source, say("it names a channel in a form that is not understood"))
    return Answer(kept, source)


def _files(host: Host, prefix: str) -> Iterator[str]:
    identity = host.identity()
    if prefix:
        yield join(prefix, ".condarc")
    if identity.home:
        yield join(identity.home, ".condarc")
    if identity.os == "windows":
        yield join(host.env().get("ProgramData") or "C:\\ProgramData", "conda", ".condarc")
    else:
        yield "/etc/conda/.condarc"


def _resolved(found: _Condarc) -> Iterator[str]:
    """Yield every channel; a name for other channels is replaced by their addresses."""
    implied = ["defaults"] if found.default_channels else []
    for channel in (found.channels or implied)[:_MOST]:
        if channel == "defaults" and found.default_channels:
            yield from found.default_channels[:_MOST]
        elif channel in found.custom_channels:
            yield f"{found.custom_channels[channel].rstrip('/')}/{channel}"
        else:
            yield channel


def _kept(channel: str) -> str:
    return channel if re.fullmatch(_NAME, channel) else public_address(channel)


def _parsed(text: str) -> _Condarc:
    """Read the three keys.

    Raises:
        ValueError: one of them is written in another form.
    """
    found = _Condarc()
    key = ""
    for raw in text.splitlines():
        line = re.sub(_COMMENT, "", raw).rstrip()
        if not line or line in ("---", "..."):
            continue
        top = re.fullmatch(_KEY, line)
        if top is not None:
            key = top[1]
            _value_of_key(found, key, top[2] or "")
        elif key in _LISTS:
            _item(getattr(found, key), line)
        elif key == _MAPPING:
            _entry(found.custom_channels, line)
        elif not key or not line.startswith((" ", "\t", "-")):
            raise ValueError
    return found


def _value_of_key(found: _Condarc, key: str, value: str) -> None:
    """Return the value on the line of its key: a list in brackets, or nothing."""
    if key in _LISTS and value.startswith("[") and value.endswith("]"):
        items = [_scalar(word.strip()) for word in value[1:-1].split(",") if word.strip()]
        getattr(found, key).extend(items)
    elif key in (*_LISTS, _MAPPING) and value not in ("", "{}"):
        raise ValueError


def _item(items: list[str], line: str) -> None:
    dash, blank, rest = line.strip(" ").partition(" ")
    if dash != "-" or not blank:
        raise ValueError
    items.append(_scalar(rest.strip(" ")))


def _entry(entries: dict[str, str], line: str) -> None:
    pair = re.fullmatch(rf" +{_KEY}", line)
    if pair is None:
        raise ValueError
    entries[pair[1]] = _scalar((pair[2] or "").strip(" "))


def _scalar(text: str) -> str:
    found = re.fullmatch(_SCALAR, text)
    if found is None or ": " in text or text.endswith(":"):
        raise ValueError
    return next(part for part in found.groups() if part is not None)
