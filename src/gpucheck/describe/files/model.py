"""What a project file says: installs, requirements, images, services, jobs, the machine."""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

# What a project file says: installs, base images, services and jobs, each with its line.

UNKNOWN = "\ufffd"
"""Stands for text that only the build knows, such as a build argument without a default."""


class Pin(msgspec.Struct, frozen=True):
    """A package that is asked for; ``version`` is "" unless exactly one is."""

    name: str
    version: str
    line: int
    among: str = ""
    """The specifier of several versions, such as ``>=2.6,<3``; "" if there is none."""


class NamedIndex(msgspec.Struct, frozen=True):
    """A package index. ``role`` is "main", "extra", or "only" (for the packages in ``of``)."""

    address: str
    line: int
    role: str = "extra"
    of: tuple[str, ...] = ()


class Image(msgspec.Struct, frozen=True):
    """An image reference, and what its name says about its content; "" where it says nothing."""

    reference: str
    line: int
    cuda: str = ""
    torch: str = ""
    python: str = ""
    flavour: str = ""
    """``base``, ``runtime`` or ``devel``: whether it has the CUDA compiler."""
    for_gpus: bool = False
    """Whether its programs are made for NVIDIA GPUs."""
    has_torch: bool = False
    machine: str = ""
    """The processor that its name says: see ``Stage.machine``."""


class Install(msgspec.Struct, frozen=True, kw_only=True):
    """Packages that one command or one file installs together."""

    line: int
    pins: tuple[Pin, ...]
    indexes: tuple[NamedIndex, ...] = ()
    tool: str = "pip"
    """``pip``, ``uv``, ``conda`` or ``lock``."""
    python: Pin | None = None
    """The Python, if the file says which one."""
    python_from: Pin | None = None
    """The oldest Python that is allowed."""
    image: Image | None = None
    """The image that it is installed into."""
    machine: str = ""
    """See ``Stage.machine``."""
    conditional: bool = False
    """Whether only some builds run it."""
    without_dependencies: bool = False
    """Whether the installer is told not to respect what the packages require."""
    cuda: Pin | None = None
    """The CUDA of conda's build of torch."""
    cpu: Pin | None = None
    """What makes conda's build of torch one for the CPU."""

    def pin(self, name: str) -> Pin | None:
        """Return the only request for a package; None also if there are several."""
        found = [pin for pin in self.pins if pin.name == name]
        return found[0] if len(found) == 1 else None


class FileCommand(msgspec.Struct, frozen=True):
    """A command of a shell script, in words."""

    words: tuple[str, ...]
    line: int
    conditional: bool = False
    """Whether it may not run, or whether the script goes on if it fails."""
    assigned: tuple[str, ...] = ()
    """The variables that are set for it alone, as ``NAME=value``."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of a Dockerfile, with what the stages before it in its line of FROMs have."""

    name: str
    line: int
    image: Image | None
    commands: tuple[FileCommand, ...]
    installs: tuple[Install, ...]
    machine: str = ""
    """The processor that the file says: x86_64, aarch64, another word, UNKNOWN where only the build
    knows it, and "" where nothing is said."""
    copies_toolkit: bool = False
    final: bool = False
    in_final: bool = False
    """Whether the final stage is made of it."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A container that a compose file or a manifest starts."""

    name: str
    line: int
    image: Image | None
    asks_for_gpu: bool | None
    """None where a file that was not read may ask for it."""
    gpus: int | None = None
    """How many GPUs it asks for, where a number says so."""
    shared_memory: bool = False
    """Whether the file provides for /dev/shm."""
    runtime_class: Pin | None = None
    machine: str = ""
    """See ``Stage.machine``."""
    by: str = "compose"
    """``compose`` or ``kubernetes``."""
    complete: bool = True
    """Whether its definition stands in this file, and is for NVIDIA GPUs."""


