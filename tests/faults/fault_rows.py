"""The table of faults: what is broken, how, and what must come of it."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal

from fault_stand import Stand
from fault_ways import (
    EITHER,
    FILES,
    LIBRARIES,
    PROGRAMS,
    RARE_SCRIPTS,
    SCRIPTS,
    TARGETS,
    Library,
    Make,
    Outcomes,
    Script,
    build_library,
)

DEADLINE, LONG = 1.0, 30.0
"""Seconds of a check in which something hangs, and of any other."""
TICKET = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
EVERY_STATUS = frozenset(range(-64, 256))
_SITE = "$venv/lib/python3.11/site-packages"
_INFO = f"{_SITE}/torch-2.6.0+cu124.dist-info"
_CODES = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
_PCI = "/sys/devices/pci0000:00/0000:00:01.0/0000:07:00.0"


@dataclasses.dataclass(frozen=True)
class Fault:
    """One row.

    Attributes:
        what: what is broken.
        how: in which way.
        make: breaks it.
        fact: the path of a fact that depends on it; "" for none.
        sound: its value on the sound machine.
        outcomes: what the check may say of the fact.
        causes: the root causes that the check may name, all of them true.
        crashed: the probes that may have crashed.
        options: more words of the command line.
        command: another command than the static check.
        statuses: the exit statuses that are right.
        says: what stands on stderr.
        start: how the user's shell starts the command.
        writes: whether there is a report on stdout.
        changes: a file that changes while it is read.
        leaves: whether a process is left on purpose, in a session of its own.
        seconds: the time that the command is given.
        crossed: whether a row of the same table breaks another thing in this way, and another
            one this thing: only ``pytest -m gate`` makes it.
    """

    what: str
    how: str
    make: Callable[[Stand], None] = lambda _stand: None
    fact: str = ""
    sound: Any = None
    outcomes: Outcomes = EITHER
    causes: frozenset[str] = frozenset()
    crashed: frozenset[str] = frozenset()
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    statuses: frozenset[int] = frozenset({0})
    says: str = ""
    start: str = 'exec "$@"'
    writes: bool = True
    changes: str = ""
    leaves: bool = False
    seconds: float = LONG
    crossed: bool = False

    @property
    def name(self) -> str:
        """The name of its test."""
        return f"{self.what} {self.how}"


HELPERS: dict[str, tuple[str, str, Any]] = {
    "nvidia-smi": ("nvidia_smi", "nvidia_smi.driver_release", "535.54.03"),
    "nvcc": ("toolkits", "toolkits.selected_version", "12.4.131"),
    "gcc": ("toolkits", "toolkits.compilers.0.version", "12.3.0"),
    "rpm": ("driver", "driver.packages", ["nvidia-driver-535.54.03"]),
    "journalctl": ("kernel_log", "kernel_log.nvrm", ["NVRM: loading NVIDIA UNIX x86_64 Kernel"]),
}
"""By program: the probe that runs it, the fact that it answers, and what a sound one answers."""

READ_FILES: dict[str, tuple[str, Any]] = {
    "/etc/os-release": ("system.distribution_version", "22.04"),
    "/proc/driver/nvidia/version": ("driver.module_flavour", "proprietary"),
    "/sys/module/nvidia/version": ("driver.module_release", "535.54.03"),
    "/proc/meminfo": ("system.memory_total_bytes", 263_000_000 << 10),
    f"{_PCI}/class": ("pci.gpus.0.device_id", "20b2"),
    f"{_SITE}/torch/version.py": ("torch.version", "2.6.0+cu124"),
    f"{_INFO}/METADATA": ("torch.cudnn", "9.1.0.70"),
    f"{_SITE}/torch/lib/libtorch_python.so": ("torch.arch_list", _CODES),
    "/lib/x86_64-linux-gnu/libc.so.6": ("system.glibc", "2.35"),
    "$venv/pyvenv.cfg": ("interpreter.version", "3.11.9"),
}
"""By file: a fact that is read from it, and its sound value."""

_REALLY_DAMAGED = {f"{_SITE}/torch/version.py": frozenset({"torch-mixed-install"})}
"""Files without which an installation is broken, and the cause that is then right."""


def _scripted(program: str, script: Script) -> Fault:
    probe, fact, sound = HELPERS[program]

    def make(stand: Stand) -> None:
        if program == "rpm":
            stand.use_rpm()
        stand.program("sound", (stand.bin / program).read_text().partition("\n")[2])
        stand.program(program, script.text.format(sound=f'{stand.bin}/sound "$@"') + "\n")

    causes = {"probe-timed-out"} if script.waits else {"probe-crashed"} if script.fells else set()
    return Fault(
        program,
        script.how,
        make,
        fact=fact,
        sound=sound,
        outcomes=script.outcomes,
        causes=frozenset(causes),
        crashed=frozenset({probe} if script.fells else ()),
        leaves=script.leaves,
        seconds=DEADLINE if script.waits else LONG,
    )


def _replaced(program: str, how: str, make: Make, outcomes: Outcomes) -> Fault:
    _probe, fact, sound = HELPERS[program]

    def replace(stand: Stand) -> None:
        if program == "rpm":
            stand.use_rpm()
        make(stand.bin / program)

    return Fault(program, how, replace, fact=fact, sound=sound, outcomes=outcomes)


def _crossed(row: Fault, at: int, way: int) -> Fault:
    """Leave every third row of a table of things and ways: each thing, and each way, is in some.

    One door of ``machine`` runs every helper and reads every file.
    """
    return dataclasses.replace(row, crossed=(at + way) % 3 != 0)


def _helpers() -> Iterator[Fault]:
    for at, program in enumerate(HELPERS):
        rows = [_scripted(program, script) for script in SCRIPTS]
        rows += [_replaced(program, *way) for way in PROGRAMS]
        for way, row in enumerate(rows):
            yield _crossed(row, at, way) if at else row  # nvidia-smi is asked on every machine
    yield from (_scripted("nvidia-smi", script) for script in RARE_SCRIPTS)


def _files() -> Iterator[Fault]:
    for at, (path, (fact, sound)) in enumerate(READ_FILES.items()):
        about = Fault(
            path.replace("$venv", "venv").rpartition("site-packages/")[2],
            "changes while it is read",
            changes=path,
            fact=fact,
            sound=sound,
            outcomes=("unknown", "sound", "absent") if path == "/etc/os-release" else EITHER,
            causes=_REALLY_DAMAGED.get(path, frozenset()),
        )
        yield about
        for way, (how, make) in enumerate(FILES):
            breaks = functools.partial(_break_file, path=path, make=make)
            yield _crossed(dataclasses.replace(about, how=how, make=breaks, changes=""), at, way)


def _break_file(stand: Stand, *, path: str, make: Make) -> None:
    make(stand.file(path))


def _targets() -> Iterator[Fault]:
    for target in TARGETS:
        yield Fault(
            "the target interpreter",
            target.how,
            functools.partial(_with_target, statements=target.statements),
            fact="interpreter.version",
            sound="3.11.9",
            outcomes=target.outcomes,
            causes=frozenset({"probe-timed-out", "probe-crashed"}),
            crashed=frozenset({"interpreter"} if target.fells else ()),
            leaves=target.leaves,
            seconds=DEADLINE if target.waits else LONG,
        )


def _with_target(stand: Stand, *, statements: str) -> None:
    stand.interpreter(statements)


_AFTER = {("nvml", "forbids open files"): ("nvidia_smi",)}
"""Probes that run in the process of another one, and cannot even import what they need there."""


def _libraries() -> Iterator[Fault]:
    when: Literal["loaded", "called"]
    for name, probe, when in (
        ("libnvidia-ml.so.1", "nvml", "called"),
        ("libcuda.so.1", "cuda_driver", "loaded"),
    ):
        for library in LIBRARIES:
            yield Fault(
                name,
                f"{library.how} when it is {when}",
                functools.partial(_with_library, name=name, library=library, when=when),
                causes=frozenset({"probe-crashed", "probe-timed-out"}),
                crashed=frozenset({probe, *_AFTER.get((probe, library.how), ())}),
                seconds=DEADLINE if library.waits else LONG,
            )


def _with_library(
    stand: Stand, *, name: str, library: Library, when: Literal["loaded", "called"]
) -> None:
    build_library(library, stand.lib / name, when=when)


def _streams() -> Iterator[Fault]:
    full = "the output cannot be written"
    usage = frozenset({2, 3})
    gone = '/bin/mkdir gone && cd gone && /bin/rmdir ../gone && exec "$@"'
    unread = '"$@" | :'
    yield Fault("stdin", "is closed", start='exec "$@" <&-')
    yield Fault("stdin", "is endless", start='exec "$@" </dev/zero')
    yield Fault("stdout", "is closed", start='exec "$@" >&-', writes=False)
    yield Fault("stderr", "is closed", start='exec "$@" 2>&-')
    yield Fault("every stream", "is closed", start='exec "$@" <&- >&- 2>&-', writes=False)
    yield Fault("stderr", "is a full disk", start='exec "$@" 2>/dev/full')
    yield Fault("stdout", "is read by nobody", start=unread, writes=False)
    yield Fault("the current folder", "is removed", start=gone)
    yield Fault("stdout", "is a full disk", start='exec "$@" >/dev/full', statuses=frozenset({3}),
                says=full, writes=False)  # fmt: skip
    yield Fault("the output file", "is a full disk", options=("-o", "/dev/full"),
                statuses=frozenset({2}), says="/dev/full cannot be written")  # fmt: skip
    for how, name in (("is a folder", "bin"), ("is in no folder", "nowhere/report")):
        yield Fault("the output file", how, options=("-o", name), statuses=usage, writes=False)
    for words in (("list",), ("explain", "driver-missing"), ("triage", "{folder}/ticket")):
        yield Fault(f"stdout of {words[0]}", "is a full disk", _with_ticket, command=words,
                    start='exec "$@" >/dev/full', statuses=frozenset({3}), says=full,
                    writes=False)  # fmt: skip


def _with_ticket(stand: Stand) -> None:
    (stand.folder / "ticket").write_text(TICKET)


def _limits() -> Iterator[Fault]:
    for limit in ("n 6", "n 10", "n 16", "n 32", "v 60000", "v 120000", "v 250000", "v 500000",
                  "f 0", "s 256", "t 2", "p 1", "l 0", "d 20000"):  # fmt: skip
        yield Fault(
            "the limit", f"-{limit}", start=f'ulimit -{limit} && exec "$@"',
            statuses=frozenset({0, 1, 3, 127}), writes=False,
        )  # fmt: skip


def _signals() -> Iterator[Fault]:
    begun = "while [ ! -e begun ]; do /bin/sleep 0.01; done; "
    for name, moments in (
        ("TERM", (0.0, 0.1, 0.3, 0.7)),
        ("INT", (0.0, 0.1, 0.3, 0.7)),
        ("HUP", (0.0, 0.2, 0.5)),
        ("QUIT", (0.0, 0.3)),
        ("KILL", (0.0, 0.3)),
        ("USR1", (0.2,)),
        ("PIPE", (0.2,)),
    ):
        for moment in moments:
            kill = f"/bin/sleep {moment}; kill -{name} $$"
            yield Fault(
                "gpucheck",
                f"gets SIG{name} {moment} s after its first helper has begun",
                _with_hanging_helpers,
                start=f'(exec >/dev/null 2>&1; {begun}{kill}) & exec "$@"',
                statuses=EVERY_STATUS,
                writes=False,
                seconds=DEADLINE,
            )
    for moment in (0.02, 0.1):
        yield Fault("gpucheck", f"gets SIGTERM {moment} s after its start", writes=False,
                    start=f'(exec >&- 2>&-; /bin/sleep {moment}; kill -TERM $$) & exec "$@"',
                    statuses=EVERY_STATUS)  # fmt: skip


def _with_hanging_helpers(stand: Stand) -> None:
    for program in ("journalctl", "nvcc"):
        stand.program(program, f": >{stand.folder}/begun\nexec sleep 1000\n")


def _tickets() -> Iterator[Fault]:
    for how, make in FILES:
        if "FIFO" in how:
            continue  # a reader of a FIFO waits for its writer, as every program does
        yield Fault(
            "a ticket", how, functools.partial(_broken_ticket, make=make),
            command=("triage", "{folder}/ticket"), statuses=frozenset({0, 1, 2, 3}), writes=False,
        )  # fmt: skip
    yield Fault("a ticket", "is endless", command=("triage", "-"), writes=False,
                start='exec "$@" </dev/zero', statuses=frozenset({0, 2, 3}))  # fmt: skip


def _broken_ticket(stand: Stand, *, make: Make) -> None:
    _with_ticket(stand)
    make(stand.folder / "ticket")


def _workers() -> Iterator[Fault]:
    selftest = ("selftest", "--timeout", "1", "--device", "cpu", "--python", "{python}")
    preflight = ("preflight", "--timeout", "10", "--device", "cpu", "--ranks", "2", "--python",
                 "{python}")  # fmt: skip
    for target in TARGETS:
        if target.in_workers:
            make = functools.partial(_with_target, statements=target.statements)
            about = Fault(
                "the worker", f"of a self-test {target.how}", make, command=selftest,
                statuses=frozenset({1, 2, 3}), writes=False, leaves=target.leaves, seconds=3.0,
            )  # fmt: skip
            yield about
            if target.in_workers == "everywhere":
                how = f"of a pre-flight {target.how}"
                yield dataclasses.replace(
                    about,
                    how=how,
                    command=preflight,
                    statuses=frozenset({1, 2, 3, 4}),
                    seconds=12.0,
                )


FAULTS = (
    *_helpers(),
    *_files(),
    *_targets(),
    *_libraries(),
    *_streams(),
    *_limits(),
    *_signals(),
    *_tickets(),
    *_workers(),
)
