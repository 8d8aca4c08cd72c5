"""Reads a text: its facts, and the messages that were found in it."""

import functools
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec

from gpucheck.facts import Section
from gpucheck.facts.base import Draft
from gpucheck.facts.driver import Nvml
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.request import Pasted
from gpucheck.facts.system import Environment, Pci, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings import all_rules
from gpucheck.language import say
from gpucheck.log_patterns.form import KnownFacts, Strength
from gpucheck.log_patterns.matcher import Match, names_a_part, search
from gpucheck.log_patterns.roles import SILENT, Role, role_of, role_of_line
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.tables.gpus import capability_of, spellings
from gpucheck.tables.jetson import Jetpacks
from gpucheck.tables.torch import TorchOldDefaults, TorchReleases
from gpucheck.tables.versions import minor
from gpucheck.ticket.complaints import (
    first_complaint,
    first_complaint_of_environment,
    first_failure_told,
    first_gpu_error,
    is_wish,
    short_complaint,
    tells_something,
)
from gpucheck.ticket.exceptions import cut_off, quote
from gpucheck.ticket.failure import Failure, accuses, ended_well, failure_of, last_progress
from gpucheck.ticket.own_report import NAME as NAME_OF_REPORT
from gpucheck.ticket.own_report import OwnReport, take_out
from gpucheck.ticket.plain_words import in_english, with_names
from gpucheck.ticket.prose_reader import may_be_of_environment
from gpucheck.ticket.readers import read_pasted
from gpucheck.ticket.readers.base import Machine
from gpucheck.ticket.readers.mentions import NAME as NAME_OF_PROSE

# What the tables add to a pasted machine: capabilities behind names, what a wheel is built for.

# No line of a text has the number 0.
_ASSUMED = Line(0, "", file=say("assumed: the text says nothing else"))
_LINUX_ON_WINDOWS = {"wsl", "docker", "podman"}
"""Words of a text that may be about a Linux inside the Windows that it names."""
_FULL = 0.9
"""The share of a GPU's memory above which too little is left for a context and libraries."""
# Local versions of torch's builds (+cpu); CUDA's are looked at before.
_OTHERS = ("rocm", "xpu", "cpu")


def complete(machine: Machine, tables: Tables, words: AbstractSet[str]) -> None:
    """Fill in what follows from what was read; nothing that was read is changed.

    ``words`` are the words of the text, in lower case.
    """
    for gpu in machine.items(Nvml, "gpus").values():
        _capability(gpu, "device_name", tables)
    for gpu in machine.items(Pci, "gpus").values():
        _capability(gpu, "product", tables)
    _board(machine, tables)
    _build(machine, tables)
    _platform(machine)
    if machine.value(System, "os") == "windows" and not words & _LINUX_ON_WINDOWS:
        machine.fill(System, "wsl", 0, machine.line_of(System, "os"))


def _board(machine: Machine, tables: Tables) -> None:
    """Fill in the system of a Jetson, and the CUDA of its JetPack."""
    l4t = machine.value(System, "l4t")
    if not l4t:
        return
    line = machine.line_of(System, "l4t")
    for field, value in (("os", "linux"), ("machine", "aarch64")):
        if not machine.knows(System, field):
            machine.fill(System, field, value, line)
    row = tables.get(Jetpacks).of_l4t(l4t)
    if row is not None and row.cuda and not machine.knows(Nvml, "cuda"):
        source = say("the tables' row of JetPack {wanted}", wanted=row.jetpack)
        machine.fill(Nvml, "cuda", row.cuda, Line(0, "", file=source))


@functools.lru_cache(maxsize=1024)
def _known_capability(name: str, tables: Tables) -> str | None:
    """Return the compute capability of a product, None if no table has it."""
    found = (capability_of(known, tables) for known in spellings(name))
    return next((capability for capability in found if capability is not None), None)


def _capability(gpu: Draft, field: str, tables: Tables) -> None:
    name = gpu.fields.get(field)
    if name and "compute_capability" not in gpu.fields:
        found = _known_capability(name, tables)
        if found is not None:
            source = say(
                "the compatibility table has this product, {source}", source=gpu.sources[field]
            )
            gpu.fill("compute_capability", found, source)


def _build(machine: Machine, tables: Tables) -> None:
    """Fill in what a wheel was built for, from its version (``2.1.0+cu118``) or PyPI's default."""
    version = machine.value(TorchBuild, "version")
    if not version or machine.knows(TorchBuild, "cuda"):
        return
    line = machine.line_of(TorchBuild, "version")
    local = version.partition("+")[2]
    cuda = minor(local.partition(".")[0]) if local.startswith("cu") else None
    other = next((platform for platform in _OTHERS if local.startswith(platform)), None)
    if cuda is not None:
        machine.fill(TorchBuild, "built_for", "cuda", line)
        machine.fill(TorchBuild, "cuda", cuda, line)
    elif other is not None:
        machine.fill(TorchBuild, "built_for", other, line)
        machine.fill(TorchBuild, "cuda", "", line)
    elif not local and machine.value(TorchBuild, "installer") == "pip":
        _default_build(version, machine, tables)