def hides_gpus(variables: Iterable[tuple[str, str]]) -> bool:
    """Whether variables say that a container is to use no GPU."""
    return any(
        (name == "CUDA_VISIBLE_DEVICES" and value.strip() in ("", "-1", "none"))
        or (name == "NVIDIA_VISIBLE_DEVICES" and value.strip() in ("", "void", "none"))
        for name, value in variables
    )


class BatchJob(msgspec.Struct, frozen=True, kw_only=True):
    """A batch script of Slurm."""

    line: int
    asks_for_gpu: bool
    uses: Pin | None = None
    """The command that needs GPUs; its name is the command."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """What one file says."""

    kind: str
    installs: tuple[Install, ...] = ()
    stages: tuple[Stage, ...] = ()
    workloads: tuple[Workload, ...] = ()
    batches: tuple[BatchJob, ...] = ()
    not_for_nvidia: bool = False
    """Whether its name says that it is about the CPU, or about processors of others."""


# The processor of the machine that a part of a file is for, where the file says one.

ASSUMED = "x86_64"
"""Where neither the file nor a GPU says another."""
KNOWN = ("x86_64", "aarch64")
"""Those of which the tables have PyTorch's builds for Linux."""
_PROCESSORS = {
    "amd64": "x86_64", "x86_64": "x86_64", "x86-64": "x86_64",
    "arm64": "aarch64", "aarch64": "aarch64",
}  # fmt: skip
_LONGEST = 60  # chosen: linux/arm64/v8 has 14; untrusted, and searched for words
_IMAGES_OF_ARM = re.compile(
    r"(?:^|[/:_.-])(?:arm64|aarch64|arm64v8|sbsa)(?:$|[/:@_.-])", re.IGNORECASE
)
_IMAGES_OF_BOARDS = re.compile(r"(?:^|[/:_.-])(?:l4t|jetson|jetpack|igpu|dustynv)(?:$|[/:@_.-])")


def machine_of_platform(platform: str) -> str:
    """Return the processor of ``linux/arm64/v8``.

    "" if it names none, UNKNOWN if only the build knows it, and the platform itself if the tables
    have no builds for it.
    """
    plain = platform.strip().lower()[:_LONGEST]
    if UNKNOWN in plain or "$" in plain:
        return UNKNOWN
    system, _, rest = plain.partition("/")
    if system in ("", "local", "linux") and not rest:
        return ""
    processor = rest.partition("/")[0] if system == "linux" else plain
    return _PROCESSORS.get(processor, plain)


def machine_of_image(reference: str) -> str:
    """Return the processor that an image's name says; "" if it says none.

    An image for Jetson boards has wheels of its own: the tables do not know such a machine.
    """
    if len(reference) > _LONGEST * 5:
        return ""
    if _IMAGES_OF_BOARDS.search(reference):
        return "jetson"
    return "aarch64" if _IMAGES_OF_ARM.search(reference) else ""


def machines_of(declared: str, processor: str | None = None) -> tuple[str, ...]:
    """Return the processors for which something is judged: of several, what holds on all.

    Args:
        declared: what the file says: a processor, UNKNOWN, or "".
        processor: the one that the target's GPU is always sold with.
    """
    if declared == UNKNOWN:
        return KNOWN
    chosen = declared or processor or ASSUMED
    return (chosen,) if chosen in KNOWN else ()


# One requirement of a Python package: its name, and its version if exactly one is asked for.

