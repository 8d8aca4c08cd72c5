"""How things break: programs, files, interpreters and libraries that are anything but sound."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

Outcomes = tuple[Literal["unknown", "sound", "absent"], ...]
"""What may be known of a fact: nothing, with a reason; the sound value; that there is none."""
UNKNOWN: Outcomes = ("unknown",)
SOUND: Outcomes = ("sound",)
EITHER: Outcomes = ("unknown", "sound")
ABSENT: Outcomes = ("unknown", "absent")

_SLEEP = "sleep 1000"
_SPARSE = 1 << 36
_NOISE = bytes(range(256)) * 64


class Script(NamedTuple):
    """A helper that is a shell script; ``{sound}`` is what the sound one does."""

    how: str
    text: str
    outcomes: Outcomes = UNKNOWN
    waits: bool = False
    """Whether it ends only when it is killed, so that the run takes until its deadline."""
    fells: bool = False
    """Whether it ends the probe that has started it."""
    leaves: bool = False
    """Whether it leaves a process on purpose, in a session of its own."""


SCRIPTS = (
    Script("hangs", f"exec {_SLEEP}", waits=True),
    Script("hangs and ignores signals", "trap '' TERM INT HUP\nwhile :; do sleep 1; done",
           waits=True),
    Script("closes its streams and hangs", f"exec >&- 2>&- <&-\nexec {_SLEEP}", waits=True),
    Script("prints without end", "exec yes 12.3.0", waits=True),
    Script("leaves a child without streams", f"{_SLEEP} >/dev/null 2>&1 &\n{{sound}}", SOUND),
    Script("leaves a daemon", f"setsid {_SLEEP} </dev/null >/dev/null 2>&1 &\n{{sound}}", SOUND,
           leaves=True),
    Script("prints 300 MB of zeros", "exec head -c 300000000 /dev/zero"),
    Script("prints binary noise", "exec head -c 200000 /dev/urandom"),
    Script("prints bytes that are not UTF-8", r"printf '\377\376\033[31m\200'"),
    Script("prints a number of a million digits",
           "head -c 1000000 /dev/zero | tr '\\000' 9"),
    Script("prints nothing", "exit 0"),
    Script("fails without a word", "exit 1"),
    Script("fails with a million lines of errors", "yes error | head -n 1000000 >&2\nexit 1"),
    Script("crashes", "kill -SEGV $$"),
    Script("kills its process group", "kill -KILL 0"),
    Script("kills the process that started it", f"kill -KILL $PPID\nexec {_SLEEP}", fells=True),
    Script("works and removes itself", 'rm "$0"\n{sound}', SOUND),
    Script("reads its stdin first", "cat >/dev/null\n{sound}", SOUND),
)  # fmt: skip
"""For every helper."""

RARE_SCRIPTS = (
    Script("stops itself", f"kill -STOP $$\nexec {_SLEEP}", waits=True),
    Script("stops the process that started it", f"kill -STOP $PPID\nexec {_SLEEP}", waits=True,
           fells=True),
    Script("prints a byte now and then", "while :; do printf x; sleep 0.1; done", waits=True),
    Script("leaves a child that holds its streams", f"{_SLEEP} &\n{{sound}}", SOUND),
    Script("writes its answer to stderr", "{sound} >&2", EITHER),
    Script("answers and fails", "{sound}\nexit 9", EITHER),
    Script("colours its answer", r"printf '\033[31m'; {sound}; printf '\033[0m'", EITHER),
    Script("interrupts the process that started it", f"kill -INT $PPID\nexec {_SLEEP}", fells=True),
    Script("asks the process that started it to end", f"kill -TERM $PPID\nexec {_SLEEP}",
           fells=True),
)  # fmt: skip
"""For nvidia-smi alone."""

Make = Callable[[Path], None]


def _text(content: bytes, mode: int = 0o755) -> Make:
    def make(path: Path) -> None:
        path.write_bytes(content)
        path.chmod(mode)

    return make


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _sparse(path: Path) -> None:
    try:
        os.truncate(path, _SPARSE)
    except OSError:
        pytest.skip("this file system has no sparse files")


PROGRAMS: tuple[tuple[str, Make, Outcomes], ...] = (
    ("has an interpreter that does not exist", _text(b"#!/nowhere/sh\n"), UNKNOWN),
    ("is an empty file", _text(b""), UNKNOWN),
    ("is a program for another machine", _text(b"\x7fELF\x02\x01\x01" + bytes(100)), UNKNOWN),
    ("is not executable", _text(b"#!/bin/sh\n", 0o644), ABSENT),
    ("is a folder", _folder, ABSENT),
    ("is a FIFO", _fifo, ABSENT),
    ("is a link to itself", _loop, ABSENT),
    ("is a link to nowhere", _dangling, ABSENT),
)
"""What may be in the place of a helper."""

FILES: tuple[tuple[str, Make], ...] = (
    ("is missing", Path.unlink),
    ("is empty", _text(b"")),
    ("claims 64 GiB", _sparse),
    ("is binary noise", _text(_NOISE)),
    ("is one line of a megabyte", _text(b"9" * (1 << 20))),
    ("is a FIFO", _fifo),
    ("is a folder", _folder),
    ("is a link to itself", _loop),
    ("is a link to nowhere", _dangling),
    ("may not be read", lambda path: path.chmod(0)),
)
"""What may be in the place of a file."""


@contextlib.contextmanager
def changing(path: Path) -> Iterator[None]:
    """Cut a file, fill it and remove it, again and again, while something reads it."""
    content, over = path.read_bytes(), threading.Event()

    def change() -> None:
        while not over.wait(0.001):
            for part in (content[: len(content) // 2], content, b"\0" * 4096):
                path.write_bytes(part)
            path.unlink(missing_ok=True)

    worker = threading.Thread(target=change)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


class Target(NamedTuple):
    """An interpreter that is a script; ``answer`` is what the sound one says of itself."""

    how: str
    statements: str
    outcomes: Outcomes = UNKNOWN
    waits: bool = False
    fells: bool = False
    leaves: bool = False
    in_workers: Literal["", "self-tests", "everywhere"] = ""
    """In which other commands it is tried."""


_DAEMON = "os.fork() and os._exit(0); os.setsid(); "
TARGETS = (
    Target("is sound", "say(answer)", SOUND),
    Target("answers and hangs", "say(answer); time.sleep(1000)", SOUND),
    Target("hangs", "time.sleep(1000)", waits=True, in_workers="everywhere"),
    Target("hangs and ignores signals",
           "for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(1000)",
           waits=True, in_workers="self-tests"),
    Target("becomes a daemon", _DAEMON + "os.closerange(0, 99); time.sleep(1000)", leaves=True,
           in_workers="self-tests"),
    Target("becomes a daemon that holds its streams", _DAEMON + "time.sleep(1000)", waits=True,
           leaves=True),
    Target("closes its streams and hangs", "os.closerange(0, 99); time.sleep(1000)", waits=True,
           in_workers="self-tests"),
    Target("crashes", "os.kill(os.getpid(), signal.SIGSEGV)", in_workers="everywhere"),
    Target("is killed", "os.kill(os.getpid(), signal.SIGKILL)"),
    Target("exits with 0", "os._exit(0)", in_workers="self-tests"),
    Target("exits with 255", "os._exit(255)", in_workers="self-tests"),
    Target("stops itself", "os.kill(os.getpid(), signal.SIGSTOP); time.sleep(1000)", waits=True,
           in_workers="self-tests"),
    Target("kills the process that started it", "os.kill(os.getppid(), 9); time.sleep(1000)",
           fells=True),
    Target("prints bytes that are not UTF-8", "os.write(1, bytes(range(256)) * 99)",
           in_workers="self-tests"),
    Target("answers in bytes that are not UTF-8",
           r"os.write(1, mark.encode() + b'\xff\xfe{' + mark.encode())"),
    Target("answers with lone surrogates",
           r"say(answer.replace('linux-x86_64', r'\ud800'))", EITHER),
    Target("answers with zeros", r"say(answer.replace('cpython', r'\u0000'))", EITHER),
    Target("answers with escape sequences", r"say(answer.replace('2.35', r'\u001b[31m'))", EITHER),
    Target("answers a list", "say('[]')"),
    Target("answers numbers for texts", """say(answer.replace('"3.11.9"', '3.11'))"""),
    Target("answers half", "say(answer[:90])"),
    Target("answers nothing", "say('')"),
    Target("nests its answer deeply", """say('{"description":' + '[' * 300000)"""),
    Target("answers a number of a million digits",
           """say('{"description":' + '9' * 1000000 + '}')"""),
    Target("prints 300 MB", "for _ in range(300): os.write(1, bytes(1 << 20))",
           in_workers="self-tests"),
    Target("complains in 300 MB",
           "for _ in range(300): os.write(2, b'x' * (1 << 20))\nsay(answer)", SOUND),
    Target("prints without end", "while True: os.write(1, bytes(1 << 20))", waits=True,
           in_workers="self-tests"),
    Target("has a sys.path of folders of the kernel",
           """say(answer.replace('["', '["/proc/self", "/dev", "/sys", "', 1))""", SOUND),
    Target("has a sys.path of 20,000 entries",
           """say(answer.replace('["', '[' + '"/nowhere", ' * 20000 + '"', 1))""", SOUND),
)  # fmt: skip
"""What the target interpreter may do."""

_LIBRARY = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int deep;
static int sink(int at) { char page[4096]; memset(page, at, sizeof page); deep = page[at & 7];
                          return sink(at + 1) + deep + page[0]; }
static void misbehave(void) { (void)sink; %(way)s }
%(where)s
"""
_IN_CONSTRUCTOR = "__attribute__((constructor)) static void begin(void) { misbehave(); }"
_IN_CALL = """
int nvmlInitWithFlags(unsigned flags) { (void)flags; misbehave(); return 0; }
int nvmlInit_v2(void) { misbehave(); return 0; }
int cuInit(unsigned flags) { (void)flags; misbehave(); return 0; }
"""


