"""A file with the packages of a state that works, for an installer to install them again.

The first lines are comments that ``gpucheck recommend --like`` reads. pip and uv read the rest as
constraints or requirements, ``conda install --file`` as specifications.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch import Interpreter, Packages, TorchBuild
from gpucheck.language import say


class LockError(Exception):
    """There is nothing to lock, or a file is no lock; the message is one sentence for the user."""


Tool = Literal["pip", "uv", "conda"]
SIZE_LIMIT = 1 << 20
"""Bytes of a lock file that are read: others have a few kilobytes."""
_HEAD = "# gpucheck-lock/1"
_FIRST = re.compile(
    r"# gpucheck-lock/1 torch=(?P<torch>[0-9][0-9A-Za-z.+]{0,40}) "
    r"python=(?P<python>[0-9]{1,2}\.[0-9]{1,3})"
)
# Only pins, in these forms: a report of others must not put another line into a file that an
# installer reads (docs/evidence.md, Fuzzing).
_PIN = re.compile(r"(?m)^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,99})==(?P<version>[^\s;#]{1,60})")
_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}==[A-Za-z0-9][A-Za-z0-9._!-]{0,59}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,99}")
_LONGEST_SHOWN = 80  # chosen: versions of a stranger's report are quoted in one sentence


class Locked(msgspec.Struct, frozen=True):
    """What a lock file says of its PyTorch: release with the build (``2.9.1+cu128``), and pins."""

    torch: str
    python: str
    pins: dict[str, str]


def text(snapshot: Snapshot, tool: Tool) -> str:
    """Return the file for the packages that matter to PyTorch.

    Raises:
        LockError: there is no PyTorch, its version or that of Python is none, or the packages
            are unknown.
    """
    torch, packages = snapshot.get(TorchBuild), snapshot.get(Packages)
    version = snapshot.get(Interpreter).version or ""
    if not torch.installed or not torch.version or not version:
        raise LockError(say("there is no PyTorch whose state could be written down"))
    if packages.distributions is None:
        raise LockError(
            say("the packages are unknown: {why}", why=packages.problem("distributions"))
        )
    built = f"cu{torch.cuda.replace('.', '')}" if torch.cuda else torch.built_for or "cpu"
    release = torch.version if "+" in torch.version else f"{torch.version}+{built}"
    python = ".".join(version.split(".")[:2])
    head = f"{_HEAD} torch={release} python={python}"
    if not _FIRST.fullmatch(head):  # a report may be a stranger's: an installer reads this file
        raise LockError(
            say(
                "its versions are not those of a release: PyTorch {torch}, Python {python}",
                torch=repr(release[:_LONGEST_SHOWN]),
                python=repr(version[:_LONGEST_SHOWN]),
            )
        )
    lines = list(_of_conda(packages) if tool == "conda" else _of_pip(packages))
    return "\n".join((head, *_comments(tool), *lines)) + "\n"


def _comments(tool: Tool) -> Iterator[str]:
    if tool == "conda":
        yield "# conda install --file FILE"
    else:
        yield f"# torch first, from its own index: gpucheck recommend --like FILE --tool {tool}"
        yield f"# then: {'uv pip' if tool == 'uv' else 'python -m pip'} install -r FILE"


def _of_pip(packages: Packages) -> Iterator[str]:
    """Yield a pin for each distribution that an import would take.

    The build (``+cu128``) is left out: the same release from another index has none, and fits.
    """
    pins: dict[str, str] = {}
    for distribution in packages.distributions or ():
        if distribution.project and distribution.version:
            pins.setdefault(distribution.project, distribution.version.partition("+")[0])
    for project, version in sorted(pins.items()):
        if _PINNED.fullmatch(pin := f"{project}=={version}"):
            yield pin


def _of_conda(packages: Packages) -> Iterator[str]:
    """Yield name, version and build of each package of conda, then pins of what pip installed."""
    found = False
    for line in sorted(packages.conda_packages or ()):
        words = line.split()
        if len(words) >= 3 and all(_WORD.fullmatch(word) for word in words[:3]):  # noqa: PLR2004
            yield "=".join(words[:3])
            found = True
    if not found:
        raise LockError(say("this environment has no packages of conda: use --tool pip or uv"))


def read(lock_text: str) -> Locked:
    """Read a lock file.

    Raises:
        LockError: its first line does not say that it is one.
    """
    found = _FIRST.match(lock_text)
    if found is None:
        raise LockError(
            say(
                "it does not begin with {head}: gpucheck baseline lock writes such a file",
                head=_HEAD,
            )
        )
    pins = {pin["name"].lower(): pin["version"] for pin in _PIN.finditer(lock_text[:SIZE_LIMIT])}
    return Locked(found["torch"], found["python"], pins)
