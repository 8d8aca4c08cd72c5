"""The sentences that all formats share: verdict, target, and the limits of the judgement."""

from collections.abc import Sequence

from gpucheck._about import VERSION
from gpucheck.derived.gpus import is_passed_on
from gpucheck.engine import DRIVER_SERVES, Report
from gpucheck.engine.report import trailer
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import CudaDriver, NvidiaSmi, Nvml
from gpucheck.facts.request import Pasted, Recorded, Request
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Environment, Pci, System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding, Outcome
from gpucheck.language import in_series, in_their_words, in_turn, phrase, say, say_many, spoken
from gpucheck.output import selftest_lines
from gpucheck.output.machine_summary import driver_cuda, driver_release, gpu_names, is_by_compat
from gpucheck.output.words import (
    VERDICTS,
    bracketed,
    clean,
    counted,
    headed,
    term,
    without_status,
)

_OF_EXTENSIONS = "extension-"
_FROM_NVML = (0, 18)
"""Codes of ``nvmlInit`` that need an answer of the kernel module: 18 is its other release."""
_FROM_CUDA = (0, 802, 803, 804)
"""The same of ``cuInit``: fabric not ready, another release, cuda-compat refused."""
_WHAT_IS_OPEN = {
    "Is there an NVIDIA GPU?": say("whether there is an NVIDIA GPU"),
    DRIVER_SERVES: say("whether a working driver serves the GPU"),
    "Which PyTorch build does the target interpreter have?": say(
        "which PyTorch build the target Python has"
    ),
    "Does the PyTorch build run on every visible GPU?": say(
        "whether the PyTorch build runs on every visible GPU"
    ),
    "Are the libraries that PyTorch loads compatible?": say(
        "whether the libraries that PyTorch loads are compatible"
    ),
}
"""The decisive questions as parts of a first line, which states what is missing and asks nobody."""
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
    why = without_status(first.reason)
    if report.about == "self-tests":
        return say("No self-test could be run: {why}", why=why)
    what = _WHAT_IS_OPEN.get(first.question)
    if report.snapshot.origin == "described" or what is None:
        return say("This cannot be decided: {why} ({fact})", why=why, fact=first.fact)
    return say("It is unknown {what}: {why}", what=what, why=why)


def headline(finding: Finding) -> str:
    """Return the headline of a finding, with a word if the cause is not certain."""
    words = clean(finding.headline, 600)
    if finding.confidence is Confidence.CERTAIN or _is_observed(finding):
        return words
    return bracketed(words, term(finding.confidence.value))


def _is_observed(finding: Finding) -> bool:
    """Whether the headline is a fact of a machine; in a text it may be about another one."""
    rule = all_rules().get(finding.slug)
    by_text = any(fact.fact.startswith("pasted.") for fact in finding.evidence)
    return rule is not None and rule.observes and not by_text


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
    tested = _tested(tests, report.snapshot)
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


def _tested(tests: SelfTests, snapshot: Snapshot) -> str:
    if tests.results is not None:
        totals, seconds = selftest_lines.totals(tests), tests.seconds
        if seconds is None and tests.devices:
            return say("Self-tests ({level}): {totals}.", level=tests.level, totals=totals)
        if seconds is None:
            return say(
                "Self-tests ({level}) on the CPU: {totals}.", level=tests.level, totals=totals
            )
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
        if _is_without_driver(snapshot):
            return say(
                "No self-test was run ({why}). This diagnosis is based on files: no NVIDIA driver "
                "answered.",
                why=clean(why),
            )
        return say(
            "No self-test was run ({why}). This diagnosis is based on files and on what the driver "
            "reports.",
            why=clean(why),
        )
    return say(
        "No self-test was run. This diagnosis is based on files and on what the driver reports."
    )


def _is_without_driver(snapshot: Snapshot) -> bool:
    """Whether no part of a driver answered; a text tells nothing of those that it does not name."""
    answers = (
        snapshot.get(Nvml).init_code in _FROM_NVML,
        snapshot.get(CudaDriver).init_code in _FROM_CUDA,
        snapshot.get(NvidiaSmi).driver_release,
    )
    return snapshot.origin != "pasted" and not any(answers)


