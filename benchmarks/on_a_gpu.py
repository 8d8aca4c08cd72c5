"""Everything to be seen on a machine with an NVIDIA GPU, in one command of a few minutes.

    PYTHON_WITH_TORCH benchmarks/on_a_gpu.py --output FOLDER [--wheels FOLDER] [--seconds 400]
        [--only WORD ...] [--device cpu]

It needs no internet, and no packages but torch and pytest: what gpucheck needs and this Python
lacks is taken from the wheels in ``--wheels``. It changes no setting of a GPU.

The steps come in the order of their worth: what gpucheck says and a record of the machine; its
facts beside those of nvidia-smi, torch, CUDA and the system; the quick self-tests; the tests in
``tests/gpu``; the standard level; the time of the static check; the pre-flight; variables that
people set; failures made on purpose; self-tests that run only when they are named; a load on the
GPU.

FOLDER gets four files. ``report.md`` and ``report.json`` are written anew after each step,
``outputs.jsonl`` gets a line with all that the step printed, ``machine.tar.gz`` is the record
(``gpucheck baseline collect --record``). So a run that is ended early leaves what it had seen, and
the report says what was not reached. Names of this machine and of its user, and UUIDs, are taken
out.

``--only`` chooses the steps whose names have one of these words; the facts are always compared.
``--device cpu`` rehearses it on a machine without a GPU.

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
_SHORTEST = 20.0
"""Seconds with which a step is begun: gpucheck's own limit in it is earlier, and 10 at least."""
_GRACE = 5.0
_OWN_LIMIT, _EARLIER = "OWN-LIMIT", 8.0
"""Stands for the limit that gpucheck is given itself, and how long before the step's it is."""
_TAIL = 6000
_MOST = 1 << 20
"""Characters of each stream of a step that are kept."""
_NO_TIME = "no time was left"
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
    """A program to run: its time limit, the modules it needs, and who reads what it printed.

    ``saved`` is the name under which the tests find what it printed. What is ``private`` does not
    get into ``outputs.jsonl``.
    """

    name: str
    seconds: float
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    read: Callable[["Run", Json, Done], None] | None = None
    saved: str = ""
    private: bool = False


