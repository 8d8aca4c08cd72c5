"""What a site requires of machines: ``--require FILE``, ``--require KEY=VALUE``, and ``--gpus N``.

A file is a JSON object, or a line ``KEY=VALUE`` for each requirement, with ``#`` before a comment.
"""

import os.path
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpucheck.facts.streams import in_utf_8, reading
from gpucheck.interface.errors import UsageError, printable, words_of
from gpucheck.language import in_series, in_turn, say
from gpucheck.tables.meant_products import did_you_mean
from gpucheck.tables.versions import parse

FILE_LIMIT = 64 * 1024
"""Bytes. Chosen: far more than a line for each requirement, and read at once."""
_THE_FILE = say("the file")
_LONGEST_FILE = 1 << 20
"""Bytes that are read of a file; ``FILE_LIMIT`` refuses what is shorter already."""
VERSIONS = ("min_driver", "min_torch", "min_cuda", "min_nccl")
"""The requirements that are versions."""


class RequirementError(ValueError):
    """A requirement is not understood. The message is one sentence for the user."""


class Requirements(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Requirements. None means no requirement.

    ``gpus_per_node`` is exact. ``gpu_model`` is the name that the driver reports, or words of it.
    ``min_busbw`` is in GB/s, for the all-reduce over all GPUs of the job. ``within_peers`` and
    ``within_baseline`` say by how many per cent a rate may lie below that of similar GPUs, or below
    this GPU's own baseline. ``one_fabric``: all GPUs belong to one NVLink domain (GB200 NVL72).
    """

    gpus_per_node: int | None = None
    gpu_model: str | None = None
    min_driver: str | None = None
    min_torch: str | None = None
    min_cuda: str | None = None
    min_nccl: str | None = None
    min_busbw: float | None = None
    within_peers: float | None = None
    within_baseline: float | None = None
    one_fabric: bool | None = None

    def __bool__(self) -> bool:
        """Whether there is any requirement."""
        return any(getattr(self, field) is not None for field in self.__struct_fields__)


KEYS = tuple(field.replace("_", "-") for field in Requirements.__struct_fields__)


def parse_file(text: str, name: str = _THE_FILE) -> Requirements:
    """Read the requirements in a file.

    Raises:
        RequirementError: it is too long, not understood, or demands something unknown.
    """
    if len(text) > FILE_LIMIT:
        raise RequirementError(
            say(
                "{file} is longer than {size} KiB, so it is not a list of requirements",
                file=name,
                size=FILE_LIMIT >> 10,
            )
        )
    if text.lstrip().startswith("{"):
        try:
            values = msgspec.json.decode(text, type=dict[str, Any])
        except (ValueError, RecursionError) as error:
            raise RequirementError(
                say("{file} is not a JSON object: {error}", file=name, error=error)
            ) from error
        return _checked(values, name)
    return parse_lines(text.splitlines(), name)


def parse_lines(lines: Iterable[str], name: str = "--require") -> Requirements:
    """Read ``KEY=VALUE`` lines; text behind ``#`` is a comment.

    Raises:
        RequirementError: a line is something else or demands something unknown, or a key comes
            twice.
    """
    values: dict[str, Any] = {}
    for line in lines:
        words = line.partition("#")[0].strip()
        if not words:
            continue
        key, equals, value = (part.strip() for part in words.partition("="))
        if not equals or not value:
            raise RequirementError(
                say("{file}: {text!r} is not KEY=VALUE", file=name, text=words[:60])
            )
        if _plain(key) in map(_plain, values):
            raise RequirementError(say("{file}: {key} is given twice", file=name, key=key[:40]))
        values[key] = value
    return _checked(values, name)


def joined(parts: Sequence[Requirements]) -> Requirements:
    """Return all requirements together; of several values for a key the last one counts."""
    values: dict[str, Any] = {}
    for requirements in parts:
        values |= {
            field: value
            for field in requirements.__struct_fields__
            if (value := getattr(requirements, field)) is not None
        }
    return Requirements(**values)


def _plain(key: str) -> str:
    return key.lower().replace("_", "-")


def _checked(values: Mapping[str, Any], name: str) -> Requirements:
    plain = {_plain(key): value for key, value in values.items()}
    unknown = next((key for key in plain if key not in KEYS), None)
    if unknown is not None:
        refused = say(
            "{file}: {key!r} is not one of {keys}.",
            file=name, key=unknown[:40], keys=in_series(KEYS),
        )  # fmt: skip
        near = did_you_mean(unknown, KEYS)
        raise RequirementError(in_turn([refused, near]) if near else refused)
    try:
        found = msgspec.convert(plain, Requirements, strict=False)
    except ValueError as error:
        raise RequirementError(say("{file}: {error}", file=name, error=error)) from error
    for key in VERSIONS:
        version = getattr(found, key)
        if version is not None and parse(version) is None:
            raise RequirementError(
                say(
                    "{file}: {key}={version} is not a version number",
                    file=name,
                    key=key_of(key),
                    version=version[:40],
                )
            )
    for key in ("within_peers", "within_baseline"):
        percent = getattr(found, key)
        if percent is not None and not 0 < percent < 100:  # noqa: PLR2004  # per cent
            raise RequirementError(
                say(
                    "{file}: {key} is a number of per cent between 0 and 100",
                    file=name,
                    key=key_of(key),
                )
            )
    if found.gpus_per_node is not None and found.gpus_per_node < 1:
        raise RequirementError(
            say("{file}: gpus-per-node is a number of GPUs, 1 or more", file=name)
        )
    if found.min_busbw is not None and not 0 < found.min_busbw < float("inf"):
        raise RequirementError(say("{file}: min-busbw is a number of GB/s above 0", file=name))
    return found


def required(require: Sequence[str], gpus: int | None = None) -> Requirements:
    """Return what ``--require`` demands: requirements, or files with requirements; and ``--gpus``.

    ``--gpus N`` is ``--require gpus-per-node=N``.

    Raises:
        UsageError: one is not understood, a file cannot be read, or the two contradict each other.
    """
    parts, lines = [], []
    try:
        for text in require:
            if "=" in text and not os.path.isfile(text):  # noqa: PTH113  # never raises
                lines.append(text)
            else:
                parts.append(parse_file(_content(text), text))
        wanted = joined([*parts, parse_lines(lines)])
    except RequirementError as error:
        raise UsageError(words_of(error)) from error
    if gpus is None or gpus == wanted.gpus_per_node:
        return wanted
    if wanted.gpus_per_node is not None:
        raise UsageError(
            say(
                "--gpus {gpus} and --require gpus-per-node={required} contradict each other",
                gpus=gpus,
                required=wanted.gpus_per_node,
            )
        )
    return msgspec.structs.replace(wanted, gpus_per_node=gpus)


def _content(name: str) -> str:
    try:
        with reading(Path(name)) as opened:
            return in_utf_8(opened.read(_LONGEST_FILE)).decode("utf-8", "replace")
    except (OSError, ValueError) as error:  # ValueError: no file can have such a name
        raise UsageError(
            say(
                "--require {name}: neither KEY=VALUE nor a file that can be read ({strerror})",
                name=printable(name),
                strerror=getattr(error, "strerror", None) or printable(str(error)),
            )
        ) from error


def key_of(field: str) -> str:
    """Return the key of a field, as users write it."""
    return field.replace("_", "-")
