# ruff: noqa: INP001, TID251  # a script of this repository, which starts processes
"""Fuzzes every reader for hours: ``python tools/fuzz.py --hours 3 --out fuzz-out``.

Each target of ``tests/fuzz`` gets the same share of the processor time, in a process of its own
that may crash or hang. With atheris (``pip install atheris``) inputs are chosen by the code that
they reach; without it they are mutated samples. What fails is tried again in a fresh process, made
smaller, and kept in ``OUT/failures/TARGET`` with its traceback. ``OUT/figures.json`` adds up what
all runs have done.
"""

import argparse
import contextlib
import hashlib
import json
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "fuzz")]
from fuzz_all import all_targets, kept  # noqa: E402
from fuzz_mutation import mutate  # noqa: E402
from fuzz_target import LARGEST, Target, feed  # noqa: E402

_SLICE = 180.0
"""Seconds of processor time for which a target runs before it is the next one's turn."""
_HANGS = 30
"""Seconds of processor time after which an input is interrupted; one of ours may need five."""
_SILENT = 180.0
"""Seconds without a new input, in which processor time was used, after which a child is killed."""
_NEVER = 1_000_000
"""Seconds, of the clock on the wall, after which atheris itself would end the process."""
_ADDRESS_SPACE = 4 << 30
_MOST_FAILURES = 40
"""Kinds of failures of a target that are kept."""
_SHRINK_SECONDS = 60.0
_AGAIN = 1000
"""Without atheris: of so many inputs one is altered further."""
_FIGURES = "figures.json"
_HEAD = struct.Struct("<QdI")
"""Inputs so far, their processor time in seconds, and the length of the input that follows."""


class HangError(BaseException):
    """An input took too long; no handler of errors in gpucheck may take it for one of its own."""


class Notes:
    """What a child is doing, in memory that its parent sees, whatever becomes of the child."""

    def __init__(self, file: Path) -> None:
        if not file.is_file() or file.stat().st_size != _HEAD.size + LARGEST:
            file.write_bytes(bytes(_HEAD.size + LARGEST))
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 0)

    def clear(self) -> None:
        """Forget what an earlier child has done."""
        self._map[: _HEAD.size] = bytes(_HEAD.size)

    def begin(self, data: bytes, count: int, seconds: float) -> None:
        """Note an input before it is tried."""
        self._map[: _HEAD.size + len(data)] = _HEAD.pack(count, seconds, len(data)) + data

    def read(self) -> tuple[int, float, bytes]:
        """Return the inputs so far, their seconds, and the last one."""
        count, seconds, length = _HEAD.unpack_from(self._map)
        return count, seconds, self._map[_HEAD.size : _HEAD.size + length]


def key_of(error: BaseException) -> str:
    """Return what two failures of the same cause have in common."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if f"{os.sep}gpucheck{os.sep}" in frame.filename] or frames
    place = f"{Path(own[-1].filename).name}:{own[-1].name}" if own else ""
    return f"{type(error).__name__} {place}"


def guarded(target: Target, data: bytes) -> tuple[str, str]:
    """Try an input; return the key of its failure and the traceback, "" where there is none."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise HangError(f"more than {_HANGS} s")

    signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, _HANGS)
    try:
        feed(target, data)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # whatever a reader raises is what we look for
        return key_of(error), "".join(traceback.format_exception(error))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "", ""


