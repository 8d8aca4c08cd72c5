#!/usr/bin/env python3
# a script of this repository: it prints
"""Propose new rows for compat_tables/ from a package index and from a clone of PyTorch.

    python tools/refresh_tables.py newer
    python tools/refresh_tables.py index torch==2.16.0 --date 2026-12-02
    python tools/refresh_tables.py index torchvision==0.30.0
    python tools/refresh_tables.py index xformers==0.0.36
    python tools/refresh_tables.py clone ../pytorch v2.16.0
    python tools/refresh_tables.py pci pci.ids
    python tools/refresh_tables.py corrections
    python tools/refresh_tables.py weekly --body FILE

`newer` lists releases that the tables lack. `index` reads the metadata of wheels: pip is asked,
with its own configuration, and downloads no wheel (pip 23.3 or later). `clone` reads the build
scripts and RELEASE.md at a tag. `pci` reads a copy of pci.ids: GPUs, and no other function of
their chips. `corrections` names rows that are there and that the index
contradicts. `weekly` writes the rows of all newer releases, and the text of a pull request to a
file. Of the others each prints a diff and what has to be looked at; only --write
changes a file. A row that is there is never changed: where it differs, that is said.
"""

import argparse
import difflib
import json
import re
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

import msgspec  # noqa: E402  # after the path is set
from packaging.version import Version  # noqa: E402
from refresh_clone import clone_proposals  # noqa: E402
from refresh_corrections import NoIndexError, Read, corrections, read_files  # noqa: E402
from refresh_pci import pci_proposal  # noqa: E402
from refresh_sources import (  # noqa: E402
    COMPANIONS,
    EXTENSIONS,
    Proposal,
    RefreshError,
    Row,
    Run,
    companion_proposal,
    extension_proposal,
    release_proposals,
    run,
)

from gpucheck.tables import serialise  # noqa: E402
from gpucheck.tables.check import all_tables  # noqa: E402
from gpucheck.tables.versions import numbers  # noqa: E402

MOST_RELEASES = 20
"""Releases of one week; more would take pip hours, and come next week."""
MOST_TEXT = 20_000
FENCE = "~" * 12
KEYS = {
    "torch_releases": ("torch",),
    "torch_pins": ("kind", "torch", "platform", "package"),
    "torch_builds": ("torch", "build", "platform"),
    "torch_companions": ("kind", "package", "version"),
    "nccl": ("kind", "torch", "build"),
    "extensions": ("kind", "package", "version"),
    "pci_devices": ("device_id",),
}


def newer(runner: Run = run) -> list[str]:
    """Return a line for each package that has releases the tables lack."""
    known = {"torch": {row["torch"] for row in _load("torch_releases")["rows"]}}
    for table, kind in (("torch_companions", "pin"), ("extensions", "release")):
        for row in _load(table)["rows"]:
            if row["kind"] == kind and row["package"] in (*COMPANIONS, *EXTENSIONS):
                known.setdefault(row["package"], set()).add(row["version"])
    lines = []
    for package, have in known.items():
        output = runner([sys.executable, "-m", "pip", "index", "versions", package])
        listed = re.search(r"Available versions: (.*)", output)
        newest = max(have, key=Version)
        lines += [
            f"{package}=={version} is newer than the tables ({newest})"
            for version in (listed[1].split(", ") if listed else ())
            if Version(version) > Version(newest)
        ]
    return lines


def proposals_of(package: str, version: str, date: str, runner: Run = run) -> list[Proposal]:
    """Return what the package index says about a release."""
    pythons = candidate_pythons()
    if package == "torch":
        return release_proposals(version, date, pythons, runner)
    if package in EXTENSIONS:
        return [extension_proposal(package, version, pythons, runner)]
    return [companion_proposal(package, version, date, pythons, runner)]


