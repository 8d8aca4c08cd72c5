"""A broken environment, what gpucheck prints about it, and a shell that runs what was printed."""

import functools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h100_support

_LOG = "/dev/kmsg"
_WITH_LOG = f'mount --bind "$0" {_LOG} && exec "$@"'
GPUCHECK = Path(sys.executable).with_name("gpucheck")
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
    kernel_log: str = h100_support.QUIET_LOG
    """What gpucheck reads of the kernel, where there can be mount namespaces."""
    typed: list[str] = field(default_factory=list)
    """What the user has typed into the shell before."""

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
        return next(self.prefix.glob("lib/python*")) / "site-packages"

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
        for path in (bench.home, bench.work):
            path.mkdir(parents=True)
        shutil.copytree(
            template.prefix, bench.prefix, symlinks=True, copy_function=copied_or_linked
        )
        return bench

    def enter(self, driver: dict[str, str]) -> None:
        """Make this a machine with an H100, whose driver has fakes that these variables lead."""
        folder = self.folder / "machine"
        folder.mkdir()
        release = driver.get("FAKE_NVML_RELEASE", h100_support.RELEASE)
        smi = {**h100_support.SMI, "driver_version": release}
        found = h100_support.fake_driver(folder, smi)
        self.variables |= {**found, "PATH": f"{folder / 'bin'}:{self.environment()['PATH']}"}
        self.variables |= driver
        self.before = h100_support.entered(folder, network=True, work=self.work, release=release)

    def shell(self, *lines: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run lines in one shell of the user, as pasted; it goes on after a line that fails."""
        words = [*self._with_log(), *self.before, shutil.which("bash") or "bash", "--norc", "-s"]
        return subprocess.run(
            words,
            input="\n".join([*self.typed, *lines, ""]),
            cwd=self.work,
            env=self.environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )

    def _with_log(self) -> Sequence[str]:
        """Return what starts a command where the kernel log is that of the bench."""
        if not can_mount():
            return ()
        own = self.folder / "kmsg"
        own.write_text(self.kernel_log)
        return ("unshare", "--mount", "sh", "-c", _WITH_LOG, str(own))

    def pip(self, *words: str) -> None:
        """Let pip do something in the environment, as a user did before it broke."""
        python = shlex.quote(str(self.python))
        done = self.shell(f"{python} -m pip -q {' '.join(words)} && echo done-well")
        assert "done-well" in done.stdout, done.stdout


@functools.cache
def can_mount() -> bool:
    """Whether a command here can have a kernel log of its own, which only root can give it."""
    if not shutil.which("unshare"):
        return False
    words = ["unshare", "--mount", "sh", "-c", _WITH_LOG, os.devnull, "true"]
    return subprocess.run(words, check=False, stderr=subprocess.DEVNULL).returncode == 0


def copied_or_linked(source: str, target: str) -> object:
    """Copy a file, but link one of pip, which nothing here breaks: that takes half of the time."""
    if "/site-packages/pip/" not in source:
        return shutil.copy2(source, target)
    os.link(source, target)
    return target


@dataclass(frozen=True)
class Printed:
    """What gpucheck printed: its slugs, and the commands of the first fix of each, as lines."""

    status: int
    causes: tuple[str, ...]
    text: str

    def new_python(self) -> str:
        """Return the Python of a new environment that the commands make; "" if they make none."""
        made = any(" -m venv " in command for command in self.commands())
        return "~/gpu-env/bin/python" if made else ""

    def commands(self) -> list[str]:
        """Return the commands of the first fix that has some, of the first root cause."""
        found: list[str] = []
        inside = False
        for line in self.text.splitlines():
            if line.startswith(("Fix", "Verify")):
                if found:
                    return found
                inside = line.startswith("Fix")
            elif inside and line.startswith("  ") and not line.startswith("   "):
                found.append(line.strip())
            elif not line.startswith((" ", "Caution", "Then, ")):
                inside = False
        return found


def ask(bench: Bench, *options: str, after: Sequence[str] = (), python: str = "") -> Printed:
    """Let gpucheck look at the environment as a user would, on a pipe.

    ``after`` are lines that were pasted into the same shell before; ``python`` is another target.
    """
    target = python or shlex.quote(str(bench.prefix))
    words = f"{GPUCHECK.name} --python {target} --wheel-mirror {bench.index}/whl"
    finished = bench.shell(*after, f"{words} {' '.join(options)}; echo status=$?")
    text, _, status = finished.stdout.rpartition("status=")
    causes = text.rpartition("causes=")[2].split()[:1]
    slugs = tuple(causes[0].split(",")) if causes and "causes=" in text else ()
    return Printed(int(status), tuple(slug for slug in slugs if slug and slug != "-"), text)
