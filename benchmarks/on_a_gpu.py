"""Everything to be seen on a machine with an NVIDIA GPU, in one command of at most nine minutes.

    PYTHON_WITH_TORCH benchmarks/on_a_gpu.py --output FOLDER [--wheels FOLDER] [--seconds 540]
        [--only WORD ...]

It needs no internet, and no package but torch: what gpucheck, its tests and ONNX Runtime need and
this Python lacks is taken from the wheels in ``--wheels``. It runs gpucheck without and with its
self-tests, every level and every self-test, the tests marked ``gpu``, and the pre-flight; it
compares gpucheck's facts with those of nvidia-smi and torch, and records the machine.

FOLDER gets ``report.md``, ``report.json`` and ``machine.tar.gz`` (``gpucheck collect --record``).
They are written anew after each step, so a run that is ended early leaves what it had seen. Names
of this machine and of its user, and UUIDs, are taken out.

``--only`` chooses the steps whose names have one of these words; the facts are always compared.

Every step has a time limit, and the whole run has one (``--seconds``). A step that fails, hangs or
cannot be run is told with its reason, and the next one begins.

Exit status: 0 all that was run was right, 1 something was not, 2 usage.
"""

import argparse
import contextlib
import datetime as dt
import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from xml.etree import ElementTree as ET  # what pytest has written

import on_a_gpu_facts as facts_of
from on_a_gpu_report import markdown

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
_RESERVE = 15.0
"""Seconds that are kept for ending the last step and writing the report."""
_SHORTEST = 5.0
_GRACE = 5.0
_OWN_LIMIT, _EARLIER = "OWN-LIMIT", 8.0
"""Stands for the limit that gpucheck is given itself, and how long before the step's it is."""
_TAIL = 6000
_UUID = re.compile(r"\b(GPU|MIG)-[0-9a-fA-F-]{8,}(?:/\d+/\d+)?")
_FINDINGS = 4
_NOTHING_RUN = 3
"""The exit status of gpucheck selftest if no test could be run."""


class Done(NamedTuple):
    """How a program ended: its exit status, or None with the reason why it has none."""

    status: int | None
    why: str
    out: str
    err: str
    seconds: float


class Step(NamedTuple):
    """A program to run: its time limit, the modules it needs, and who reads what it printed."""

    name: str
    seconds: float
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    read: Callable[["Run", Json, Done], None] | None = None


class Run:
    """One run: its clock, its environment and its report."""

    def __init__(self, output: Path, seconds: float, env: dict[str, str], scratch: Path) -> None:
        self.begun = time.monotonic()
        self.end = self.begun + seconds
        self.env = env
        self.output = output
        self.scratch = scratch
        self.lacks: dict[str, str] = {}
        self.facts: Json = {}
        self.smi: dict[str, list[str]] = {}
        self.torch: Json = {}
        self.report: Json = {
            "format": "gpucheck-on-a-gpu/1",
            "begun": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
            "seconds": 0.0,
            "result": "unfinished",
            "machine": {},
            "steps": [],
            "facts": [],
            "tests": [],
            "selftests": [],
            "snapshot": {},
        }

    def left(self) -> float:
        """Return the seconds that a step may still take."""
        return self.end - time.monotonic() - _RESERVE

    def take(self, step: Step) -> None:
        """Run a step, or say why not; whatever goes wrong in it stays in it."""
        entry: Json = {"name": step.name, "status": "left out", "seconds": 0.0, "says": ""}
        self.report["steps"].append(entry)
        missing = [name for name in step.needs if name in self.lacks]
        if missing:
            entry["says"] = "; ".join(self.lacks[name] for name in missing)
        elif self.left() < _SHORTEST:
            entry["says"] = "no time was left"
        else:
            print(f"{step.name} ...", flush=True)
            seconds = min(step.seconds, self.left())
            own = str(max(int(seconds - _EARLIER), 1))
            command = tuple(own if word == _OWN_LIMIT else word for word in step.command)
            done = program(command, seconds, self.env)
            _note(entry, done)
            if step.read is not None:
                try:
                    step.read(self, entry, done)
                except Exception as error:  # noqa: BLE001  # a surprise in one step must not end all
                    entry.update(status="failed", says=f"{type(error).__name__}: {error}")
        print(f"  {entry['status']}: {entry['says']}"[:200], flush=True)
        self.write()

    def write(self) -> None:
        """Write the report as it is now."""
        self.report["seconds"] = time.monotonic() - self.begun
        self.report["machine"] = _machine(self)
        public = scrubbed(self.report)
        text = json.dumps(public, indent=1, ensure_ascii=False)
        (self.output / "report.json").write_text(text + "\n", encoding="utf-8")
        (self.output / "report.md").write_text(markdown(public), encoding="utf-8")


