"""Starts the tracker bot as GitHub Actions and GitLab CI do, with recorded events."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from fake_tracker import TOKEN, FakeTracker

import gpucheck

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
BOT = EXAMPLES / "tracker_bot.py"
EVENTS = Path(__file__).parent / "events"
Change = Callable[[dict[str, Any]], None]


class Site(msgspec.Struct, frozen=True):
    """One of the two kinds of tracker: its event, its variables and its paths."""

    event: str
    event_variable: str
    token_variable: str
    variables: dict[str, str]
    api_variable: str
    ticket: tuple[str, str]
    """The ticket in the event, and the name of its text."""
    comments: str
    """The request that answers."""

    def environ(self, folder: Path, tracker: FakeTracker, *changes: Change) -> dict[str, str]:
        """Write the event, changed, and return the environment of the job."""
        event = json.loads((EVENTS / self.event).read_text())
        for change in changes:
            change(event)
        file = folder / "event.json"
        file.write_text(json.dumps(event))
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GPUCHECK": str(put_gpucheck(folder)),
            self.event_variable: str(file),
            self.api_variable: tracker.url,
            self.token_variable: TOKEN,
            **self.variables,
        }

    def saying(self, text: str | None, title: str = "A title") -> Change:
        """Return the change that lets the reporter write this."""

        def change(event: dict[str, Any]) -> None:
            ticket, body = self.ticket
            event[ticket].update({"title": title, body: text})

        return change


GITHUB = Site(
    event="github_issue_opened.json",
    event_variable="GITHUB_EVENT_PATH",
    token_variable="GITHUB_TOKEN",  # noqa: S106  # the name of the variable
    variables={"GITHUB_EVENT_NAME": "issues", "GITHUB_REPOSITORY": "ana/trainer"},
    api_variable="GITHUB_API_URL",
    ticket=("issue", "body"),
    comments="POST /repos/ana/trainer/issues/12/comments",
)
GITLAB = Site(
    event="gitlab_issue_open.json",
    event_variable="TRIGGER_PAYLOAD",
    token_variable="GPUCHECK_BOT_TOKEN",  # noqa: S106  # the name of the variable
    variables={"GITLAB_CI": "true", "CI_PROJECT_ID": "2001"},
    api_variable="CI_API_V4_URL",
    ticket=("object_attributes", "description"),
    comments="POST /projects/2001/issues/12/notes",
)


def put_gpucheck(folder: Path) -> Path:
    """Write a command that runs the gpucheck of this tree in a bare environment."""
    source = Path(gpucheck.__file__).parents[1]
    return put_script(
        folder / "gpucheck.sh", f'PYTHONPATH={source} exec {sys.executable} -m gpucheck "$@"\n'
    )


def put_script(file: Path, text: str) -> Path:
    """Write a shell script that can be run."""
    file.write_text(f"#!/bin/sh\n{text}")
    file.chmod(0o755)
    return file


def run_bot(environ: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Start the bot with this environment and nothing else."""
    return subprocess.run(
        [sys.executable, "-I", str(BOT), *options],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
