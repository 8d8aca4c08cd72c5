"""The sentences that all formats share: verdict, target, and the limits of the judgement."""

from gpucheck.derived.gpus import is_passed_on
from gpucheck.engine import Report
from gpucheck.facts.claims import Severity
from gpucheck.facts.cuda_driver import CudaDriver
from gpucheck.facts.driver import Driver
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.nvidia_smi import NvidiaSmi
from gpucheck.facts.nvml import Nvml
from gpucheck.facts.pasted import Pasted
from gpucheck.facts.pci import Pci
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding, Outcome
from gpucheck.output import selftest_lines
from gpucheck.output.words import clean, counted, plural


def verdict(report: Report) -> str:
    """Return one sentence with the overall result."""
    causes = [finding for finding in report.standing if finding.slug in report.root_causes]
    if causes:
        return f"{headline(causes[0])}{_more(causes)}"
    if report.verdict == "unknown":
        if not report.open_questions:
            return "Not enough could be read."
        first = report.open_questions[0]
        if report.about == "self-tests":
            return f"No self-test could be run: {clean(first.reason)}"
        if report.snapshot.origin == "described":
            return f"It cannot be told: {clean(first.reason)} ({first.fact})"
        return f"Not enough could be read. {first.question} {clean(first.reason)} ({first.fact})"
    if report.about == "self-tests":
        return selftest_lines.passed(report.snapshot.get(SelfTests))
    return _healthy(report)


def headline(finding: Finding) -> str:
    """Return the headline of a finding, with a word if the cause is not certain."""
    sure = "" if finding.confidence.value == "certain" else f" ({finding.confidence.value})"
    return f"{clean(finding.headline, 600)}{sure}"


def reach(report: Report) -> str:
    """Return the limits of the judgement, including what was not tested."""
    if report.snapshot.origin == "described":
        return "Nothing was run or read: this rests on the facts that were given."
    tests = report.snapshot.get(SelfTests)
    if report.about == "self-tests" and tests.results:
        return selftest_lines.basis(tests)
    tested = _tested(tests)
    lacking = len(report.unknown_checks)
    if not lacking or report.verdict == "unknown":
        return tested
    lack = "lacks" if lacking == 1 else "lack"
    return f"{tested} {lacking} of {len(report.checks)} checks {lack} a fact: see gpucheck -v."


def _tested(tests: SelfTests) -> str:
    if tests.results is None:
        why = tests.problem("results")
        because = f" ({clean(why)})" if why else ""
        return f"No self-test was run{because}: this rests on files and on what the driver says."
    where = "" if tests.devices else " on the CPU"
    totals = selftest_lines.totals(tests)
    return f"Self-tests ({tests.level}){where}: {totals} in {tests.seconds or 0:.1f} s."


def open_questions(report: Report) -> list[str]:
    """Return the open questions and why; questions that lack the same fact are combined."""
    by_lack: dict[tuple[str, str], list[str]] = {}
    for one in report.open_questions:
        by_lack.setdefault((one.fact, one.reason), []).append(one.question)
    return [
        f"{' '.join(questions)} {clean(reason)} ({fact})"
        for (fact, reason), questions in by_lack.items()
    ]


def target(snapshot: Snapshot) -> str:
    """Return which Python was examined and why that one."""
    python = snapshot.get(Interpreter)
    if python.status is None:
        why = python.problem("status") or python.problem("executable")
        return f"unknown{_because(why)}"
    if python.status == "not-found":
        return f"no Python was found{_because(python.problem('executable'))}"
    chosen = f" ({clean(python.chosen_by)})" if python.chosen_by else ""
    if not python.executable:
        return f"not asked{_because(python.problem('executable') or python.status)}"
    where = clean(python.executable)
    if python.status != "ok":
        why = python.problem("version") or python.status
        return f"{where}{chosen} did not answer{_because(why)}"
    return f"{clean(python.version or 'of unknown version')} at {where}{chosen}"


def other_targets(snapshot: Snapshot) -> list[str]:
    """Return a note for each other Python that has a torch and might have been meant."""
    notes = []
    for other in snapshot.get(Interpreter).others or ():
        if not other.executable:
            continue
        place = clean(other.executable)
        why = f" ({clean(other.chosen_by)})" if other.chosen_by else ""
        torch = f"torch {clean(other.torch)}" if other.torch else "a torch"
        notes.append(f"{place}{why} has {torch} as well; to look at it: gpucheck --python {place}")
    return notes


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
        return [gpu.product or f"NVIDIA device {gpu.device_id or '?'}" for gpu in pci.gpus]
    if pci.jetson_gpu:
        return ["the GPU of a Jetson"]
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
    """Return the CUDA version that the driver reports, "" if it does not."""
    return (
        snapshot.get(CudaDriver).cuda
        or snapshot.get(Nvml).cuda
        or snapshot.get(NvidiaSmi).cuda
        or ""
    )


def _more(causes: list[Finding]) -> str:
    if len(causes) == 1:
        return ""
    noun = "error" if causes[0].severity is Severity.ERROR else "warning"
    return f" - and {plural(len(causes) - 1, f'more {noun}').replace('1 more', 'one more')}"


def _healthy(report: Report) -> str:
    snapshot = report.snapshot
    torch = snapshot.get(TorchBuild)
    gpus = gpu_names(snapshot)
    name = f"PyTorch {clean(torch.version)}" if torch.version else "PyTorch"
    if snapshot.origin == "described" and (
        torch.installed is None or not gpus or (torch.installed and not _is_judged(report))
    ):
        return "Nothing that was given speaks against it."
    if not torch.installed:
        return "Nothing is wrong here; PyTorch is not installed in this Python."
    if snapshot.get(Request).gpus == 0:
        return f"This host was said to use no GPU; {name} is installed."
    fits = "is a CPU build, which fits" if torch.built_for == "cpu" else "has nothing wrong with it"
    if _all_passed_on(snapshot):
        return f"This host passes {counted(gpus)} on to virtual machines; {name} {fits}."
    if not gpus and torch.built_for == "cpu":
        return f"No NVIDIA GPU here; {name} {fits}."
    if not gpus:
        return f"No NVIDIA GPU here, and nothing is wrong with {name}."
    if torch.built_for not in (None, "cuda"):
        return f"Nothing is wrong here; {name} is not a CUDA build, so it does not use a GPU."
    driver = _driver(snapshot)
    if not _was_seen_to_work(snapshot) and not (driver and torch.built_for):
        lacks = "its build" if driver else "the driver"
        return f"Nothing speaks against {name} with {counted(gpus)}; {lacks} is unknown."
    return f"{name} can use {counted(gpus)}{driver}"


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
    """Return the driver in brackets; "" if nothing is known about it."""
    release, cuda = driver_release(snapshot), driver_cuda(snapshot)
    parts = (f"driver {clean(release)}" if release else "", f"CUDA {clean(cuda)}" if cuda else "")
    known = ", ".join(part for part in parts if part)
    return f" ({known})" if known else ""


def _is_judged(report: Report) -> bool:
    """Whether the rules on the driver and on the code for the GPUs had what they need."""
    fine = {check.slug for check in report.checks if check.outcome is Outcome.FINE}
    return all(slug in fine for slug, rule in all_rules().items() if rule.decides_use)


def _because(why: str) -> str:
    return f": {clean(why)}" if why else ""
