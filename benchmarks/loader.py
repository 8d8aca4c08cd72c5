"""Compares what gpucheck predicts of the dynamic loader with what the loader does.

    PYTHON_WITH_GPUCHECK benchmarks/loader.py PYTHON_WITH_TORCH ... [--conda-like FOLDER]

For each interpreter two comparisons are printed, with every difference (there must be none):

1. what ``import torch`` and a question to cuDNN have loaded, by ``/proc/self/maps``, against the
   section ``loading``;
2. for every shared object in its site-packages: a fork of one process opens it under
   ``LD_DEBUG=libs``; the file taken for each name that the loader searched for, the files that
   are mapped afterwards and the library that a failure names, against
   ``gpucheck.machine.binaries.loader``.

``--conda-like`` first makes a copy of the first interpreter's environment in which, as conda has
it, CUDA's libraries lie in PREFIX/lib and torch's DT_RPATH leads there (needs ``patchelf``).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gpucheck
from gpucheck.facts import Answer
from gpucheck.machine import LiveHost
from gpucheck.machine.binaries.loader import Process
from gpucheck.machine.candidates import TargetWish
from gpucheck.probes import interpreter as interpreter_probe
from gpucheck.probes import loading as loading_probe
from gpucheck.probes import torch_build
from gpucheck.probes.reading.process_libraries import missing_versions
from gpucheck.selftests.observed import compare
from gpucheck.tables.base import Tables
from gpucheck.tables.cuda import RuntimeOpens

_WORKER = Path(gpucheck.__file__).parent / "worker" / "loaded.py"
_FORKER = r"""
import ctypes, json, os, sys
dlopen = ctypes.CDLL(None).dlopen
dlopen.restype = ctypes.c_void_p
dlerror = ctypes.CDLL(None).dlerror
dlerror.restype = ctypes.c_char_p
def mapped():
    return sorted({l[l.find("/"):].rstrip() for l in open("/proc/self/maps")
                   if "/" in l and ".so" in l.rpartition("/")[2]})
before = mapped()
for path in json.load(sys.stdin):
    pid = os.fork()
    if pid == 0:
        done = dlopen(path.encode(), ctypes.c_int(1))
        error = "" if done else (dlerror() or b"").decode()
        line = {"pid": os.getpid(), "path": path, "error": error, "maps": mapped()}
        os.write(1, (json.dumps(line) + "\n").encode())
        os._exit(0)
    os.waitpid(pid, 0)
