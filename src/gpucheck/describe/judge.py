"""Judges a machine that the user describes: with the same rules, but only for the given facts.

A rule whose facts were not given is not applicable. The verdict is "unknown" only if a given value
is missing from the tables and there is no error or warning.
"""

import msgspec

from gpucheck.describe.gpus import GpuReader
from gpucheck.describe.keys import Given, GivenError
from gpucheck.describe.libraries import describe_libraries
from gpucheck.describe.torch import describe_extension, describe_torch
from gpucheck.engine import Diagnosis, OpenQuestion, Report, diagnose, make_report
from gpucheck.facts import Section
from gpucheck.facts.base import NOT_GIVEN, Draft, Drafts, Missing
from gpucheck.facts.claims import Severity
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.libraries import Compiler, Toolkit, Toolkits
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import ProbeRuns, Snapshot, all_sections
from gpucheck.facts.system import Container, Environment, System
from gpucheck.facts.torch import Distribution, Interpreter, Packages
from gpucheck.findings import all_rules
from gpucheck.findings.form import Check, Outcome
from gpucheck.language import Sentence, in_series, say
from gpucheck.tables import Tables
from gpucheck.tables.companions import Extensions as ExtensionTable
from gpucheck.tables.gpus import GpuProducts
from gpucheck.tables.jetson import Jetpacks

_MACHINES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64", "sbsa": "aarch64"}
_RUNTIMES = ("docker", "podman", "kubernetes", "apptainer", "enroot", "lxc", "containerd")
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE of cuda.h
_TOOLKIT = "/usr/local/cuda"
_COMPILERS = {"gcc": "gcc", "clang": "clang", "msc_ver": "cl"}


class WhatIf(msgspec.Struct, frozen=True):
    """The report of a described machine, and the keys that this version does not judge."""

    report: Report
    not_judged: dict[str, str]
    """Key to the reason."""


def judge_described(given: Given, tables: Tables) -> WhatIf:
    """Describe the machine and evaluate every rule.

    Raises:
        GivenError: values contradict each other.
    """
    described = describe(given, tables)
    snapshot = Snapshot(described.sections, ProbeRuns(), tables=tables.version, origin="described")
    asked = diagnose(snapshot, tables)
    checks = tuple(_settled(check, snapshot) for check in asked.checks)
    questions = (*_missing(described), *_open(checks), *_unexplained(given))
    report = make_report(Diagnosis(asked.findings, checks), snapshot, questions)
    return WhatIf(report, described.unread)


def _settled(check: Check, snapshot: Snapshot) -> Check:
    """Make a rule not applicable if it lacks a fact that was not given."""
    if check.outcome is not Outcome.UNKNOWN:
        return check
    fact, why = _fact_and_reason(check)
    try:
        owner, field, value = snapshot.look_up(fact)
    except (LookupError, ValueError):
        return check
    if value is not None and why == NOT_GIVEN:
        return msgspec.structs.replace(
            check,
            reason=say("{fact}: what was given is not enough, or not in the tables", fact=fact),
        )
    if value is not None or owner.problem(field) != NOT_GIVEN:
        return check
    return msgspec.structs.replace(
        check, outcome=Outcome.NOT_APPLICABLE, reason=say("not given: {fact}", fact=fact)
    )


def _fact_and_reason(check: Check) -> tuple[str, str]:
    """Return the fact that an unknown check lacks, and why it is unknown."""
    fact, _, why = check.reason.partition(": ")
    reason = check.reason.params.get("why") if isinstance(check.reason, Sentence) else None
    return fact, reason if isinstance(reason, str) else why


class Described(msgspec.Struct, frozen=True):
    """The sections, the given values that no table has, and those that were given but not read."""

    sections: dict[str, Section]
    missing: tuple[Missing, ...]
    unread: dict[str, str]
    """Key to why this version cannot interpret its value."""


def _missing(described: Described) -> tuple[OpenQuestion, ...]:
    return tuple(
        OpenQuestion(
            question=say("What do the tables say about it?"),
            fact=missing.fact,
            reason=missing.reason,
        )
        for missing in described.missing
    )


