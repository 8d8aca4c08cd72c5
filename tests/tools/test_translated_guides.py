"""The guides in Chinese have every command of the English ones, and what they link to."""

import re
from pathlib import Path

from docs_site import sources
from each import each

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = sources.translated()
_PROGRAMS = (
    "gpucheck", "python", "python3.11", "pip", "pipx", "uvx", "py", r".venv\Scripts\pip",
    r".venv\Scripts\gpucheck", "srun", "sbatch", "scontrol", "sinfo", "torchrun", "mpirun",
    "kubectl", "docker", "jq", "nvidia-bug-report.sh", "nvidia-smi", "journalctl", "./gate.sh",
    "pbpaste", "import", "report",
)  # fmt: skip
"""How lines of code begin that are no output; ``import`` and ``report`` are those of Python."""
_BLOCK = re.compile(r"^(?: {4,}\S.*|\|.*)$", re.MULTILINE)
_FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`(gpucheck [^`\n]+)`")
_COMMENT = re.compile(r"\s{2,}# .*$|\s+#: .*$")


def commands(page: str) -> set[str]:
    """Return the commands of a page, without prompts and comments."""
    code = [line for block in _FENCED.findall(page) for line in block.splitlines()]
    code += [line for line in _BLOCK.findall(page) if not line.startswith("|")]
    found = set(_SPAN.findall(page))
    for line in code:
        command = " ".join(_COMMENT.sub("", line).removeprefix("    ").split()).removeprefix("$ ")
        if re.split(r"[ .]", command)[0] in _PROGRAMS or command.split(" ")[0] in _PROGRAMS:
            found.add(command)
    return found


@each("name", GUIDES)
def test_no_command_is_only_in_the_english_guide(name: str) -> None:
    english, chinese = (
        (folder / f"{name}.md").read_text(encoding="utf-8") for folder in (DOCS, DOCS / "zh")
    )
    there = " ".join(chinese.split())
    assert [one for one in sorted(commands(english)) if one not in there] == []


def test_the_guides_that_users_need_are_there() -> None:
    assert set(GUIDES) >= {
        "install", "fix", "machines", "triage/README", "triage/triage", "triage/tracker-bot",
        "preflight/README", "preflight/slurm", "preflight/kubernetes", "preflight/torchrun",
    }  # fmt: skip


def test_a_command_is_known_by_its_program() -> None:
    page = (
        "Run `gpucheck list`.\n\n    $ gpucheck -v   # all\n    healthy: 3\n\n"
        "```sh\npip install .  # here\n```\n"
    )
    assert commands(page) == {"gpucheck list", "gpucheck -v", "pip install ."}


def test_links_lead_to_the_half_of_the_site_that_has_the_page(tmp_path: Path) -> None:
    sources.write(tmp_path, "zh")
    slurm = (tmp_path / "docs/preflight/slurm.md").read_text(encoding="utf-8")
    assert "](../examples/slurm/gate.sbatch)" in slurm
    assert (tmp_path / "docs/examples/slurm/gate.sbatch").is_file()
    assert 'href="../../../docs/preflight/reference.html' in slurm
    assert 'href="../../../SECURITY.html' in slurm
    home = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert "[`gpucheck fix`](docs/fix.md)" in home
    assert "](docs/preflight/index.md)" in home
    assert 'href="../index.html"' in home
    sources.write(tmp_path / "en", "en")
    assert '<a href="zh/index.html" hreflang="zh">' in (tmp_path / "en/index.md").read_text()
