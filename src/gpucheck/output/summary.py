"""The sentences that all formats share: verdict, target, and the limits of the judgement."""

from collections.abc import Sequence

from gpucheck._about import VERSION
from gpucheck.derived.gpus import is_passed_on
from gpucheck.engine import Report
from gpucheck.engine.trailer import trailer
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import CudaDriver, Driver, NvidiaSmi, Nvml
from gpucheck.facts.pasted import Pasted
from gpucheck.facts.request import Recorded, Request
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Pci, System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding, Outcome
from gpucheck.language import in_series, in_their_words, in_turn, phrase, say, say_many, spoken
from gpucheck.output import selftest_lines
from gpucheck.output.words import VERDICTS, bracketed, clean, counted, headed, term

_OF_EXTENSIONS = "extension-"
_COMPAT_REFUSED = 804
"""The result of ``cuInit`` if the GPU does not support the loaded cuda-compat library."""
_NOT_EXAMINED = {"rocm": say("AMD GPUs (ROCm)"), "xpu": say("Intel GPUs (XPU)")}


def verdict(report: Report) -> str:
    """Return one sentence with the overall result."""
    if report.causes:
        return _with_more(headline(report.causes[0]), report.causes)
    if report.verdict == "unknown":
        return _undecided(report)
    if report.about == "self-tests":
        return selftest_lines.passed(report.snapshot.get(SelfTests))
    return _healthy(report)


def trailer_of(report: Report) -> str:
    """Return the last line of a report, which says to programs what was found."""
    return trailer(report.verdict, report.root_causes, spoken(VERDICTS[report.verdict]))


def footer(snapshot: Snapshot, names: str) -> str:
    """Return the versions and the time, and what the names in a report are."""
    versions = snapshot.versions
    read = say(
        "gpucheck {version}, tables {tables}, {taken}.",
        version=versions.version, tables=versions.tables, taken=snapshot.taken,
    )  # fmt: skip
    return in_turn([read, names])


def _undecided(report: Report) -> str:
    if not report.open_questions:
        return say("Too little could be read for a diagnosis.")
    first = report.open_questions[0]
    why = in_their_words(clean(first.reason))
    if report.about == "self-tests":
        return say("No self-test could be run: {why}", why=why)
    if report.snapshot.origin == "described":
        return say("This cannot be decided: {why} ({fact})", why=why, fact=first.fact)
    lacking = bracketed(why, first.fact)
    return say("{question} This is unknown: {why}", question=first.question, why=lacking)


def headline(finding: Finding) -> str:
    """Return the headline of a finding, with a word if the cause is not certain."""
    words = clean(finding.headline, 600)
    if finding.confidence is Confidence.CERTAIN:
        return words
    return bracketed(words, term(finding.confidence.value))


def reach(report: Report, *, has_checks: bool = False) -> str:
    """Return the limits of the judgement, including what was not tested.

    Args:
        report: what was judged.
        has_checks: the checks themselves are shown further down.
    """
    if report.snapshot.origin == "described":
        return say("Nothing was run or read. This diagnosis is based only on the given facts.")
    tests = report.snapshot.get(SelfTests)
    if report.about == "self-tests" and tests.results:
        return selftest_lines.basis(tests)
    tested = _tested(tests)
    lacking = len(report.unknown_checks)
    if not lacking or report.verdict == "unknown":
        return tested
    return in_turn([tested, _undecided_checks(lacking, len(report.checks), has_checks=has_checks)])


def _undecided_checks(count: int, checks: int, *, has_checks: bool) -> str:
    if has_checks:
        return say_many(
            count,
            "{count} of {checks} checks could not be decided because a fact is missing: see the "
            "checks below.",
            "{count} of {checks} checks could not be decided because facts are missing: see the "
            "checks below.",
            checks=checks,
        )
    return say_many(
        count,
        "{count} of {checks} checks could not be decided because a fact is missing: see gpucheck "
        "-v.",
        "{count} of {checks} checks could not be decided because facts are missing: see gpucheck "
        "-v.",
        checks=checks,
    )


def _tested(tests: SelfTests) -> str:
    if tests.results is not None:
        totals, seconds = selftest_lines.totals(tests), tests.seconds or 0
        if tests.devices:
            return say(
                "Self-tests ({level}): {totals} in {seconds:.1f} s.",
                level=tests.level, totals=totals, seconds=seconds,
            )  # fmt: skip
        return say(
            "Self-tests ({level}) on the CPU: {totals} in {seconds:.1f} s.",
            level=tests.level, totals=totals, seconds=seconds,
        )  # fmt: skip
    if why := tests.problem("results"):
        return say(
            "No self-test was run ({why}). This diagnosis is based on files and on what the driver "
            "reports.",
            why=clean(why),
        )
    return say(
        "No self-test was run. This diagnosis is based on files and on what the driver reports."
    )


