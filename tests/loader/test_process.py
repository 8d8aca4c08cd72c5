"""The dynamic loader's rules on made-up machines, and once against the real loader."""

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from each import each
from elf_support import elf, program
from support import machine

from gpucheck.machine import LiveHost
from gpucheck.machine.binaries.library_search import lookup
from gpucheck.machine.binaries.loader import Process

LOADER = "/lib64/ld-linux-x86-64.so.2"
PYTHON = "/usr/bin/python3"
AARCH64 = 183


def process(
    folder: Path,
    files: Mapping[str, bytes],
    *,
    env: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
    python: bytes | None = None,
) -> Process:
    host = machine(
        folder,
        files={
            PYTHON: python or program("libc.so.6"),
            LOADER: elf(soname="ld-linux-x86-64.so.2"),
            "/lib/x86_64-linux-gnu/libc.so.6": elf("ld-linux-x86-64.so.2", soname="libc.so.6"),
            **files,
            **(texts or {}),
        },
        env=env,
        links=links,
        host={"identity": {"os": "linux", "machine": "x86_64", "cwd": "/home/me"}},
    )
    return Process(host, PYTHON)


def taken(found: Process, opened: str, name: str) -> tuple[str, str]:
    """Return path and way of a need of what is opened."""
    library = found.open(opened).library
    assert library is not None
    need = found.loaded_as(name)
    assert need is not None
    return need.path, need.via


def test_the_start_of_a_process(tmp_path: Path) -> None:
    found = process(tmp_path, {})
    assert found.problem == ""
    assert [library.path for library in found.loaded] == [
        PYTHON, LOADER, "/lib/x86_64-linux-gnu/libc.so.6",
    ]  # fmt: skip
    assert found.loaded[2].via == "default"


A, B, C = "/a/libx.so.1", "/b/libx.so.1", "/c/libx.so.1"
COPIES = {path: elf(soname="libx.so.1") for path in (A, B, C)}


def test_rpath_counts_more_than_the_variable_and_runpath_less(tmp_path: Path) -> None:
    files = {
        **COPIES,
        "/t/by_rpath.so": elf("libx.so.1", rpath="/a"),
        "/t/by_runpath.so": elf("libx.so.1", runpath="/a"),
        "/t/by_both.so": elf("libx.so.1", rpath="/c", runpath="/a"),
    }
    env = {"LD_LIBRARY_PATH": "/b"}
    assert taken(process(tmp_path / "1", files, env=env), "/t/by_rpath.so", "libx.so.1") == (
        A, "rpath",
    )  # fmt: skip
    for name in ("by_runpath", "by_both"):
        found = process(tmp_path / name, files, env=env)
        assert taken(found, f"/t/{name}.so", "libx.so.1") == (B, "LD_LIBRARY_PATH")
    without = process(tmp_path / "2", files)
    assert taken(without, "/t/by_both.so", "libx.so.1") == (A, "runpath")


def test_the_rpath_of_those_that_load_and_of_the_program(tmp_path: Path) -> None:
    files = {
        **COPIES,
        "/t/top.so": elf("libmid.so", rpath="/a:/m"),
        "/m/libmid.so": elf("libx.so.1", soname="libmid.so"),
    }
    assert taken(process(tmp_path / "1", files), "/t/top.so", "libx.so.1") == (A, "rpath")
    # With a DT_RUNPATH of its own no DT_RPATH counts for it any more.
    files["/m/libmid.so"] = elf("libx.so.1", soname="libmid.so", runpath="/b")
    assert taken(process(tmp_path / "2", files), "/t/top.so", "libx.so.1") == (B, "runpath")
    files = {**COPIES, "/t/top.so": elf("libx.so.1")}
    python = program("libc.so.6", rpath="/c")
    found = process(tmp_path / "3", files, python=python, env={"LD_LIBRARY_PATH": "/b"})
    assert taken(found, "/t/top.so", "libx.so.1") == (C, "rpath")


def test_a_name_that_is_loaded_already_is_not_searched_for(tmp_path: Path) -> None:
    files = {**COPIES, "/t/top.so": elf("libx.so.1", runpath="/a")}
    found = process(tmp_path, files, env={"LD_LIBRARY_PATH": "/b"})
    first = found.open(C, via="preload").library
    assert first is not None
    assert taken(found, "/t/top.so", "libx.so.1") == (C, "preload")


