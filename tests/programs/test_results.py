"""What the functions return shows itself: in a terminal, in a notebook, as data."""

import pickle

import jsonschema
import preflight_samples
import pytest
import report_samples as samples
from each import each
from html_support import framed_page, is_sound

import gpucheck
from gpucheck.cluster.pages import html as preflight_page
from gpucheck.language import current_language, speaking
from gpucheck.output import markdown, terminal
from gpucheck.output.html import report as report_page
from gpucheck.programs.preflight_outcome import PreflightOutcome
from gpucheck.programs.results import CheckReport, check_report
from gpucheck.programs.schema import schema


def old_driver() -> CheckReport:
    return check_report(samples.old_driver())


def test_a_report_shows_itself() -> None:
    report = old_driver()
    assert repr(report) == "<gpucheck report: broken, driver-too-old>"
    assert report.text("en") == terminal.render(samples.old_driver())
    assert report.markdown("en") == markdown.render(samples.old_driver())
    assert report._repr_markdown_().startswith("**BROKEN**")
    assert len(report.text("en", verbose=2)) > len(report.text("en"))


def test_in_the_language_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    report = old_driver()
    monkeypatch.setenv("GPUCHECK_LANG", "zh")
    assert report.text() == report.text("zh") != report.text("en")
    assert report.markdown() == report.markdown("zh")
    assert current_language() == "en"
    with speaking("zh"):
        assert report.as_data() == old_driver().as_data()
    assert report.as_data()["findings"][0]["headline"].isascii()


def test_data_is_that_of_the_command() -> None:
    jsonschema.validate(old_driver().as_data(), schema("report"))


def test_a_report_survives_another_process() -> None:
    again = pickle.loads(pickle.dumps(old_driver()))  # noqa: S301  # our own
    assert again.text("en") == old_driver().text("en")


def test_what_is_not_judged_is_said() -> None:
    report = gpucheck.compat(driver="580.65.06", gpu="H100", torch="2.9.1")
    report = check_report(report, {"extension": "no table knows it"})
    assert "Not judged by this version: extension" in report.text("en")
    assert "Not judged by this version" in report.markdown("en")
    assert report.as_data()["not_judged"] == ["extension"]
    assert report.public().not_judged == report.not_judged


def test_a_text_is_shown_as_triage_shows_it() -> None:
    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    assert "no kernel image" in gpucheck.triage(text).text("en")


def test_a_recommendation_shows_itself() -> None:
    found = gpucheck.recommend(gpu="RTX 4090", driver="570", os="linux")
    assert found.text("en").startswith("Install PyTorch")
    assert found._repr_markdown_().startswith("```sh\nInstall PyTorch")
    assert repr(found).startswith("<gpucheck recommendation: ")
    jsonschema.validate(found.as_data(), schema("recommendation"))
    nothing = gpucheck.recommend(gpu="4090", driver="390", os="linux")
    assert repr(nothing) == "<gpucheck recommendation: nothing-fits>"


def test_a_notebook_shows_the_page_of_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = old_driver()._repr_html_()
    assert framed_page(shown) == report_page.render(samples.old_driver())
    assert shown.startswith("<details open><summary>BROKEN: ")
    monkeypatch.setenv("GPUCHECK_LANG", "zh")
    assert is_sound(framed_page(old_driver()._repr_html_())).values("lang") == ["zh-CN"]


@each("name", samples.ALL)
def test_a_notebook_shows_no_private_names(name: str) -> None:
    shown = check_report(samples.ALL[name]())._repr_html_()
    is_sound(framed_page(shown))
    for private in ("alice", "h100-node-3", *samples.UUIDS):
        assert private not in shown


def test_a_notebook_shows_the_page_of_a_text() -> None:
    text = (
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n"
        "</iframe><script>alert(1)</script>\n"
    )
    shown = gpucheck.triage(text)._repr_html_()
    assert "driver-too-old" in is_sound(framed_page(shown)).text()
    assert shown.count("</iframe>") == 1


def test_a_notebook_says_what_is_not_judged() -> None:
    report = gpucheck.compat(driver="580.65.06", gpu="H100", torch="2.9.1")
    sentence = "Not judged by this version: <b> (no table knows it)."
    page = is_sound(framed_page(check_report(report, {"<b>": "no table knows it"})._repr_html_()))
    assert sentence in page.texts
    assert "Not judged" not in report._repr_html_()


def test_a_notebook_shows_the_page_of_a_preflight() -> None:
    result = preflight_samples.hang()
    outcome = PreflightOutcome(exit=1, exit_class="culprit", result=result)
    shown = outcome._repr_html_()
    assert shown is not None
    assert framed_page(shown) == preflight_page.render(result)
    assert PreflightOutcome(exit=1, exit_class="culprit", task=1)._repr_html_() is None
