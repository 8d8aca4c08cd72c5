"""Commands that install packages: pip, uv and conda."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpucheck.describe.files.model import UNKNOWN, FileCommand, Image, Install, NamedIndex, Pin
from gpucheck.describe.files.requirement import name_of, requested

_PIP = re.compile(r"(?:[^ ]{0,200}/)?pip(?:3(?:\.[0-9]{1,2})?)?")
_PYTHON = re.compile(r"(?:[^ ]{0,200}/)?python(?:3(?:\.[0-9]{1,2})?)?")
_CONDAS = ("conda", "mamba", "micromamba")
_INDEXES = {
    "-i": "main", "--index-url": "main", "--pypi-url": "main", "--default-index": "main",
    "--extra-index-url": "extra", "--index": "extra", "-f": "extra", "--find-links": "extra",
}  # fmt: skip
_WITH_VALUE = (
    "-r", "--requirement", "-c", "--constraint", "-e", "--editable", "-t", "--target", "--prefix",
    "--root", "--python", "-p", "--trusted-host", "--timeout", "--retries", "--no-binary",
    "--only-binary", "--progress-bar", "--cache-dir", "--torch-backend", "--index-strategy",
    "--prerelease", "--platform", "--python-version", "--config-settings", "--upgrade-strategy",
    "--global-option", "--build-option", "--log", "--proxy", "--src", "--implementation", "--abi",
    "--override", "--exclude-newer", "--link-mode", "--resolution", "--report", "--group",
)  # fmt: skip
_ELSEWHERE = ("-t", "--target", "--platform", "--python-version", "--dry-run", "--root")
_UNREAD = ("-r", "--requirement", "--torch-backend", "-e", "--editable")
_VARIABLES = {
    "PIP_INDEX_URL": "main", "UV_INDEX_URL": "main", "UV_DEFAULT_INDEX": "main",
    "PIP_EXTRA_INDEX_URL": "extra", "UV_EXTRA_INDEX_URL": "extra", "UV_INDEX": "extra",
    "PIP_FIND_LINKS": "extra", "UV_FIND_LINKS": "extra",
}  # fmt: skip
SETTINGS = ("PIP_CONFIG_FILE", "UV_CONFIG_FILE")
"""Variables of files that may name indexes."""
_OTHER_SOURCES = (*SETTINGS, "PIP_NO_INDEX", "UV_NO_INDEX", "UV_TORCH_BACKEND")
"""Variables that may send an installer elsewhere."""
# Chosen: a requirement with its build string has some dozens, before patterns look at it.
_LONGEST = 400
# For conda one = stands for any version that begins so, two for exactly this one.
_CONDA_PIN = re.compile(
    r"(?:([A-Za-z0-9_./-]{1,80})::)?([A-Za-z0-9][A-Za-z0-9._-]{0,80})[ ]{0,9}"
    r"(?:(==?)[ ]{0,9}([0-9][0-9A-Za-z.]{0,40})(?:=([A-Za-z0-9_.*]{1,80}))?|(.{0,200}))"
)


class CondaSpec(NamedTuple):
    """A package that conda is asked for; ``version`` and ``build`` are "" unless they are said."""

    name: str
    version: str
    build: str
    line: int


def install_of(
    command: FileCommand, image: Image | None, variables: Mapping[str, tuple[str, int]]
) -> Install | None:
    """Return what a command installs; None if it is no command that does.

    Args:
        command: the command.
        image: the image that it runs in.
        variables: the variables of its environment, each with the line that sets it.
    """
    words = list(command.words)
    own = variables_in(command.assigned, command.line)
    uv = bool(words) and words[0].rpartition("/")[2] == "uv"
    if uv:
        words = words[1:]
    elif words and _PYTHON.fullmatch(words[0]) and "-m" in words[1:4]:
        words = words[words.index("-m") + 1 :]
    if len(words) > 1 and _PIP.fullmatch(words[0]) and words[1] == "install":
        indexes = _indexes_of(own, variables, "uv" if uv else "pip")
        return _by_pip(command, words[2:], image, indexes, "uv" if uv else "pip")
    is_conda = bool(words) and words[0].rpartition("/")[2] in _CONDAS
    if is_conda and len(words) > 1 and words[1] in ("install", "create"):
        return _by_conda(command, words[2:], image)
    return None


def variables_in(words: Iterable[str], line: int) -> dict[str, tuple[str, int]]:
    """Return the variables of ``NAME=value``, each with this line."""
    return {
        name: (value, line)
        for name, equals, value in (word.partition("=") for word in words)
        if equals
    }


def _by_pip(
    command: FileCommand,
    words: list[str],
    image: Image | None,
    indexes: list[NamedIndex],
    tool: str,
) -> Install | None:
    indexes = indexes + [
        NamedIndex(UNKNOWN, command.line) for word in words if word == "--no-index"
    ]
    pins: list[Pin] = []
    conditional = command.conditional
    at = 0
    while at < len(words):
        option, equals, value = words[at].partition("=")
        if words[at].startswith("-"):
            if option in _ELSEWHERE:
                return None
            conditional = conditional or option in _UNREAD
            if option in _INDEXES or option in _WITH_VALUE:
                if not equals:
                    at += 1
                    value = words[at] if at < len(words) else UNKNOWN
                if option in _INDEXES:
                    if _INDEXES[option] == "main":
                        indexes = [index for index in indexes if index.role != "main"]
                    indexes.append(NamedIndex(value, command.line, _INDEXES[option]))
        else:
            found = _asked_for(words[at], command.line)
            pins.extend(request for request in found if isinstance(request, Pin))
            indexes.extend(request for request in found if isinstance(request, NamedIndex))
        at += 1
    return Install(
        line=command.line, pins=tuple(pins), indexes=tuple(indexes), tool=tool, image=image,
        conditional=conditional, without_dependencies="--no-deps" in words,
    )  # fmt: skip


def _indexes_of(
    assigned: Mapping[str, tuple[str, int]], variables: Mapping[str, tuple[str, int]], tool: str
) -> list[NamedIndex]:
    """Return the indexes that the environment names, and one that is not known if it may.

    Only the variables that matter are looked up: a Dockerfile may set many before many commands.
    """
    own = {
        name: assigned[name] if name in assigned else variables[name]
        for name in (*_VARIABLES, *_OTHER_SOURCES)
        if name.startswith("PIP" if tool == "pip" else "UV")
        and (name in assigned or name in variables)
    }
    named = [
        NamedIndex(address, own[name][1], role)
        for name, role in _VARIABLES.items()
        if name in own
        for address in own[name][0].split()
    ]
    return named + [NamedIndex(UNKNOWN, own[name][1]) for name in _OTHER_SOURCES if name in own]


def _asked_for(word: str, line: int) -> list[Pin | NamedIndex]:
    if UNKNOWN in word or "$" in word:
        return [*_with_unknown_version(word, line)]
    return [*requested(word, line)]


def _with_unknown_version(word: str, line: int) -> list[Pin]:
    """Return the package, twice, so that no version of it is certain."""
    found = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}", word)
    return [Pin(name_of(found[0]), "", line)] * 2 if found else []


def _by_conda(command: FileCommand, words: list[str], image: Image | None) -> Install | None:
    specs = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in ("-c", "--channel", "-n", "--name", "-p", "--prefix", "--file", "-f")
        else:
            spec = conda_spec_of(word, command.line)
            if spec is not None:
                specs.append(spec)
    return by_conda(specs, command.line, image=image, conditional=command.conditional)


def conda_spec_of(text: str, line: int) -> CondaSpec | None:
    """Return what a requirement of conda asks for; None for what is none."""
    found = _CONDA_PIN.fullmatch(text.strip()) if len(text) < _LONGEST else None
    if found is None:
        return None
    return CondaSpec(name_of(found[2]), found[4] or "", found[5] or "", line)


def by_conda(
    specs: Sequence[CondaSpec],
    line: int,
    *,
    image: Image | None = None,
    conditional: bool = False,
    also: tuple[Pin, ...] = (),
    indexes: tuple[NamedIndex, ...] = (),
) -> Install:
    """Return an install from requirements of conda.

    ``also`` are packages that pip installs into the same environment.
    """
    pins: list[Pin] = []
    python = cuda = cpu = None
    for name, exact, build, at in specs:
        if name == "python" and exact:
            python = Pin("python", ".".join(exact.split(".")[:2]), at)
        elif name in ("cpuonly", "pytorch-cpu"):
            cpu = Pin(name, "", at)
        elif name in ("pytorch-cuda", "cudatoolkit"):
            cuda = Pin(name, exact, at)
        elif name == "pytorch":
            if build.startswith("cpu"):
                cpu = Pin(f"{name}={exact}={build}", "", at)
            pins.append(Pin("torch", exact if exact.count(".") > 1 else "", at))
        else:
            pins.append(Pin(name, exact if exact.count(".") > 1 else "", at))
    if also and any(pin.name == "torch" for pin in also):
        pins = [pin for pin in pins if pin.name not in ("torch", "torchvision", "torchaudio")]
        cuda = cpu = None
        return Install(
            line=line, pins=(*pins, *also), indexes=indexes, python=python, image=image,
            conditional=conditional,
        )  # fmt: skip
    return Install(
        line=line, pins=tuple(pins), tool="conda", python=python, image=image,
        conditional=conditional, cuda=cuda, cpu=cpu,
    )  # fmt: skip
