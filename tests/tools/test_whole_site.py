"""The whole site, which takes half a minute to build: its pages, and some of them in a browser.

``.ci/run`` builds it here and nowhere else.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from browser_support import axe, browser, examined

from gpucheck.findings import all_rules

pytestmark = [pytest.mark.gate, pytest.mark.xdist_group("browser")]

ROOT = Path(__file__).parents[2]

_QUERY = f"?q={quote('no kernel image is available')}"
PAGES = (
    "index.html", "docs/install.html", "docs/preflight/slurm.html", "docs/preflight/reference.html",
    "docs/describe/facts.html", "docs/images/screens/index.html", "docs/examples/slurm/index.html",
    "findings/index.html", "findings/driver-too-old.html", f"search.html{_QUERY}", "CHANGELOG.html",
    "zh/index.html", "zh/docs/triage/triage.html", "zh/findings/driver-too-old.html",
    f"zh/search.html{_QUERY}",
)  # fmt: skip
"""A page of each kind, among them the widest table, pictures and pages without a sidebar."""


def _build(out: Path, seed: str) -> Path:
    """Build the site; the tool fails if a page is missing or not reached, or a link is dead."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/build_site.py"), "--out", str(out)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def _files(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(tmp_path_factory.mktemp("site") / "one", "1")


def test_another_build_is_the_same_and_has_every_page(site: Path, tmp_path: Path) -> None:
    files, again = _files(site), _files(_build(tmp_path / "two", "2"))
    assert set(files) == set(again)
    assert [name for name in files if files[name] != again[name]] == []
    for slug in all_rules():
        for here, lang, other in (("", "en", "../zh/"), ("zh/", "zh-CN", "../../")):
            text = files[f"{here}findings/{slug}.html"].decode()
            assert f'<html class="no-js" lang="{lang}"' in text
            assert f'href="{other}findings/{slug}.html"' in text
            assert {"en", "zh"} <= set(re.findall('rel="alternate" hreflang="([^"]+)"', text))
    assert b"_images/check.svg" in files["index.html"]
    assert {"_static/search-data.js", "zh/_static/search-data.js", "zh/search.html"} <= set(files)
    tree = files["findings/driver-missing.html"].decode().partition('class="sidebar-tree"')[2]
    assert "No driver is installed for a GPU</a>" in tree.partition("</aside>")[0]


def test_axe_finds_nothing_and_every_page_fits(site: Path, tmp_path: Path) -> None:
    browser()
    axe()  # each skips the test
    addresses = {page: f"{site.as_uri()}/{page}" for page in PAGES}
    for dark, width in ((False, 1280), (True, 390)):
        examinations = examined(addresses, tmp_path, dark=dark, width=width)
        assert [one["name"] for one in examinations] == list(PAGES)
        for one in examinations:
            seen = {name: one[name] for name in ("violations", "wider", "unseen", "dark")}
            assert seen == {"violations": [], "wider": False, "unseen": [], "dark": dark}, one[
                "name"
            ]