def open_questions(report: Report) -> list[str]:
    """Return the open questions and why; questions that lack the same fact are combined."""
    by_lack: dict[tuple[str, str], list[str]] = {}
    for open_question in report.open_questions:
        by_lack.setdefault((open_question.fact, open_question.reason), []).append(
            open_question.question
        )
    return [
        in_turn([*questions, bracketed(in_their_words(clean(reason)), fact)])
        for (fact, reason), questions in by_lack.items()
    ]


def recorded(snapshot: Snapshot) -> str:
    """Return that the machine is another one, and when and by what it was recorded; "" if not."""
    if snapshot.origin != "recorded":
        return ""
    found = snapshot.get(Recorded)
    if found.taken is None:
        return say("Not this one: it was recorded (time unknown). Run its commands there.")
    noted = say(
        "Not this one. It was recorded at {taken} by gpucheck {version}, tables {tables}. Run its "
        "commands there.",
        version=clean(found.gpucheck or ""), tables=clean(found.tables or ""),
        taken=clean(found.taken),
    )  # fmt: skip
    hidden = say("Its names, paths, addresses and UUIDs are pseudonyms.") if found.redacted else ""
    older = say(
        "This is gpucheck {version}: what that version did not ask for counts as absent.",
        version=VERSION,
    )
    return in_turn([noted, hidden, "" if found.gpucheck == VERSION else older])


def target(snapshot: Snapshot) -> str:
    """Return which Python was examined and why that one."""
    python = snapshot.get(Interpreter)
    if python.status is None:
        why = python.problem("status") or python.problem("executable")
        return headed(term("unknown"), clean(why))
    if python.status == "not-found":
        why = in_their_words(clean(python.problem("executable")))
        return headed(say("no Python was found"), why)
    if not python.executable:
        why = python.problem("executable") or term(python.status)
        return headed(say("not asked"), clean(why))
    where, chosen = clean(python.executable), phrase(clean(python.chosen_by or ""))
    if python.status == "too-old":
        old = say("{python} is too old", python=bracketed(where, chosen))
        return headed(old, in_their_words(clean(python.problem("version"))))
    if python.status != "ok":
        why = in_their_words(python.problem("version")) or term(python.status)
        silent = say("{python} did not answer", python=bracketed(where, chosen))
        return headed(silent, clean(why))
    if not python.version:
        return bracketed(say("of unknown version at {path}", path=where), chosen)
    return bracketed(say("{version} at {path}", version=clean(python.version), path=where), chosen)


def other_targets(snapshot: Snapshot) -> list[str]:
    """Return a note for each other Python that has a torch and might have been meant."""
    return [
        _also_has_torch(clean(other.executable), phrase(clean(other.chosen_by or "")), other.torch)
        for other in snapshot.get(Interpreter).others or ()
        if other.executable
    ]


def _also_has_torch(path: str, chosen: str, torch: str | None) -> str:
    python = bracketed(path, chosen)
    if torch is None or not torch:
        return say(
            "{python} has a torch as well; to look at it: gpucheck --python {path}",
            python=python, path=path,
        )  # fmt: skip
    return say(
        "{python} has torch {version} as well; to look at it: gpucheck --python {path}",
        python=python, version=clean(torch), path=path,
    )  # fmt: skip


def gpu_names(snapshot: Snapshot) -> list[str]:
    """Return the names of the GPUs that a CUDA program sees, otherwise of all GPUs."""
    cuda = snapshot.get(CudaDriver)
    if cuda.init_code == 0 and cuda.devices:
        return [device.device_name or "NVIDIA GPU" for device in cuda.devices]
    nvml = snapshot.get(Nvml).gpus
    if nvml:
        return [gpu.device_name or "NVIDIA GPU" for gpu in nvml]
    pci = snapshot.get(Pci)
    if pci.gpus:
        return [
            gpu.product or say("NVIDIA device {id}", id=gpu.device_id or "?") for gpu in pci.gpus
        ]
    if pci.jetson_gpu:
        return [say("the GPU of a Jetson")]
    return list(snapshot.get(NvidiaSmi).gpu_names or [])


def driver_release(snapshot: Snapshot) -> str:
    """Return the release of the running driver, "" if unknown."""
    return (
        snapshot.get(Nvml).driver_release
        or snapshot.get(Driver).module_release
        or snapshot.get(NvidiaSmi).driver_release
        or ""
    )


def driver_cuda(snapshot: Snapshot) -> str:
    """Return the CUDA version that the driver reports, "" if it does not.

    With a cuda-compat library that CUDA refuses, it is the version of that library: it says nothing
    about the driver.
    """
    loaded = snapshot.get(CudaDriver)
    if loaded.init_code == _COMPAT_REFUSED:
        return ""
    return loaded.cuda or snapshot.get(Nvml).cuda or snapshot.get(NvidiaSmi).cuda or ""


def _with_more(words: str, causes: Sequence[Finding]) -> str:
    """Return the first cause, and how many more there are."""
    more = len(causes) - 1
    if not more:
        return words
    if causes[0].severity is Severity.ERROR:
        return say_many(
            more,
            "{cause} - and one more error",
            "{cause} - and {count} more errors",
            cause=words,
        )
    return say_many(
        more,
        "{cause} - and one more warning",
        "{cause} - and {count} more warnings",
        cause=words,
    )


