# ruff: noqa: INP001  # a script of this repository
"""Makes a test machine of a folder that ``gpucheck baseline collect --record FOLDER`` wrote.

    tools/machine_from_folder.py FOLDER NAME [--like MACHINE]

What the machine has as MACHINE has it is left out; without ``--like`` the machine is taken that
leaves the shortest file. Libraries and other binary files go to ``tests/machines/blobs/``. The file
is read back and compared with the folder before it counts as written. NAME may be the path of a
file elsewhere.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import machine_files
from machine_difference import abbreviated, cost, difference, sections_of
from machine_files import LONGEST_CHAIN, MACHINES
from machine_instead import instead_of
from machine_sections import Sections, Table, said_instead
from toml_text import written

from gpucheck.machine import Recording, read_machine

_COMPARED = 8
"""Machines that are alike at first sight and are then compared word by word."""
_NUMBERS = re.compile(r"[0-9][0-9a-f.+-]*")


def main() -> int:
    """Write the machine that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", help="of the new machine, or the path of its file")
    parser.add_argument("--like", metavar="MACHINE")
    arguments = parser.parse_args()
    readme = arguments.folder / "README.md"
    expect = arguments.folder / "expect.json"
    file = write(
        arguments.name,
        read_machine(arguments.folder),
        like=arguments.like,
        about=readme.read_text(encoding="utf-8") if readme.is_file() else "",
        expect=json.loads(expect.read_text(encoding="utf-8")) if expect.is_file() else {},
    )
    sys.stdout.write(f"{file}: {file.stat().st_size} bytes\n")
    return 0


def write(
    name: str, recording: Recording, *, like: str | None, about: str, expect: Mapping[str, Any]
) -> Path:
    """Write a machine and return its file.

    Raises:
        ValueError: what is read back is not what was to be written, or ``like`` is no machine.
    """
    file = Path(name) if "/" in name else MACHINES / f"{name}.toml"
    recording.made = None  # `about` says it to people
    sections, blobs = sections_of(recording)
    like = closest(sections, but=file.stem) if like is None else like
    base = machine_files.sections(like) if like else {}
    head = {"about": _text(about), "like": like, "expect": dict(expect)}
    document = {key: value for key, value in head.items() if value} | said_like(sections, base)
    for blob, data in blobs.items():
        if not (MACHINES / "blobs" / blob).is_file():
            (file.parent / "blobs").mkdir(exist_ok=True)
            (file.parent / "blobs" / blob).write_bytes(data)
    file.write_text(written(document), encoding="utf-8")
    machine_files.forget()
    if machine_files.load(file.stem, file.parent).recording != recording:
        raise ValueError(f"{file} does not say what was recorded")
    return file


def _text(readme: str) -> str:
    """Return the text below a heading."""
    return re.sub(r"\A# .*\n+", "", readme)


def said_like(own: Sections, base: Sections) -> Table:
    """Return what a machine's file says below ``like``."""
    instead = instead_of(base, own)
    reached = said_instead(base, instead)
    folders = {**reached.get("folders", {}), **own.get("folders", {})}
    document = abbreviated(difference(reached, own), folders)
    return {**({"instead": instead} if instead else {}), **document}


def closest(own: Sections, but: str = "") -> str:
    """Return the machine that leaves the least to say, among those that others may be like.

    "" is none: it is shorter to say everything.
    """
    bases = [f"base/{file.stem}" for file in (MACHINES / "base").glob("*.toml")]
    names = [name for name in machine_files.names() if name != but]
    found = {
        name: machine_files.sections(name)
        for name in sorted((*bases, *names))
        if len(machine_files.chain(name)) <= LONGEST_CHAIN
    }
    wanted = _leaves(own)
    ranked = sorted(found, key=lambda name: (len(wanted ^ _leaves(found[name])), name))
    costs = {name: cost(said_like(own, found[name])) for name in ranked[:_COMPARED]}
    costs[""] = cost(said_like(own, {}))
    return min(costs, key=lambda name: costs[name])


def _leaves(value: Any, path: str = "") -> set[str]:  # noqa: ANN401  # JSON-like
    """Return what is said and where, without numbers: those may be said otherwise."""
    if isinstance(value, dict):
        return {leaf for key in value for leaf in _leaves(value[key], f"{path}\0{key}")}
    return {_NUMBERS.sub("#", f"{path}\0{value}")}


if __name__ == "__main__":
    sys.exit(main())
