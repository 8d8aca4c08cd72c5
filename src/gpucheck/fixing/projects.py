"""The project of an environment: which file will undo a change, and what makes it stay."""

import re
import shlex
from pathlib import Path
from typing import Literal

import msgspec

from gpucheck.fixing.permitted import Command, Place
from gpucheck.language import Sentence, say

Tool = Literal["uv", "poetry", "pdm", "pixi"]
# Of several lock files the first counts; a pyproject.toml alone is uv's only if it says so.
_LOCKS: tuple[tuple[Tool, str], ...] = (
    ("uv", "uv.lock"), ("poetry", "poetry.lock"), ("pdm", "pdm.lock"),
)  # fmt: skip
_BACK = {"uv": "uv run", "poetry": "poetry sync", "pdm": "pdm sync", "pixi": "pixi install"}
_ENVIRONMENT = ".venv"
_LARGEST = 1 << 20  # bytes; chosen: people write this file by hand
_BUILD = re.compile(r"/([a-z]+[0-9]*)/?$")


class EnvironmentProject(msgspec.Struct, frozen=True, kw_only=True):
    """A project of a tool that installs what its lock file names."""

    tool: Tool
    folder: str
    lock: str
    """The lock file; "" if there is none yet."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that its tool changes, as far as they are there."""
        names = ("pyproject.toml", "pixi.toml", Path(self.lock).name)
        found = (Path(self.folder) / name for name in names if name)
        return tuple(str(path) for path in found if path.is_file())

    def undo_sentence(self) -> Sentence:
        """Return what will undo a change of the environment."""
        if not self.lock:
            return say(
                "This environment belongs to the {tool} project in {folder}: {command} puts back "
                "what the project asks for.",
                tool=self.tool, folder=self.folder, command=_BACK[self.tool],
            )  # fmt: skip
        return say(
            "This environment belongs to the {tool} project in {folder}: {command} puts back what "
            "{lock} names.",
            tool=self.tool, folder=self.folder, command=_BACK[self.tool], lock=self.lock,
        )  # fmt: skip

    def lasting(self, commands: tuple[Command, ...]) -> list[list[str]]:
        """Return the commands of the tool that make a change stay; [] if none is known."""
        wanted = [command for command in commands if command.action == "install"]
        if len(wanted) != 1 or self.tool not in ("uv", "poetry"):
            return []
        (install,) = wanted
        index = install.index.rstrip("/")
        build = _BUILD.search(index)
        name = f"pytorch-{build[1]}" if build is not None else "pytorch"
        if self.tool == "uv":
            where = ["--index", f"{name}={index}"] if index else []
            return [["uv", "add", "--project", self.folder, *where, *install.packages]]
        at = ["-C", self.folder]
        if not index:
            return [["poetry", "add", *at, *install.packages]]
        return [
            ["poetry", "source", "add", *at, "--priority", "explicit", name, index],
            ["poetry", "add", *at, "--source", name, *install.packages],
        ]

    def locking(self, commands: tuple[Command, ...]) -> tuple[Command, ...] | None:
        """Return the lasting commands in place of others; None if there are none."""
        names = tuple(package for command in commands for package in command.packages)
        found = self.lasting(commands)
        return (
            tuple(
                Command(text=shlex.join(argv), argv=tuple(argv), action="lock", packages=names)
                for argv in found
            )
            or None
        )


def project_of(place: Place) -> EnvironmentProject | None:
    """Return the project beside an environment; None if there is none."""
    prefix = Path(place.prefix)
    if prefix.parent.name == "envs" and prefix.parent.parent.name == ".pixi":
        folder = prefix.parent.parent.parent
        lock = folder / "pixi.lock"
        return EnvironmentProject(
            tool="pixi", folder=str(folder), lock=str(lock) if lock.is_file() else ""
        )
    folder = prefix.parent
    if prefix.name != _ENVIRONMENT:
        return None  # none of these tools changes it
    if place.kind == "conda" or not (folder / "pyproject.toml").is_file():
        return None
    for tool, name in _LOCKS:
        if (folder / name).is_file():
            return EnvironmentProject(tool=tool, folder=str(folder), lock=str(folder / name))
    with (folder / "pyproject.toml").open("rb") as file:
        head = file.read(_LARGEST)
    return (
        EnvironmentProject(tool="uv", folder=str(folder), lock="")
        if b"\n[tool.uv" in head
        else None
    )
