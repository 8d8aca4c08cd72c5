"""A package index on this host, for tests."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

Reply = tuple[int, dict[str, str], bytes]
JSON = "application/vnd.pypi.simple.v1+json"


class Served:
    """The address of an index, and what was asked of it."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/simple"
        self.asked: list[tuple[str, dict[str, str]]] = []


@contextmanager
def index_of(answer: Callable[[str], Reply]) -> Iterator[Served]:
    """Serve what ``answer`` returns for a path such as ``/simple/torch/``."""

    class Handler(BaseHTTPRequestHandler):
        served: ClassVar[Served]

        def do_GET(self) -> None:
            self.served.asked.append((self.path, dict(self.headers)))
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  # what uv asks first

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.served = Served(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Handler.served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def page(*names: str, media_type: str = "text/html") -> Reply:
    """Return the HTML page that lists files; a name that begins with ! was withdrawn."""
    lines = [
        f'<a href="../{name.lstrip("!")}" data-requires-python="&gt;=3.10"'
        f"{' data-yanked' if name.startswith('!') else ''}>{name.lstrip('!')}</a><br />"
        for name in names
    ]
    return 200, {"Content-Type": media_type}, "\n".join(["<!DOCTYPE html>", *lines]).encode()
