"""pixi.toml: the dependencies of the default environment."""

import re
from typing import Any

import msgspec

from gpucheck.describe.files.install_commands import CondaSpec, by_conda
from gpucheck.describe.files.model import NamedIndex, Pin, Project
from gpucheck.describe.files.readers.toml import table, table_of, text, texts
from gpucheck.describe.files.requirement import name_of, version_of
from gpucheck.describe.files.text import line_with, lines_of_keys

_VERSION = re.compile(r"(?:={2,3})?[ ]{0,9}([0-9][0-9A-Za-z.]{0,40})")
_BUILD = re.compile(r"[A-Za-z0-9_.*]{0,80}")
_LONGEST = 60  # chosen: names of platforms have some ten characters


def read(content: str) -> Project:
    """Return what conda and pip install into the default environment; features are not read."""
    data, lines = table_of(content), content.split("\n")
    start = line_with(lines, ("[dependencies]",))
    specs = []
    places = lines_of_keys(lines, start)
    for name, value in table(data, "dependencies").items():
        asked = value if isinstance(value, dict) else {"version": value}
        version, build = text(asked.get("version")), text(asked.get("build"))
        specs.append(_spec(name, version, build, places.get(name, start)))
    pip, indexes = [], []
    below = line_with(lines, ("[pypi-dependencies]",))
    places = lines_of_keys(lines, below)
    for name, value in table(data, "pypi-dependencies").items():
        asked = value if isinstance(value, dict) else {"version": value}
        line = places.get(name, below)
        pip.append(Pin(name_of(name), version_of(text(asked.get("version"))), line))
        if text(asked.get("index")):
            indexes.append(NamedIndex(text(asked.get("index")), line, "only", (name_of(name),)))
    if not specs and not pip:
        return Project(kind="pixi")
    install = by_conda(specs, start, also=tuple(pip), indexes=tuple(indexes))
    install = msgspec.structs.replace(install, machine=_machine(data))
    return Project(kind="pixi", installs=(install,))


def _machine(data: dict[str, Any]) -> str:
    """Return the processor of the platforms: whatever else there is, linux-64 is judged."""
    platforms = texts((table(data, "workspace") or table(data, "project")).get("platforms"))
    if not platforms or "linux-64" in platforms:
        return ""
    return "aarch64" if "linux-aarch64" in platforms else platforms[0][:_LONGEST]


def _spec(name: str, version: str, build: str, line: int) -> CondaSpec:
    """Return a dependency of conda; of Python also the version of ``3.12.*``."""
    if name == "python":
        version = version.strip().removesuffix(".*")
    exact = _VERSION.fullmatch(version.strip())
    if exact is None or not _BUILD.fullmatch(build):
        return CondaSpec(name_of(name), "", "", line)
    return CondaSpec(name_of(name), exact[1], build, line)
