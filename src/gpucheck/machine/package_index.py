"""Queries a package index, finds the index that pip is configured for, and downloads a file.

Only ``gpucheck tables check --against-index`` and ``gpucheck tables update URL`` use it: gpucheck
uses the network only when the user names it. Nothing that comes back is executed.
"""

import base64
import os
import ssl
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from http.client import HTTPException
from typing import IO
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from msgspec import Struct

from gpucheck.facts import Answer
from gpucheck.facts.base import message_of
from gpucheck.language import say
from gpucheck.machine.base import Ran

# Bytes and seconds that SECURITY.md promises. The longest pages list every file of a project since
# its beginning.
PAGE_LIMIT = 32 * 1024 * 1024
PAGE_TIMEOUT = 60.0
_ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1"
)
# Seconds. Chosen: without a byte for so long a server does not answer; and pip has to start a
# Python, perhaps from a slow disk.
_SILENCE = 20.0
_PIP_TIMEOUT = 20.0
_SECTIONS = (":env:", "install", "global")
"""Where pip looks for a setting of ``pip install``, the strongest first."""
_NOT_FOUND = 404  # of HTTP: the index has no such project

Run = Callable[[list[str], float], Answer[Ran]]


class PackageIndex(Struct, frozen=True):
    """An index: `address` may hold credentials, `shown` does not. `certificates` is a file."""

    address: str
    certificates: str = ""

    @property
    def shown(self) -> str:
        """The address for messages, without credentials."""
        try:
            return urlunsplit(_without_login(urlsplit(self.address)))
        except ValueError:
            return say("the index")


class Page(Struct, frozen=True):
    """The page of a project: its media type and its bytes."""

    media_type: str
    body: bytes


class IndexSettings(Struct, frozen=True):
    """What pip is configured for, as far as an index is concerned; "" where it says nothing."""

    index: str = ""
    certificates: str = ""
    no_index: bool = False


def pip_settings(run: Run, environ: Mapping[str, str] | None = None) -> IndexSettings:
    """Return the settings of the pip of this Python."""
    words = [sys.executable, "-m", "pip", "config", "list"]
    ran = run(words, _PIP_TIMEOUT)
    printed = ran.value.out if ran.value is not None and ran.value.status == 0 else ""
    settings = _settings(printed)
    if not printed:  # no pip beside gpucheck: its variables hold for other programs as well
        environ = os.environ if environ is None else environ
        names = {"index-url": "PIP_INDEX_URL", "cert": "PIP_CERT"}
        settings = {key: environ[name] for key, name in names.items() if environ.get(name)}
    return IndexSettings(
        settings.get("index-url", ""),
        settings.get("cert", ""),
        settings.get("no-index", "").lower() in ("1", "true", "yes", "on"),
    )


def configured(settings: IndexSettings) -> Answer[PackageIndex]:
    """Return the index that pip is configured for, or a problem if its settings name none.

    pip has an index of its own for that case, but gpucheck asks no host that nobody named.
    """
    if settings.no_index:
        return Answer(
            None, "pip config list", say("pip is configured to use no index: give --index-url")
        )
    if not settings.index:
        problem = say("pip's configuration names no index: give --index-url URL")
        return Answer(None, "pip config list", problem)
    return Answer(PackageIndex(settings.index, settings.certificates), "pip config list")


def named(address: str, settings: IndexSettings) -> PackageIndex:
    """Return an index that was named; pip's file of certificates holds for it as well."""
    return PackageIndex(address, settings.certificates)


def read_page(
    index: PackageIndex, project: str, *, timeout: float = PAGE_TIMEOUT, limit: int = PAGE_LIMIT
) -> Answer[Page]:
    """Return the page of a project; ``missing`` where the index says that it has none.

    A thread sends the request, so that even an index that answers very slowly takes at most
    ``timeout`` seconds.
    """
    source = f"{index.shown.rstrip('/')}/{project}/"

    def request() -> urllib.request.Request:
        return _request(index.address, project)

    return _in_time(source, timeout, lambda: _ask(request, index, source, limit))


