import pytest

from gpucheck.findings import Aliases, all_rules
from gpucheck.language import speaking
from gpucheck.output import pages


def test_a_page_has_title_text_and_severity() -> None:
    rule = all_rules()["driver-too-old"]
    page = pages.explain("driver-too-old")
    assert page is not None
    assert page.startswith(f"driver-too-old: {rule.title}\n\n")
    assert "``" not in page
    assert "Severity: error. Area: driver." in page
    words = " ".join(page.split())
    assert (
        f"Not reported together with: {', '.join(rule.suppressed_by)} (they explain it)." in words
    )


def test_a_page_has_its_address_only_if_that_is_known() -> None:
    assert "web" not in (pages.explain("driver-too-old") or "")
    english = pages.explain("driver-too-old", 40, "https://docs.test/g") or ""
    link = "This page on the web: https://docs.test/g/findings/driver-too-old.html"
    assert english.splitlines()[-1] == link
    with speaking("zh"):
        chinese = pages.explain("driver-too-old", 40, "https://docs.test/g") or ""
    link = "本页的网址\N{FULLWIDTH COLON}https://docs.test/g/zh/findings/driver-too-old.html"
    assert chinese.splitlines()[-1] == link


def test_a_page_fits_a_terminal_and_keeps_its_lists() -> None:
    assert max(map(len, (pages.explain("driver-too-old") or "").splitlines())) <= 80
    text = pages.reflow("Two:\n- one item that\n  goes on\n- another\n    a command " + "x" * 90)
    assert text.split("\n")[:3] == ["Two:", "- one item that goes on", "- another"]
    assert text.endswith("x" * 90)


def test_every_rule_has_a_page() -> None:
    for slug in all_rules():
        page = pages.explain(slug)
        assert page
        assert len(page) > 200


def test_an_unknown_name_has_none() -> None:
    assert pages.explain("gpu-haunted") is None
    assert pages.explain("") is None


def test_a_retired_slug_keeps_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "RETIRED", Aliases({"old-driver": "driver-too-old"}))
    page = pages.explain("old-driver")
    assert page is not None
    assert page.startswith("old-driver is called driver-too-old now.\n\ndriver-too-old: ")


def test_the_lists_name_every_rule_and_probe() -> None:
    text = pages.listing()
    for row in pages.list_rules():
        assert row.title
        assert f"\n  {row.slug}" in text
    for probe in pages.list_probes():
        assert probe.subject
        assert f"\n  {probe.name}" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    listed = pages.listing_json()
    assert [row["slug"] for row in listed["findings"]] == list(all_rules())
    assert {"name", "subject", "deadline"} == set(listed["probes"][0])
