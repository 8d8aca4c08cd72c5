"""pixi.toml: the dependencies of the default environment."""

from gpucheck.whatif.files.install_commands import by_conda
from gpucheck.whatif.files.model import Index, Pin, Project
from gpucheck.whatif.files.readers.toml import table, table_of, text
from gpucheck.whatif.files.requirement import name_of, pin_of
from gpucheck.whatif.files.text import line_with, lines_of_keys


def read(content: str) -> Project:
    """Return what conda and pip install into the default environment; features are not read."""
    data, lines = table_of(content), content.split("\n")
    start = line_with(lines, ("[dependencies]",))
    specs = []
    places = lines_of_keys(lines, start)
    for name, value in table(data, "dependencies").items():
        asked = value if isinstance(value, dict) else {"version": value}
        version = text(asked.get("version")).strip()
        exact = version[:1].isdecimal() or version.startswith("==")
        plain = f"={version.lstrip('=')}" if exact and not version.endswith("*") else ""
        if name == "python" and version[:1].isdecimal():
            plain = f"={version.rstrip('.*')}"
        build = text(asked.get("build"))
        suffix = f"={build}" if plain and build else ""
        specs.append((f"{name}{plain}{suffix}", places.get(name, start)))
    pip, indexes = [], []
    below = line_with(lines, ("[pypi-dependencies]",))
    places = lines_of_keys(lines, below)
    for name, value in table(data, "pypi-dependencies").items():
        asked = value if isinstance(value, dict) else {"version": value}
        line = places.get(name, below)
        pin = pin_of(f"{name}{text(asked.get('version')).replace('*', '')}", line)
        pip.append(pin if pin is not None else Pin(name_of(name), "", line))
        if text(asked.get("index")):
            indexes.append(Index(text(asked.get("index")), line, "only", (name_of(name),)))
    if not specs and not pip:
        return Project(kind="pixi")
    one = by_conda(specs, start, also=tuple(pip), indexes=tuple(indexes))
    return Project(kind="pixi", installs=(one,))
