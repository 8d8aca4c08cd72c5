"""What a package index answers: the address, limits, and bad answers, against a local server."""

import base64
import socket
import threading
import time

from each import each
from index_server import index_of, page

from gpucheck.facts import Answer
from gpucheck.machine import Ran
from gpucheck.machine.package_index import (
    IndexSettings,
    PackageIndex,
    configured,
    named,
    pip_settings,
    read_page,
)


def settings(printed: str, status: int = 0) -> IndexSettings:
    def run(words: list[str], timeout: float) -> Answer[Ran]:
        assert words[1:] == ["-m", "pip", "config", "list"]
        assert timeout > 0
        return Answer(Ran(status=status, out=printed, err=""), "pip")

    return pip_settings(run, {"PIP_INDEX_URL": "https://from.variable/simple"})


def pip(printed: str, status: int = 0) -> Answer[PackageIndex]:
    return configured(settings(printed, status))


@each(
    ("printed", "address"),
    [
        ("global.index-url='https://site/simple'\n", "https://site/simple"),
        ("global.index-url='https://a'\n:env:.index-url='https://b'\n", "https://b"),
        ("install.index-url='https://a'\nglobal.index-url='https://b'\n", "https://a"),
        (":env:.index-url=''\nglobal.index-url='https://a'\n", "https://a"),
    ],
)
def test_the_index_that_pip_is_configured_for(printed: str, address: str) -> None:
    found = pip(printed)
    assert found.value is not None
    assert found.value.address == address


@each(
    "printed",
    [
        "global.cert='/a.pem'\n",
        "wheel.index-url='https://a'\n",
        "nonsense\n=\n.=''\n",
        ":env:.index-url=''\n",
        "global.index-url='\n",
    ],
)
def test_no_index_is_assumed_where_pip_names_none(printed: str) -> None:
    found = pip(printed)
    assert found.value is None
    assert found.problem == "pip's configuration names no index: give --index-url URL"


def test_without_pip_and_its_variables_no_index_is_assumed() -> None:
    found = pip_settings(lambda _words, _timeout: Answer(None, "pip", "not there"), {})
    assert configured(found).value is None


def test_certificates_hold_for_an_index_that_was_named() -> None:
    found = settings(":env:.cert='/a.pem'\n")
    assert named("https://other/simple", found) == PackageIndex("https://other/simple", "/a.pem")
    assert named("https://other/simple", IndexSettings()).certificates == ""


def test_without_pip_its_variables_hold() -> None:
    found = pip("", status=1)
    assert found.value == PackageIndex("https://from.variable/simple")


def test_no_index_is_respected() -> None:
    found = pip("global.no-index='true'\n")
    assert found.value is None
    assert "no index" in found.problem


def test_a_page_is_read_with_its_media_type() -> None:
    with index_of(lambda _path: page("torch-2.9.1-py3-none-any.whl")) as served:
        found = read_page(PackageIndex(f"{served.address}/"), "torch")
    assert found.value is not None
    assert found.value.media_type == "text/html"
    assert b"torch-2.9.1" in found.value.body
    ((path, headers),) = served.asked
    assert path == "/simple/torch/"
    assert headers["Accept"].startswith("application/vnd.pypi.simple.v1+json")
    assert "Authorization" not in headers


def test_credentials_are_sent_and_never_shown() -> None:
    with index_of(lambda _path: (403, {}, b"")) as served:
        index = PackageIndex(served.address.replace("//", "//ana:pass%20word@"))
        found = read_page(index, "torch")
    assert served.asked[0][1]["Authorization"] == f"Basic {_encoded('ana:pass word')}"
    assert "ana" not in f"{index.shown}{found.source}{found.problem}"
    assert index.shown == served.address


def test_credentials_do_not_follow_a_redirect() -> None:
    with index_of(lambda _path: page("torch-2.9.1.tar.gz")) as there:
        moved = {"Location": f"{there.address}/torch/"}
        with index_of(lambda _path: (302, moved, b"")) as served:
            found = read_page(PackageIndex(served.address.replace("//", "//ana:word@")), "torch")
    assert found.value is not None
    assert "Authorization" not in there.asked[0][1]


@each(
    ("status", "headers", "words"),
    [
        (404, {}, "status 404"),
        (500, {}, "status 500"),
        (302, {"Location": "file:///etc/passwd"}, "status 302"),
        (302, {"Location": "ftp://127.0.0.1/"}, "not safe"),
        (302, {"Location": "/simple/torch/"}, "status 302"),
    ],
)
def test_a_bad_answer_is_a_sentence(status: int, headers: dict[str, str], words: str) -> None:
    with index_of(lambda _path: (status, headers, b"x")) as served:
        found = read_page(PackageIndex(served.address), "torch")
    assert found.value is None
    assert words in found.problem
    assert found.missing == (status == 404)
    assert len(served.asked) <= 12


@each(
    "address", ["file:///etc", "ftp://host/simple", "simple", "https://", "http://[", "http://a:b"]
)
def test_only_addresses_of_the_web_are_asked(address: str) -> None:
    found = read_page(PackageIndex(address), "torch")
    assert found.value is None
    assert found.problem


def test_a_page_larger_than_the_limit_is_refused() -> None:
    body = b"x" * 2**20
    with index_of(lambda _path: (200, {"Content-Type": "text/html"}, body)) as served:
        assert read_page(PackageIndex(served.address), "torch", limit=2**20).value is not None
        found = read_page(PackageIndex(served.address), "torch", limit=2**20 - 1)
    assert found.value is None
    assert "MiB" in found.problem


def test_an_index_that_drips_costs_the_time_limit_and_no_more() -> None:
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _peer = server.accept()
            with connection:
                while not stop.wait(0.05):
                    connection.send(b"H")

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        found = read_page(
            PackageIndex(f"http://127.0.0.1:{server.getsockname()[1]}"), "torch", timeout=0.3
        )
        took = time.monotonic() - began
        stop.set()
        thread.join()
    assert found.value is None
    assert "0.3 s" in found.problem
    assert took < 5


def test_an_index_that_closes_at_once_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            connection, _peer = server.accept()
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        found = read_page(PackageIndex(f"http://127.0.0.1:{server.getsockname()[1]}"), "torch")
        thread.join()
    assert found.value is None
    assert found.problem


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
