"""Answer a new ticket with ``gpucheck triage --reply``, at most once.

GitHub Actions and GitLab CI start this file for each new ticket: see docs/triage/tracker-bot.md.
It needs Python 3.10 and nothing else. Only this process knows the token: gpucheck, which reads the
ticket, is a child that does not inherit it. The ticket goes to its stdin and nowhere else: never
into a command line, and never into the log of the job.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARKER = "<!-- gpucheck-tracker-bot -->"
"""A hidden mark in every answer: a ticket with it in a comment has been answered."""
SURE = ("certain", "likely")
OWNERS = ("environment", "hardware", "cluster", "user-code", "library", "code", "other")
"""Who has to act: what a label may name."""
OF_MAINTAINERS = ("user-code", "library", "code", "other")
"""Owners of faults outside the environment: such a ticket is labelled, not answered."""
FOOTER = {
    "en": "_A program wrote this answer: gpucheck triage. If it is wrong, please say so here._",
    "zh": "_此回复由程序 gpucheck triage 自动生成。如有错误，请在此指出。_",  # noqa: RUF001  # Chinese has its own punctuation
}

_LONGEST_TEXT = 256 * 1024
_LONGEST_EVENT = 32 * 1024 * 1024
_LONGEST_RESPONSE = 64 * 1024 * 1024
_LONGEST_REASON = 200
_PAGE, _MOST_PAGES = 100, 10
_TRIAGE_SECONDS, _API_SECONDS = 120, 30
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")


class Silence(Exception):  # noqa: N818  # nothing went wrong
    """Why this ticket gets no answer."""


class Failure(Exception):  # noqa: N818  # its sentence is all that anybody sees
    """Why no answer could be given."""


@dataclass(frozen=True)
class Ticket:
    """A new ticket: its number and all that the reporter wrote."""

    number: int
    text: str


@dataclass(frozen=True)
class Answer:
    """What gpucheck found, the reply to the reporter, and who has to act ("" if not known)."""

    cause: str
    confidence: str
    reply: str
    owner: str


class Tracker(ABC):
    """A tracker: the event that started this job, and the API that takes the answer."""

    event_file = ""
    token_name = ""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ

    @abstractmethod
    def ticket(self, event: Mapping[str, Any]) -> Ticket:
        """Return the new ticket of this event.

        Raises:
            Silence: the bot does not answer such events.
        """

    @abstractmethod
    def add_label(self, number: int, label: str) -> None:
        """Give the ticket one more label."""

    @abstractmethod
    def comments(self, number: int) -> str:
        """Return the path of the ticket's comments."""

    @abstractmethod
    def api(self) -> tuple[str, dict[str, str]]:
        """Return where the API is, and the headers that it wants."""

    def event(self) -> dict[str, Any]:
        """Read the event that started this job."""
        file = self.environ.get(self.event_file)
        if not file:
            raise Silence(f"no event started this job ({self.event_file} is not set)")
        try:
            with Path(file).open("rb") as stream:
                event = json.loads(stream.read(_LONGEST_EVENT))
        except (OSError, ValueError) as error:
            raise Failure(f"The event cannot be read: {_printable(error)}") from error
        if not isinstance(event, dict):
            raise Failure("The event is not a JSON object")
        return event

    def is_answered(self, number: int) -> bool:
        """Say whether a comment of the ticket has the marker."""
        for page in range(1, _MOST_PAGES + 1):
            comments = self.ask("GET", f"{self.comments(number)}?per_page={_PAGE}&page={page}")
            if any(MARKER in (comment.get("body") or "") for comment in comments):
                return True
            if len(comments) < _PAGE:
                return False
        raise Silence(f"it has {_PAGE * _MOST_PAGES} comments or more")

    def add_comment(self, number: int, body: str) -> None:
        """Answer the ticket."""
        self.ask("POST", self.comments(number), {"body": body})

    def token(self) -> str:
        """Return the token for the API."""
        token = self.environ.get(self.token_name, "").strip()
        if not token:
            raise Failure(f"{self.token_name} is not set: without it nothing can be answered")
        return token

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401  # JSON
        """Send a request to the API and return its response."""
        base, headers = self.api()
        request = urllib.request.Request(  # noqa: S310  # the runner says where its API is
            base.rstrip("/") + path,
            method=method,
            headers={"Content-Type": "application/json", "User-Agent": "gpucheck", **headers},
            data=None if body is None else json.dumps(body).encode(),
        )
        asked = f"{method} {path}"
        try:
            with _OPENER.open(request, timeout=_API_SECONDS) as response:
                return json.loads(response.read(_LONGEST_RESPONSE))
        except urllib.error.HTTPError as error:
            raise Failure(f"{asked} was refused with {error.code}: {_reason(error)}") from error
        except (OSError, http.client.HTTPException) as error:
            raise Failure(f"{asked} got no response: {_printable(error)}") from error
        except ValueError as error:
            raise Failure(f"{asked} got a response that is no JSON") from error