def test_the_file_counts_not_its_path(tmp_path: Path) -> None:
    files = {"/a/libx.so.1.2": elf(soname="other"), "/t/top.so": elf("libx.so.1", runpath="/b")}
    links = {"/b/libx.so.1": "/a/libx.so.1.2"}
    found = process(tmp_path, files, links=links)
    first = found.open("/a/libx.so.1.2").library
    top = found.open("/t/top.so")
    assert top.library is not None
    assert top.library.needs["libx.so.1"] is first
    assert [library.path for library in top.added] == ["/t/top.so"]


def test_origin_lib_and_relative_entries(tmp_path: Path) -> None:
    files = {
        **COPIES,
        "/o/lib/top.so": elf("libx.so.1", rpath="$ORIGIN/../../a"),
        "/o/lib/braces.so": elf("libx.so.1", runpath="${ORIGIN}/../../a:"),
        "/o/lib/token.so": elf("liby.so", runpath="/y/$LIB"),
        "/y/lib/x86_64-linux-gnu/liby.so": elf(),
        "/o/lib/here.so": elf("libz.so", runpath=":/nowhere"),
        "/home/me/libz.so": elf(),
    }
    for name in ("top", "braces"):
        found = process(tmp_path / name, files)
        path, _via = taken(found, f"/o/lib/{name}.so", "libx.so.1")
        assert path == "/o/lib/../../a/libx.so.1"
    found = process(tmp_path / "token", files)
    assert taken(found, "/o/lib/token.so", "liby.so")[0] == "/y/lib/x86_64-linux-gnu/liby.so"
    found = process(tmp_path / "here", files)
    assert taken(found, "/o/lib/here.so", "libz.so")[0] == "/home/me/./libz.so"


def test_what_may_not_be_read_is_passed_over_and_told(tmp_path: Path) -> None:
    """The loader goes on after EACCES; only when nothing is found it matters what that hid."""
    no = "EACCES: Permission denied"
    files = {"/t/top.so": elf("libx.so.1", rpath="/a:/b")}

    def found(name: str, more: Mapping[str, bytes]) -> Process:
        every = {PYTHON: program("libc.so.6"), LOADER: elf(), **files, **more}
        every["/lib/x86_64-linux-gnu/libc.so.6"] = elf(soname="libc.so.6")
        record = {
            "identity": {"os": "linux", "machine": "x86_64", "cwd": "/home/me"}, "problems": {A: no}
        }  # fmt: skip
        return Process(machine(tmp_path / name, files=every, host=record), PYTHON)

    assert taken(found("1", {B: COPIES[B]}), "/t/top.so", "libx.so.1") == (B, "rpath")
    (lost,) = found("2", {}).open("/t/top.so").lost
    assert (lost.name, lost.why, lost.denied) == ("libx.so.1", "not found", (A,))


def test_better_processors_have_folders_of_their_own(tmp_path: Path) -> None:
    files = {
        "/a/libx.so.1": elf(),
        "/a/glibc-hwcaps/x86-64-v3/libx.so.1": elf(),
        "/a/glibc-hwcaps/x86-64-v4/libx.so.1": elf(),
        "/t/top.so": elf("libx.so.1", runpath="/a"),
    }
    v3 = "flags\t: cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe\n"
    found = process(tmp_path / "1", files, texts={"/proc/cpuinfo": v3})
    assert taken(found, "/t/top.so", "libx.so.1")[0] == "/a/glibc-hwcaps/x86-64-v3/libx.so.1"
    found = process(tmp_path / "2", files, texts={"/proc/cpuinfo": "flags\t: sse2\n"})
    assert taken(found, "/t/top.so", "libx.so.1")[0] == "/a/libx.so.1"