def weekly(body: Path, today: str, runner: Run = run, read: Read = read_files) -> int:
    """Write the rows of every newer release into the tables, and a pull request's text to a file.

    Rows that are there and that the index contradicts are named, never changed.
    """
    proposals: list[Proposal] = []
    looks: list[str] = []
    for line in newer(runner)[:MOST_RELEASES]:
        package, _, version = line.partition(" ")[0].partition("==")
        try:
            proposals += _undated(proposals_of(package, version, today, runner), looks)
        except RefreshError as error:
            looks.append(f"{package} {version}: {error}")
    try:
        looks += corrections(_load, read)
    except NoIndexError as error:
        looks.append(str(error))
    diffs = []
    for proposal in proposals:
        path = ROOT / "compat_tables" / f"{proposal.table}.json"
        before, after, remarks = merge(proposal, today)
        looks += remarks
        diffs.append(_diff(path.name, before, after))
        path.write_text(after, encoding="utf-8")
    if any(diffs):
        _raise_version(today)
    sources = sorted({title for each in proposals for title in each.sources.values()})
    body.write_text(pull_request("\n".join(filter(None, diffs)), sources, looks), encoding="utf-8")
    return 0


def _undated(proposals: list[Proposal], looks: list[str]) -> list[Proposal]:
    """Drop the day of a release, which a page of the index need not have; torch's row needs one."""
    for proposal in proposals:
        for row in proposal.rows:
            if proposal.table == "torch_releases":
                looks.append(f"torch {row['torch']}: its date is the day on which it was found")
            else:
                row.pop("date", None)
    return proposals


def pull_request(diff: str, sources: Sequence[str], looks: Sequence[str]) -> str:
    """Return the text of a pull request. What comes from the index stands in fences alone."""
    parts = [
        "`tools/refresh_tables.py weekly` found these by itself. Nobody has looked at them yet."
    ]
    for title, text in (
        ("Sources", "\n".join(sources)),
        ("Look at", "\n".join(looks)),
        ("Rows", diff),
    ):
        fenced = text.replace(FENCE, "")[:MOST_TEXT]
        parts += [f"## {title}", f"{FENCE}diff\n{fenced}\n{FENCE}" if fenced else "Nothing."]
    return "\n\n".join((*parts, ""))


def _raise_version(today: str) -> None:
    """Raise the version of the tables: YEAR.MONTH.NUMBER, counted from 1 in each month."""
    path = ROOT / "compat_tables" / "index.json"
    text = path.read_text(encoding="utf-8")
    version, date = json.loads(text)["version"], json.loads(text)["date"]
    year, month, _day = (int(part) for part in today.split("-"))
    had = [int(part) for part in version.split(".")]
    number = had[2] + 1 if had[:2] == [year, month] else 1
    text = text.replace(f'"version": "{version}"', f'"version": "{year}.{month}.{number}"')
    path.write_text(text.replace(f'"date": "{date}"', f'"date": "{today}"'), encoding="utf-8")


def _diff(name: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, name, n=1, lineterm=""
    )
    return "\n".join(lines)


def candidate_pythons() -> list[str]:
    """Return the Pythons of the table of releases and the two after the newest, oldest first."""
    rows = _load("torch_releases")["rows"]
    known = {p for row in rows for found in row["pythons"].values() for p in found}
    major, minor = max(numbers(python.removesuffix("t")) for python in known)
    known |= {f"{major}.{minor + 1}", f"{major}.{minor + 1}t"}
    return sorted(known, key=lambda python: (numbers(python.removesuffix("t")), python))


def merge(proposal: Proposal, today: str) -> tuple[str, str, list[str]]:
    """Return the table's text before and after, and remarks on rows that are there and differ."""
    data = _load(proposal.table)
    before = serialise(msgspec.convert(data, all_tables()[proposal.table]))
    remarks = list(proposal.remarks)
    for row in proposal.rows:
        there = [
            old for old in data["rows"] if _key(proposal.table, old) == _key(proposal.table, row)
        ]
        if not there:
            data["rows"].insert(_place(data["rows"], row), row)
            for name in row["source"]:
                source = {"title": proposal.sources[name], "read": today}
                data["sources"].setdefault(name, source)
        remarks += [remark for old in there for remark in _differences(proposal.table, old, row)]
    return before, serialise(msgspec.convert(data, all_tables()[proposal.table])), remarks


