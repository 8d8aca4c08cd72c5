"""Whatever a path contains, a command in a fix takes it as one word of the shell it is for."""

import json
import re
import shlex
from collections.abc import Iterator

import machine_files
import pytest
from each import each
from test_machines import EACH, judged, reported

from gpucheck.facts.snapshot import decode

pytestmark = pytest.mark.exhaustive

EVIL = "/home/a b;$(touch x)'&`id`"
EVIL_ON_WINDOWS = "C:\\Users\\ab;(calc)',x"  # a blank or & would be seen anyway
_FOLDERS = ("/home/ana", "/opt/", "/root/", "/venv/")
_QUOTED = re.compile(r'"[^"]*"')


def commands(name: str, places: dict[str, str]) -> Iterator[str]:
    """The commands for a machine on which the folders have other names."""
    text = json.dumps(reported(name).snapshot.as_json(), ensure_ascii=False)
    for place, other in places.items():
        text = text.replace(json.dumps(place)[1:-1], json.dumps(other)[1:-1])
    for finding in judged(decode(text.encode())).findings:
        for fix in finding.fixes:
            yield from fix.commands


@EACH
def test_a_path_is_one_word_for_a_posix_shell(name: str) -> None:
    places = {place: EVIL if place.startswith("/home") else f"{EVIL}{place}" for place in _FOLDERS}
    for command in commands(name, places):
        words = [word for word in shlex.split(command) if "touch x" in word]
        assert bool(words) == ("touch x" in command)
        for word in words:
            assert EVIL in word, command
            value = word.partition("=")[2]
            assert shlex.quote(word) in command or shlex.quote(value) in command, command


@each("name", [name for name in machine_files.names() if "windows" in name])
def test_a_path_is_in_quotes_for_cmd_and_powershell(name: str) -> None:
    for command in commands(name, {"C:\\Users\\ana": EVIL_ON_WINDOWS}):
        assert "calc" not in _QUOTED.sub("", command), command


def test_some_commands_have_such_paths() -> None:
    found = list(commands("torch-py-shadow", {"/home/ana": EVIL}))
    assert any(EVIL in "".join(shlex.split(command)) for command in found)
    found = list(commands("windows-cpu-build", {"C:\\Users\\ana": EVIL_ON_WINDOWS}))
    assert any(EVIL_ON_WINDOWS in command for command in found)
