"""What the user asks of a recommendation; a value that makes no sense is a usage error."""

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from gpucheck.interface.errors import UsageError, meant, printable, with_hint, words_of
from gpucheck.interface.request import Option
from gpucheck.language import listed, say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.advice.recommender import Card
    from gpucheck.tables import Tables
    from gpucheck.tables.jetson import JetpackRow

FAMILY = ("torchvision", "torchaudio")
OTHER_COMPANIONS = (
    "bitsandbytes", "flash-attn", "pyg-lib", "sglang", "torch-cluster", "torch-scatter",
    "torch-sparse", "torch-spline-conv", "torchcodec", "transformer-engine", "triton", "vllm",
    "xformers",
)  # fmt: skip
"""What ``--with`` knows beside torchvision and torchaudio, which every torch has."""
_COMPANIONS = (*FAMILY, *OTHER_COMPANIONS)
# 3.13t is the build without a GIL, which has wheels of its own.
_PYTHON = re.compile(r"([0-9]{1,2}\.[0-9]{1,2})(?:\.[0-9]{1,3})?(t?)")


_Text = Annotated[str, msgspec.Meta(max_length=200)]
Torch = Annotated[
    _Text,
    msgspec.Meta(description='A release or a specifier: "2.6", "<2.9".'),
    Option(
        say('Only these releases: a version ("2.6") or a PEP 440 specifier ("<2.9", "==2.6.0").'),
        "SPEC",
    ),
]
Driver = (
    Annotated[
        _Text,
        msgspec.Meta(description='"570.86.15", or a branch: "570".'),
        Option(say('The driver release ("570.86.15") or branch ("570").'), "REL"),
    ]
    | None
)
DriverCuda = (
    Annotated[
        _Text,
        msgspec.Meta(description='As the driver reports it: "12.4".'),
        Option(say("The CUDA version that the driver reports."), "X.Y"),
    ]
    | None
)
PythonVersion = (
    Annotated[
        _Text,
        msgspec.Meta(description='"3.12"; "3.13t" is free-threaded.'),
        Option(say('The Python ("3.12"; "3.13t" is free-threaded).'), "X.Y"),
    ]
    | None
)
OperatingSystem = (
    Annotated[Literal["linux", "windows", "wsl2"], Option(say("The operating system."))] | None
)
Arch = (
    Annotated[
        Literal["x86_64", "aarch64"],
        Option(
            say("The processor."),
            also=(("amd64", "x86_64"), ("x64", "x86_64"), ("arm64", "aarch64")),
        ),
    ]
    | None
)
Glibc = (
    Annotated[
        _Text,
        msgspec.Meta(description='"2.28", or "none" for a system with musl, such as Alpine.'),
        Option(
            say('The C library of the machine that is described ("2.28"; "none": it has musl).'),
            "X.Y",
        ),
    ]
    | None
)
JetPack = (
    Annotated[
        _Text,
        msgspec.Meta(description='Of a Jetson: "6.2".'),
        Option(
            say('The JetPack of a Jetson ("6.2"). Describes a machine: nothing is probed.'), "X.Y"
        ),
    ]
    | None
)
Tool = Annotated[Literal["pip", "uv", "conda"], Option()]


class RecommendRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asks for; the names are those of the options of ``gpucheck recommend``."""

    torch: Torch = ""
    like: Annotated[
        str,
        Option(
            say("The PyTorch of a file that gpucheck baseline lock wrote, and its other packages."),
            "FILE",
        ),
    ] = ""
    gpu: Annotated[
        tuple[str, ...],
        Option(
            say(
                'A GPU, by product ("RTX 4090") or compute capability ("8.9"); repeat it for each, '
                '"none" for none.'
            ),
            "NAME_OR_CC",
        ),
    ] = ()
    driver: Driver = None
    driver_cuda: DriverCuda = None
    python_version: PythonVersion = None
    os: OperatingSystem = None
    arch: Arch = None
    glibc: Glibc = None
    jetpack: JetPack = None
    companions: Annotated[
        str,
        Option(
            say(
                "Also install these, in releases that fit together: torchvision, torchaudio, "
                "bitsandbytes, flash-attn, pyg-lib, sglang, torch-cluster, torch-scatter, "
                "torch-sparse, torch-spline-conv, torchcodec, transformer-engine, triton, vllm, "
                "xformers."
            ),
            "NAMES",
            flag="--with",
        ),
    ] = ""
    tool: Tool = "pip"
    wheel_mirror: str = ""


def companions(names: str) -> tuple[str, ...]:
    """Return the companions of ``--with``."""
    words = (name.strip().lower().replace("_", "-") for name in names.split(","))
    wanted = tuple(dict.fromkeys(word for word in words if word))
    for name in wanted:
        if name not in _COMPANIONS:
            refused = say(
                "--with knows {companions}, not {name}.",
                companions=listed(_COMPANIONS),
                name=repr(printable(name)),
            )
            raise UsageError(with_hint(refused, meant(name, _COMPANIONS)))
    return wanted


def with_lock(wish: RecommendRequest) -> RecommendRequest:
    """Return the wish with the PyTorch and the companions that the file of ``--like`` has.

    Raises:
        UsageError: the file cannot be read, or ``--torch`` says something else.
    """
    from pathlib import Path  # noqa: PLC0415

    from gpucheck.facts.streams import in_utf_8, reading  # noqa: PLC0415
    from gpucheck.output import lock  # noqa: PLC0415

    if wish.torch:
        raise UsageError(say("--like names a PyTorch, so --torch cannot name one as well."))
    file = printable(wish.like)
    try:
        with reading(Path(wish.like)) as opened:
            text = in_utf_8(opened.read(lock.SIZE_LIMIT)).decode("utf-8", "replace")
        locked = lock.read(text)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(say("{file} cannot be read: {why}", file=file, why=why)) from error
    except lock.LockError as error:
        raise UsageError(say("{file}: {why}", file=file, why=words_of(error))) from error
    found = ",".join(project for project in FAMILY if project in locked.pins)
    return msgspec.structs.replace(wish, torch=locked.torch, companions=wish.companions or found)


def cards(wish: RecommendRequest, tables: "Tables", notes: list[str]) -> "tuple[Card, ...] | None":
    """Return the GPUs of ``--gpu``; None if none was named. ``notes`` gets what to say of them."""
    from gpucheck.advice.situations import GpuNameError, NamedFor, cards_named  # noqa: PLC0415

    given = NamedFor(driver=wish.driver, driver_cuda=wish.driver_cuda, notes=notes)
    try:
        return cards_named(wish.gpu, tables, given)
    except GpuNameError as error:
        raise UsageError(say("--gpu: {error}.", error=words_of(error))) from error


def python_version(text: str | None) -> str | None:
    """Return the version of ``--python-version`` without its patch number."""
    if text is None:
        return None
    found = _PYTHON.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            say(
                "--python-version expects a version like 3.12 or 3.13t, not {text}.",
                text=repr(printable(text)),
            )
        )
    return found[1] + found[2]


def board(wish: RecommendRequest, tables: "Tables") -> "JetpackRow | None":
    """Return the JetPack that the user names."""
    from gpucheck.tables.jetson import Jetpacks  # noqa: PLC0415

    wanted = wish.jetpack
    if wanted is None:
        return None
    row = tables.get(Jetpacks).of_jetpack(wanted.strip())
    if row is None:
        raise UsageError(
            say("--jetpack: the tables do not have JetPack {wanted}.", wanted=printable(wanted))
        )
    if wish.os not in (None, "linux") or wish.arch not in (None, "aarch64"):
        raise UsageError(say("--jetpack is for Linux on aarch64."))
    return row


def has_musl(wish: RecommendRequest) -> bool:
    """Return whether the described machine has musl in place of glibc."""
    return wish.glibc in ("none", "musl")


def check_driver(wish: RecommendRequest) -> None:
    """Check the versions of the driver, its CUDA and the C library that is described."""
    from gpucheck.tables.versions import minor, parse  # noqa: PLC0415

    release, cuda, glibc = wish.driver, wish.driver_cuda, wish.glibc
    if glibc is not None and parse(glibc) is None and not has_musl(wish):
        raise UsageError(
            say(
                "--glibc expects a version like 2.28 or none, not {glibc}.",
                glibc=repr(printable(glibc)),
            )
        )
    if release is not None and parse(release) is None:
        raise UsageError(
            say(
                "--driver expects a release or branch, not {release}.",
                release=repr(printable(release)),
            )
        )
    if cuda is not None and (parse(cuda) is None or minor(cuda) is None):
        raise UsageError(
            say(
                "--driver-cuda expects a version like 12.4, not {cuda}.", cuda=repr(printable(cuda))
            )
        )