class Child:
    """Runs one target until its processor time is over."""

    def __init__(self, target: Target, out: Path, seconds: float, seed: int) -> None:
        self._target = target
        self._out = out
        self._seconds = seconds
        self._seed = seed
        self._notes = Notes(out / f"{target.name}.now")
        self._seeds = [
            *target.seeds(),
            *(file.read_bytes()[:LARGEST] for file in kept(target.name)),
        ]
        self._seen: set[str] = set()
        self._count = 0
        self._begun = time.process_time()

    def run(self, atheris: Any) -> NoReturn:  # noqa: ANN401  # a module without types, or None
        """Fuzz, with atheris where it is installed."""
        if atheris is None:
            self._alone()
        self._guided(atheris)

    def _alone(self) -> NoReturn:
        chance = random.Random(self._seed)  # noqa: S311  # to be repeated
        pool = list(self._seeds)
        while True:
            data = mutate(chance.choice(pool), self._target.form, chance, pool, self._target.words)
            self._try(data)
            if not self._count % _AGAIN:
                pool = [*self._seeds, *pool[-50:], data]

    def _guided(self, atheris: Any) -> NoReturn:  # noqa: ANN401  # a module without types
        target, corpus = self._target, self._out / "corpus" / self._target.name
        corpus.mkdir(parents=True, exist_ok=True)
        for data in self._seeds:
            (corpus / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)

        def mutated(data: bytes, size: int, seed: int) -> bytes:
            chance = random.Random(seed)  # noqa: S311
            if chance.random() < (0.5 if target.form == "bytes" else 0.15):
                return bytes(atheris.Mutate(data, size))
            return mutate(data, target.form, chance, self._seeds, target.words)[:size]

        words = self._out / f"{target.name}.dict"
        lines = ['"' + "".join(f"\\x{byte:02x}" for byte in word) + '"' for word in target.words]
        words.write_text("\n".join(lines) + "\n")
        options = [
            f"-seed={self._seed}", f"-max_len={LARGEST}", f"-timeout={_NEVER}", f"-dict={words}",
            f"-artifact_prefix={self._out}/", "-rss_limit_mb=0", "-verbosity=0", "-len_control=0",
        ]  # fmt: skip
        atheris.Setup(["fuzz", *options, str(corpus)], self._try, custom_mutator=mutated)
        atheris.Fuzz()
        sys.exit("the fuzzer came to an end by itself")

    def _try(self, data: bytes) -> None:
        used = time.process_time() - self._begun
        self._notes.begin(data, self._count, used)
        if used > self._seconds:
            sys.stdout.flush()
            os._exit(0)  # atheris would call it a crash
        self._count += 1
        key, report = guarded(self._target, data)
        if key and key not in self._seen and len(self._seen) < _MOST_FAILURES:
            self._seen.add(key)
            suspect(self._out, self._target.name, data, key, report)


def suspect(out: Path, name: str, data: bytes, key: str, report: str) -> None:
    """Keep an input that failed until it has failed in a fresh process, too."""
    folder = out / "suspects" / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()[:12]
    file.write_bytes(data)
    file.with_suffix(".txt").write_text(
        f"{key}\n{report}", encoding="utf-8", errors="backslashreplace"
    )


def shrunk(target: Target, data: bytes, key: str) -> bytes:
    """Return a smaller input that fails in the same way."""
    end = time.monotonic() + _SHRINK_SECONDS
    size = len(data) // 2
    while size and time.monotonic() < end:
        at, before = 0, len(data)
        while at < len(data) and time.monotonic() < end:
            less = data[:at] + data[at + size :]
            if guarded(target, less)[0] == key:
                data = less
            else:
                at += size
        if len(data) == before or size > len(data):
            size //= 2
    return data


def replay(target: Target, file: Path) -> None:
    """Try one input in this fresh process; print the key of its failure and keep it smaller."""
    data = file.read_bytes()[:LARGEST]
    key, report = guarded(target, data)
    if not key:
        return
    if not key.startswith(("HangError", "TooMuchError")):
        data = shrunk(target, data, key)
        key, report = guarded(target, data)
        file.with_suffix(".small").write_bytes(data)
    print(key, report, sep="\n")


def figures_in(out: Path) -> dict[str, Any]:
    """Return what all runs with this folder have done, by target."""
    file = out / _FIGURES
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found


def table(figures: dict[str, Any]) -> str:
    """Return the figures as a table of Markdown, as ``docs/evidence.md`` has it."""
    rows = [
        (name, figure["inputs"], figure["cpu_seconds"] / 3600, len(figure["failures"]))
        for name, figure in sorted(figures.items())
    ]
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    lines = [f"| {name} | {n:,} | {hours:.2f} | {bad} |" for name, n, hours, bad in rows]
    return "\n".join(("| target | inputs | CPU-hours | failures |", "|---|---:|---:|---:|", *lines))