_REQUIREMENT_LONGEST = (
    500  # chosen: a wheel's address with its hash fits, before patterns look at it
)
_EXACTLY = r"\(?[ \t]{0,20}===?[ \t]{0,20}([0-9][0-9A-Za-z.+!_-]{0,60})\)?"
_WHEEL = re.compile(
    r"(?:[A-Za-z0-9._-]{1,80}[ \t]{0,9}@[ \t]{0,9})?(https?://[A-Za-z0-9._:/%-]{1,250})/"
    r"([A-Za-z0-9._]{1,80})-([0-9][A-Za-z0-9._%]{0,60})-[A-Za-z0-9._]{2,40}-[A-Za-z0-9._]{2,40}"
    r"-(?:many)?linux[A-Za-z0-9._]{0,60}_x86_64\.whl(?:#[A-Za-z0-9=]{0,100})?"
)
_LONGEST_MARKER = 200  # chosen: usual markers have some dozens; longer ones stay undecided
# They depend on more than the system; then the marker is undecided.
_OTHER_VARIABLES = re.compile(r"extra|group|python_|implementation|release|platform_version")
_LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
_FORM = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,100})[ \t]{0,20}(?:\[[^\]]{0,200}\])?[ \t]{0,20}"
    rf"(?:{_EXACTLY})?[ \t]{{0,20}}(.{{0,400}})"
)
_AMONG = re.compile(
    r"(?:\[[^\]]{0,200}\])?[ \t]{0,20}\(?([<>=!~][0-9A-Za-z<>=!~.,+*_ \t-]{1,200})\)?"
)


def name_of(text: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]{1,100}", "-", text).lower()


def normal_version(text: str) -> str:
    """Return a version as indexes write it: 0.0.28.post3 for 0.0.28-3; "" for what is none."""
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.version import Version  # noqa: PLC0415

    try:
        return str(Version(text))
    except ValueError:  # no version, or a number that is too long for Python to convert
        return ""


def version_of(specifier: str) -> str:
    """Return the version that a specifier asks for; "" unless it is exactly one."""
    found = re.fullmatch(_EXACTLY, specifier.strip())
    return found[1] if found else ""


class Wheel(NamedTuple):
    """A wheel for Linux on x86_64 that a requirement names, and the folder that it lies in."""

    name: str
    version: str
    folder: str


def wheel_of(text: str) -> Wheel | None:
    """Return the wheel of ``https://.../torch-2.1.0%2Bcu118-...whl`` or ``torch @ https://...``."""
    found = _WHEEL.fullmatch(text.strip()) if len(text) <= _REQUIREMENT_LONGEST else None
    if found is None or ".." in found[1]:
        return None
    version = normal_version(found[3].replace("%2B", "+").replace("%2b", "+"))
    return Wheel(name_of(found[2]), version, found[1]) if version else None


@functools.lru_cache(maxsize=1024)  # chosen: a file repeats a few markers; texts are untrusted
def holds_on_linux(marker: str) -> bool | None:
    """Whether a marker holds on Linux; None if that depends on more than the system."""
    if len(marker) > _LONGEST_MARKER or _OTHER_VARIABLES.search(marker):
        return None
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.markers import Marker  # noqa: PLC0415

    try:
        parsed = Marker(marker)
        found = {parsed.evaluate({**_LINUX, "platform_machine": machine}) for machine in KNOWN}
    except (ValueError, RecursionError):  # what packaging raises are ValueErrors
        return None
    return found.pop() if len(found) == 1 else None


def requested(text: str, line: int) -> tuple[Pin | NamedIndex, ...]:
    """Return the package of a requirement; of a wheel also where it comes from."""
    wheel = wheel_of(text)
    if wheel is not None:
        only = NamedIndex(wheel.folder, line, "only", (wheel.name,))
        return Pin(wheel.name, wheel.version, line), only
    pin = pin_of(text, line)
    return (pin,) if pin is not None else ()


def pin_of(text: str, line: int) -> Pin | None:
    """Return the package of a requirement; None for what is none, or may not hold on Linux.

    A range of versions or a wildcard is a package among versions; an address is one without any.
    """
    text, _semicolon, marker = text.strip().partition(";")
    if marker and not holds_on_linux(marker):
        return None
    text = text.strip()
    if not text or len(text) > _REQUIREMENT_LONGEST:
        return None
    found = _FORM.fullmatch(text)
    if found is None or found[3].lstrip().startswith(("/", ":", "=", "\\")):
        return None
    if found[2] and not found[3].strip():
        return Pin(name_of(found[1]), found[2], line)
    among = _AMONG.fullmatch(text, found.end(1))
    return Pin(name_of(found[1]), "", line, among[1].strip() if among is not None else "")
