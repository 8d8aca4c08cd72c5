"""uv.lock: the versions that uv has chosen."""

from gpucheck.describe.files.model import Install, NamedIndex, Pin, Project
from gpucheck.describe.files.readers.toml import table, table_of, tables, text
from gpucheck.describe.files.requirement import name_of
from gpucheck.describe.files.text import line_with

_WANTED = ("torch", "torchvision", "torchaudio")


def read(content: str) -> Project:
    """Return PyTorch's packages; a package with several versions (forks) has none for certain."""
    data, lines = table_of(content), content.split("\n")
    line_of = {name: line_with(lines, (f'name = "{name}"',)) for name in _WANTED}
    pins, indexes = [], []
    for package in tables(data.get("package")):
        name = name_of(text(package.get("name")))
        if name not in _WANTED:
            continue
        line = line_of[name]
        pins.append(Pin(name, text(package.get("version")), line))
        if text(package.get("version")):
            registry = text(table(package, "source").get("registry"))
            indexes.append(NamedIndex(registry, line, "only", (name,)))
    if not pins:
        return Project(kind="lock")
    install = Install(line=pins[0].line, pins=tuple(pins), indexes=tuple(indexes), tool="lock")
    return Project(kind="lock", installs=(install,))
