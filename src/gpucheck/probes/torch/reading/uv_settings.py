"""Which index uv takes packages from, by its variables and the files of user and system.

Only the lines of the TOML that name an index are read, because Python 3.10 has no TOML reader.
"""

import re
from collections.abc import Iterator

from gpucheck.facts import Answer
from gpucheck.machine import Host
from gpucheck.machine.paths import join
from gpucheck.probes.torch.reading.settings_file import address_in, misunderstood, read_settings

_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL")
_NOTHING = "variables and configuration files of uv"
_HEADER = r"\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?"
_PAIR = r"([\w-]+)\s*=\s*(.*)"
_VALUE = r"""(?:"([^"\\]*)"|'([^']*)'|(true|false))\s*(?:#.*)?"""
_NAMED = r"[A-Za-z0-9_.-]+=(?=[A-Za-z]+://)"
_READ = {("", "index-url"), ("pip", "index-url"), ("index", "url"), ("index", "default")}
_AS_ONE_VALUE = {("", "index"), ("", "pip"), ("pip", "index")}
"""Tables that may be written as one value, which is not read."""


def uv_index(host: Host) -> Answer[str]:
    """Return uv's default index, "" if none is configured."""
    env = host.env()
    for variable in _VARIABLES:
        if value := env.get(variable, "").strip():
            return address_in(re.sub(_NAMED, "", value, count=1), f"environment: {variable}")
    if env.get("UV_NO_CONFIG", "").lower() in ("1", "true", "yes", "on"):
        return Answer("", "environment: UV_NO_CONFIG")
    for path in _files(host):
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
    return Answer("", _NOTHING)


def _files(host: Host) -> Iterator[str]:
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
        if header := re.fullmatch(_HEADER, line):
            table = header[1]
            if table == "index":
                indexes.append({})
            continue
        pair = re.fullmatch(_PAIR, line)
        place = (table, pair[1]) if pair else ("", "")
        if pair is None or place not in _READ | _AS_ONE_VALUE:
            continue
        value = re.fullmatch(_VALUE, pair[2]) if place in _READ else None
        if value is None:
            raise ValueError
        if table == "index":
            indexes[-1:] = [{**indexes[-1], pair[1]: _text(value)}]
        values.setdefault(place, _text(value))
    default = (index.get("url", "") for index in indexes if index.get("default") == "true")
    return (
        next(default, "") or values.get(("pip", "index-url")) or values.get(("", "index-url"), "")
    )


def _text(value: re.Match[str]) -> str:
    return next((text for text in value.groups() if text is not None), "")
