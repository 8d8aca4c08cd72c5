"""A broken environment, what gpucheck prints about it, and a shell that runs what was printed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

GPUCHECK = Path(sys.executable).with_name("gpucheck")
SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
SHOW = "import torch; assert torch.ones(2).sum().item() == 2.0; print(torch.__version__)"
"""What a plain Python does to see whether its PyTorch is all right."""
_KEPT = ("PATH", "LANG", "TERM", "PYENV_ROOT")


@dataclass
class Bench:
    """One environment in a folder, beside a home, and the index from which it installs."""

    folder: Path
    index: str
    """The address of the index, as ``http://127.0.0.1:8000``."""
    variables: dict[str, str] = field(default_factory=dict)
    """What is set in the shell of the user, beside what every user here has."""
    before: Sequence[str] = ()
    """What starts a command on the machine that this is to be, such as ``unshare``."""

    @property
    def prefix(self) -> Path:
        """The environment."""
        return self.folder / "env"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.prefix / "bin" / "python"

    @property
    def site(self) -> Path:
        """Its packages."""
        return self.prefix / SITE

    @property
    def home(self) -> Path:
        """The home of the user."""
        return self.folder / "home"

    @property
    def work(self) -> Path:
        """The folder in which the user works."""
        return self.folder / "work"

    def environment(self) -> dict[str, str]:
        """Return the variables of the user's shell."""
        path = f"{GPUCHECK.parent}:{os.environ['PATH']}"
        return {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "PATH": path,
            "HOME": str(self.home),
            "PIP_INDEX_URL": f"{self.index}/simple",
            "UV_DEFAULT_INDEX": f"{self.index}/simple",
            "UV_CACHE_DIR": str(self.folder / "uv-cache"),
            "PIP_CACHE_DIR": str(self.folder.parent / "pip-cache"),
            "PIP_CONFIG_FILE": os.devnull,  # that of this machine may have a mirror or constraints
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **self.variables,
        }

    @classmethod
    def copy_of(cls, template: "Bench", folder: Path) -> "Bench":
        """Return another one with the same environment, in a folder of its own."""
        bench = cls(folder, template.index)
        for one in (bench.home, bench.work):
            one.mkdir(parents=True)
        shutil.copytree(template.prefix, bench.prefix, symlinks=True)
        return bench

    def shell(self, *lines: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run lines in one shell of the user, as pasted; it goes on after a line that fails."""
        words = [*self.before, shutil.which("bash") or "bash", "--norc", "-s"]
        return subprocess.run(
            words,
            input="\n".join([*lines, ""]),
            cwd=self.work,
            env=self.environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )

    def pip(self, *words: str) -> None:
        """Let pip do something in the environment, as a user did before it broke."""
        done = self.shell(f"{self.python} -m pip -q {' '.join(words)} && echo done-well")
        assert "done-well" in done.stdout, done.stdout


@dataclass(frozen=True)
class Printed:
    """What gpucheck printed: its slugs, and the commands of the first fix of each, as lines."""

    status: int
    causes: tuple[str, ...]
    text: str

    def commands(self) -> list[str]:
        """Return the commands of the first fix that has some, of the first root cause."""
        found: list[str] = []
        inside = False
        for line in self.text.splitlines():
            if line.startswith(("  Fix", "    Verify:")):
                if found:
                    return found
                inside = line.startswith("  Fix")
            elif inside and line.startswith("      "):
                found.append(line.strip())
        return found


def ask(bench: Bench, *options: str, after: Sequence[str] = ()) -> Printed:
    """Let gpucheck look at the environment as a user would, on a pipe.

    ``after`` are lines that were pasted into the same shell before.
    """
    words = f"{GPUCHECK.name} --python {bench.prefix} --wheel-mirror {bench.index}/whl"
    said = bench.shell(*after, f"{words} {' '.join(options)}; echo status=$?")
    text, _, status = said.stdout.rpartition("status=")
    causes = text.rpartition("causes=")[2].split()[:1]
    slugs = tuple(causes[0].split(",")) if causes and "causes=" in text else ()
    return Printed(int(status), tuple(one for one in slugs if one and one != "-"), text)
