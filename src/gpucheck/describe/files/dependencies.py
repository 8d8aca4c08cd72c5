"""Files that list dependencies, of pip, uv, pixi and conda, and pyproject.toml."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from gpucheck.describe.files.model import (
    UNKNOWN,
    Install,
    NamedIndex,
    Pin,
    Project,
    holds_on_linux,
    name_of,
    requested,
    version_of,
)
from gpucheck.describe.files.shell import CondaSpec, by_conda, conda_spec_of
from gpucheck.describe.files.text import (
    Node,
    line_with,
    lines_of_keys,
    lines_of_texts,
    table,
    table_of,
    tables,
    text,
    texts,
)

# Requirement files of pip.

_OPTION = re.compile(r"(-[a-zA-Z]|--[a-z-]{2,40})(?:[ \t]{1,100}|=)?(.{0,1000})")
_ROLES = {
    "-i": "main", "--index-url": "main", "--extra-index-url": "extra",
    "-f": "extra", "--find-links": "extra",
}  # fmt: skip
_LONGEST = 8000  # chosen: hashes of many wheels are continued so; no file is joined without end
# As pip: a # within an address is none.
_COMMENT = re.compile(r"(?:^|[ \t])#")


def read_requirements(text: str) -> Project:
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


# Environment files of conda.


def read_conda_env(nodes: list[Node]) -> Project:
    """Return what conda and its pip install into one environment."""
    dependencies = nodes[0].get("dependencies")
    specs: list[CondaSpec] = []
    pip: list[Pin] = []
    indexes: list[NamedIndex] = []
    for dependency in dependencies.list():
        spec = conda_spec_of(dependency.text, dependency.line)
        if spec is not None:
            specs.append(spec)
        for requirement in dependency.get("pip").list():
            for _number, line in lines_of(requirement.text):
                for found in asked_for(line, requirement.line):
                    if isinstance(found, Pin):
                        pip.append(found)
                    else:
                        indexes.append(found)
    one_install = by_conda(specs, dependencies.line, also=tuple(pip), indexes=tuple(indexes))
    return Project(kind="conda", installs=(one_install,))


# pixi.toml: the dependencies of the default environment.

_VERSION = re.compile(r"(?:={2,3})?[ ]{0,9}([0-9][0-9A-Za-z.]{0,40})")
_BUILD = re.compile(r"[A-Za-z0-9_.*]{0,80}")
_PIXI_LONGEST = 60  # chosen: names of platforms have some ten characters


def read_pixi(content: str) -> Project:
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
    return "aarch64" if "linux-aarch64" in platforms else platforms[0][:_PIXI_LONGEST]


def _spec(name: str, version: str, build: str, line: int) -> CondaSpec:
    """Return a dependency of conda; of Python also the version of ``3.12.*``."""
    if name == "python":
        version = version.strip().removesuffix(".*")
    exact = _VERSION.fullmatch(version.strip())
    if exact is None or not _BUILD.fullmatch(build):
        return CondaSpec(name_of(name), "", "", line)
    return CondaSpec(name_of(name), exact[1], build, line)


# uv.lock: the versions that uv has chosen.

_WANTED = ("torch", "torchvision", "torchaudio")


def read_uv_lock(content: str) -> Project:
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


# pyproject.toml: the dependencies of the project, with the indexes of uv and Poetry.

_PYPROJECT_LONGEST = (
    200  # chosen: a range of versions has some dozens, before a pattern looks at it
)
_OLDEST = re.compile(r">=[ \t]{0,9}(3\.[0-9]{1,2})(?![0-9*])")
_PYPROJECT_VERSION = re.compile(
    r"(?:==)?[ ]{0,9}([0-9]{1,4}(?:\.[0-9]{1,4}){2,3}[A-Za-z0-9.-]{0,30}(?:\+[A-Za-z0-9.]{1,30})?)"
)


def read_pyproject(content: str) -> Project:
    """Return what every installation gets; extras and groups may exclude one another."""
    data, lines = table_of(content), content.split("\n")
    poetry = table(data, "tool", "poetry", "dependencies")
    if poetry and not table(data, "project").get("dependencies"):
        install = _by_poetry(data, poetry, lines)
    else:
        install = _by_project(data, lines)
    return Project(kind="pyproject", installs=(install,) if install.pins else ())


def _by_project(data: dict[str, Any], lines: list[str]) -> Install:
    found: list[Pin | NamedIndex] = []
    places = lines_of_texts(lines)
    for requirement in texts(table(data, "project").get("dependencies")):
        found += requested(requirement, places.get(requirement, 1))
    pins = [request for request in found if isinstance(request, Pin)]
    indexes = [request for request in found if isinstance(request, NamedIndex)]
    return Install(
        line=pins[0].line if pins else 1,
        pins=tuple(pins),
        indexes=(*indexes, *_indexes(data, lines, places, [pin.name for pin in pins])),
        tool="uv" if table(data, "tool", "uv") else "pip",
        without_dependencies=_overrides(data),
        python_from=_oldest_python(text(table(data, "project").get("requires-python")), lines),
    )


def _overrides(data: dict[str, Any]) -> bool:
    """Whether uv or PDM is told to take other versions than packages require."""
    return bool(
        table(data, "tool", "uv").get("override-dependencies")
        or table(data, "tool", "pdm", "resolution").get("overrides")
    )


def _indexes(
    data: dict[str, Any], lines: list[str], places: dict[str, int], names: list[str]
) -> tuple[NamedIndex, ...]:
    """Return the indexes of uv, PDM and Poetry, of which a project uses one."""
    return (
        *_indexes_of_uv(data, lines, places),
        *_indexes_of_pdm(data, places),
        *_indexes_of_poetry(data, lines, names),
    )


def _indexes_of_pdm(data: dict[str, Any], places: dict[str, int]) -> Iterator[NamedIndex]:
    """Yield the sources of PDM; one whose packages are named by patterns may have any."""
    for source in tables(table(data, "tool", "pdm").get("source")):
        address, included = text(source.get("url")), texts(source.get("include_packages"))
        plain = tuple(name_of(name) for name in included)
        if "$" in address or any("*" in name for name in plain) or source.get("exclude_packages"):
            address, plain = UNKNOWN, ()
        yield NamedIndex(address, places.get(address, 1), "extra", plain)


def _oldest_python(specifier: str, lines: list[str]) -> Pin | None:
    found = _OLDEST.search(specifier) if len(specifier) < _PYPROJECT_LONGEST else None
    if found is None:
        return None
    return Pin("python", found[1], line_with(lines, ("python", specifier)))


def _indexes_of_uv(
    data: dict[str, Any], lines: list[str], places: dict[str, int]
) -> tuple[NamedIndex, ...]:
    """Return the indexes that packages come from whatever extra, group or system is asked for."""
    of: dict[str, list[str]] = {}
    for package, source in table(data, "tool", "uv", "sources").items():
        sources = source if isinstance(source, list) else [source]
        for alternative in tables(sources):
            place = text(alternative.get("index")) or UNKNOWN  # a file, an address, a repository
            if (
                isinstance(alternative.get("marker"), str)
                and holds_on_linux(alternative["marker"]) is False
            ):
                continue
            certain = _is_only(alternative, sources)
            of.setdefault(place, []).append(name_of(package) if certain else "")
    sources_line = line_with(lines, ("[tool.uv.sources]",))
    found = [
        NamedIndex(UNKNOWN, sources_line, "only", (package_name,))
        for package_name in of.pop(UNKNOWN, [])
        if package_name
    ]
    for index in tables(table(data, "tool", "uv").get("index")):
        address, packages = text(index.get("url")), of.get(text(index.get("name")), [])
        line = places.get(address, 1)
        if packages:
            named = tuple(package_name for package_name in packages if package_name)
            found.append(NamedIndex(address, line, "only", named or ("",)))
        elif not index.get("explicit"):
            found.append(NamedIndex(address, line))
    for key in ("index-url", "extra-index-url", "find-links"):
        value = table(data, "tool", "uv").get(key)
        for address in [value] if isinstance(value, str) else texts(value):
            role = "main" if key == "index-url" else "extra"
            found.append(NamedIndex(address, places.get(address, 1), role))
    if table(data, "tool", "uv").get("no-index"):
        found.append(NamedIndex(UNKNOWN, 1))
    return tuple(found)


def _is_only(source: dict[str, Any], sources: list[Any]) -> bool:
    """Whether a package surely comes from this source on Linux."""
    others = [alternative for alternative in tables(sources) if alternative is not source]
    marker = source.get("marker", "os_name == 'posix'")
    return (
        not {"extra", "group"} & set(source)
        and isinstance(marker, str)
        and holds_on_linux(marker) is True
        and all(holds_on_linux(text(alternative.get("marker"))) is False for alternative in others)
    )


def _indexes_of_poetry(
    data: dict[str, Any], lines: list[str], names: Sequence[str]
) -> Iterator[NamedIndex]:
    """Yield the sources that packages name, and one that may have the others.

    Poetry asks supplemental sources only for what the others do not have, and explicit ones only
    for the packages that name them.
    """
    sources = tables(table(data, "tool", "poetry").get("source"))
    places = {text(source.get("name")): text(source.get("url")) for source in sources}
    packages = table(data, "tool", "poetry", "dependencies")
    start = line_with(lines, ("[tool.poetry.dependencies]",))
    places_of_keys = lines_of_keys(lines, start)
    own = set()
    for name, value in packages.items():
        if not isinstance(value, dict) or not text(value.get("source")):
            continue
        own.add(name_of(name))
        address = places.get(text(value.get("source")), "")
        yield NamedIndex(address, places_of_keys.get(name, start), "only", (name_of(name),))
    general = any(text(source.get("priority")) in ("", "primary", "default") for source in sources)
    others = tuple(name for name in names if name not in own)
    if general and others and not all(_adds_nothing(source) for source in sources):
        yield NamedIndex(UNKNOWN, start, "extra", others)


def _adds_nothing(source: dict[str, Any]) -> bool:
    """Whether a package that names no source surely comes from PyPI despite this one."""
    return text(source.get("name")).lower() == "pypi" or text(source.get("priority")) in (
        "explicit", "supplemental",
    )  # fmt: skip


def _by_poetry(data: dict[str, Any], packages: dict[str, Any], lines: list[str]) -> Install:
    start = line_with(lines, ("[tool.poetry.dependencies]",))
    pins, python = [], None
    places_of_keys = lines_of_keys(lines, start)
    for name, value in packages.items():
        line = places_of_keys.get(name, start)
        asked = value if isinstance(value, dict) else {"version": value}
        if name == "python":
            python = _oldest_python(_caret(text(asked.get("version"))), lines)
            python = Pin("python", python.version, line) if python else None
            continue
        if {"markers", "platform", "python", "optional"} & set(asked):
            continue
        found = _PYPROJECT_VERSION.fullmatch(text(asked.get("version")).strip())
        pins.append(Pin(name_of(name), found[1] if found else "", line))
    indexes = _indexes_of_poetry(data, lines, [pin.name for pin in pins])
    return Install(
        line=start, pins=tuple(pins), indexes=tuple(indexes), tool="poetry", python_from=python
    )


def _caret(version: str) -> str:
    return ">=" + version[1:] if version[:1] in ("^", "~") and version[1:2] != "=" else version
