"""What a shell offers for a word: click's completion, with the values that only gpucheck knows.

Names come from the files of this installation: a shell asks at every key, so nothing heavy is
imported.
"""

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from gpucheck._about import modules_of

_PACKAGE = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120  # no pathlib here
_SLUG = re.compile(r'^[A-Z_0-9]{1,60} = Rule\(\s{0,8}"([a-z0-9-]{1,60})",$', re.MULTILINE)
"""The header of a finding: formatted, so it has one form."""
_KINDS = {"FILE": "file", "PATH": "file", "DIR": "dir"}
"""The words in metavars that stand for files and folders."""


class _File(click.types.StringParamType):
    """A text that names a file or a folder, which the shell completes itself."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  # click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self._kind)]


class _Name(click.types.StringParamType):
    """One of some names, or several with commas between them."""

    def __init__(self, names: Callable[[], Iterable[str]], *, several: bool = False) -> None:
        self._names = names
        self._several = several

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  # click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        before, comma, begun = incomplete.rpartition(",") if self._several else ("", "", incomplete)
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in sorted(self._names())
            if name.startswith(begun)
        ]


def _findings() -> list[str]:
    """Return the slugs that stand in the headers: a module has several findings."""
    folder = f"{_PACKAGE}/findings"
    slugs = []
    for name in modules_of([folder]):
        with open(f"{folder}/{name}.py", encoding="utf-8") as file:  # noqa: PTH123
            slugs += _SLUG.findall(file.read())
    return slugs


def _probes() -> list[str]:
    return modules_of([f"{_PACKAGE}/probes"])


def _selftests() -> list[str]:
    return _names_in("worker/selftests")


def _names_in(folder: str) -> list[str]:
    """Return the names of the modules in a folder as users write them."""
    names = modules_of([f"{_PACKAGE}/{folder}"])
    return [name.replace("_", "-") for name in names if not name.startswith("_")]


_VALUES: dict[tuple[str, str], _Name] = {
    ("explain", "slug"): _Name(_findings),
    ("check", "only"): _Name(lambda: (*_findings(), *_probes())),
    ("check", "skip"): _Name(lambda: (*_findings(), *_probes())),
    ("selftest", "tests"): _Name(_selftests, several=True),
    ("preflight", "tests"): _Name(_selftests, several=True),
    ("node", "tests"): _Name(_selftests, several=True),
}
"""The values of parameters, by command and name."""


def completing(name: str, command: click.Command) -> click.Command:
    """Return a command whose parameters know what a shell may offer."""
    for param in command.params:
        if (name, param.name or "") in _VALUES:
            param.type = _VALUES[name, param.name or ""]
        elif type(param.type) is click.types.StringParamType:
            param.type = _of_metavar(param.metavar or "") or param.type
    for verb, inner in command.commands.items() if isinstance(command, click.Group) else ():
        completing(f"{name} {verb}", inner)
    return command


def _of_metavar(metavar: str) -> Any:  # noqa: ANN401  # a type of click, or None
    return next((_File(kind) for word, kind in _KINDS.items() if word in metavar), None)
