"""What formats share of the report of a machine: findings, open questions, checks, probes."""

from collections.abc import Iterator, Sequence

from gpucheck.engine import Report
from gpucheck.facts.claims import CommandClass, Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, Driver
from gpucheck.facts.snapshot import ProbeRun, Snapshot
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Check, Finding, Outcome
from gpucheck.language import Sentence, in_series, in_turn, say, say_many
from gpucheck.output.blocks import (
    Block,
    Box,
    Commands,
    Items,
    SectionBlock,
    Sources,
    Words,
    more_about,
)
from gpucheck.output.summary import headline, open_questions, other_targets, reach, target
from gpucheck.output.words import clean, document, term

# What to do next where the verdict is unknown: no report leaves its reader without a step.

# Asked in this order: a list of GPUs that NVML does not give is a question about the GPU first.
_OF_GPU = ("pci.", "nvml.gpus")
_OF_DRIVER = ("nvml.", "cuda_driver.", "driver.", "nvidia_smi.")
_NO_PYTHON = ("not-found", "not-started")


def next_step(report: Report) -> tuple[Words, ...]:
    """Return what would answer the first open question, with a command to copy; () if none is open.

    Everything else hangs on the first one: without a GPU nobody asks for its driver.
    """
    if report.verdict != "unknown" or not report.open_questions:
        return ()
    if report.about != "machine":
        return ()
    if report.snapshot.origin == "described":
        words = say("Give the facts that are missing, or run gpucheck on the machine itself.")
        return _step(words, "gpucheck compat --help")
    fact = report.open_questions[0].fact
    if fact.startswith(_OF_GPU):
        text, *commands = _see_the_gpu(report)
    elif fact.startswith(_OF_DRIVER):
        text, *commands = _see_the_driver(report)
    elif fact.startswith("torch."):
        text, *commands = _see_torch(report)
    else:
        text = say("Let the self-tests decide: they load what programs load.")
        commands = ["gpucheck selftest"]
    return _step(text, *commands)


def _step(text: str, *commands: str) -> tuple[Words, ...]:
    return (Words(text, lead=say("Next"), hangs=True, below=(Commands(commands),)),)


def _see_the_gpu(report: Report) -> tuple[str, ...]:
    system = report.snapshot.get(System)
    if system.os == "windows":
        text = say(
            "Run this in PowerShell (ignore audio and USB devices). If it lists no GPU, this PC "
            "has no NVIDIA GPU that is switched on, and PyTorch runs on the CPU. If the Problem of "
            "a GPU is CM_PROB_DISABLED, enable it in Device Manager; if it is any other, install "
            "the driver from https://www.nvidia.com/drivers (a GPU without one may be called 3D "
            "Video Controller or Microsoft Basic Display Adapter). Then run gpucheck again."
        )
        listing = "Get-PnpDevice -PresentOnly | where InstanceId -match VEN_10DE"
        return text, f"{listing} | select FriendlyName, Problem"
    if system.wsl:
        text = say(
            "Run this in PowerShell. If it lists the GPU, run wsl --update and wsl --shutdown "
            "there, which ends everything that runs in WSL; if not, install the NVIDIA driver of "
            "Windows. Then run gpucheck again."
        )
        return text, "nvidia-smi"
    text = say(
        "See whether there is one. If so, run gpucheck where it may read /sys and /dev: outside a "
        "sandbox, or as the user whose programs use the GPU."
    )
    # With a limit: the driver may be there and hang.
    return text, "ls -l /dev/nvidia*", "timeout -k 5 30 nvidia-smi"


