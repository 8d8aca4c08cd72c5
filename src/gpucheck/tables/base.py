"""What all tables have in common: rows with sources, and one JSON form."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

OperatingSystem = Literal["linux", "windows"]
_VERSION = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,7}"
VersionText = Annotated[str, Meta(pattern=rf"\A{_VERSION}\Z", max_length=64)]
"""A column that is computed with: ``versions.numbers`` takes it."""
Specifier = Annotated[
    str,
    Meta(
        pattern=rf"\A(?:(?:\A|, ?)(?:[=!]= ?{_VERSION}(?:\.\*)?"
        rf"|(?:~=(?=[^.,]+\.)|[<>]=?) ?{_VERSION}))*\Z",
        max_length=200,
    ),
]
"""A column that ``packaging`` reads as a specifier: ``>=2.1,<2.5``."""
_RELEASE = rf"{_VERSION}(?:\.?[a-z]{{1,4}}[0-9]{{1,9}})?"
Requirement = Annotated[
    str,
    Meta(
        pattern=rf"\A(?:(?:\A|, ?)(?:==|!=|~=|[<>]=?) ?{_RELEASE}(?:\.\*)?)+\Z",
        max_length=200,
    ),
]
"""A specifier that may name pre-releases and post-releases: ``==0.7.2.post1``."""
Branch = Annotated[str, Meta(pattern=r"\A[0-9]{1,4}\Z")]
"""The number of a driver branch."""
Major = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}\Z")]
"""A major release: ``12``."""
Line = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}\.[0-9]{1,3}\Z")]
"""A minor release, as ``versions.minor`` writes it: ``12.8``."""
Lines = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}\.[0-9]{1,3}(?:-[0-9]{1,3}\.[0-9]{1,3})?\Z")]
"""A minor release or the range in which it is: ``8.0-9.1``."""
CapabilityText = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}\.[0-9]\Z")]
"""A compute capability: ``8.9``."""
Code = Annotated[str, Meta(pattern=r"\A(?:sm|compute)_[0-9]{2,4}[af]?\Z")]
"""Code for a GPU: ``sm_90a``, ``compute_120``."""
Build = Annotated[str, Meta(pattern=r"\A[a-z]{2,9}[0-9.]{0,9}\Z")]
"""A build of PyTorch: ``cpu``, ``cu128``."""
Release = Annotated[str, Meta(pattern=rf"\A{_RELEASE}\Z", max_length=64)]
"""A release as package indexes write it: ``0.0.27.post2``."""
AtLeast = Annotated[str, Meta(pattern=rf"\A{_VERSION}\+?\Z", max_length=64)]
"""A release, or with a plus this and all newer ones: ``12.0+``."""
Platform = Literal["linux_x86_64", "linux_aarch64", "windows"]
Month = Annotated[str, Meta(pattern=r"\A[0-9]{4}-[0-9]{2}\Z")]
Project = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._+-]{0,99}\Z")]
"""A name on a package index, or of a package of a system."""
Library = Annotated[
    str, Meta(pattern=r"\Alib[A-Za-z0-9_+.-]{1,80}\.so(?:\.[0-9]{1,9}){0,4}(?:\.\{version\})?\Z")
]
"""The name of a library's file: ``libcudart.so.12``; ``{version}`` is a release."""
Address = Annotated[str, Meta(pattern=r"\Ahttps://(?:[A-Za-z0-9._~%/+-]|\{build\}){1,290}\Z")]
"""``{build}`` is a build of PyTorch."""
Link = Annotated[str, Meta(pattern=r"\A(?:https://[A-Za-z0-9][!-~]{3,400})?\Z")]
"""An address that a reader can open, or ""."""
Words = Annotated[str, Meta(min_length=1, max_length=500)]
"""Text for people, or a name that is only compared."""


class Source(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A public document or artefact from which a fact was read, and the day (YYYY-MM-DD).

    ``url`` is where it can be opened; "" if it is no page, such as a program that was run.
    """

    title: str
    read: str
    url: Link = ""


class Row(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A fact. A missing column means that the value is unknown, not that the answer is no."""

    source: tuple[str, ...]
    confirmed: bool = True
    note: str = ""


class Table(Struct, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """A table: `name` is that of its file, `sources` describes the ids in `Row.source`."""

    name: ClassVar[str]
    table: str
    sources: dict[str, Source]
    rows: tuple[Row, ...]

    def titles(self, row: Row) -> tuple[str, ...]:
        """Return the titles of the sources of a row."""
        return tuple(self.sources[key].title for key in row.source if key in self.sources)


def serialise(table: Table) -> str:
    """Return the one JSON form of a table: one line per source, one line per row."""
    sources = [f"  {_line(key)}: {_line(source)}" for key, source in sorted(table.sources.items())]
    rows = [f"  {_line(row)}" for row in table.rows]
    return "\n".join(
        (
            f'{{"table": {_line(table.table)},',
            ' "sources": {',
            ",\n".join(sources),
            " },",
            ' "rows": [',
            ",\n".join(rows),
            " ]}",
            "",
        ),
    )


def _line(value: object) -> str:
    import json  # noqa: PLC0415  # only needed to write a table; msgspec reads it

    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