def test_a_file_for_another_machine_is_passed_over_and_a_damaged_one_is_not(
    tmp_path: Path,
) -> None:
    files = {**COPIES, "/t/top.so": elf("libx.so.1", rpath="/a:/b")}
    other = {**files, A: elf(machine=AARCH64)}
    assert taken(process(tmp_path / "1", other), "/t/top.so", "libx.so.1") == (B, "rpath")
    damaged = {**files, A: b"\x7fELF"}
    opened = process(tmp_path / "2", damaged).open("/t/top.so")
    assert opened.library is None
    assert [(lost.name, lost.why, lost.path) for lost in opened.lost] == [
        ("libx.so.1", "file too short", A)
    ]
    by_path = process(tmp_path / "3", other).open(A)
    assert [lost.why for lost in by_path.lost] == ["wrong architecture"]


def test_a_failure_leaves_nothing_loaded_and_names_every_lack(tmp_path: Path) -> None:
    files = {
        **COPIES,
        "/t/top.so": elf("libx.so.1", "libgone.so", "libmid.so", rpath="/a:/t"),
        "/t/libmid.so": elf("libgone2.so", soname="libmid.so"),
    }
    found = process(tmp_path, files)
    before = [library.path for library in found.loaded]
    opened = found.open("/t/top.so")
    assert opened.library is None
    assert [(lost.name, lost.needed_by) for lost in opened.lost] == [
        ("libgone.so", "top.so"), ("libgone2.so", "libmid.so"),
    ]  # fmt: skip
    assert opened.lost[0].searched == ("rpath", "ld.so.cache", "default")
    assert [library.path for library in found.loaded] == before
    assert found.loaded_as("libx.so.1") is None


def test_needs_are_met_breadth_first(tmp_path: Path) -> None:
    files = {
        "/t/top.so": elf("libone.so", "libtwo.so", rpath="/t"),
        "/t/libone.so": elf("libx.so.1", soname="libone.so", runpath="/b"),
        "/t/libtwo.so": elf("libx.so.1", soname="libtwo.so", runpath="/a"),
        **COPIES,
    }
    opened = process(tmp_path, files).open("/t/top.so")
    assert [library.path for library in opened.added] == [
        "/t/top.so", "/t/libone.so", "/t/libtwo.so", B,
    ]  # fmt: skip
    assert opened.added[3].needed_by == "libone.so"


@each("separator", [" ", ":"])
def test_ld_preload(tmp_path: Path, separator: str) -> None:
    files = {**COPIES, "/t/top.so": elf("libx.so.1", rpath="/a"), "/p/liby.so": elf()}
    env = {"LD_PRELOAD": separator.join(("/p/liby.so", B, "/p/gone.so"))}
    found = process(tmp_path, files, env=env)
    assert [library.path for library in found.loaded][2:4] == ["/p/liby.so", B]
    assert taken(found, "/t/top.so", "libx.so.1") == (B, "LD_PRELOAD")


def test_the_file_of_preloads(tmp_path: Path) -> None:
    found = process(tmp_path, COPIES, texts={"/etc/ld.so.preload": f"# a comment\n{A} \n"})
    assert [(library.path, library.via) for library in found.loaded][2] == (A, "ld.so.preload")


def test_without_default_folders(tmp_path: Path) -> None:
    files = {
        "/lib/x86_64-linux-gnu/libx.so.1": elf(),
        "/t/top.so": elf("libx.so.1", no_default_folders=True),
    }
    assert process(tmp_path, files).open("/t/top.so").library is None


def test_every_copy_on_the_way_is_named(tmp_path: Path) -> None:
    files = {**COPIES, "/t/top.so": elf("libx.so.1", rpath="/a")}
    found = process(tmp_path, files, env={"LD_LIBRARY_PATH": "/b:/a:/none"})
    top = found.open("/t/top.so").library
    assert found.candidates("libx.so.1", top) == [A, B]


@each(
    ("python", "why"),
    [
        (program("libc.so", interpreter="/lib/ld-musl-x86_64.so.1"), "musl"),
        (program("libc.so.6", interpreter="/nix/store/x-glibc/lib/ld-linux-x86-64.so.2"), "/nix/"),
        (elf("libc.so.6"), "not a program"),
        (b'#!/bin/sh\nexec python3 "$@"\n' * 4, "not recorded"),
    ],
)
def test_other_loaders_are_unknown(tmp_path: Path, python: bytes, why: str) -> None:
    found = process(tmp_path, {}, python=python)
    assert why in found.problem
    assert found.loaded == []


