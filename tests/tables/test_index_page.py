"""The releases on a page of a package index, and those that the tables lack."""

import json
import time

import pytest
from each import each
from index_server import JSON, page

from gpucheck.doctor.against_index import PageError, known_releases, releases, unknown_releases
from gpucheck.tables import Tables


def html(*names: str) -> list[str]:
    return releases("text/html", page(*names)[2], "torch")


def as_json(*files: dict[str, object]) -> list[str]:
    body = json.dumps({"meta": {"api-version": "1.1"}, "name": "torch", "files": files})
    return releases(JSON, body.encode(), "torch")


def test_releases_of_html_are_sorted_and_final() -> None:
    found = html(
        "torch-2.10.0-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.9.1-cp312-cp312-win_amd64.whl",
        "torch-2.9.1-cp311-cp311-win_amd64.whl",
        "torch-2.11.0rc1-cp312-cp312-win_amd64.whl",
        "torch-2.8.0.dev20250601-cp312-cp312-win_amd64.whl",
        "!torch-2.12.0-cp312-cp312-win_amd64.whl",
        "torch-1.0.0.tar.gz",
    )
    assert found == ["1.0.0", "2.9.1", "2.10.0"]


def test_a_release_is_withdrawn_when_all_its_files_are() -> None:
    name = "torch-2.12.0-cp3{}-cp3{}-win_amd64.whl"
    assert html("!" + name.format(11, 11), name.format(12, 12)) == ["2.12.0"]


def test_local_parts_are_the_same_release() -> None:
    names = [f"torch-2.9.1%2Bcu12{n}-cp312-cp312-win_amd64.whl" for n in (6, 8)]
    assert html(*(name.replace("%2B", "+") for name in names)) == ["2.9.1"]


def test_what_is_no_file_of_the_project_is_passed_over() -> None:
    assert html("torchvision-0.24.0-cp312-cp312-win_amd64.whl", "torch", "x" * 390, "../") == []
    assert releases("text/html", b"<a href='x'>torch-2.9.1.tar.gz</a>", "torch") == ["2.9.1"]
    assert releases("text/html", b"", "torch") == []


def test_an_entity_and_a_raw_sign_in_an_attribute_are_read() -> None:
    body = b'<A data-requires-python=">=3.10">torch-2.9.1&#46;tar.gz</A>'
    assert releases("text/html", body, "torch") == ["2.9.1"]


def test_releases_of_json() -> None:
    wheel = "torch-2.{}.0-cp312-cp312-win_amd64.whl"
    assert as_json(
        {"filename": wheel.format(9), "url": "https://x", "hashes": {}},
        {"filename": wheel.format(10), "yanked": False},
        {"filename": wheel.format(11), "yanked": "it is broken"},
        {"filename": wheel.format(12), "yanked": True},
    ) == ["2.9.0", "2.10.0"]


@each(
    ("media_type", "body"),
    [
        (JSON, b"{"),
        (JSON, b"[]"),
        (JSON, b'{"files": 3}'),
        (JSON, b'{"files": [{"filename": 3}]}'),
        (JSON, b"[" * 100_000),
        (JSON, b'{"files": [{"filename": "\xff"}]}'),
        ("text/html", b"\xff\xfe"),
        ("application/pdf", b"%PDF"),
        ("application/json", b"{}"),
    ],
)
def test_another_form_is_said(media_type: str, body: bytes) -> None:
    with pytest.raises(PageError) as error:
        releases(media_type, body, "torch")
    assert "\n" not in str(error.value)


@each("piece", [b"<a ", b'<a "', b"<a>", b"<a x='", b"<a><", b"<a>x</b>"])
def test_a_hostile_page_costs_linear_time(piece: bytes) -> None:
    began = time.process_time()
    assert releases("text/html", piece * 100_000, "torch") == []
    assert time.process_time() - began < 5


def test_the_tables_know_what_they_have(tables: Tables) -> None:
    known = known_releases(tables)
    assert {"torch", "torchvision", "torchaudio", "torchtext", "triton"} == set(known)
    assert "2.9.1" in known["torch"]
    assert "0.24.1" in known["torchvision"]
    assert all(known.values())


def test_what_is_newer_or_between_is_unknown_and_what_is_older_is_not() -> None:
    there = ["0.4.1", "1.7.0", "2.9.0", "2.9.1", "2.10.0", "3.0"]
    assert unknown_releases({"1.7", "2.9.1"}, there) == ["3.0", "2.10.0", "2.9.0"]
    assert unknown_releases(set(), there) == []