def _healthy(report: Report) -> str:
    snapshot = report.snapshot
    torch = snapshot.get(TorchBuild)
    gpus = gpu_names(snapshot)
    name = f"PyTorch {clean(torch.version)}" if torch.version else "PyTorch"
    if snapshot.origin == "described" and (
        torch.installed is None or not gpus or (torch.installed and not _is_judged(report))
    ):
        return say("Nothing in the given facts shows a problem.")
    if not torch.installed:
        return say("Nothing is wrong here; PyTorch is not installed in this Python.")
    if snapshot.get(Request).gpus == 0:
        return say("You said that this host uses no GPU; {torch} is installed.", torch=name)
    if _all_passed_on(snapshot):
        return _healthy_host(name, counted(gpus), is_cpu_build=torch.built_for == "cpu")
    if not gpus:
        return _healthy_without_gpu(name, torch.built_for or "", snapshot.get(System))
    if torch.built_for not in (None, "cuda"):
        return say(
            "Nothing is wrong here; {torch} is not a CUDA build, so it does not use a GPU.",
            torch=name,
        )
    driver = _driver(snapshot)
    if not _was_seen_to_work(snapshot) and not (driver and torch.built_for):
        if driver:
            return say(
                "No problem is known with {torch} on {gpus}; its build is unknown.",
                torch=name, gpus=counted(gpus),
            )  # fmt: skip
        return say(
            "No problem is known with {torch} on {gpus}; the driver is unknown.",
            torch=name, gpus=counted(gpus),
        )  # fmt: skip
    return bracketed(say("{torch} can use {gpus}", torch=name, gpus=counted(gpus)), driver)


def torch_itself(report: Report) -> str:
    """Return that PyTorch can use the GPU, if errors are only in extensions; "" otherwise."""
    snapshot = report.snapshot
    errors = [found for found in report.standing if found.severity is Severity.ERROR]
    torch, gpus, driver = snapshot.get(TorchBuild), gpu_names(snapshot), _driver(snapshot)
    if not errors or not all(found.slug.startswith(_OF_EXTENSIONS) for found in errors):
        return ""
    if torch.built_for != "cuda" or not gpus or not driver or not _is_judged(report):
        return ""
    name = f"PyTorch {clean(torch.version or '')}"
    return bracketed(say("{torch} itself can use {gpus}", torch=name, gpus=counted(gpus)), driver)


def _healthy_without_gpu(torch: str, built_for: str, system: System) -> str:
    if what := _NOT_EXAMINED.get(built_for):
        return say(
            "No NVIDIA GPU here; {torch} is a build for {what}, which gpucheck does not examine",
            torch=torch, what=what,
        )  # fmt: skip
    if built_for == "cpu" and system.os == "macos":
        return say(
            "No NVIDIA GPU here; {torch} runs on the CPU. gpucheck does not examine MPS, Apple's "
            "GPU",
            torch=torch,
        )
    if built_for == "cpu":
        return say(
            "No NVIDIA GPU here; {torch} is a CPU build, which is right for this machine",
            torch=torch,
        )
    return say("No NVIDIA GPU here, and nothing is wrong with {torch}.", torch=torch)


def _healthy_host(torch: str, gpus: str, *, is_cpu_build: bool) -> str:
    if is_cpu_build:
        return say(
            "This host passes {gpus} through to virtual machines; {torch} is a CPU build, which is "
            "right for this host.",
            gpus=gpus, torch=torch,
        )  # fmt: skip
    return say(
        "This host passes {gpus} through to virtual machines; nothing is wrong with {torch}.",
        gpus=gpus, torch=torch,
    )  # fmt: skip


def _all_passed_on(snapshot: Snapshot) -> bool:
    """Whether the host reserves every GPU for its virtual machines."""
    found = snapshot.get(Pci).gpus or []
    return bool(found) and all(is_passed_on(gpu) for gpu in found)


def _was_seen_to_work(snapshot: Snapshot) -> bool:
    """Whether a self-test passed on every GPU, or a text says that torch found CUDA available."""
    tests = snapshot.get(SelfTests)
    passed = any(tests.passed_on_every_gpu(result.name) for _path, result in tests.of())
    return passed or bool(snapshot.get(Pasted).cuda_available)


def _driver(snapshot: Snapshot) -> str:
    """Return the driver and its CUDA; "" if nothing is known about them."""
    release, cuda = driver_release(snapshot), driver_cuda(snapshot)
    known = [say("driver {release}", release=clean(release))] if release else []
    return in_series([*known, f"CUDA {clean(cuda)}"] if cuda else known)


def _is_judged(report: Report) -> bool:
    """Whether the rules on the driver and on the code for the GPUs had what they need."""
    fine = {check.slug for check in report.checks if check.outcome is Outcome.FINE}
    return all(slug in fine for slug, rule in all_rules().items() if rule.decides_use)
