"""A tracker on this machine: the part of GitHub's and GitLab's API that the tracker bot uses."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import msgspec

TOKEN = "a-token-of-the-test"  # noqa: S105  # of the fake


class Refusal(msgspec.Struct, frozen=True):
    """What the tracker answers to one method instead of doing it."""

    method: str
    status: int
    body: bytes = b'{"message": "::error::no\\nway"}'
    location: str = ""


class FakeTracker(ThreadingHTTPServer):
    """Keeps the comments and labels of one ticket, and what was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[dict[str, str | None]] = []
        self.labels: list[str] = []
        self.asked: list[str] = []
        self.refusal: Refusal | None = None

    @property
    def url(self) -> str:
        """Where its API is."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeTracker

    def do_GET(self) -> None:  # the name that http.server looks for
        self._do()

    def do_POST(self) -> None:
        self._do()

    def do_PUT(self) -> None:
        self._do()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _do(self) -> None:
        url = urlsplit(self.path)
        self.server.asked.append(f"{self.command} {url.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        refusal = self.server.refusal
        if self.headers.get("Authorization") != f"Bearer {TOKEN}" and (
            self.headers.get("PRIVATE-TOKEN") != TOKEN
        ):
            self._send(401, b'{"message": "Bad credentials"}')
        elif refusal is not None and refusal.method == self.command:
            self._send(refusal.status, refusal.body, refusal.location)
        else:
            done = self._done(url.path.rpartition("/")[2], url.query, body)
            self._send(200, json.dumps(done).encode())

    def _done(self, last: str, query: str, body: bytes) -> object:
        """Do what was asked for; ``last`` is the last part of the path."""
        decoded = json.loads(body) if body else {}
        if self.command == "GET" and last in ("comments", "notes"):
            asked = {name: int(values[0]) for name, values in parse_qs(query).items()}
            start = (asked["page"] - 1) * asked["per_page"]
            return self.server.comments[start : start + asked["per_page"]]
        if self.command == "POST" and last in ("comments", "notes"):
            self.server.comments.append(decoded)
        elif self.command == "POST" and last == "labels":
            self.server.labels += decoded["labels"]
        elif self.command == "PUT":
            self.server.labels += decoded["add_labels"].split(",")
        return {}

    def _send(self, status: int, body: bytes, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def fake_tracker() -> Iterator[FakeTracker]:
    """Serve a tracker while the test runs."""
    with FakeTracker() as tracker:
        thread = threading.Thread(target=tracker.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield tracker
        finally:
            tracker.shutdown()
            thread.join()