class Run:
    """One run: its clock, its environment and its report."""

    def __init__(self, output: Path, seconds: float, env: dict[str, str], scratch: Path) -> None:
        self.planned: list[str] = []
        self.begun = time.monotonic()
        self.end = self.begun + seconds
        self.env = env
        self.output = output
        self.scratch = scratch
        self.lacks: dict[str, str] = {}
        self.facts: Json = {}
        self.asked: Json = {}
        self.report: Json = {
            "format": "gpucheck-on-a-gpu/1",
            "begun": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
            "seconds": 0.0,
            "result": "unfinished",
            "machine": {},
            "not_reached": [],
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
            entry["says"] = _NO_TIME
        else:
            print(f"{step.name} ...", flush=True)
            seconds = min(step.seconds, self.left())
            own = str(max(int(seconds - _EARLIER), 1))
            command = tuple(own if word == _OWN_LIMIT else word for word in step.command)
            done = program(command, seconds, self.env)
            _note(entry, done)
            self.keep(step, done)
            if step.read is not None:
                try:
                    step.read(self, entry, done)
                except Exception as error:  # noqa: BLE001  # a surprise in one step must not end all
                    entry.update(status="failed", says=f"{type(error).__name__}: {error}")
        print(f"  {entry['status']}: {entry['says']}"[:200], flush=True)
        self.write()

    def keep(self, step: Step, done: Done) -> None:
        """Save what a step has printed, at once."""
        if step.saved:
            (self.scratch / f"{step.saved}.json").write_text(done.out, encoding="utf-8")
        if not step.private:
            line = {"name": step.name, **done._asdict()}
            line |= {stream: line[stream][-_MOST:] for stream in ("out", "err")}
            with (self.output / "outputs.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(scrubbed(line), ensure_ascii=False) + "\n")

    def write(self) -> None:
        """Write the report as it is now."""
        tried = {step["name"] for step in self.report["steps"] if step["says"] != _NO_TIME}
        self.report["not_reached"] = [name for name in self.planned if name not in tried]
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
    hidden = [
        (re.compile(rf"(?<![\w.-]){re.escape(private)}(?![\w-])"), public)
        for private, public in _private()
    ]
    return _without([(_UUID, r"\1-UUID"), *hidden], value)


def _without(hidden: list[tuple[re.Pattern[str], str]], value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _without(hidden, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(hidden, each) for each in value]
    if not isinstance(value, str):
        return value
    for pattern, public in hidden:
        value = pattern.sub(public, value)
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


def _read_asked(run: Run, entry: Json, done: Done) -> None:
    run.asked = facts_of.last_json(done.out)
    torch = run.asked.get("torch") or {}
    usable = "uses the GPU" if torch.get("available") else "sees no GPU that it can use"
    entry["says"] = f"torch {torch.get('version')} {usable}"
    errors = run.asked.get("errors") or {}
    entry["says"] += "".join(f"; {name}: {why}" for name, why in errors.items())


def _read_facts(run: Run, _entry: Json, done: Done) -> None:
    run.facts = json.loads(done.out)["facts"]


def _read_check(run: Run, entry: Json, done: Done) -> None:
    report = _report(entry, done)
    run.report["snapshot"] = report.get("snapshot") or {}
    probes = report.get("probes") or ()
    late = [each["name"] for each in probes if each["status"] in ("crashed", "timed-out")]
    if late:
        entry["says"] += f"; probes that did not end well: {', '.join(late)}"
    _read_results(run, entry, report)


def _read_selftest(run: Run, entry: Json, done: Done) -> None:
    report = _report(entry, done)
    _read_results(run, entry, report)
    tests = ((report.get("snapshot") or {}).get("facts") or {}).get("selftests") or {}
    if tests.get("seconds") is not None and tests.get("import_seconds") is not None:
        beyond = tests["seconds"] - tests["import_seconds"]
        entry["says"] += (
            f"; {beyond:.1f} s beyond the {tests['import_seconds']:.1f} s of the import"
        )
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
    file = _written(run, entry["name"])
    if not file.is_file():
        return  # it was ended before; what it had printed is told
    counts: dict[str, int] = {}
    for case in ET.parse(file).iter("testcase"):  # noqa: S314  # pytest's
        bad = next((one for one in case if one.tag in ("failure", "error", "skipped")), None)
        status = "passed" if bad is None else bad.tag
        counts[status] = counts.get(status, 0) + 1
        says = "" if bad is None else (bad.get("message") or "")[:_TAIL]
        name = f"{case.get('classname')}.{case.get('name')}"
        run.report["tests"].append({"name": name, "status": status, "says": says})
    said = ", ".join(f"{count} {status}" for status, count in counts.items()) or "no tests"
    entry["says"] += f": {said}"


def _written(run: Run, name: str) -> Path:
    """Return the file in which pytest writes its results in this step."""
    return run.scratch / f"{name.replace(': ', '-')}.xml"


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
        rows = facts_of.compared(run.facts, run.asked)
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


def _self_tests(
    name: str, seconds: float, device: tuple[str, ...], *more: str, saved: str = ""
) -> Step:
    own = ("--timeout", _OWN_LIMIT, "--fail-on", "error")
    command = _gpucheck("selftest", *_PYTHON, *device, *more, *own, "--format", "json")
    return Step(name, seconds, command, ("gpucheck", "torch"), _read_selftest, saved)


_PYTHON = ("--python", sys.executable)
_COMPARED = "facts for the comparison"


def first_steps(run: Run) -> list[Step]:
    """Return what tells the facts: gpucheck, and whatever else knows them."""
    check = _gpucheck(*_PYTHON, "--no-selftest", "--fail-on", "never", "--format", "json")
    record = _gpucheck(
        "baseline", "collect", *_PYTHON, "--record", str(run.scratch / "machine"), "-q"
    )
    collect = _gpucheck("baseline", "collect", *_PYTHON, "--no-redact", "-q")
    ask = (sys.executable, str(ROOT / "benchmarks" / "on_a_gpu_ask.py"))
    own = ("gpucheck",)
    return [
        Step("check without self-tests", 90, check, own, _read_check, saved="check"),
        Step("record", 60, record, own, _read_record),
        Step("nvidia-smi", 30, ("nvidia-smi",), (), _read_shown),
        Step("torch, CUDA and the system", 120, ask, (), _read_asked, saved="asked"),
        Step(_COMPARED, 60, collect, own, _read_facts, saved="facts", private=True),
    ]


def steps(run: Run, device: tuple[str, ...]) -> list[Step]:
    """Return what comes after the facts, the most telling first."""
    shown = _gpucheck(*_PYTHON, "--format", "markdown")
    preflight = _gpucheck("preflight", *_PYTHON, *device, "--timeout", _OWN_LIMIT)
    ratio = (sys.executable, str(ROOT / "benchmarks" / "static_check.py"), *_PYTHON)
    return [
        _self_tests("self-tests: quick", 100, device, "--level", "quick", saved="quick"),
        _tests(run, "facts", 60),
        _tests(run, "quick", 90),
        Step("as a user sees it", 90, shown, ("gpucheck",), _read_shown),
        _self_tests("self-tests: standard", 180, device, "--level", "standard", saved="standard"),
        _tests(run, "standard", 60),
        Step(
            "static check beside collect_env",
            90,
            (*ratio, "--rounds", "2"),
            ("gpucheck", "torch"),
            _read_shown,
        ),
        Step(
            "pre-flight",
            90,
            (*preflight, "--format", "json"),
            ("gpucheck", "torch"),
            _read_preflight,
            saved="preflight",
        ),
        _tests(run, "together", 150),
        _tests(run, "variables", 150),
        _tests(run, "provoked", 240),
        *(
            _self_tests(f"self-tests: {name}", 100, device, "--tests", name, *_STANDARD, saved=name)
            for name in ("jit", "onnx-export", "tensorrt", "batch-size")
        ),
        _tests(run, "named", 90),
        _self_tests(
            "self-tests: stress", 240, device, "--tests", "memory,sustained", "--level", "stress"
        ),
    ]


_STANDARD = ("--level", "standard")


def _tests(run: Run, name: str, seconds: float) -> Step:
    """Return the step of one module of tests; pytest reads the ``pytest.ini`` beside it."""
    written = f"--junitxml={_written(run, f'tests: {name}')}"
    file = f"tests/gpu/test_gpu_{name}.py"
    options = ("-p", "no:cacheprovider", "-vv", "--tb=short", written)
    command = (sys.executable, "-m", "pytest", *options, file)
    return Step(f"tests: {name}", seconds, command, ("gpucheck", "pytest", "torch"), _read_tests)


_IMPORTS = """
import importlib.util, json
lacks = {}
for name, wanted in %r.items():
    for one in wanted:
        try:
            importlib.import_module(one)
        except Exception as error:
            lacks[name] = "%%s cannot be imported: %%s: %%s" %% (one, type(error).__name__, error)
            break
if importlib.util.find_spec("torch") is None:  # its import takes its time, and may hang
    lacks["torch"] = "torch is not installed"
print("\\n" + json.dumps({"lacks": lacks}))
"""
_WANTED = {
    "gpucheck": ["click", "msgspec", "packaging", "pynvml", "gpucheck"],
    "pytest": ["pytest"],
}


def _look(run: Run) -> None:
    """Find out what this Python lacks, so that each step can say why it was left out."""
    done = program((sys.executable, "-c", _IMPORTS % _WANTED), 90, run.env)
    said = facts_of.last_json(done.out).get("lacks")
    why = done.why or f"a Python that imports everything ended with exit status {done.status}"
    run.lacks = said if isinstance(said, dict) else {"gpucheck": why, "pytest": why}


def _machine(run: Run) -> Json:
    """Return the machine in a few words, by its own programs."""
    smi, torch = (run.asked.get(name) or {} for name in ("smi", "torch"))
    return {
        "gpus": smi.get("name") or [each["name"] for each in torch.get("devices") or ()],
        "driver": (smi.get("driver_version") or [""])[0],
        "torch": torch.get("version", ""),
        "python": sys.version.split()[0],
        "seen_by": "nvidia-smi" if smi else "torch",
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
    parser.add_argument("--seconds", type=float, default=400.0, help="for everything")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="these steps")
    parser.add_argument("--device", choices=["cpu"], help="what is tested; the GPUs unless said")
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
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",  # what a test prints is there when its step is ended
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a machine may have any, and ours need none
        "GPUCHECK_GPU_REPORTS": str(scratch),
        **({"GPUCHECK_GPU_DEVICE": options.device} if options.device else {}),
    }
    run = Run(options.output, options.seconds, env, scratch)
    device = ("--device", options.device) if options.device else ()
    first = first_steps(run)
    more = [
        step
        for step in steps(run, device)
        if any(word in step.name for word in options.only)
    ]  # fmt: skip
    run.planned = [step.name for step in (*first, *more)]
    try:
        problems = _unpack(options.wheels, site) if options.wheels else []
        _look(run)
        if problems:
            run.report["wheels"] = problems
        for step in first:
            run.take(step)
        _compare(run)
        for step in more:
            run.take(step)
        run.report["result"] = _result(run.report)
    except KeyboardInterrupt as interrupt:
        run.report["result"] = f"not finished: {str(interrupt) or 'interrupted'}"
    run.write()
    if run.report["not_reached"]:
        print(f"\nnot reached: {', '.join(run.report['not_reached'])}")
    print(f"\n{run.report['result']}\n{options.output / 'report.md'}")
    bad = any(step["status"] in ("failed", "too late") for step in run.report["steps"])
    return int(bad or run.report["result"].startswith("not finished"))


if __name__ == "__main__":
    sys.exit(main())
