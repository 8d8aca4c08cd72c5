"""Loads the messages of each finding: in a wheel from one JSON file, else from TOML files.

The build hook writes the values of the TOML files into the JSON file as they are. An editable
install and the source tree have no such file and read the TOML, so nothing needs to be built there.
"""

import functools
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gpucheck.facts import message_of
from gpucheck.language import say
from gpucheck.log_patterns.form import Condition, FindingMessages, Message

SHIPPED = Path(__file__).with_name("messages.json")
"""The file to which the build hook writes the messages of every finding, by slug."""
AUTHORED = Path(__file__).parent.parent / "findings"
"""The folder with the TOML files of the findings."""
_MESSAGE = re.compile(r"\$\.message\[(\d+)\]")
_decoder = msgspec.json.Decoder(FindingMessages)
_texts = msgspec.json.Decoder(dict[str, msgspec.Raw])


class MessagesError(Exception):
    """A file of messages does not have the right form; the sentence names file and message."""


@functools.cache
def all_messages() -> dict[str, FindingMessages]:
    """Return the messages of every finding, by slug."""
    return {slug: messages_of(slug) for slug in _slugs()}


@functools.cache
def messages_of(slug: str) -> FindingMessages:
    """Return the messages of one finding.

    Raises:
        KeyError: it has none.
        MessagesError: its file does not have the right form.
    """
    if SHIPPED.is_file():
        return resolved(_decoder.decode(_shipped()[slug]), f"{SHIPPED}, {slug}")
    if slug not in _slugs():
        raise KeyError(slug)
    return read_toml(_file_of(slug))


def read_toml(file: Path) -> FindingMessages:
    """Return the content of a TOML file.

    Raises:
        MessagesError: it does not have the right form.
    """
    if sys.version_info >= (3, 11):  # imported late: an installed wheel has no TOML files
        import tomllib  # noqa: PLC0415
    else:
        import tomli as tomllib  # noqa: PLC0415

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # it is not TOML, or not UTF-8
        raise MessagesError(say("{file} is not TOML: {why}.", file=file, why=error)) from error
    try:
        found = msgspec.convert(content, FindingMessages)
    except msgspec.ValidationError as error:
        place = _place(str(file), content, str(error))
        raise MessagesError(say("{place}: {why}.", place=place, why=error)) from error
    return resolved(found, str(file))


def resolved(found: FindingMessages, place: str) -> FindingMessages:
    """Return the messages with named conditions and fixes replaced by the ones they name.

    Equal conditions become one object, so that each is evaluated once for a text.

    Raises:
        MessagesError: a name is not there, or two conditions that become one ask for facts.
    """
    seen: dict[Condition, Condition] = {}
    fixes = {message.name: message.fixes for message in found.messages}

    def resolved_condition(condition: Condition) -> Condition:
        named = map(found.conditions.__getitem__, condition.named)
        whole = functools.reduce(_both, named, condition)
        return seen.setdefault(whole, whole)

    def resolved_message(message: Message) -> Message:
        try:
            return msgspec.structs.replace(
                message,
                beside=tuple(map(resolved_condition, message.beside)),
                unless=resolved_condition(message.unless) if message.unless else None,
                fixes=fixes[message.fixes_of] if message.fixes_of else message.fixes,
            )
        except KeyError as error:
            why = say("nothing is named {name}", name=error)
            raise MessagesError(_about(place, message.name, why)) from error
        except ValueError as error:
            raise MessagesError(_about(place, message.name, message_of(error))) from error

    return msgspec.structs.replace(found, messages=tuple(map(resolved_message, found.messages)))


def _both(first: Condition, second: Condition) -> Condition:
    """Return the condition that holds if one of two does."""
    if first.facts and second.facts:
        raise ValueError(say("only one of the conditions of one table can ask for facts"))
    return Condition(
        any_of=first.any_of + second.any_of,
        words=first.words + second.words,
        outside_code=first.outside_code + second.outside_code,
        facts=first.facts or second.facts,
    )


@functools.cache
def _slugs() -> tuple[str, ...]:
    if SHIPPED.is_file():
        return tuple(_shipped())
    return tuple(file.stem.replace("_", "-") for file in sorted(AUTHORED.glob("*.toml")))


def _file_of(slug: str) -> Path:
    return AUTHORED / f"{slug.replace('-', '_')}.toml"


@functools.cache
def _shipped() -> dict[str, msgspec.Raw]:
    """Return the JSON text of each finding, which is decoded when it is asked for."""
    return _texts.decode(SHIPPED.read_bytes())


def _place(file: str, content: Mapping[str, Any], error: str) -> str:
    """Return what an error is about: a message, or else the file."""
    at = _MESSAGE.search(error)
    if at is None:
        return file
    message = content["message"][int(at[1])]
    name = message.get("name") if isinstance(message, dict) else None
    if name:
        return _message(file, name)
    return say("{file}, message number {number}", file=file, number=int(at[1]) + 1)


def _message(file: str, name: object) -> str:
    return say("{file}, message {name}", file=file, name=repr(name))


def _about(file: str, name: str, why: str) -> str:
    return say("{place}: {why}.", place=_message(file, name), why=why)