os.write(1, (json.dumps({"before": before}) + "\n").encode())
"""
_WHERE = """
import json, sys, sysconfig
version = "python%d.%d" % sys.version_info[:2]
print(json.dumps([sys.base_prefix, sysconfig.get_path("platlib"), version]))
"""
_WITH_CONSTRUCTOR = "libtorch_cpu.so"
_SEARCHED = re.compile(r"find library=(\S+) \[")
_TRIED = re.compile(r"trying file=(\S+)")


def main() -> int:
    """Compare, print, and fail when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("python", nargs="+")
    parser.add_argument("--conda-like", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    pythons = list(arguments.python)
    if arguments.conda_like is not None:
        pythons.append(make_conda_like(pythons[0], arguments.conda_like))
    differences = 0
    for python in pythons:
        differences += torch_against_maps(python) + objects_against_debug(python)
    print(f"{differences} differences in all")
    return int(differences > 0)


def torch_against_maps(python: str) -> int:
    """Compare the section ``loading`` with the maps of a process that imported torch."""
    host = LiveHost()
    interpreter = interpreter_probe.collect(host, TargetWish(python=python))
    torch = torch_build.collect(host, interpreter)
    opens = Tables().get(RuntimeOpens)
    start = time.perf_counter()
    predicted = loading_probe.collect(host, interpreter, torch, opens)
    seconds = time.perf_counter() - start
    said = subprocess.run(
        [python, str(_WORKER), "MARK"], capture_output=True, text=True, check=False
    )
    answer: dict[str, Any] = json.loads(said.stdout.split("MARK")[1])
    found = compare(predicted, answer["libraries"])
    error = f" ({answer['error']})" if answer["error"] else ""
    print(
        f"{python}: torch {torch.version}, cuDNN {answer['cudnn']}{error}: "
        f"{len(predicted.libraries or [])} libraries predicted in {seconds * 1000:.0f} ms, "
        f"{len(found)} differences from /proc/self/maps"
    )
    if predicted.libraries is None:
        print(f"    unknown: {predicted.problem('libraries')}")
    for one in found:
        print(
            f"    {one.soname}: predicted {one.predicted or 'none'}, loaded {one.loaded or 'none'}"
        )
    for missing in predicted.missing or ():
        print(
            f"    predicted to be missing: {missing.soname} for {missing.needed_by}: {missing.why}"
        )
    return len(found) + (predicted.libraries is None)


def objects_against_debug(python: str) -> int:
    """Compare every shared object of an environment with what LD_DEBUG=libs tells."""
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    objects = sorted(str(path) for path in Path(packages).rglob("*.so*") if path.is_file())
    objects = [path for path in objects if _is_elf(path)]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        env = {**os.environ, "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(log)}
        said = subprocess.run(
            [python, "-c", _FORKER], input=json.dumps(objects),
            capture_output=True, text=True, check=True, env=env,
        )  # fmt: skip
        text = "".join(file.read_text(errors="replace") for file in Path(folder).glob("log.*"))
    lines = [json.loads(line) for line in said.stdout.splitlines()]
    before = next(set(line["before"]) for line in lines if "before" in line)
    chosen = _chosen(text)
    searched = differing = 0
    answers = [line for line in lines if "path" in line]
    host = _Remembering()
    base = Process(host, python)
    constructors = _constructors(host, python)
    for line in answers:
        picks = chosen.get(line["pid"], {})
        searched += len(picks)
        for difference in _differences(base, constructors, line, picks, before):
            differing += 1
            print(f"    {line['path']}: {difference}")
    crashed = len(objects) - len(answers)
    print(
        f"{python}: {len(answers)} shared objects opened, {searched} names searched for, "
        f"{differing} differences from LD_DEBUG=libs{f', {crashed} crashed' if crashed else ''}"
    )
    return differing


def _constructors(host: LiveHost, python: str) -> list[str]:
    """Return what a constructor of libtorch_cpu opens in this release of torch, by the table."""
    interpreter = interpreter_probe.collect(host, TargetWish(python=python))
    release = (torch_build.collect(host, interpreter).version or "").partition("+")[0]
    rows = Tables().get(RuntimeOpens).opened_by(_WITH_CONSTRUCTOR, release, "")
    return [row.opened for row in rows if row.kind == "torch"]


def _differences(
    base: Process,
    constructors: list[str],
    line: dict[str, Any],
    picks: dict[str, str],
    before: set[str],
) -> list[str]:
    """Return in what opening one file differs from the prediction."""
    state = base.save()
    opened = base.open(line["path"])
    cpu = next((one for one in opened.added if one.label == _WITH_CONSTRUCTOR), None)
    for name in constructors if cpu is not None and not opened.lost else ():
        opened.added.extend(base.open(name, cpu, needed_by=_WITH_CONSTRUCTOR).added)
    base.restore(state)
    error = line["error"]
    # Some objects need the symbols of others that torch has loaded: the search went well.
    alone = "undefined symbol" in error
    lacking = [lack.name for lack in missing_versions(opened.added)]
    if lacking:  # all is found, and does not fit: the loader gives up
        told = any(f"version `{name}' not found" in error for name in lacking)
        return [] if told else [f"predicted that {lacking} are lacking, got {error or 'success'}"]
    if bool(opened.lost) != bool(error) and not alone:
        return [f"predicted {opened.lost or 'success'}, the loader says {error or 'success'}"]
    if error and not alone:
        lost = opened.lost[0]
        named = (lost.path if lost.why != "not found" else "") or lost.name
        return [] if named in error else [f"predicted {lost}, got {error}"]
    predicted = {one.name: os.path.realpath(one.path) for one in opened.added}
    found = [
        f"{name}: predicted {predicted.get(name, 'nothing')}, LD_DEBUG says {path}"
        for name, path in picks.items()
        if predicted.get(name) != os.path.realpath(path)
    ]
    if alone:
        return found
    mapped = {path for path in line["maps"] if path not in before}
    files = {os.path.realpath(one.path) for one in opened.added} - before
    found += [f"mapped, not predicted: {path}" for path in sorted(mapped - files)]
    found += [f"predicted, not mapped: {path}" for path in sorted(files - mapped)]
    return found


def _chosen(text: str) -> dict[int, dict[str, str]]:
    """Return for each process which file was taken for each name: the last that was tried."""
    names: dict[int, str] = {}
    found: dict[int, dict[str, str]] = {}
    for line in text.splitlines():
        head, _, rest = line.strip().partition(":")
        if not head.isdecimal():
            continue
        pid = int(head)
        if match := _SEARCHED.search(rest):
            names[pid] = match[1]
        elif (match := _TRIED.search(rest)) and Path(match[1]).is_file():
            found.setdefault(pid, {})[names.get(pid, "")] = match[1]
    return found


def _is_elf(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(4) == b"\x7fELF"


class _Remembering(LiveHost):
    """A live host that asks for a path only once: hundreds of objects have the same folders."""

    def __init__(self) -> None:
        super().__init__()
        self._stats: dict[str, Answer[Any]] = {}

    def stat(self, path: str) -> Answer[Any]:
        """Describe what is at the path, links followed."""
        if path not in self._stats:
            self._stats[path] = super().stat(path)
        return self._stats[path]


def make_conda_like(python: str, folder: Path) -> str:
    """Make an environment whose CUDA libraries lie in PREFIX/lib; return its interpreter."""
    base, packages, version = json.loads(subprocess.run(
        [python, "-c", _WHERE],
        capture_output=True, text=True, check=True,
    ).stdout)  # fmt: skip
    if not folder.exists():
        without = shutil.ignore_patterns("site-packages")
        shutil.copytree(base, folder, symlinks=True, copy_function=os.link, ignore=without)
        (folder / "conda-meta").mkdir()
        site = folder / "lib" / version / "site-packages"
        shutil.copytree(packages, site, symlinks=True, copy_function=os.link)
        for library in site.glob("nvidia/*/lib/*.so*"):
            library.rename(folder / "lib" / library.name)
        shutil.rmtree(site / "nvidia")
        for library in (*site.glob("torch/lib/*.so*"), *site.glob("torch/_C*.so")):
            private = library.with_suffix(".private")
            shutil.copy(library, private)
            private.replace(library)
            up = "../../.." if library.parent.name == "torch" else "../../../.."
            subprocess.run(
                ["patchelf", "--force-rpath", "--set-rpath",  # noqa: S607  # from PATH
                 f"$ORIGIN:$ORIGIN/lib:$ORIGIN/{up}", str(library)],
                check=True,
            )  # fmt: skip
    return str(folder / "bin" / version)


if __name__ == "__main__":
    sys.exit(main())
