"""A browser without a window, and axe-core in it, for tests."""

import json
import os
import re
import shutil
import subprocess
import sys
from html import escape, unescape
from pathlib import Path

import pytest

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_RUNNER = """
const said = [];
async function run() {
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, script = page.createElement("script");
    page.querySelectorAll("details").forEach((one) => { one.open = true; });
    script.textContent = document.scripts[0].textContent;
    page.head.append(script);
    const found = await frame.contentWindow.axe.run(page, { resultTypes: ["violations"],
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
    const dark = frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches;
    said.push({ name: frame.title, dark: dark, passes: found.passes.length,
      wider: page.documentElement.scrollWidth > frame.contentWindow.innerWidth,
      unseen: [...page.images].filter((one) => !one.naturalWidth).map((one) => one.src),
      violations: found.violations.map((one) => ({ id: one.id,
        nodes: one.nodes.slice(0, 3).map((node) => node.html + " " + node.failureSummary) })) });
  }
}
addEventListener("load", () => run().catch((error) => said.push(String(error))).then(() => {
  const end = document.createElement("pre");
  end.id = "said";
  end.textContent = JSON.stringify(said);
  document.body.replaceChildren(end);
}));
"""


def browser() -> str:
    """Return a browser; skip the test without one."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        pytest.skip("there is no chromium")
    return found


def axe() -> str:
    """Return the source of axe-core; skip the test without it."""
    package = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    if not package.is_file():
        pytest.skip("axe-core is not installed: npm install --prefix .venv/axe axe-core")
    return package.read_text(encoding="utf-8")


def opened(file: Path, folder: Path, *, dark: bool = False, seconds: int = 300) -> str:
    """Return what a page has become in a browser, which waits for its scripts."""
    scheme = 0 if dark else 1
    command = (
        browser(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--allow-file-access-from-files",
        f"--user-data-dir={folder / 'profile'}",
        f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1280,900",
        "--virtual-time-budget=600000", "--dump-dom", file.as_uri(),
    )  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=True,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    return done.stdout


def examined(
    pages: dict[str, str], folder: Path, *, dark: bool, width: int = 1280
) -> list[dict[str, object]]:
    """Return what axe says of each page; its policy is left out, which forbids other scripts.

    Args:
        pages: the text of each page, or its address (``file://``) if it has styles beside it.
        folder: where the browser may write.
        dark: whether the reader prefers dark pages.
        width: that of the window, in CSS pixels.
    """
    frames = "".join(
        f'<iframe title="{escape(name)}" width="{width}" height="900" '
        + (
            f'src="{escape(page)}"></iframe>'
            if page.startswith("file://")
            else f'srcdoc="{escape(_POLICY.sub("", page))}"></iframe>'
        )
        for name, page in pages.items()
    )
    runner = folder / "runner.html"
    runner.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>x</title>"
        f"<script>{axe()}</script><script>{_RUNNER}</script><body>{frames}</body></html>",
        encoding="utf-8",
    )
    dom = opened(runner, folder, dark=dark)
    found = re.search(r'<pre id="said">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None, dom[-2000:]
    examinations: list[dict[str, object]] = json.loads(unescape(found[1]))
    return examinations
