"""The one line of ``gpucheck node``: a reason for Slurm, always in English.

It is data for programs, like JSON: scripts pass it to ``scontrol update Reason=...`` and ``sinfo
-R`` shows it. So it has only characters that mean nothing to a shell, to scontrol or to a terminal.
"""

import re
from collections.abc import Sequence

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import StepResult
from gpucheck.cluster.outcome import Node, is_unfit, suspects
from gpucheck.cluster.pages import words
from gpucheck.facts.driver import Nvml
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import GpuWord

LONGEST = 120  # chosen: Slurm keeps it as the reason of a node, which is read as one line
_UNSAFE = re.compile(r"[^A-Za-z0-9 ._:/,+@%-]+")
_OWNER = re.compile(r"'s\b")
"""What would leave a stray letter behind: the apostrophe is not kept."""
_GAP = re.compile(r" ([,:])")
_MISCONFIGURED, _SLOW = 4, 5  # exit statuses: docs/architecture.md, 1.2
_NO_GPU = "no NVIDIA GPU to judge, --gpus says how many there should be"


def of_node(node: Node, snapshot: Snapshot) -> str:
    """Return the line of a node that was checked by itself."""
    if node.unfit:
        first = node.unfit[0]
        what = ", ".join(_named(node, "replace", "drain"))
        return line(first.slug, f"{what}: {first.headline}" if what else first.headline)
    if node.unknown:
        return line("unknown", node.unknown[0].reason)
    named = _named(node, "replace", "drain", "watch")  # the first two where nothing counts
    count = len(snapshot.get(Nvml).gpus or ())
    if not count:  # with --gpus the node would be unfit
        return line("unknown", _NO_GPU)
    count -= len(named)
    healthy = f"{count} GPU{'' if count == 1 else 's'} without a fault of driver or hardware"
    return line("fit", ", ".join((*named, healthy, _tested(snapshot.get(SelfTests)))))


def _named(node: Node, *each: GpuWord) -> list[str]:
    """Return ``drain GPU 3`` for each GPU with one of these words."""
    return [
        f"{word} GPU {gpu.pci_address if gpu.index is None else gpu.index}"
        for word in each
        for gpu in node.gpus
        if gpu.verdict == word
    ]


def of_result(result: Result, history: Sequence[StepResult]) -> str:
    """Return the line of a node whose GPUs were tested together."""
    found = words.causes(result)
    if is_unfit(result.ending, history):
        drill = "drill: " if result.drill else ""
        if not found:
            ranks = words.spans([suspect.rank for suspect in suspects(history)])
            return line(f"{drill}unfit", f"ranks {ranks} failed, nobody can be named")
        return line(f"{drill}{found[0].slug}", _of_cause(found[0]))
    if result.ending.status in (_MISCONFIGURED, _SLOW):
        return line("unknown", f"{result.ending.word}: {found[0].slug if found else ''}")
    if result.ending.status == words.INCONCLUSIVE:
        return line("unknown", result.ending.why)
    return line("fit", words.healthy(result))


def _of_cause(cause: words.Cause) -> str:
    if not cause.culprits:
        return cause.finding.headline if cause.finding else ""
    first = cause.culprits[0]
    place = f"ranks {words.spans(first.ranks)}"
    if first.gpu is not None:
        place = f"GPU {first.gpu} {first.pci or ''}"
    return f"{place}: {first.evidence}"


def line(word: str, reason: str) -> str:
    """Return ``gpucheck: WORD: what was seen``, short and without special characters."""
    text = _UNSAFE.sub(" ", _OWNER.sub("", f"gpucheck: {word}: {reason}"))
    text = _GAP.sub(r"\1", " ".join(text.split())).rstrip(" ,:-")
    if len(text) <= LONGEST:
        return text
    return text[: LONGEST + 1].rpartition(" ")[0].rstrip(" ,:-")


def _tested(tests: SelfTests) -> str:
    results = [result for result in tests.results or () if not result.is_import]
    if results and all(result.status == "passed" for result in results):
        return "self-tests passed"
    return "not every self-test finished" if results else "no self-test was run"