def read_file(address: str, *, timeout: float = PAGE_TIMEOUT, limit: int) -> Answer[bytes]:
    """Return the bytes of a file at an address that the user named; it has to be of https."""
    index = PackageIndex(address)
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.hostname:
        return Answer(None, index.shown, say("its address must begin with https://"))

    def request() -> urllib.request.Request:
        return urllib.request.Request(index.shown)  # noqa: S310  # looked at

    page = _in_time(index.shown, timeout, lambda: _ask(request, index, index.shown, limit))
    return page.map(lambda found: found.body)


def _in_time(source: str, timeout: float, ask: Callable[[], Answer[Page]]) -> Answer[Page]:
    """Ask in a thread, so that even a host that answers very slowly takes a limited time."""
    answers: list[Answer[Page]] = []
    thread = threading.Thread(target=lambda: answers.append(ask()), daemon=True)
    thread.start()
    thread.join(timeout)
    return (
        answers[0]
        if answers
        else Answer(None, source, say("no whole answer in {timeout:g} s", timeout=timeout))
    )


def _ask(
    make: Callable[[], urllib.request.Request], index: PackageIndex, source: str, limit: int
) -> Answer[Page]:
    try:
        request = make()
        context = ssl.create_default_context(cafile=index.certificates or None)
        opener = urllib.request.build_opener(
            _Redirects(), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(request, timeout=_SILENCE) as response:
            body = response.read(limit + 1)
            media_type = response.headers.get_content_type()
    except urllib.error.HTTPError as error:
        error.close()
        missing = error.code == _NOT_FOUND
        return Answer(
            None,
            source,
            say("the index answers with status {status}", status=error.code),
            missing=missing,
        )
    except urllib.error.URLError as error:
        reason = error.reason
        why = message_of(reason) if isinstance(reason, Exception) else reason
        return Answer(None, source, say("the index cannot be reached: {why}", why=why))
    except (OSError, HTTPException, ValueError) as error:
        why = message_of(error) or type(error).__name__
        return Answer(None, source, say("the index cannot be asked: {why}", why=why))
    if len(body) > limit:
        return Answer(None, source, say("the page has more than {limit} MiB", limit=limit // 2**20))
    return Answer(Page(media_type, body), source)


def _request(address: str, project: str) -> urllib.request.Request:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = say("its address must begin with https:// or http://")
        raise ValueError(message)
    plain = _without_login(parts)
    url = urlunsplit(plain._replace(path=f"{plain.path.rstrip('/')}/{project}/"))
    request = urllib.request.Request(url, headers={"Accept": _ACCEPT})  # noqa: S310  # looked at
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        token = base64.b64encode(login.encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    return request


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections only to http and https, and never from https to http."""

    max_redirections = 5

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        scheme = urlsplit(newurl).scheme
        if scheme not in ("https", req.type):
            message = say("the index leads to an address that is not safe")
            raise urllib.error.URLError(message)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _without_login(parts: SplitResult) -> SplitResult:
    return parts._replace(netloc=parts.netloc.rpartition("@")[2])


def _settings(printed: str) -> dict[str, str]:
    """Return what ``pip config list`` prints, as pip would take it: ``global.cert='/a'``."""
    found: dict[tuple[str, str], str] = {}
    for line in printed.splitlines():
        name, equals, value = line.partition("=")
        section, dot, key = name.rpartition(".")
        quoted = value[:1] == value[-1:] and value[:1] in ("'", '"')
        if equals and dot and quoted and len(value) > len("''"):  # pip ignores an empty setting
            found[section, key] = value[1:-1]
    settings: dict[str, str] = {}
    for section in _SECTIONS:
        for (where, key), value in found.items():
            if where == section:
                settings.setdefault(key, value)
    return settings