def _default_build(version: str, machine: Machine, tables: Tables) -> None:
    """Fill in what PyPI's wheel of a release is built for."""
    os = machine.value(System, "os") or "linux"
    arch = machine.value(System, "machine") or "x86_64"
    platform = f"linux_{arch}" if os == "linux" else os
    build = tables.get(TorchReleases).default_build(version, platform)
    cuda = minor(build) if build is not None else None
    if build is None and platform == "linux_x86_64":
        cuda = tables.get(TorchOldDefaults).cuda(version)
    if build is None and cuda is None:
        return
    source = say(
        "the compatibility table: PyPI's torch {version} for {platform}",
        version=version,
        platform=platform,
    )
    line = Line(0, "", file=source)
    machine.fill(TorchBuild, "built_for", "cuda" if cuda else "cpu", line)
    machine.fill(TorchBuild, "cuda", cuda or "", line)


def _platform(machine: Machine) -> None:
    """Assume the usual platform, Linux on x86_64, for a CUDA build without a named one.

    On Windows only x86_64 has CUDA wheels, and a driver from NVIDIA that lists a card.
    """
    build = machine.value(TorchBuild, "built_for") == "cuda"
    wheel = build and not machine.knows(System, "jetson")
    if wheel and not machine.knows(System, "os"):
        machine.fill(System, "os", "linux", _ASSUMED)
    card = machine.value(System, "os") == "windows" and machine.items(Nvml, "gpus")
    if (wheel or card) and not machine.knows(System, "machine"):
        machine.fill(System, "machine", "x86_64", _ASSUMED)


def known_facts(machine: Machine) -> KnownFacts:
    """Return what conditions of messages can ask about the facts in the same text."""
    return KnownFacts(
        os=machine.value(System, "os"),
        built_for=machine.value(TorchBuild, "built_for"),
        cuda_available=machine.value(Pasted, "cuda_available"),
        gpu=bool(machine.items(Nvml, "gpus") or machine.items(Pci, "gpus")),
        gpu_full=_is_full(machine),
        wsl=bool(machine.value(System, "wsl")),
        jetson=bool(machine.value(System, "jetson")),
    )


def _is_full(machine: Machine) -> bool:
    """Whether a pasted table shows that the GPU a program uses first has no memory left."""
    gpus = machine.items(Nvml, "gpus")
    variables = machine.value(Environment, "variables") or {}
    mask = variables.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    first = gpus.get(whole_number(mask) or 0)
    if first is None:
        return False
    used, total = first.fields.get("memory_used_bytes"), first.fields.get("memory_total_bytes")
    return bool(used and total and used > _FULL * total)


# A shell's word about the end of a process, not the reason of it.
_KILLED = re.compile(r"\s{0,8}(?:\S{0,40} )?(?:Killed|Terminated|Aborted)\b")
_GIVEN = {Role.COMMAND, Role.SETTING}
"""A variable may be set before a command."""
_WEAKENING = {Role.JOURNAL, Role.WARNING}
"""Of what a daemon says, or a program warns of, only what points to a cause counts."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a text says: facts, messages and reports of gpucheck, with the lines they are from."""

    text: Text
    own: OwnReport | None
    machine: Machine
    readers: tuple[str, ...]
    sections: dict[str, Section]
    found: Sequence[Match]
    """Every message, including those that the facts refute."""
    matches: Sequence[Match]
    """The messages that count, including those that a report of gpucheck stands for."""
    failure: Failure | None
    """The exception that it is about."""
    tells: bool
    """Whether somebody tells something in it; an inventory of facts alone does not."""

    @property
    def recognised(self) -> bool:
        """Whether it has anything that gpucheck knows."""
        return bool(self.readers or self.matches)

    @property
    def formats(self) -> tuple[str, ...]:
        """What programs printed in it: everything that was recognised but names in sentences."""
        return tuple(name for name in self.readers if name != NAME_OF_PROSE)

    def says_the_same(self, other: "Reading") -> bool:
        """Whether it gives the same facts and messages as another text."""
        return (
            self.found == other.found
            and self.sections == other.sections
            and self.readers == other.readers
        )