def test_a_circle_of_needs_ends(tmp_path: Path) -> None:
    files = {
        "/t/liba.so": elf("libb.so", soname="liba.so", rpath="/t"),
        "/t/libb.so": elf("liba.so", soname="libb.so", rpath="/t"),
    }
    opened = process(tmp_path, files).open("/t/liba.so")
    assert [library.path for library in opened.added] == ["/t/liba.so", "/t/libb.so"]


@pytest.mark.process
def test_the_start_of_this_very_interpreter() -> None:
    """What /proc/self/maps tells of a fresh process is what was predicted."""
    if sys.platform != "linux":
        pytest.skip("only Linux has this loader")
    found = Process(LiveHost(), sys.executable)
    if found.problem:
        pytest.skip(found.problem)
    code = "print(open('/proc/self/maps').read())"
    maps = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    mapped = {line[line.find("/") :] for line in maps.splitlines() if ".so" in line}
    predicted = {os.path.realpath(library.path) for library in found.loaded if not library.is_main}
    assert predicted <= mapped
    assert {path for path in mapped - predicted if "lib-dynload" not in path} == set()


@pytest.mark.process
def test_against_the_real_loader(tmp_path: Path) -> None:
    """Libraries made by the compiler, with every kind of path, opened for real."""
    compiler = shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no gcc")
    for folder in ("a", "b", "t"):
        (tmp_path / folder).mkdir()
    source = tmp_path / "x.c"
    source.write_text("int x(void) { return 1; }\n")

    def build(path: str, *options: str) -> None:
        words = [compiler or "", "-shared", "-o", str(tmp_path / path), str(source), *options]
        subprocess.run([*words, "-Wl,--no-as-needed"], check=True)

    for folder in ("a", "b"):
        build(f"{folder}/libx.so", "-Wl,-soname,libx.so")
    link = (f"-L{tmp_path}/a", "-Wl,--no-as-needed", "-lx")
    old, new = "-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"
    build("t/libmid.so", "-Wl,-soname,libmid.so", *link)
    build("t/rpath.so", *link, old, "-Wl,-rpath,$ORIGIN/../a")
    build("t/runpath.so", *link, new, "-Wl,-rpath,$ORIGIN/../a")
    middle = (f"-L{tmp_path}/t", "-Wl,--no-as-needed", "-lmid")
    build("t/chain.so", *middle, old, "-Wl,-rpath,$ORIGIN:$ORIGIN/../a")
    build("t/nochain.so", *middle, new, "-Wl,-rpath,$ORIGIN:$ORIGIN/../a")
    code = (
        "import ctypes, sys; ctypes.CDLL(sys.argv[1]); "
        "print([l.split()[-1] for l in open('/proc/self/maps') if 'libx.so' in l][0])"
    )
    for variable in ("", f"{tmp_path}/b"):
        env = {**os.environ, "LD_LIBRARY_PATH": variable}
        for name in ("rpath", "runpath", "chain", "nochain"):
            path = str(tmp_path / "t" / f"{name}.so")
            ran = subprocess.run(
                [sys.executable, "-c", code, path],
                capture_output=True, text=True, check=False, env=env,
            )  # fmt: skip
            host = _WithVariable(variable)
            opened = Process(host, sys.executable).open(path)
            found = [
                os.path.realpath(library.path) for library in opened.added if "libx" in library.path
            ]
            assert found == ([ran.stdout.strip()] if ran.returncode == 0 else []), name
            assert (opened.library is None) == (ran.returncode != 0), name


class _WithVariable(LiveHost):
    """This machine with another LD_LIBRARY_PATH."""

    def __init__(self, value: str) -> None:
        super().__init__()
        self._value = value

    def env(self) -> Mapping[str, str]:
        return {**os.environ, "LD_LIBRARY_PATH": self._value}


def test_a_name_that_is_not_utf_8_is_looked_up_by_its_bytes() -> None:
    name = b"lib\xff.so\x00"
    head = b"glibc-ld.so.cache1.1" + struct.pack("<II", 1, len(name)).ljust(28, b"\x00")
    at = len(head) + 24
    cache = head + struct.pack("<iIIIQ", 0x0303, at, at, 0, 0) + name
    assert lookup(cache, os.fsdecode(name[:-1]), "x86_64") == ["lib\ufffd.so"]