class GitHub(Tracker):
    """Issues of GitHub, by Actions."""

    event_file = "GITHUB_EVENT_PATH"
    token_name = "GITHUB_TOKEN"  # noqa: S105  # the name of the variable

    def ticket(self, event: Mapping[str, Any]) -> Ticket:
        """Take an issue that a person has opened here."""
        issue = _part(event, "issue")
        if self.environ.get("GITHUB_EVENT_NAME") != "issues" or event.get("action") != "opened":
            raise Silence("the event is no new issue")
        if "pull_request" in issue:
            raise Silence("it is a pull request")
        if _part(event, "changes").get("old_issue"):
            raise Silence("it was transferred from another repository")
        if _part(issue, "user").get("type") == "Bot":
            raise Silence("a bot opened it")
        return _ticket(issue.get("number"), issue.get("title"), issue.get("body"))

    def api(self) -> tuple[str, dict[str, str]]:
        """Return where the REST API of this GitHub is."""
        headers = {
            "Authorization": f"Bearer {self.token()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        return self.environ.get("GITHUB_API_URL", "https://api.github.com"), headers

    def comments(self, number: int) -> str:
        """Return the path of an issue's comments."""
        return f"{self._issue(number)}/comments"

    def add_label(self, number: int, label: str) -> None:
        """Add a label; GitHub creates it if it is new."""
        self.ask("POST", f"{self._issue(number)}/labels", {"labels": [label]})

    def _issue(self, number: int) -> str:
        return f"/repos/{self.environ.get('GITHUB_REPOSITORY', '')}/issues/{number}"


class GitLab(Tracker):
    """Issues of GitLab, by a webhook that triggers a pipeline."""

    event_file = "TRIGGER_PAYLOAD"
    token_name = "GPUCHECK_BOT_TOKEN"  # noqa: S105  # the name of the variable

    def ticket(self, event: Mapping[str, Any]) -> Ticket:
        """Take an issue that a person has opened in this project for everybody to see."""
        issue = _part(event, "object_attributes")
        if event.get("object_kind") != "issue" or issue.get("action") != "open":
            raise Silence("the event is no new issue")
        if str(_part(event, "project").get("id")) != self.environ.get("CI_PROJECT_ID"):
            raise Silence("it is an issue of another project")
        if issue.get("confidential"):
            raise Silence("it is confidential, and the log of a job is not")
        if "bot" in str(_part(event, "user").get("username")).replace("_", "-").split("-"):
            raise Silence("a bot opened it")
        return _ticket(issue.get("iid"), issue.get("title"), issue.get("description"))

    def api(self) -> tuple[str, dict[str, str]]:
        """Return where the REST API of this GitLab is."""
        base = self.environ.get("CI_API_V4_URL", "https://gitlab.com/api/v4")
        return base, {"PRIVATE-TOKEN": self.token()}

    def comments(self, number: int) -> str:
        """Return the path of an issue's notes."""
        return f"{self._issue(number)}/notes"

    def add_label(self, number: int, label: str) -> None:
        """Add a label; GitLab creates it if it is new."""
        self.ask("PUT", self._issue(number), {"add_labels": label})

    def _issue(self, number: int) -> str:
        return f"/projects/{self.environ.get('CI_PROJECT_ID', '')}/issues/{number}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is a failure: the token is for one server only."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def main() -> int:
    """Answer the ticket that started this job; return 1 for a failure, else 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dry-run", action="store_true", help="print the answer, send nothing")
    dry_run = parser.parse_args().dry_run
    environ = os.environ
    tracker = GitLab(environ) if "GITLAB_CI" in environ else GitHub(environ)
    try:
        print(_answer(tracker, environ, dry_run=dry_run))
    except Silence as why:
        print(f"No answer: {why}.")
    except Failure as error:
        print(f"{error}.", file=sys.stderr)
        return 1
    return 0


def _answer(tracker: Tracker, environ: Mapping[str, str], *, dry_run: bool) -> str:
    """Answer the ticket, or print the answer; return what was done."""
    ticket = tracker.ticket(tracker.event())
    answer = judged(ticket.text, environ)
    # The reply begins with gpucheck's own words: with "auto", only they show its language.
    language = "en" if answer.reply[:1].isascii() else "zh"
    body = f"{MARKER}\n{answer.reply}\n{FOOTER[language]}\n"
    label = _label(answer.owner, environ.get("GPUCHECK_LABEL", "gpucheck"))
    if dry_run:
        return f"Label: {label or 'none'}\n\n{body}"
    if tracker.is_answered(ticket.number):
        raise Silence("it has an answer already")
    if label:  # first: a job that runs again may label twice, but must not answer twice
        tracker.add_label(ticket.number, label)
    if answer.owner in OF_MAINTAINERS:
        return f"Labelled {ticket.number}: {answer.cause} is for the maintainers to answer."
    tracker.add_comment(ticket.number, body)
    return f"Answered {ticket.number}: {answer.cause} ({answer.confidence})."


def judged(text: str, environ: Mapping[str, str]) -> Answer:
    """Ask gpucheck for the cause.

    Raises:
        Silence: there is none, or it is not sure enough.
    """
    report = json.loads(_triage(text, environ, "--format", "json"))
    causes = report["root_causes"]
    if not causes:
        raise Silence(f"the verdict is {report['verdict']}")
    first = next(one for one in report["findings"] if one["slug"] == causes[0])
    if first["confidence"] not in SURE:
        raise Silence(f"{causes[0]} is only {first['confidence']}")
    return Answer(
        cause=causes[0],
        confidence=first["confidence"],
        reply=_triage(text, environ, "--reply", "--lang", environ.get("GPUCHECK_LANG", "auto")),
        owner=first.get("owner") or report.get("owner") or "",
    )


def _triage(text: str, environ: Mapping[str, str], *options: str) -> str:
    """Return what ``gpucheck triage`` prints about a text."""
    command = [environ.get("GPUCHECK", "gpucheck"), "triage", "--fail-on", "never", *options]
    try:
        done = subprocess.run(  # noqa: S603  # no part of the ticket is in the command
            command,
            input=text.encode("utf-8", "replace"),
            env={name: environ[name] for name in _INHERITED if name in environ},
            capture_output=True,
            timeout=_TRIAGE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"gpucheck did not run: {_printable(error)}") from error
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    if done.returncode != 0:
        why = _printable(said[-1] if said else "it said nothing")
        raise Failure(f"gpucheck ended with status {done.returncode}: {why}")
    return done.stdout.decode("utf-8")


def _label(owner: str, prefix: str) -> str:
    """Return the label for who has to act; the prefix alone if that is not known."""
    return f"{prefix}: {owner}" if prefix and owner in OWNERS else prefix


def _ticket(number: object, title: object, body: object) -> Ticket:
    if not isinstance(number, int):
        raise Failure("The event has no number of a ticket")
    text = f"{title or ''}\n\n{visible(str(body or ''))}"
    return Ticket(number, text[:_LONGEST_TEXT])


def visible(markdown: str) -> str:
    """Return the text without HTML comments, in which templates show examples of errors."""
    kept, at = [], 0
    while (start := markdown.find("<!--", at)) >= 0 and (end := markdown.find("-->", start)) >= 0:
        kept += [markdown[at:start], "\n" * markdown.count("\n", start, end)]
        at = end + len("-->")
    return "".join((*kept, markdown[at:]))


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object within an object; an empty one if it is not there."""
    part = data.get(name)
    return part if isinstance(part, dict) else {}


def _reason(error: urllib.error.HTTPError) -> str:
    """Return why the API refused, in its own words."""
    try:
        said = json.loads(error.read(_LONGEST_EVENT))
        return _printable(said.get("message") or said.get("error") or error.reason)
    except (AttributeError, OSError, ValueError, http.client.HTTPException):
        return _printable(error.reason)


def _printable(words: object) -> str:
    """Return words on one line: in the log of a job, some lines are commands."""
    line = " ".join(str(words).split())[:_LONGEST_REASON]
    return "".join(char if char.isprintable() else "?" for char in line).rstrip(".")


if __name__ == "__main__":
    sys.exit(main())