class Parent:
    """Gives each target its turn, and keeps what came of it."""

    def __init__(self, out: Path, names: list[str], hours: float, seed: int) -> None:
        self._out = out
        self._names = names
        self._share = hours * 3600 / len(names)
        self._seed = seed
        self._used = dict.fromkeys(names, 0.0)
        self._stopped = False
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Take turns until the hours are over."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        turn = 0
        while left := [name for name in self._names if self._used[name] < self._share - 1]:
            random.Random(self._seed).shuffle(left)  # noqa: S311  # all soon have a turn
            for name in left:
                turn += 1
                if self._stopped:
                    return
                self._turn(name, min(_SLICE, self._share - self._used[name]), self._seed + turn)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """Come to an end; what has been done so far is counted."""
        self._stopped = True
        if self._child is not None:
            self._child.terminate()

    def _turn(self, name: str, seconds: float, seed: int) -> None:
        notes = Notes(self._out / f"{name}.now")
        notes.clear()
        words = [f"--child={name}", f"--seconds={seconds}", f"--seed={seed}", f"--out={self._out}"]
        scratch = self._out / "tmp"  # a child that is killed leaves its files behind
        scratch.mkdir(exist_ok=True)
        with (self._out / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(  # noqa: S603  # this very file
                [sys.executable, __file__, *words], stdout=log, stderr=log, cwd=ROOT,
                stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(scratch)},
            )  # fmt: skip
            self._child = started
            why = _watched(started, notes, seconds)
            self._child = None
        shutil.rmtree(scratch, ignore_errors=True)
        count, used, last = notes.read()
        self._used[name] += max(used, 1.0)
        if why and not self._stopped:
            suspect(self._out, name, last, why, why)
            self._used[name] += seconds / 20  # a child that dies at once must not go on for ever
        failures = self._confirmed(name)
        figures = figures_in(self._out)
        figure = figures.setdefault(name, {"inputs": 0, "cpu_seconds": 0.0, "failures": {}})
        figure["inputs"] += count
        figure["cpu_seconds"] += used
        figure["failures"] |= failures
        file = self._out / _FIGURES
        new = file.with_suffix(".new")
        new.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        new.replace(file)
        summary = f"{name}: {count:,} inputs in {used:.0f} s, {len(failures)} failures"
        print(time.strftime("%H:%M:%S"), summary, *failures, sep="  ", flush=True)

    def _confirmed(self, name: str) -> dict[str, str]:
        """Try what failed once more, each in a fresh process; keep one input of each failure."""
        found: dict[str, str] = {}
        folder = self._out / "failures" / name
        for file in sorted((self._out / "suspects" / name).glob("*")):
            if file.suffix or not file.is_file():
                continue
            key, report = _replayed(name, file)
            if key:
                folder.mkdir(parents=True, exist_ok=True)
                small = file.with_suffix(".small")
                (small if small.is_file() else file).replace(folder / file.name)
                (folder / f"{file.name}.txt").write_text(f"{key}\n{report}", encoding="utf-8")
                found[key] = file.name
            for rest in (file, file.with_suffix(".txt"), file.with_suffix(".small")):
                rest.unlink(missing_ok=True)
        return found


def _replayed(name: str, file: Path) -> tuple[str, str]:
    command = [sys.executable, __file__, f"--child={name}", f"--replay={file}"]
    try:
        ran = subprocess.run(  # noqa: S603  # this very file
            command, capture_output=True, text=True, errors="replace", cwd=ROOT, timeout=900,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "hangs", ""
    if ran.returncode < 0:
        return f"killed by signal {-ran.returncode}", ran.stderr[-2000:]
    key, _, report = ran.stdout.partition("\n")
    return key, report


def _watched(started: "subprocess.Popen[bytes]", notes: Notes, seconds: float) -> str:
    """Wait for a child; return why it is over, "" where its time was."""
    before, since = notes.read()[0], time.monotonic()
    cpu = _cpu(started.pid)
    while (status := started.poll()) is None:
        time.sleep(0.5)
        now = notes.read()[0]
        if now != before:
            before, since, cpu = now, time.monotonic(), _cpu(started.pid)
        elif time.monotonic() - since > _SILENT and _cpu(started.pid) - cpu > 2 * _HANGS:
            started.kill()
            started.wait()
            return "hangs"
        elif time.monotonic() - since > 20 * _SILENT + seconds:
            started.kill()
            started.wait()
            return "waits for ever"
    if status == 0:
        return ""
    return f"killed by signal {-status}" if status < 0 else f"ended with {status}"


def _cpu(pid: int) -> float:
    """Return the seconds of processor time of a process."""
    with contextlib.suppress(OSError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def main() -> None:
    """Run as the parent, or as the child that it starts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=float, default=1.0, help="processor time of all together")
    parser.add_argument("--target", action="append", help="only this one; repeat it for each")
    parser.add_argument("--seed", type=int, default=None, help="by default another for each run")
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"))
    parser.add_argument("--figures", action="store_true", help="only show those of the folder")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=60.0, help=argparse.SUPPRESS)
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _be_child(options)
        return
    names = list(all_targets())
    for name in options.target or ():
        if name not in names:
            parser.error(f"there is no target {name!r}; these are: {', '.join(names)}")
    out = options.out.resolve()
    if options.figures:
        print(table(figures_in(out)))
        return
    out.mkdir(parents=True, exist_ok=True)
    seed = random.SystemRandom().randrange(1 << 30) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    Parent(out, options.target or names, options.hours, seed).run()
    print(table(figures_in(out)), flush=True)


def _be_child(options: argparse.Namespace) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if options.replay:
        replay(all_targets()[options.child], options.replay)
        return
    try:
        import atheris  # noqa: PLC0415  # an optional tool
    except ImportError:
        atheris = None
    with contextlib.nullcontext() if atheris is None else atheris.instrument_imports(["gpucheck"]):
        target = all_targets()[options.child]
    Child(target, options.out, options.seconds, options.seed).run(atheris)


if __name__ == "__main__":
    main()
