"""What a run would do: for each finding that stands the first fix that may be carried out."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from gpucheck.engine import Report, Verdict
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.torch import Packages
from gpucheck.findings.form import Finding
from gpucheck.fixing.journal import JournalStep
from gpucheck.fixing.permitted import Command, Place, is_of_pip, runnable
from gpucheck.language import Sentence, listed, say

# The project of an environment: which file will undo a change, and what makes it stay.

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


# What the JSON document of ``gpucheck fix`` holds, as types.

Who = Literal["administrator", "you", "later"]


class FixStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step: its findings, what it does and changes, its commands, and what came of it."""

    slugs: tuple[str, ...]
    text: str
    changes: tuple[str, ...]
    commands: tuple[str, ...]
    status: Literal["planned", "declined", "running", "done", "failed"]
    detail: str


class FixLeft(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that is left: who can act on it, why gpucheck does not, and what to do."""

    slug: str
    who: Who
    reason: str
    text: str
    commands: tuple[str, ...]


class FixResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the same check says afterwards; ``undone`` if everything was put back at once."""

    verdict: Verdict
    root_causes: tuple[str, ...]
    gone: tuple[str, ...]
    stays: tuple[str, ...]
    new: tuple[str, ...]
    torch_imports: bool | None
    undone: bool


class FixDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, and what came of it; ``result`` is null if nothing was run.

    ``state`` is the folder with the way back, ``lasting`` the commands of the project's tool that
    make the change stay. Paths are those of this machine: nothing is redacted.
    """

    schema: Literal["gpucheck.fix/1"] = "gpucheck.fix/1"
    verdict: Verdict
    root_causes: tuple[str, ...]
    environment: str | None
    refused: str
    project: str
    lasting: tuple[str, ...]
    steps: tuple[FixStep, ...]
    left: tuple[FixLeft, ...]
    state: str | None
    result: FixResult | None


_OWN = frozenset(("gpucheck-doctor", "click", "msgspec", "nvidia-ml-py", "packaging"))
"""What gpucheck runs on."""
_FAMILY = frozenset(("torch", "torchvision", "torchaudio"))
"""What belongs together: a fix for one of them was worked out for the others as they are now."""


class FixPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps in their order, and what is left."""

    steps: tuple[JournalStep, ...]
    left: tuple[FixLeft, ...]


def plan(
    report: Report,
    place: Place | None,
    project: EnvironmentProject | None,
    has: Callable[[str], bool],
    *,
    lock: bool,
    refused: str = "",
) -> FixPlan:
    """Return what can be done about a report; without a place nothing can.

    Args:
        report: the diagnosis.
        place: the environment that may be changed.
        project: what the environment belongs to.
        has: whether a program is on PATH.
        lock: whether the tool of the project is to be used, with its lock file.
        refused: why there is no place.
    """
    steps: list[JournalStep] = []
    left: list[FixLeft] = []
    for finding in report.standing:
        if finding.severity is Severity.INFO:
            continue
        found = _first(finding, place, has) if place is not None else None
        if found is None:
            left += _left(finding, refused, place)
            continue
        fix, commands = found
        step = _step(finding, fix, commands, report)
        if lock and project is not None and has(project.tool):
            step.commands = project.locking(commands) or commands
        same = next((earlier for earlier in steps if earlier.commands == step.commands), None)
        if same is not None:
            same.slugs += step.slugs
        elif any(_touches(earlier, step) for earlier in steps):
            why = say("An earlier step changes the same packages; run gpucheck fix again after it.")
            left.append(_of(finding, fix, "later", why))
        else:
            steps.append(step)
    return FixPlan(steps=tuple(steps), left=tuple(left))


def _first(
    finding: Finding, place: Place, has: Callable[[str], bool]
) -> tuple[Fix, tuple[Command, ...]] | None:
    """Return the first fix all of whose commands may be run."""
    for fix in finding.fixes:
        commands = [runnable(command, place) for command in fix.commands]
        usable = tuple(command for command in commands if command is not None)
        if place.holds_gpucheck and any(command.names & _OWN for command in usable):
            continue
        if (
            usable
            and len(usable) == len(commands)
            and all(_has(command, has) for command in usable)
        ):
            return fix, usable
    return None


def _has(command: Command, has: Callable[[str], bool]) -> bool:
    return command.action == "move" or has(command.argv[0])


def _step(finding: Finding, fix: Fix, commands: tuple[Command, ...], report: Report) -> JournalStep:
    installed = report.snapshot.get(Packages)
    changes = tuple(change for command in commands if (change := _change(command, installed)))
    return JournalStep(slugs=(finding.slug,), text=fix.text, changes=changes, commands=commands)


def _change(command: Command, installed: Packages) -> Sentence:
    if command.action == "move":
        return say("Renames {file} to {name}.", file=command.argv[1], name=command.argv[2])
    if command.action == "pip":
        return say("Installs the pip that belongs to this Python.")
    if command.action == "remove":
        names = listed([_with_version(name, installed) for name in command.packages])
        return say("Removes {packages}.", packages=names)
    new = listed(list(command.packages))
    old = [
        _with_version(name, installed)
        for name in sorted(command.names)
        if installed.find(name) is not None
    ]
    if command.index:
        words = say("Installs {packages} from {index}", packages=new, index=command.index)
    else:
        words = say("Installs {packages}", packages=new)
    if not old:
        return say("{what}, and what it requires.", what=words)
    return say("{what}, and what it requires; now: {old}.", what=words, old=listed(old))


def _with_version(name: str, installed: Packages) -> str:
    found = installed.find(name.lower().replace("_", "-"))
    return f"{name} {found.version}" if found is not None and found.version else name


def _touches(earlier: JournalStep, later: JournalStep) -> bool:
    """Whether a step was worked out for packages that an earlier one changes."""
    before = frozenset().union(*(command.names for command in earlier.commands))
    after = frozenset().union(*(command.names for command in later.commands))
    return bool(before & after) or bool(before & _FAMILY and after)


def _left(finding: Finding, refused: str, place: Place | None) -> list[FixLeft]:
    """Return what a finding leaves to do; its first fix, and why nothing of it was run."""
    if not finding.fixes:
        return []
    fix = finding.fixes[0]
    if fix.reach in ("machine", "interrupts"):
        why = say("This changes the machine for all who use it, so gpucheck does not run it.")
        return [_of(finding, fix, "administrator", why)]
    if refused:
        return [_of(finding, fix, "you", refused)]
    if not fix.commands:
        return [_of(finding, fix, "you", say("No command does this."))]
    commands = [runnable(command, place) for command in fix.commands] if place is not None else []
    if any(command is not None and command.names & _OWN for command in commands):
        why = say(
            "gpucheck runs in this environment, and this changes a package that it uses itself."
        )
        return [_of(finding, fix, "you", why)]
    if place is not None and any(
        is_of_pip(text, place) and command is None
        for text, command in zip(fix.commands, commands, strict=True)
    ):
        why = say(
            "gpucheck runs pip with the names of packages and one index alone, not with the "
            "address of a wheel or another source beside PyPI: run it yourself."
        )
        return [_of(finding, fix, "you", why)]
    why = say(
        "It is about your shell, your job or another environment, which gpucheck cannot reach."
    )
    return [_of(finding, fix, "you", why)]


def _of(finding: Finding, fix: Fix, who: Who, reason: str) -> FixLeft:
    return FixLeft(slug=finding.slug, who=who, reason=reason, text=fix.text, commands=fix.commands)
