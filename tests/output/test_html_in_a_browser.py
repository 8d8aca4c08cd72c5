"""Pages in a real browser: what axe-core finds, and that the script of a page runs and no other."""

from pathlib import Path

import html_samples
import preflight_samples
import pytest
import report_samples
from browser_support import examined, opened

from gpucheck import triage
from gpucheck.baselines import diff_html
from gpucheck.baselines.diff import compare
from gpucheck.cluster.pages import html as preflight
from gpucheck.language import speaking
from gpucheck.output.html import report
from gpucheck.ticket import batch_summary
from gpucheck.ticket.batch_summary import CauseCount, Tally

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("browser")]

_LOG = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n"


def pages() -> dict[str, str]:
    """Return a page of each kind, with everything that such a page may have."""
    old, new = report_samples.healthy(), report_samples.old_driver()
    tally = Tally(
        tickets=4, not_read=1, verdicts={"broken": 2, "healthy": 1},
        owners={"environment": 2, "none": 1},
        causes=(CauseCount(cause="driver-too-old", owner="environment", tickets=2),),
    )  # fmt: skip
    found = {
        **{name: report.render(sample()) for name, sample in report_samples.ALL.items()},
        **{
            f"preflight-{name}": preflight.render(sample())
            for name, sample in preflight_samples.ALL.items()
        },
        "stress": report.render(html_samples.stress()),
        "ticket": report.render(triage(_LOG)),
        "waits": preflight.render(html_samples.waits()),
        "large": preflight.render(html_samples.large()),
        "links": preflight.render(html_samples.links()),
        "diff": diff_html.render_html(old, new, compare(old.snapshot, new.snapshot)),
        "diff-nothing": diff_html.render_html(old, old, []),
        "tally": batch_summary.as_html(tally),
    }
    with speaking("zh"):
        found["several-zh"] = preflight.render(preflight_samples.several())
        found["old-driver-zh"] = report.render(new)
    return found


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(theme: str, width: int, tmp_path: Path) -> None:
    all_pages, dark = pages(), theme == "dark"
    examinations = examined(all_pages, tmp_path, dark=dark, width=width)
    assert [examination["name"] for examination in examinations] == list(all_pages)
    assert {examination["dark"] for examination in examinations} == {dark}
    for examination in examinations:
        assert examination["violations"] == [], examination["name"]


def test_axe_finds_what_is_wrong(tmp_path: Path) -> None:
    text = pages()["diff"]
    poor = text.replace("--dim: #55606b", "--dim: #c0c4c8").replace(' lang="en"', "")
    (examination,) = examined({"poor": poor}, tmp_path, dark=False)
    found = examination["violations"]
    assert isinstance(found, list)
    assert {violation["id"] for violation in found} >= {"color-contrast", "html-has-lang"}


def test_its_own_script_runs_and_no_other(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = report.render(report_samples.old_driver())
    evil = '<p id="evil">quiet</p><script>document.getElementById("evil").id = "ran"</script>'
    page.write_text(text.replace("</main>", f"{evil}</main>"), encoding="utf-8")
    dom = opened(page, tmp_path)
    assert 'id="evil"' in dom
    assert '<button type="button" aria-label="Copy the command: ' in dom
    assert ' hidden=""' not in dom