def read(text: Text, tables: Tables) -> Reading:
    """Read a text and search it for messages."""
    text, own = take_out(text)
    text = with_names(in_english(text), tables)
    machine = Machine(tables)
    readers = read_pasted(text, machine)
    if own is not None:
        machine.fill(Pasted, "own_verdict", own.verdict, own.line)
        readers = (NAME_OF_REPORT, *readers)
    complete(machine, tables, text.words())
    found = search(text, known_facts(machine))
    failure = failure_of(text)
    matches = _that_count(_not_refuted(found, machine), text, failure)
    wishes = failure is None and is_wish(text)
    failed = None if wishes else first_gpu_error(text)
    if failed is None and not matches and not wishes:
        failed = first_complaint(text)
    tells = tells_something(text)
    if not matches and failure is None:
        _fill_open(machine, text, tells=tells)
    if failed is not None:
        machine.fill(Pasted, "gpu_error", quote(failed.quoted), failed)
    return Reading(
        text=text,
        own=own,
        machine=machine,
        readers=readers,
        sections=machine.sections(),
        found=found,
        failure=failure,
        tells=tells,
        matches=(*matches, *(own.matches if own is not None else ())),
    )


def _fill_open(machine: Machine, text: Text, *, tells: bool) -> None:
    """Fill in what decides about a text in which no message and no exception was found."""
    gpus = bool(machine.items(Nvml, "gpus"))
    complaint = first_complaint_of_environment(text)
    if complaint is None:
        complaint = _failure_told(text) if tells else short_complaint(text, beside_gpus=gpus)
    found = {"cut_off": cut_off(text), "complaint": complaint, "ended_well": ended_well(text)}
    for field, line in found.items():
        if line is not None:
            machine.fill(Pasted, field, quote(line.quoted), line)


def _failure_told(text: Text) -> Line | None:
    """Return the line that says that something fails, unless it is the program by its wording."""
    line = first_failure_told(text)
    return line if line is not None and may_be_of_environment(text.lower) else None


def _not_refuted(matches: list[Match], machine: Machine) -> list[Match]:
    """Leave out symptoms of causes that are impossible if CUDA was seen to start."""
    if machine.value(Pasted, "cuda_available") is not True:
        return matches
    rules = all_rules()
    return [
        match
        for match in matches
        if rules[match.slug].refuted_by_cuda == "never" or not match.message.refutable
    ]


# 1. A message that does not name its cause counts in no line that only informs, configures,
#    commands or advises, nor in one of another program, unless that is how the message always
#    looks.
# 2. Where a program failed with an exception of its own, what happened afterwards is an echo: a
#    shell that says "Killed", a rank that lost its peer. Weak messages count in the exception only.
# 3. In a wish or a proposal nothing counts but what names its cause.
def _that_count(found: Sequence[Match], text: Text, failure: Failure | None) -> list[Match]:
    """Return the messages that count."""
    if failure is None and is_wish(text):
        return [match for match in found if match.message.strength is Strength.NAMES]
    progress = last_progress(text)
    return [
        match
        for match in found
        if _counts(match, text, failure) and not _is_outlived(match, text, progress)
    ]


def _is_outlived(match: Match, text: Text, progress: int) -> bool:
    """Whether a program warned of something and went on."""
    return 0 <= match.index < progress and role_of(text, match.index) is Role.WARNING


def _counts(match: Match, text: Text, failure: Failure | None) -> bool:
    strength = match.message.strength
    role = role_of(text, match.index)
    if strength is Strength.NAMES:
        return role is not Role.HELP
    of_program = failure is not None and failure.is_of_program
    points = strength is Strength.POINTS
    looks_so = _always_looks_so(match, role)
    if role is Role.JOURNAL and not looks_so and not names_a_part(Text([match.line])):
        return False
    if (role in SILENT and (of_program or not looks_so)) or (
        role in _WEAKENING and not points and not looks_so
    ):
        return False
    return points or failure is None or _tells(match, role, failure)


def _always_looks_so(match: Match, role: Role) -> bool:
    """Whether a message counts in a line of a role in which others do not: it is one of them."""
    if role is Role.INFO and match.message.informs:
        return True
    usual = _usual_role(match.message.sample, in_listing=role is Role.LISTING)
    return usual is role or {usual, role} == _GIVEN


@functools.lru_cache(maxsize=4096)  # above the number of messages
def _usual_role(sample: str, *, in_listing: bool) -> Role:
    """Return the role of a sample; a row of a table shows by its cells what it is."""
    return role_of(Text([Line(1, sample)]), 0) if in_listing else role_of_line(sample)


def _tells(match: Match, role: Role, failure: Failure) -> bool:
    """Whether a weak message counts beside an exception."""
    if not accuses(match.slug) or match.index in failure.lines:
        return True
    if failure.is_of_program:
        return False
    is_echo = role is Role.WARNING or _KILLED.match(match.line.text) is not None
    return not (is_echo and failure.raised.frames and match.index > failure.raised.index)
