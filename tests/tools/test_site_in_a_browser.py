"""Pages of the built site in a browser: axe-core finds nothing, and all of them fit a phone."""

from pathlib import Path
from urllib.parse import quote

import pytest
from browser_support import axe, browser, examined

pytest.importorskip("sphinx")  # fast tests run without the extra docs

import build_site

pytestmark = [
    pytest.mark.process,
    pytest.mark.xdist_group("browser"),
    pytest.mark.filterwarnings("default::DeprecationWarning"),
    pytest.mark.filterwarnings("default::PendingDeprecationWarning"),
]

_QUERY = f"?q={quote('no kernel image is available')}"
PAGES = (
    "index.html", "docs/install.html", "docs/preflight/slurm.html", "docs/preflight/reference.html",
    "docs/describe/facts.html", "docs/images/screens/index.html", "docs/examples/slurm/index.html",
    "findings/index.html", "findings/driver-too-old.html", f"search.html{_QUERY}", "CHANGELOG.html",
    "zh/index.html", "zh/docs/triage/triage.html", "zh/findings/driver-too-old.html",
    f"zh/search.html{_QUERY}",
)  # fmt: skip
"""A page of each kind, among them the widest table, pictures and pages without a sidebar."""


def test_axe_finds_nothing_and_every_page_fits(tmp_path: Path) -> None:
    browser()
    axe()  # each skips the test before the site is built
    site = tmp_path / "site"
    assert build_site.build(site) == []
    addresses = {page: f"{site.as_uri()}/{page}" for page in PAGES}
    for dark, width in ((False, 1280), (True, 390)):
        examinations = examined(addresses, tmp_path, dark=dark, width=width)
        assert [one["name"] for one in examinations] == list(PAGES)
        for one in examinations:
            seen = {name: one[name] for name in ("violations", "wider", "unseen", "dark")}
            assert seen == {"violations": [], "wider": False, "unseen": [], "dark": dark}, one[
                "name"
            ]