def _see_the_driver(report: Report) -> tuple[str, ...]:
    from gpucheck.advice.interruption import COLLECT  # noqa: PLC0415  # rarely needed

    if report.snapshot.get(System).os == "windows":
        text = say(
            "If this lists the GPU, run gpucheck again. If not, restart Windows, then install the "
            "driver from https://www.nvidia.com/drivers."
        )
        return text, "nvidia-smi"
    found = [file for file in report.snapshot.get(Driver).libcuda or () if file.release]
    if found and report.snapshot.get(CudaDriver).library == "":
        text = say(
            "libcuda {release} is at {path}, but gpucheck could not call it. Run a self-test: it "
            "calls libcuda through PyTorch and shows whether it works.",
            release=clean(found[0].release or ""),
            path=clean(found[0].path or ""),
        )
        return text, "gpucheck selftest"
    if report.snapshot.get(CudaDriver).library == "":
        text = say(
            "PyTorch calls libcuda, which was not found. Start the container with --gpus all; if "
            "NVIDIA_DRIVER_CAPABILITIES is set, it must contain compute. Elsewhere, libcuda is a "
            "package of the driver. These commands show whether it is there."
        )
        return text, "ldconfig -p | grep libcuda", "nvidia-smi"
    text = say(
        "The kernel's log says why a driver does not answer. If nvidia-smi lists the GPU, run "
        "gpucheck as the user whose programs use it; if they run in a container, run it there. If "
        "not, a restart usually helps; it interrupts everyone who uses this machine and erases the "
        "traces, so first collect the driver's bug report with {collect} (if that hangs too, add "
        "--safe-mode).",
        collect=COLLECT,
    )
    return text, "sudo dmesg | grep -iE 'nvrm|xid' | tail", "timeout -k 5 30 nvidia-smi"


def _see_torch(report: Report) -> tuple[str, ...]:
    python = report.snapshot.get(Interpreter)
    if python.status in _NO_PYTHON:
        text = say(
            "Pass --python with the Python that runs your programs. Run in its environment, this "
            "command prints its path."
        )
        return text, 'python -c "import sys; print(sys.executable)"'
    if python.status == "too-old":
        text = say(
            "If your programs run in another Python, 3.8 or newer, name it with --python. If they "
            "need this old one, give gpucheck PyTorch's own report."
        )
        return text, "python3 -m torch.utils.collect_env | gpucheck triage -"
    if report.snapshot.get(TorchBuild).installed is None:
        return say("Wait longer: the Python may only be slow to start."), "gpucheck --timeout 300"
    return say("Let PyTorch itself say it."), "gpucheck selftest --tests import-torch"


# The fixes of a finding: what each is called, its commands, and how to verify it.

_REACH: dict[CommandClass, str] = {
    "reads": say("changes nothing"),
    "environment": say("changes your environment"),
    "machine": say("changes the machine"),
    "interrupts": say("interrupts others"),
}

_GATED = ("machine", "wsl")
"""What ends the work of others when it restarts, so that its command stands apart."""
_THEN = say("Then, when it disturbs nobody:")
"""What stands between two blocks of commands."""


def fixes(offered: Sequence[Fix]) -> tuple[Block, ...]:
    """Return the fixes, each with its commands, and how to verify it."""
    return tuple(
        Words(fix.text, lead=_label(fix, number, len(offered)), hangs=True, below=tuple(steps(fix)))
        for number, fix in enumerate(offered, start=1)
    )


def steps(fix: Fix) -> Iterator[Block]:
    """Return what to know before the commands of a fix are run, the commands, how to verify it."""
    if fix.cautions:
        yield Words(in_turn(fix.cautions), lead=say("Caution"), kind="warning")
    for number, commands in enumerate(_together(fix)):
        if number:
            yield Words(_THEN)
        yield Commands(commands)
    if fix.verify:
        yield Commands((fix.verify,), lead=say("Verify"))


def _together(fix: Fix) -> list[tuple[str, ...]]:
    """Return the commands of a fix, those together that may be pasted together.

    Whoever looks wants to see before anything ends, and a restart would cut off what still runs.
    """
    if len(fix.commands) < 2:  # noqa: PLR2004
        return [fix.commands] if fix.commands else []
    from gpucheck.advice.command_class import restart_of  # noqa: PLC0415  # rarely needed

    found: list[list[str]] = []
    classes = fix.classes if len(fix.classes) == len(fix.commands) else ()
    for at, command in enumerate(fix.commands):
        looked = classes[at - 1 : at + 1] == ("reads", "interrupts")
        if not found or looked or (classes and restart_of((command,)) in _GATED):
            found.append([])
        found[-1].append(command)
    return [tuple(commands) for commands in found]


