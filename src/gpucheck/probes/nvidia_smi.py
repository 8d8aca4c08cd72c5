"""The facts that nvidia-smi reports if NVML did not answer.

R610 and later print "KMD Version" and "CUDA UMD Version" instead of "Driver Version" and "CUDA
Version". Both are understood, and the banner of the table is read last.
"""

import itertools
import re
from collections.abc import Iterable, Sequence

from gpucheck.facts import Answer, Notes
from gpucheck.facts.driver import NvidiaSmi, Nvml
from gpucheck.language import say
from gpucheck.machine import Host, Ran
from gpucheck.probes.reading import platform

DEADLINE = 30.0  # seconds for what asks the driver (docs/architecture.md, 1.5)
LANE = "nvml"

_TIMEOUT = 9.5
"""Time limit of one command in seconds: three commands fit the probe's deadline."""
_QUERY = ("--query-gpu=driver_version,name", "--format=csv,noheader")
_LINUX_PLACES = ("/usr/lib/wsl/lib/nvidia-smi",)
# Chosen: a line for each GPU, some 30 of a banner. Whatever else is printed may be endless.
_MAX_LINES, _MAX_LENGTH = 2000, 400
_COMPLAINT_LINES = 3  # chosen: NVIDIA's errors have two or three, and they become a sentence
_RELEASE = r"\d{2,4}(?:\.\d{1,4}){1,3}"
_COMPLAINTS = (
    "Failed to initialize NVML",
    "couldn't communicate with the NVIDIA driver",
    "couldn't find libnvidia-ml",
    "No devices were found",
    "Unable to determine the device handle",
    "GPU is lost",
    "infoROM is corrupted",
)
"""The expected content of a banner besides facts; it is not an error message."""
_NO_DEVICES = "No devices were found"
# R610 and later call them KMD and CUDA UMD version (docstring).
_RELEASE_LABEL = rf"(?i:(?:driver|kmd) version) *: *({_RELEASE})"
_CUDA_LABEL = r"(?i:cuda (?:umd )?version) *: *(\d{1,3}\.\d{1,3})"


def collect(host: Host, nvml: Nvml) -> NvidiaSmi:
    """Query nvidia-smi if NVML did not report the driver's release.

    If NVML did not answer in time, nvidia-smi is not run, because it would block in the same call.
    """
    place = _find(host)
    why_not = _why_not(nvml)
    if place.value and not why_not:
        return _ask(host, place.value)
    notes = Notes()
    found = notes.take("found", place.map(bool))
    source = say("gpucheck: {why_not}", why_not=why_not) if why_not else place.source
    notes.known("asked", source)
    notes.problems["*"] = (
        say("not asked: {why_not}", why_not=why_not) if found else say("there is no nvidia-smi")
    )
    return NvidiaSmi(found=found, asked=False, sources=notes.sources, problems=notes.problems)


def _why_not(nvml: Nvml) -> str:
    if nvml.driver_release is not None:
        return say("NVML has answered")
    problem = nvml.problem("*")
    return say("NVML: {problem}", problem=problem) if problem.startswith("timed-out") else ""


def _find(host: Host) -> Answer[str]:
    """Return the path of nvidia-smi; "" if there is none."""
    if host.identity().os == "windows":
        return platform.nvidia_smi(host).absent("")
    on_path = host.which("nvidia-smi")
    if on_path.value is not None:
        return on_path
    for path in _LINUX_PLACES:
        if host.exists(path).value:
            return Answer(path, path)
    return on_path.absent("")


def _ask(host: Host, path: str) -> NvidiaSmi:
    """Run the query; ``--version`` and the plain table fill in what it does not return."""
    notes = Notes()
    notes.known("found", path)
    notes.known("asked", path)
    query = host.run((path, *_QUERY), _TIMEOUT)
    if query.value is None:
        notes.problems["*"] = query.complaint
        return NvidiaSmi(found=True, asked=True, sources=notes.sources, problems=notes.problems)
    lines = _lines(query.value)
    rows = [row for line in lines if (row := _row(line)) is not None]
    complaint = _first_lines(line for line in lines if _row(line) is None and _is_complaint(line))
    release = _Fact(_RELEASE_LABEL, [release for release, _ in rows if release], query.source)
    cuda = _Fact(_CUDA_LABEL, [], query.source)
    for arguments in (("--version",), ()):
        if release.value and cuda.value:
            break
        banner = host.run((path, *arguments), _TIMEOUT)
        if banner.value is None:
            break
        lines = _lines(banner.value)
        release.look(lines, banner.source)
        cuda.look(lines, banner.source)
        known = (line for line in lines if any(words in line for words in _COMPLAINTS))
        complaint = complaint or _first_lines(known)
    return NvidiaSmi(
        found=True,
        asked=True,
        exit_status=notes.take("exit_status", query.map(lambda ran: ran.status)),
        message=notes.take("message", Answer(complaint, query.source)),
        driver_release=notes.take("driver_release", release.answer(complaint)),
        cuda=notes.take("cuda", cuda.answer(complaint)),
        gpu_names=notes.take("gpu_names", _names(rows, complaint, query)),
        sources=notes.sources,
        problems=notes.problems,
    )


class _Fact:
    """One fact that several commands may report; the first one that does counts."""

    def __init__(self, label: str, values: Sequence[str], source: str) -> None:
        self._label = label
        self.value = values[0] if values else ""
        self._source = source

    def look(self, lines: Sequence[str], source: str) -> None:
        """Look for the label in a banner."""
        for line in lines:
            match = re.search(self._label, line) if not self.value else None
            if match is not None:
                self.value, self._source = match[1], source

    def answer(self, complaint: str) -> Answer[str]:
        return Answer(self.value or None, self._source, complaint or say("it does not report it"))


def _lines(ran: Ran) -> list[str]:
    """Return the lines of both streams that are not blank, up to a limit."""
    lines = [line.strip()[:_MAX_LENGTH] for line in f"{ran.out}\n{ran.err}".splitlines()]
    return [line for line in lines if line][:_MAX_LINES]


def _row(line: str) -> tuple[str, str] | None:
    """Parse ``535.54.03, NVIDIA A100-SXM4-80GB``; text in brackets is not a value."""
    first, comma, name = line.partition(",")
    if not comma or not (re.fullmatch(_RELEASE, first) or first.startswith("[")):
        return None
    return _unbracketed(first), _unbracketed(name.strip())


def _unbracketed(word: str) -> str:
    return "" if word.startswith("[") else word


def _is_complaint(line: str) -> bool:
    """Whether a line reports a problem other than that this release does not support the query."""
    return not line.startswith(('Field "', "Invalid combination of input arguments"))


def _first_lines(lines: Iterable[str]) -> str:
    return "\n".join(itertools.islice(lines, _COMPLAINT_LINES))


def _names(
    rows: Sequence[tuple[str, str]], complaint: str, query: Answer[Ran]
) -> Answer[list[str]]:
    """Return the names of all GPUs; an incomplete list does not count as an answer."""
    names = [name for _, name in rows]
    if not names and _NO_DEVICES in complaint:
        return Answer([], query.source)
    if not names or not all(names) or (query.value is not None and query.value.status != 0):
        return Answer(None, query.source, complaint or say("it does not report it"))
    return Answer(names, query.source)