def apply(proposals: Sequence[Proposal], *, today: str, write: bool) -> int:
    """Print the diff of each table and the remarks; write when asked. Return the exit status."""
    changed = False
    for proposal in proposals:
        path = ROOT / "compat_tables" / f"{proposal.table}.json"
        before, after, remarks = merge(proposal, today)
        print(_diff(path.name, before, after))
        for remark in remarks:
            print(f"look at: {remark}")
        if write and before != after:
            path.write_text(after, encoding="utf-8")
            changed = True
    if changed:
        print("Written. Raise version and date in index.json, then run pytest tests/tables.")
    return 0


def _key(table: str, row: Row) -> tuple[object, ...]:
    return tuple(row.get(name) for name in KEYS[table])


def _place(rows: Sequence[Row], row: Row) -> int:
    """Return where a row goes: after the older ones of its package, or the last of its kind."""
    if "package" in row and "version" in row:
        kin = [i for i, old in enumerate(rows) if _is_of(old, row, "kind", "package")]
        new = Version(row["version"])
        older = [i for i in kin if Version(rows[i]["version"]) < new]
        if kin:
            return older[-1] + 1 if older else kin[0]
    same = [i for i, old in enumerate(rows) if _is_of(old, row, "kind")]
    return (same[-1] if same and "kind" in row and row["kind"] != "no-pins" else len(rows) - 1) + 1


def _is_of(old: Row, new: Row, *columns: str) -> bool:
    return all(old.get(column) == new.get(column) for column in columns)


def _differences(table: str, old: Row, new: Row) -> list[str]:
    place = f"{table} {' '.join(str(part) for part in _key(table, new) if part)}"
    return [
        f"{place}: {name} is {old[name]} in the table, {value} is proposed"
        for name, value in new.items()
        if name not in ("source", "note", "confirmed", "date")
        and name in old
        and old[name] != value
    ]


def _load(table: str) -> dict[str, Any]:
    path = ROOT / "compat_tables" / f"{table}.json"
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool."""
    today = datetime.now(tz=timezone.utc).date().isoformat()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("newer", help="list releases that the tables lack")
    index = commands.add_parser("index", help="metadata of the package index")
    index.add_argument(
        "requirement", help=f"torch==X or one of {', '.join((*COMPANIONS, *EXTENSIONS))}"
    )
    index.add_argument("--date", default=today, help="day of the release (YYYY-MM-DD)")
    commands.add_parser("corrections", help="name the rows that the package index contradicts")
    weekly_job = commands.add_parser(
        "weekly", help="write what is newer, and a pull request's text"
    )
    weekly_job.add_argument("--body", type=Path, required=True, help="the file for that text")
    pci = commands.add_parser("pci", help="GPUs in a list of PCI devices")
    pci.add_argument("file", type=Path, help="a copy of pci.ids (pci-ids.ucw.cz)")
    clone = commands.add_parser("clone", help="build scripts in a clone of pytorch/pytorch")
    clone.add_argument("path", type=Path)
    clone.add_argument("tag", help="such as v2.16.0")
    for command in (index, clone, pci):
        command.add_argument("--write", action="store_true", help="change the tables")
    options = parser.parse_args(arguments)
    try:
        if options.command == "newer":
            print("\n".join(newer()) or "Nothing is newer than the tables.")
            return 0
        if options.command == "corrections":
            print("\n".join(corrections(_load)) or "The package index contradicts no row.")
            return 0
        if options.command == "weekly":
            return weekly(options.body, today)
        if options.command == "pci":
            capabilities = {
                row["chip"]: row["compute_capability"] for row in _load("chips")["rows"]
            }
            known = {row["device_id"] for row in _load("pci_devices")["rows"]}
            text = options.file.read_text(encoding="utf-8")
            proposals = [pci_proposal(text, capabilities, known)]
        elif options.command == "clone":
            proposals = clone_proposals(options.path, options.tag)
        else:
            package, _, version = options.requirement.partition("==")
            if package not in ("torch", *COMPANIONS, *EXTENSIONS) or not version:
                parser.error("give torch==X, or a companion or an extension with ==X")
            proposals = proposals_of(package, version, options.date)
        return apply(proposals, today=today, write=options.write)
    except (RefreshError, NoIndexError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