def _label(fix: Fix, number: int, count: int) -> str:
    """Return the name of a fix, such as "Fix 2 (changes the machine)"."""
    name = say("Fix {number}", number=number) if count > 1 else say("Fix")
    return say("{fix} ({reach})", fix=name, reach=_REACH[fix.reach]) if fix.reach else name


def with_colon(name: str) -> str:
    """Return what stands before a text, with the sign and the blank between them."""
    return say("{name}: ", name=name)


def box(report: Report, finding: Finding, *, every_fix: bool = True) -> Box:
    """Return a finding in full; ``every_fix``: of a mere note, too."""
    from gpucheck.output.evidence import evidence  # noqa: PLC0415  # most machines are healthy

    is_first = finding.slug in report.root_causes[:1]  # the verdict already has this one
    slugs = explained(report, finding)
    explains = say("This also explains: {explained}", explained=in_series(slugs))
    is_note = finding.severity is Severity.INFO
    return Box(
        heading=finding.slug,
        severity=finding.severity.value,
        intro=() if is_first else (Words(headline(finding)),),
        evidence=evidence(finding),
        fixes=fixes(finding.fixes if every_fix or not is_note else finding.fixes[:1]),
        more=(*((Words(explains, hangs=True),) if slugs else ()), more_about(finding.slug)),
    )


def sources(finding: Finding) -> tuple[Sources, ...]:
    """Return the documents from which the tables have what decided a finding, if any."""
    lines = tuple(
        (source.fact, document(source.title, source.url, source.read))
        for source in finding.table_sources
    )
    return (Sources(lines),) if lines else ()


def machine_named(report: Report) -> str:
    """Return what the machine is called that was looked at."""
    is_recorded = report.snapshot.origin == "recorded"
    return say("The recorded machine") if is_recorded else say("This machine")


def explained(report: Report, finding: Finding) -> list[str]:
    """Return the slugs of what a finding explains.

    A note, such as that of an old driver branch, is no symptom: it only waits its turn. A merely
    possible cause is none either: what the finding shows is that it was not the cause.
    """
    return [
        silenced.slug
        for silenced in report.findings
        if silenced.silenced_by == finding.slug
        and silenced.severity is not Severity.INFO
        and silenced.confidence is not Confidence.POSSIBLE
    ]


def questions(report: Report) -> tuple[SectionBlock, ...]:
    """Return the questions that are open if the verdict is."""
    if report.verdict != "unknown":
        return ()
    asked = Items(tuple(open_questions(report)))
    return (SectionBlock(say("Open questions"), (asked, *next_step(report)), "questions"),)


def examined(report: Report, *, has_checks: bool = False) -> list[tuple[str, str]]:
    """Return what was looked at, each line with its name; ``has_checks`` of :func:`reach`."""
    # With every check, each has its reason; elsewhere nothing else says that the tables object.
    refuted = report.ruled_out if report.snapshot.origin != "pasted" and not has_checks else ()
    outweighed = [Sentence.at_start(why) for why in refuted if isinstance(why, Sentence)]
    notes = [(say("Note"), note) for note in (*other_targets(report.snapshot), *outweighed)]
    tested = (say("Tested"), reach(report, has_checks=has_checks))
    return [("Python", target(report)), *notes, tested]


def counted_checks(report: Report) -> str:
    """Return how many checks ended in each way."""
    counts = [
        say("{count} {outcome}", count=count, outcome=term(outcome.value))
        for outcome in Outcome
        if (count := sum(check.outcome is outcome for check in report.checks))
    ]
    return say("Checks: {counts}", counts=in_series(counts))


def sorted_checks(report: Report) -> list[Check]:
    """Return the checks by their outcome, those that found something first."""
    order = list(Outcome)
    return sorted(report.checks, key=lambda check: (order.index(check.outcome), check.slug))


def counted_probes(snapshot: Snapshot) -> str:
    """Return how many probes were run."""
    return say_many(len(snapshot.runs.runs), "Probes: {count} probe", "Probes: {count} probes")


def took(run: ProbeRun) -> str:
    """Return how a probe ended, and when."""
    return say("{status}, {seconds:.3f} s", status=term(run.status), seconds=run.seconds)