def program(command: tuple[str, ...], seconds: float, env: dict[str, str]) -> Done:
    """Run a program in a session of its own, which is ended with it."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=ROOT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return Done(None, f"not started: {error}", "", "", 0.0)
        why = ""
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            why = f"ended at its limit of {seconds:.0f} s"
        finally:
            why += _end(process)
        texts = [_text(file) for file in (out, err)]
    status = None if why else process.returncode
    return Done(status, why, texts[0], texts[1], time.monotonic() - begun)


def _end(process: "subprocess.Popen[bytes]") -> str:
    """End a program and what it has started; say so if not even that is possible."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            if number == signal.SIGKILL:
                return ""
    return "; it could not be ended"


def _text(file: Any) -> str:  # noqa: ANN401  # a temporary file
    file.seek(0)
    return bytes(file.read()).decode("utf-8", "replace")


def _note(entry: Json, done: Done) -> None:
    """Note how a program ended; a reader of its output may know better."""
    entry["seconds"] = done.seconds
    if done.status is None:
        entry.update(status="too late" if "limit" in done.why else "failed", says=done.why)
    elif done.status < 0:
        entry.update(status="failed", says=f"ended by signal {-done.status}")
    else:
        entry["status"] = "done" if done.status == 0 else "failed"
        last = done.err.strip().splitlines()[-1:] if done.status else []
        entry["says"] = ": ".join([f"exit status {done.status}", *(line[:300] for line in last)])
    if done.status != 0:
        entry["printed"] = (done.out[-_TAIL:] + "\n" + done.err[-_TAIL:]).strip()