class Library(NamedTuple):
    """A library that does something else than it should, when it is loaded or when it is called."""

    how: str
    code: str
    waits: bool = False


def _sends(text: str, length: int) -> str:
    """Return code that writes bytes, a literal of C, into every descriptor but the streams."""
    return f'for (int at = 3; at < 64; at++) if (write(at, "{text}", {length})) {{}}'


LIBRARIES = (
    Library("exits with 0", "_exit(0);"),
    Library("exits with 3 by exit()", "exit(3);"),
    Library("aborts", "abort();"),
    Library("raises SIGSEGV", "*(volatile int *)8 = 1;"),
    Library("raises SIGKILL", "raise(SIGKILL);"),
    Library("raises SIGTERM", "raise(SIGTERM);"),
    Library("raises SIGINT", "raise(SIGINT); sleep(1);"),
    Library("raises SIGBUS", "raise(SIGBUS);"),
    Library("hangs", "for (;;) sleep(1000);", waits=True),
    Library("hangs with all signals blocked",
            "sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, 0); for (;;) pause();",
            waits=True),
    Library("stops its process", "raise(SIGSTOP);", waits=True),
    Library("burns its processor", "for (;;) deep++;", waits=True),
    Library("exhausts the stack", "deep = sink(1);"),
    Library("closes every descriptor", "for (int at = 0; at < 1024; at++) close(at);"),
    Library("writes into every descriptor", _sends(r"\377\377\377\377garbage", 11)),
    Library("announces a message of 4 GiB", _sends(r"a\377\377\377\377", 5)),
    Library("sends an answer that is none", _sends(r"a\0\0\0\3xyz", 8)),
    Library("sends an answer of another form", _sends(r"a\0\0\0\2\221\1", 7)),
    Library("names a stage that is not UTF-8", _sends(r"s\0\0\0\2\377\200", 7)),
    Library("names a process that is none", _sends(r"p\0\0\0\2-1", 7)),
    Library("says that the probe is done", _sends(r"e\0\0\0\0", 5)),
    Library("prints 300 MB", "char page[4096]; memset(page, 'x', sizeof page);"
            "for (int at = 0; at < 75000; at++) if (write(1, page, sizeof page)) {}"),
    Library("leaves a child", "if (fork() == 0) { for (;;) sleep(1000); }"),
    Library("forbids open files", "struct rlimit none = {0, 0}; setrlimit(RLIMIT_NOFILE, &none);"),
)  # fmt: skip


def build_library(library: Library, path: Path, *, when: Literal["loaded", "called"]) -> None:
    """Compile a library that misbehaves; skip the test where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler")
    where = _IN_CONSTRUCTOR if when == "loaded" else _IN_CALL
    path.unlink()
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O0", "-w", "-x", "c", "-", "-o", str(path)],
        input=(_LIBRARY % {"way": library.code, "where": where}).encode(),
        check=True,
    )