def _open(checks: tuple[Check, ...]) -> tuple[OpenQuestion, ...]:
    """Return the rules that could not be answered although their facts were given.

    A finding that is only information could not change the verdict, and neither can its absence.
    """
    rules = all_rules()
    found = []
    for check in checks:
        rule = rules[check.slug]
        if check.outcome is Outcome.UNKNOWN and rule.severity is not Severity.INFO:
            fact, reason = _fact_and_reason(check)
            question = say("Does the machine have this problem: {title}?", title=rule.title)
            found.append(OpenQuestion(question=question, fact=fact, reason=reason))
    return tuple(found)


def _unexplained(given: Given) -> tuple[OpenQuestion, ...]:
    """Return the errors that were given: if no finding explains them, nothing is healthy."""
    return tuple(
        OpenQuestion(
            question=say("What causes the error?"),
            fact=fact,
            reason=say("no cause was found for {key}={given}", key=key, given=given[key][0]),
        )
        for key, fact in (("cuda_error", "cuda_driver.init_code"), ("nvml_error", "nvml.init_code"))
        if given.get(key) and given[key] != ["0"]
    )


# What is not given stays unknown, with three exceptions that users take for granted. No variable
# hides a GPU. A named driver serves the GPUs that its branch supports. If neither ``os`` nor
# ``arch`` is given, wheels are those for Linux on x86_64.
def describe(given: Given, tables: Tables) -> Described:
    """Convert the keys into sections.

    Raises:
        GivenError: values contradict each other.
    """
    drafts = Drafts()
    unread: dict[str, str] = {}
    gpus = GpuReader(given, drafts, tables)
    _system(given, drafts, tables, gpus.capabilities())
    gpus.describe(unread)
    describe_torch(given, drafts, tables)
    describe_extension(given, drafts, tables)
    _python(given, drafts)
    _packages(given, drafts, tables)
    describe_libraries(given, drafts, tables)
    _toolkits(given, drafts)
    _surroundings(given, drafts)
    found = drafts.sections()
    for name, kind in all_sections().items():
        found.setdefault(name, kind(problems={"*": NOT_GIVEN}))
    return Described(found, tuple(drafts.missing), unread)


def _source(given: Given, key: str) -> str:
    return say("as given: {key}={given}", key=key, given=",".join(given[key]) or "none")


def _system(given: Given, drafts: Drafts, tables: Tables, capabilities: list[str]) -> None:
    draft = drafts.of(System)
    os = given["os"][0] if given.get("os") else ""
    source = _source(given, "os") if os else say("assumed: os was not given")
    draft.fill("os", "linux" if os in ("", "wsl2") else os, source)
    if os in ("", "linux", "wsl2"):
        draft.fill("wsl", 2 if os == "wsl2" else 0, source)
    _jetson(given, draft, drafts, tables, capabilities)
    if given.get("arch"):
        plain = given["arch"][0].lower()
        draft.fill("machine", _MACHINES.get(plain, plain), _source(given, "arch"))
    else:
        machine = "aarch64" if draft.fields.get("jetson") or os == "macos" else "x86_64"
        draft.fill("machine", machine, say("assumed: arch was not given"))
    if "glibc" in given:
        libc = given["glibc"]
        if os in ("windows", "macos"):
            if libc:
                raise GivenError(
                    say("os={os} and glibc={libc} contradict each other.", os=os, libc=libc[0])
                )
            return
        draft.fill("libc", "glibc" if libc else "musl", _source(given, "glibc"))
        draft.fill("glibc", libc[0] if libc else "", _source(given, "glibc"))


def _jetson(
    given: Given, draft: Draft, drafts: Drafts, tables: Tables, capabilities: list[str]
) -> None:
    """Recognise a Jetson by its board, its JetPack, or a GPU that only such boards have."""
    rows = tables.get(GpuProducts).rows
    boards = {row.compute_capability for row in rows if row.segment == "jetson"}
    board = given["board"][0] if given.get("board") else ""
    if given.get("jetpack"):
        wanted = given["jetpack"][0]
        release = tables.get(Jetpacks).of_jetpack(wanted)
        if release is None:
            drafts.miss("system.l4t", say("the tables do not have JetPack {wanted}", wanted=wanted))
        else:
            draft.fill(
                "l4t", release.l4t, say("the tables' row of JetPack {wanted}", wanted=wanted)
            )
        draft.fill("jetson", board or "a Jetson", _source(given, "jetpack"))
    elif board:
        capability = tables.get(GpuProducts).capability(board)
        is_jetson = "jetson" in board.lower() or capability in boards - {None}
        draft.fill("jetson", board if is_jetson else "", _source(given, "board"))
    elif given.get("gpu_kind") == ["jetson"]:
        draft.fill("jetson", "a Jetson", _source(given, "gpu_kind"))
    elif set(capabilities) & boards and _may_be_board(given):
        draft.fill("jetson", "a Jetson", say("only Jetson boards have this compute capability"))
    elif draft.fields.get("os") == "linux":
        draft.fill("jetson", "", say("as given: no board"))
    draft.fill("l4t", "", say("as given: no JetPack"))