def scrubbed(value: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return the data without the names of this machine and its user, and without UUIDs."""
    if isinstance(value, dict):
        return {key: scrubbed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [scrubbed(each) for each in value]
    if not isinstance(value, str):
        return value
    value = _UUID.sub(r"\1-UUID", value)
    for private, public in _private():
        value = re.sub(rf"(?<![\w.-]){re.escape(private)}(?![\w-])", public, value)
    return value


def _private() -> Iterator[tuple[str, str]]:
    """Yield what is not to be told, the longest first, with what stands for it."""
    found = {str(ROOT): "REPOSITORY", str(Path.home()): "HOME", sys.prefix: "PYTHON"}
    host = socket.gethostname()
    found[host] = found[host.partition(".")[0]] = "HOST"
    with contextlib.suppress(OSError, KeyError):
        found[getpass.getuser()] = "USER"
    for private in sorted(found, key=len, reverse=True):
        if len(private) > 3 and private not in ("root", "localhost"):  # noqa: PLR2004  # words
            yield private, found[private]


# What reads the output of a step.


def _read_smi(run: Run, entry: Json, done: Done) -> None:
    entry["shown"] = done.out[-_TAIL:]
    for field in facts_of.SMI_FIELDS if done.status == 0 else ():
        query = ("nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits")
        said = program(query, max(min(10.0, run.left()), 1.0), run.env)
        if said.status == 0:
            run.smi[field] = [line.strip() for line in said.out.splitlines() if line.strip()]
    if done.status == 0:
        entry["says"] = f"{len(run.smi)} of {len(facts_of.SMI_FIELDS)} fields were answered"


def _read_torch(run: Run, entry: Json, done: Done) -> None:
    run.torch = facts_of.last_json(done.out)
    if done.status == 0:
        usable = "uses the GPU" if run.torch.get("available") else "sees no GPU that it can use"
        entry["says"] = f"torch {run.torch.get('version')} {usable}"
        entry["data"] = run.torch


def _read_check(run: Run, entry: Json, done: Done) -> None:
    report = _report(entry, done)
    snapshot = report.get("snapshot") or {}
    if not run.facts and snapshot.get("facts"):
        run.facts = snapshot["facts"]
        run.report["snapshot"] = snapshot
    probes = report.get("probes") or ()
    late = [each["name"] for each in probes if each["status"] in ("crashed", "timed-out")]
    if late:
        entry["says"] += f"; probes that did not end well: {', '.join(late)}"
    _read_results(run, entry, report)


def _read_selftest(run: Run, entry: Json, done: Done) -> None:
    report = _report(entry, done)
    _read_results(run, entry, report)
    if done.status == _NOTHING_RUN:
        reasons = dict.fromkeys(
            each["detail"]
            for each in report.get("selftests") or ()
            if each["status"] == "skipped" and each["detail"]
        )
        entry.update(status="left out", says="; ".join(reasons) or entry["says"])


def _read_results(run: Run, entry: Json, report: Json) -> None:
    for each in report.get("selftests") or ():
        said = {key: each.get(key) for key in _OF_A_SELF_TEST}
        run.report["selftests"].append({"step": entry["name"], **said})


_OF_A_SELF_TEST = (
    "name", "device", "rank", "status", "seconds", "kind", "stage", "detail", "measurements",
    "data",
)  # fmt: skip


def _report(entry: Json, done: Done) -> Json:
    """Read a report of gpucheck and note its verdict and its findings."""
    try:
        report: Json = json.loads(done.out)
    except ValueError:
        if done.status == 0:
            entry.update(status="failed", says="it printed no report")
        return {}
    causes = ", ".join(report.get("root_causes") or ()) or "none"
    lines = [str(each.get("headline") or each.get("slug")) for each in report.get("findings") or ()]
    says = f"{report.get('verdict')}, causes: {causes}"
    says += "".join(f"; {line}" for line in lines[:_FINDINGS])
    entry["says"] = f"{done.why}; {says}" if done.why else says
    return report


def _read_preflight(_run: Run, entry: Json, done: Done) -> None:
    try:
        report: Json = json.loads(done.out)
    except ValueError:
        return
    kept = {key: report.get(key) for key in _OF_A_PREFLIGHT}
    ranks = [{key: rank.get(key) for key in _OF_A_RANK} for rank in report.get("ranks") or ()]
    entry["data"] = {**kept, "ranks": ranks}
    entry["says"] = f"exit status {done.status}, {report.get('class')}: {report.get('why')}"


_OF_A_PREFLIGHT = ("verdict", "root_causes", "class", "why", "seconds", "culprits")
_OF_A_RANK = ("rank", "device", "gpu", "model", "status", "phase", "detail", "rates")
"""No host, no address and no UUID: the JSON of a pre-flight is for those who run the job."""


def _read_shown(_run: Run, entry: Json, done: Done) -> None:
    entry["shown"] = done.out[-_TAIL:]


def _read_tests(run: Run, entry: Json, _done: Done) -> None:
    counts: dict[str, int] = {}
    for case in ET.parse(run.scratch / "tests.xml").iter("testcase"):  # noqa: S314  # pytest's
        bad = next((one for one in case if one.tag in ("failure", "error", "skipped")), None)
        status = "passed" if bad is None else bad.tag
        counts[status] = counts.get(status, 0) + 1
        says = "" if bad is None else (bad.get("message") or "")[:_TAIL]
        name = f"{case.get('classname')}.{case.get('name')}"
        run.report["tests"].append({"name": name, "status": status, "says": says})
    said = ", ".join(f"{count} {status}" for status, count in counts.items()) or "no tests"
    entry["says"] += f": {said}"


def _read_record(run: Run, entry: Json, _done: Done) -> None:
    folder = run.scratch / "machine"
    if not folder.is_dir():
        return
    with tarfile.open(run.output / "machine.tar.gz", "w:gz") as archive:
        archive.add(folder, "machine")
    entry["says"] += f": {sum(1 for each in folder.rglob('*') if each.is_file())} files"


def _compare(run: Run) -> None:
    """Put gpucheck's facts beside those of the others."""
    entry: Json = {"name": "facts", "status": "left out", "seconds": 0.0, "says": ""}
    run.report["steps"].append(entry)
    if not run.facts:
        entry["says"] = "gpucheck has told no facts"
    else:
        rows = facts_of.compared(run.facts, run.smi, run.torch)
        run.report["facts"] = [row._asdict() for row in rows]
        wrong = [row.fact for row in rows if row.agrees is False]
        unknown = sum(row.agrees is None for row in rows)
        entry["status"] = "failed" if wrong else "done"
        same = len(rows) - len(wrong) - unknown
        entry["says"] = f"{same} the same, {len(wrong)} not, {unknown} not known on both sides"
        entry["says"] += f": {', '.join(wrong)}" if wrong else ""
    run.write()


# What is run.


def _gpucheck(*more: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "gpucheck", *more)


def _self_tests(name: str, seconds: float, *more: str) -> Step:
    own = ("--timeout", _OWN_LIMIT, "--fail-on", "error")
    command = _gpucheck("selftest", "--python", sys.executable, *more, *own, "--format", "json")
    return Step(name, seconds, command, ("gpucheck", "torch"), _read_selftest)


def first_steps() -> list[Step]:
    """Return what tells the facts: the machine's own programs, torch and gpucheck."""
    check = _gpucheck("--python", sys.executable, "--no-selftest", "--fail-on", "never")
    return [
        Step("nvidia-smi", 30, ("nvidia-smi",), (), _read_smi),
        Step("torch", 90, (sys.executable, "-c", facts_of.TORCH), ("torch",), _read_torch),
        Step(
            "check without self-tests", 60, (*check, "--format", "json"), ("gpucheck",), _read_check
        ),
    ]


def steps(run: Run) -> list[Step]:
    """Return what comes after the facts, the most telling first."""
    python = ("--python", sys.executable)
    shown = _gpucheck(*python, "--format", "markdown", "--fail-on", "never")
    record = _gpucheck("collect", *python, "--record", str(run.scratch / "machine"), "-q")
    preflight = _gpucheck("preflight", *python, "--timeout", _OWN_LIMIT, "--format", "json")
    return [
        Step("tests marked gpu", 120, _pytest(run), ("gpucheck", "pytest"), _read_tests),
        _self_tests("self-tests: quick", 100, "--level", "quick"),
        Step("pre-flight", 90, preflight, ("gpucheck", "torch"), _read_preflight),
        Step("as a user sees it", 100, shown, ("gpucheck",), _read_shown),
        Step("record", 40, record, ("gpucheck",), _read_record),
        _self_tests("self-tests: standard", 150, "--level", "standard"),
        _self_tests("self-tests: jit", 120, "--tests", "jit"),
        _self_tests("self-tests: onnx-export", 60, "--tests", "onnx-export"),
        _self_tests("self-tests: tensorrt", 90, "--tests", "tensorrt"),
        _self_tests("self-tests: batch-size", 90, "--tests", "batch-size", "--level", "stress"),
        _self_tests("self-tests: stress", 240, "--level", "stress"),
    ]


def _pytest(run: Run) -> tuple[str, ...]:
    marked = sorted(
        str(file.relative_to(ROOT))
        for file in (ROOT / "tests").rglob("test_*.py")
        if "mark.gpu" in file.read_text(encoding="utf-8")
    )
    options = ("-o", "addopts=", "-p", "no:cacheprovider", "-m", "gpu", "-q", "-rA")
    written = f"--junitxml={run.scratch / 'tests.xml'}"
    return (sys.executable, "-m", "pytest", *options, written, *marked)


_IMPORTS = """
import importlib, json
lacks = {}
for name, wanted in %r.items():
    for one in wanted:
        try:
            importlib.import_module(one)
        except Exception as error:
            lacks[name] = "%%s cannot be imported: %%s: %%s" %% (one, type(error).__name__, error)
            break
print("\\n" + json.dumps({"lacks": lacks}))
"""
_WANTED = {
    "gpucheck": ["click", "msgspec", "packaging", "pynvml", "gpucheck"],
    "pytest": ["pytest"],
    "torch": ["torch"],
}


def _look(run: Run) -> None:
    """Find out what this Python lacks, so that each step can say why it was left out."""
    done = program((sys.executable, "-c", _IMPORTS % _WANTED), 90, run.env)
    said = facts_of.last_json(done.out).get("lacks")
    why = done.why or f"a Python that imports everything ended with exit status {done.status}"
    run.lacks = said if isinstance(said, dict) else {"gpucheck": why, "pytest": why}


def _machine(run: Run) -> Json:
    """Return the machine in a few words, by its own programs."""
    return {
        "gpus": run.smi.get("name") or [each["name"] for each in run.torch.get("devices") or ()],
        "driver": (run.smi.get("driver_version") or [""])[0],
        "torch": run.torch.get("version", ""),
        "python": sys.version.split()[0],
        "seen_by": "nvidia-smi" if run.smi else "torch",
    }


def _result(report: Json) -> str:
    by_status: dict[str, list[str]] = {}
    for step in report["steps"]:
        by_status.setdefault(step["status"], []).append(step["name"])
    bad = {status: names for status, names in by_status.items() if status != "done"}
    if not bad:
        return "everything was run, and all of it was right"
    return "; ".join(f"{status}: {', '.join(names)}" for status, names in bad.items())


def _unpack(wheels: Path, place: Path) -> list[str]:
    """Unpack wheels; return what went wrong. Their scripts are not needed."""
    problems = []
    for wheel in sorted(wheels.glob("*.whl")):
        try:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(place)  # noqa: S202  # the wheels of who runs this
        except (OSError, zipfile.BadZipFile) as error:
            problems.append(f"{wheel.name}: {error}")
    return problems


def _ended(number: int, _frame: Any) -> NoReturn:  # noqa: ANN401  # a frame
    raise KeyboardInterrupt(f"ended by signal {number}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True, help="a folder for the report")
    parser.add_argument("--wheels", type=Path, help="a folder with the wheels that are missing")
    parser.add_argument("--seconds", type=float, default=540.0, help="for everything")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="these steps")
    options = parser.parse_args()
    if options.wheels is not None and not options.wheels.is_dir():
        parser.error(f"there is no folder {options.wheels}")
    return options


def main() -> int:
    """Run every step and write the report."""
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, _ended)
    scratch = Path(tempfile.mkdtemp(prefix="gpucheck-on-a-gpu-"))
    try:
        return _all(options, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _all(options: argparse.Namespace, scratch: Path) -> int:
    site = scratch / "site"
    places = [str(site), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places)), "NO_COLOR": "1"}
    run = Run(options.output, options.seconds, env, scratch)
    try:
        problems = _unpack(options.wheels, site) if options.wheels else []
        _look(run)
        if problems:
            run.report["wheels"] = problems
        for step in first_steps():
            run.take(step)
        _compare(run)
        for step in steps(run):
            if any(word in step.name for word in options.only):
                run.take(step)
        run.report["result"] = _result(run.report)
    except KeyboardInterrupt as interrupt:
        run.report["result"] = f"not finished: {str(interrupt) or 'interrupted'}"
    run.write()
    print(f"\n{run.report['result']}\n{options.output / 'report.md'}")
    bad = any(step["status"] in ("failed", "too late") for step in run.report["steps"])
    return int(bad or run.report["result"].startswith("not finished"))


if __name__ == "__main__":
    sys.exit(main())
