"""What SECURITY.md promises of whole commands: nothing started, no network, nothing written.

Python's audit events tell what a process does, in its forked children too.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn")
NETWORK = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")
WRITES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.symlink", "os.truncate")
WATCHED = """
import os, sys
FORBIDDEN, LOG = {forbidden!r}, os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def hook(event, arguments):
    is_written = (
        event == "open" and isinstance(arguments[2], int) and not isinstance(arguments[0], int)
        and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        and str(arguments[0]) not in ("/dev/null", "/dev/full")
    )
    if event in FORBIDDEN or (is_written and "written" in FORBIDDEN):
        os.write(LOG, f"{{event}} {{arguments!r}}\\n".encode())  # a child has no stderr
        os._exit(99)
sys.addaudithook(hook)
sys.dont_write_bytecode = True
sys.argv = ["gpucheck", *{arguments!r}]
from gpucheck.__main__ import main
main()
"""
TICKET = """$ python -c 'import torch; print(torch.cuda.is_available())'; $(touch /tmp/x) `reboot`
/usr/bin/nvidia-smi: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver
RuntimeError: Found no NVIDIA driver on your system. See https://example.com/a and file:///etc/x
"""


@dataclass
class Done:
    status: int
    stdout: str
    stderr: str
    forbidden: str
    """What was done that may not be done."""


def run(*arguments: str, forbidden: tuple[str, ...], folder: Path, given: str = "") -> Done:
    log = folder / "forbidden.log"
    code = WATCHED.format(forbidden=forbidden, arguments=arguments, log=str(log))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, input=given, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr, log.read_text(encoding="utf-8"))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A current folder with modules that gpucheck and torch import elsewhere."""
    for name in ("json", "click", "msgspec", "torch", "sitecustomize", "pynvml", "tomllib"):
        (tmp_path / f"{name}.py").write_text("import os; os._exit(98)\n", encoding="utf-8")
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 97\n", encoding="utf-8")
    (tmp_path / "nvidia-smi").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("triage", "-"),
        ("triage", "--format", "markdown", "--lang", "zh", "-"),
        ("compat", "driver=535", "torch=2.9.1+cu130"),
        ("recommend", "--gpu", "RTX 4090", "--driver", "550", "--python-version", "3.12"),
        ("explain", "driver-missing"),
        ("list",),
        ("tables", "check"),
    ],
)
def test_what_only_reads_starts_nothing_and_writes_nothing(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(
        *arguments, forbidden=(*STARTS, *NETWORK, *WRITES, "written"), folder=tmp_path, given=TICKET
    )
    assert done.forbidden == ""
    assert done.status in (0, 1, 3), done.stderr
    assert done.stdout


def test_nothing_below_a_sysroot_is_started(tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    programs = tmp_path / "root" / "usr" / "bin"
    programs.mkdir(parents=True)
    for name in ("python3", "nvidia-smi", "nvcc", "gcc", "rpm", "dpkg", "journalctl", "sh"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} >> {mark}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    done = run(
        "check", "--sysroot", str(tmp_path / "root"), "--python", "/usr/bin/python3",
        "--format", "json", forbidden=(*NETWORK, *WRITES, "written"), folder=tmp_path,
    )  # fmt: skip
    assert done.forbidden == ""
    assert done.stdout.startswith("{")
    assert not mark.exists()


def test_a_check_uses_no_network_and_writes_nothing(tmp_path: Path) -> None:
    done = run("check", "--no-selftest", forbidden=(*NETWORK, *WRITES, "written"), folder=tmp_path)
    assert done.forbidden == ""
    assert done.status in (0, 1, 3)


def test_nothing_of_the_current_folder_is_run(hostile: Path) -> None:
    for arguments in (("check", "--no-selftest"), ("triage", "-"), ("list",)):
        done = subprocess.run(
            [str(Path(sys.executable).with_name("gpucheck")), *arguments], cwd=hostile,
            input=TICKET, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1, 3), done.stderr


def test_the_watch_sees_what_it_forbids(tmp_path: Path) -> None:
    done = run("list", "-o", "out.txt", forbidden=("written",), folder=tmp_path)
    assert (done.status, done.forbidden[:5]) == (99, "open ")
    done = run("check", "--no-selftest", forbidden=STARTS, folder=tmp_path)
    assert done.forbidden  # in a child
