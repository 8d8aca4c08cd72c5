"""The keys of ``gpucheck compat`` as sections: a machine that the user describes.

What is not given stays unknown, with three exceptions that users take for granted. No variable
hides a GPU. A named driver serves the GPUs that its branch supports. If neither ``os`` nor ``arch``
is given, wheels are those for Linux on x86_64.
"""

import msgspec

from gpucheck.describe.extension import describe_extension
from gpucheck.describe.gpus import GpuReader
from gpucheck.describe.keys import Given, GivenError
from gpucheck.describe.libraries import describe_libraries
from gpucheck.describe.torch import describe_torch
from gpucheck.facts import Section
from gpucheck.facts.container import Container
from gpucheck.facts.cuda_driver import CudaDriver
from gpucheck.facts.drafts import NOT_GIVEN, Draft, Drafts, Missing
from gpucheck.facts.environment import Environment
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.packages import Distribution, Packages
from gpucheck.facts.request import Request
from gpucheck.facts.sections import all_sections
from gpucheck.facts.system import System
from gpucheck.facts.toolkits import Compiler, Toolkit, Toolkits
from gpucheck.language import in_series, say
from gpucheck.tables import Tables
from gpucheck.tables.gpu_products import GpuProducts
from gpucheck.tables.jetpack import Jetpacks

_MACHINES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64", "sbsa": "aarch64"}
_RUNTIMES = ("docker", "podman", "kubernetes", "apptainer", "enroot", "lxc", "containerd")
_NO_DEVICE = 100
_TOOLKIT = "/usr/local/cuda"
_COMPILERS = {"gcc": "gcc", "clang": "clang", "msc_ver": "cl"}


class Described(msgspec.Struct, frozen=True):
    """The sections, the given values that no table has, and those that were given but not read."""

    sections: dict[str, Section]
    missing: tuple[Missing, ...]
    unread: dict[str, str]
    """Key to why this version cannot interpret its value."""


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
    _packages(given, drafts)
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
        release = next((r for r in tables.get(Jetpacks).rows if r.jetpack == wanted), None)
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


def _packages(given: Given, drafts: Drafts) -> None:
    names = ("numpy", "torchvision", "torchaudio", "triton", "nvidia_packages")
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