def open_questions(report: Report, *, with_facts: bool = True) -> list[str]:
    """Return the open questions and why; questions that lack the same fact are combined.

    Args:
        report: what was judged.
        with_facts: with the names of the facts that are lacking.
    """
    by_lack: dict[tuple[str, str], list[str]] = {}
    for open_question in report.open_questions:
        by_lack.setdefault((open_question.fact, open_question.reason), []).append(
            open_question.question
        )
    return [
        in_turn([*questions, bracketed(without_status(reason), fact if with_facts else "")])
        for (fact, reason), questions in by_lack.items()
    ]


def recorded(report: Report) -> str:
    """Return that the machine is another one, and when and by what it was recorded; "" if not."""
    snapshot = report.snapshot
    if snapshot.origin != "recorded":
        return ""
    found = snapshot.get(Recorded)
    there = () if report.verdict == "healthy" else (say("Run its commands there."),)
    if found.taken is None:
        return in_turn([say("Not this one: it was recorded (time unknown)."), *there])
    noted = say(
        "Not this one. It was recorded at {taken} by gpucheck {version}, tables {tables}.",
        version=clean(found.gpucheck or ""), tables=clean(found.tables or ""),
        taken=clean(found.taken),
    )  # fmt: skip
    hidden = say("Its names, paths, addresses and UUIDs are pseudonyms.") if found.redacted else ""
    older = say(
        "This is gpucheck {version}: what that version did not ask for counts as absent.",
        version=VERSION,
    )
    return in_turn([noted, *there, hidden, "" if found.gpucheck == VERSION else older])


def target(report: Report) -> str:
    """Return which Python was examined and why that one; no reason that an open question has."""
    python = report.snapshot.get(Interpreter)
    open_reasons = {open_question.reason for open_question in report.open_questions}
    if python.status is None:
        why = python.problem("status") or python.problem("executable")
        return headed(term("unknown"), clean(why))
    if python.status == "not-found":
        why = python.problem("executable")
        if python.executable:
            named = bracketed(clean(python.executable), phrase(clean(python.chosen_by or "")))
            none = say("{python} was not found", python=named)
        else:
            none = say("no Python was found")
        return none if why in open_reasons else headed(none, in_their_words(clean(why)))
    if not python.executable:
        why = python.problem("executable") or term(python.status)
        return headed(say("not asked"), clean(why))
    where, chosen = clean(python.executable), phrase(clean(python.chosen_by or ""))
    if python.passed_over:
        chosen = say(
            "{chosen}; the active one, {own}, has gpucheck and no torch",
            chosen=chosen, own=clean(python.passed_over),
        )  # fmt: skip
    if python.status == "too-old":
        old = say("{python} is too old", python=bracketed(where, chosen))
        why = python.problem("version")
        return old if why in open_reasons else headed(old, in_their_words(clean(why)))
    if python.status != "ok":
        why = python.problem("version")
        silent = say("{python} did not answer", python=bracketed(where, chosen))
        if python.status == "timed-out":
            silent = say(
                "{silent}; run it with -V: if that hangs as well, its disk (a network disk?) may "
                "not respond",
                silent=silent,
            )
        why = clean(in_their_words(why)) or term(python.status)
        return silent if python.problem("version") in open_reasons else headed(silent, why)
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
        has_amd = "amd" in (snapshot.get(Pci).other_display_vendors or ())
        return _healthy_without_gpu(
            name, torch.built_for or "", snapshot.get(System), has_amd=has_amd
        )
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
    return bracketed(_served(name, gpus, snapshot), driver)


def _served(torch: str, gpus: Sequence[str], snapshot: Snapshot) -> str:
    """Return which GPUs PyTorch serves, and how many of all if a variable hides the others.

    That it can use them is known from a self-test alone.
    """
    shown = counted(gpus)
    if snapshot.origin == "described":
        return say("{torch} fits {gpus}", torch=torch, gpus=shown)
    passed = _has_passed(snapshot)
    mask = snapshot.get(Environment).get("CUDA_VISIBLE_DEVICES")
    every = len(snapshot.get(Nvml).gpus or ())
    if not mask or every <= len(gpus):
        if passed:
            return say("{torch} can use {gpus}", torch=torch, gpus=shown)
        return say("{torch} sees {gpus}", torch=torch, gpus=shown)
    of_all = say(
        "{count} of {all} GPUs (CUDA_VISIBLE_DEVICES={mask}): {gpus}",
        count=len(gpus), all=every, mask=clean(mask, 40), gpus=shown,
    )  # fmt: skip
    if passed:
        return say("{torch} can use {gpus}", torch=torch, gpus=of_all)
    return say("{torch} sees {gpus}", torch=torch, gpus=of_all)