def _may_be_board(given: Given) -> bool:
    machine = given["arch"][0].lower() if given.get("arch") else "aarch64"
    return given.get("os", ["linux"]) == ["linux"] and machine in ("aarch64", "arm64")


def _python(given: Given, drafts: Drafts) -> None:
    if not given.get("python"):
        return
    version = given["python"][0]
    draft, source = drafts.of(Interpreter), _source(given, "python")
    draft.fill("status", "ok", source)
    draft.fill("version", version.rstrip("t"), source)
    draft.fill("free_threaded", version.endswith("t"), source)
    draft.fill("implementation", "cpython", say("assumed"))


def _packages(given: Given, drafts: Drafts, tables: Tables) -> None:
    names = ("numpy", "torchvision", "torchaudio", "triton", "nvidia_packages", "packages")
    spoken_of = [name for name in names if name in given]
    if not spoken_of:
        return
    found = []
    for name in spoken_of:
        for value in given[name]:
            project, _, version = value.partition("==") if "==" in value else (name, "", value)
            distribution = Draft()
            distribution.fill("project", project.lower().replace("_", "-"), _source(given, name))
            distribution.fill("version", version, _source(given, name))
            row = tables.get(ExtensionTable).release(project, version)
            if row is not None and row.torch:
                says = say("the tables: the metadata of the release")
                distribution.fill("requirements", {"torch": row.torch, **row.requires}, says)
            found.append(distribution.build(Distribution))
    sources = in_series([_source(given, name) for name in spoken_of])
    drafts.of(Packages).fill("distributions", found, sources)


def _toolkits(given: Given, drafts: Drafts) -> None:
    draft = drafts.of(Toolkits)
    if "nvcc" in given:
        source = _source(given, "nvcc")
        toolkits = []
        for version in given["nvcc"]:
            toolkit = Draft()
            toolkit.fill("version", version, source)
            toolkit.fill("has_nvcc", value=True, source=source)
            toolkits.append(toolkit.build(Toolkit))
            draft.fill("selected_version", version, source)
        draft.fill("toolkits", toolkits, source)
        if toolkits:
            draft.fill("selected", _TOOLKIT, say("assumed: its place was not given"))
        else:
            draft.fill("selected", "", source)
    spoken_of = [key for key in _COMPILERS if key in given]
    compilers = []
    for key in spoken_of:
        for version in given[key]:
            compiler = Draft()
            compiler.fill("command", _COMPILERS[key], _source(given, key))
            compiler.fill("version", version, _source(given, key))
            compilers.append(compiler.build(Compiler))
    if spoken_of:
        draft.fill("compilers", compilers, in_series([_source(given, key) for key in spoken_of]))


def _surroundings(given: Given, drafts: Drafts) -> None:
    drafts.of(Environment).fill("variables", {}, say("assumed: no variable hides a GPU"))
    action = given["action"][0] if given.get("action") else "run"
    purpose = "build" if action == "build-extension" else "run"
    drafts.of(Request).fill(
        "purpose", purpose, say("as given: {key}={given}", key="action", given=action)
    )
    if "container" in given:
        word = given["container"][0].lower() if given["container"] else "false"
        runtime = "" if word in ("false", "no", "0") else word
        known = runtime if runtime in ("", *_RUNTIMES) else "other"
        drafts.of(Container).fill("runtime", known, _source(given, "container"))
        if drafts.of(CudaDriver).fields.get("init_code") == _NO_DEVICE and known:
            source = say(
                "{source}: a program that needs a GPU gets this error",
                source=_source(given, "cuda_error"),
            )
            drafts.of(Request).fill("gpus", 1, source)