def torch_itself(report: Report) -> str:
    """Return that PyTorch serves the GPU, if errors are only in extensions; "" otherwise."""
    snapshot = report.snapshot
    errors = [found for found in report.standing if found.severity is Severity.ERROR]
    torch, gpus, driver = snapshot.get(TorchBuild), gpu_names(snapshot), _driver(snapshot)
    if not errors or not all(found.slug.startswith(_OF_EXTENSIONS) for found in errors):
        return ""
    if torch.built_for != "cuda" or not gpus or not driver or not _is_judged(report):
        return ""
    name = f"PyTorch {clean(torch.version or '')}"
    itself = say("{torch} itself", torch=name)
    return bracketed(_served(itself, gpus, snapshot), driver)


def _healthy_without_gpu(torch: str, built_for: str, system: System, *, has_amd: bool) -> str:
    if what := _NOT_EXAMINED.get(built_for):
        return say(
            "No NVIDIA GPU here; {torch} is a build for {what}, which gpucheck does not examine",
            torch=torch, what=what,
        )  # fmt: skip
    if built_for == "cpu" and system.os == "macos" and system.machine == "arm64":
        return say(
            "No NVIDIA GPU here; {torch} runs on the CPU or on Apple's GPU (MPS), which gpucheck "
            "does not examine",
            torch=torch,
        )
    if built_for == "cpu" and has_amd:
        return say(
            "No NVIDIA GPU here; {torch} is a CPU build. There is an AMD GPU, which gpucheck does "
            "not examine",
            torch=torch,
        )
    if built_for == "cpu":
        return say(
            "No NVIDIA GPU is seen here (one that is switched off is not seen, either); {torch} is "
            "a CPU build, which is right without a GPU",
            torch=torch,
        )
    return say("No NVIDIA GPU here, and nothing is wrong with {torch}.", torch=torch)


def _healthy_host(torch: str, gpus: str, *, is_cpu_build: bool) -> str:
    if is_cpu_build:
        return say(
            "This host passes {gpus} through to virtual machines; {torch} is a CPU build, which is "
            "right for this host",
            gpus=gpus, torch=torch,
        )  # fmt: skip
    return say(
        "This host passes {gpus} through to virtual machines; nothing is wrong with {torch}",
        gpus=gpus, torch=torch,
    )  # fmt: skip


def _all_passed_on(snapshot: Snapshot) -> bool:
    """Whether the host reserves every GPU for its virtual machines."""
    found = snapshot.get(Pci).gpus or []
    return bool(found) and all(is_passed_on(gpu) for gpu in found)


def _was_seen_to_work(snapshot: Snapshot) -> bool:
    """Whether a self-test passed on every GPU, or a text says that torch found CUDA available."""
    return _has_passed(snapshot) or bool(snapshot.get(Pasted).cuda_available)


def _has_passed(snapshot: Snapshot) -> bool:
    tests = snapshot.get(SelfTests)
    return any(tests.passed_on_every_gpu(result.name) for _path, result in tests.of())


def _driver(snapshot: Snapshot) -> str:
    """Return the driver and its CUDA; "" if nothing is known about them."""
    release, cuda = driver_release(snapshot), driver_cuda(snapshot)
    known = [say("driver {release}", release=clean(release))] if release else []
    if release and cuda and is_by_compat(snapshot):
        known = [say("driver {release} with cuda-compat", release=clean(release))]
    return in_series([*known, f"CUDA {clean(cuda)}"] if cuda else known)


def _is_judged(report: Report) -> bool:
    """Whether the rules on the driver and on the code for the GPUs had what they need."""
    fine = {check.slug for check in report.checks if check.outcome is Outcome.FINE}
    return all(slug in fine for slug, rule in all_rules().items() if rule.decides_use)
