"""What a recommendation is for: an examined machine, or GPUs by their usual names."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from gpucheck.advice.offers import Card, Situation
from gpucheck.derived import Derived, DriverState, Gpu, Gpus
from gpucheck.derived.wheels import wheel_platform
from gpucheck.facts import UnknownFactError
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter
from gpucheck.language import any_of, in_series, in_turn, say, say_many
from gpucheck.tables import OperatingSystem, Tables
from gpucheck.tables.compilers import CubinRules, Runs
from gpucheck.tables.gpus import capability_of, spellings
from gpucheck.tables.meant_products import (
    driven,
    meant_by,
    of_other_vendor,
    other_vendor,
    sold_as,
    unlisted,
)
from gpucheck.tables.torch import TorchBuilds

# GPUs by the names that people use: a product, or a compute capability.

_CAPABILITY = re.compile(r"(?:sm_?)?([0-9]{1,2})\.?([0-9])")
_LONGEST = 100  # of what a refusal quotes; the longest product name in the tables has 55


_BY_CAPABILITY = say(
    "Or give its compute capability, such as 8.9 (nvidia-smi --query-gpu=compute_cap --format=csv "
    "shows it)"
)


class GpuNameError(ValueError):
    """A name that matches no GPU, or several with different compute capabilities."""


class NamedFor(Struct, frozen=True, kw_only=True):
    """The driver of the machine whose GPUs are named, where it is known: it may tell them apart."""

    driver: str | None = None
    driver_cuda: str | None = None
    to_install: bool = True
    """Whether only a build to install is asked for: GPUs that no build is for are then alike."""
    notes: list[str] = []
    """Gets a sentence for each name that was not simply looked up."""


def cards_named(
    names: Iterable[str], tables: Tables, given: NamedFor | None = None
) -> tuple[Card, ...] | None:
    """Return the named GPUs, given one by one or separated by commas.

    () for "none", None if no GPU was named. A GPU of another maker beside one of NVIDIA is left
    out, and a note says so.

    Raises:
        GpuNameError: the tables do not know a name.
    """
    given = given or NamedFor()
    wanted = [part.strip() for name in names for part in name.split(",")]
    if not wanted:
        return None
    if [name.lower() for name in wanted] == ["none"]:
        return ()
    others = of_others(wanted, tables)
    if len(others) == len(wanted):
        raise GpuNameError(of_other_vendor(others[0]))
    given.notes.extend(say("{sentence}.", sentence=left_out_of_other(name)) for name in others)
    return tuple(_gpu_names_card(name, tables, given) for name in wanted if name not in others)


def left_out_of_other(name: str) -> str:
    """Say that a GPU of another maker is not judged."""
    return say(
        "{name} was left out: it is a GPU of {vendor}, and gpucheck judges those of NVIDIA only",
        name=name[:_LONGEST],
        vendor=other_vendor(name),
    )


def of_others(names: Iterable[str], tables: Tables) -> list[str]:
    """Return the names of GPUs that are not NVIDIA's."""
    return [name for name in names if other_vendor(name) and not _capabilities(name, tables)]


def one_of_several(name: str, tables: Tables, given: NamedFor) -> tuple[str, str]:
    """Return which of the GPUs that share a name it is, and how that is known.

    Both are "" if the name is not that of several. The first alone is "" if that is not known and
    matters.
    """
    sold = sold_as(name, tables)
    served = driven(sold, tables, release=given.driver, cuda=given.driver_cuda)
    words = {
        "name": repr(name[:_LONGEST]),
        "several": any_of([f"sm_{capability.replace('.', '')}" for capability in sold]),
    }
    if len(served) == 1:
        return served[0], say(
            "{name} can be several GPUs ({several}), of which this driver serves only {one}.",
            one=f"sm_{served[0].replace('.', '')}",
            **words,
        )
    if sold and given.to_install and not any(_has_code(capability, tables) for capability in sold):
        return (served or sold)[-1], say(
            "{name} can be several GPUs ({several}), and no build of PyTorch has code for any of "
            "them.",
            **words,
        )
    if not sold:
        return "", ""
    return "", say(
        "{name} can be several GPUs ({several}): give its compute capability (nvidia-smi "
        "--query-gpu=compute_cap --format=csv shows it)",
        **words,
    )


def _has_code(capability: str, tables: Tables) -> bool:
    """Whether any build in the tables has machine code for a GPU."""
    codes = tuple(tables.get(TorchBuilds).codes())
    return tables.get(CubinRules).surely_covers(codes, capability, None) is Runs.CUBIN


def _gpu_names_card(name: str, tables: Tables, given: NamedFor) -> Card:
    if code := _CAPABILITY.fullmatch(name.lower()):
        capability = f"{code[1]}.{code[2]}"
        return Card(capability, capability)
    found = _capabilities(name, tables)
    if len(found) == 1:
        return Card(name, found.pop())
    capability, several = one_of_several(name, tables, given)
    if not found and capability:
        given.notes.append(several)
        return Card(name, capability)
    if not found and not several and (meant := meant_by(name, tables)):
        return Card(*meant)
    quoted_name = repr(name[:_LONGEST])
    if several:
        raise GpuNameError(several)
    what = (
        say("{name} can be several GPUs.", name=quoted_name)
        if found
        else say("{name} is not a GPU that the tables know.", name=quoted_name)
    )
    like = unlisted(name, tables)
    raise GpuNameError(in_turn((what, *((like,) if like else ()), _BY_CAPABILITY)))


def _capabilities(name: str, tables: Tables) -> set[str]:
    """Return the compute capabilities of a name as it is, and as the tables may spell it."""
    return {found for known in spellings(name) if (found := capability_of(known, tables))}


# The requirements of a recommendation, from a snapshot of a machine.

_BITS = 64  # PyTorch has wheels for 64-bit Pythons only


class Cards(Struct, frozen=True, kw_only=True):
    """The GPUs to support. ``served``: the driver is known to serve them.

    ``hidden`` are GPUs of the machine that CUDA_VISIBLE_DEVICES hides; a build should fit them too.
    ``unclear`` are hidden GPUs of unknown compute capability.
    """

    cards: tuple[Card, ...]
    served: bool = False
    hidden: tuple[Card, ...] = ()
    unclear: tuple[str, ...] = ()


class MachineFacts(Derived):
    """The facts of one machine that a recommendation needs; None for an unknown one."""

    def __init__(
        self, system: System, interpreter: Interpreter, gpus: Gpus, driver: DriverState
    ) -> None:
        self._system = system
        self._interpreter = interpreter
        self._gpus = gpus
        self._driver = driver

    def platform(self) -> str | None:
        """Return the platform as in the tables, or a name that they do not have."""
        if self._system.os is None or self._system.machine is None:
            return None
        return wheel_platform(self._system) or f"{self._system.os}_{self._system.machine}"

    def without_wheels(self) -> tuple[str, ...]:
        """Return why PyTorch has no CUDA wheel for this system or Python; empty if it has one.

        Whether it has one for the GPU of a Jetson is the recommender's question.
        """
        found = []
        if self._system.os == "macos":
            found.append(say("PyTorch has no CUDA build for macOS."))
        if self._system.jetson and self.gpus() is None:
            found.append(say("This is a Jetson: NVIDIA publishes its PyTorch with JetPack."))
        return (*found, *self.without_cpu_wheels())

    def without_cpu_wheels(self) -> tuple[str, ...]:
        """Return why PyTorch has no wheel at all, not even for the CPU; empty if it has one."""
        found = []
        if self._system.libc == "musl":
            found += [
                say("This system has musl as its C library; PyTorch's wheels need glibc."),
                say("Use a system or an image with glibc, such as Debian instead of Alpine."),
            ]
        if self._interpreter.bits not in (None, _BITS):
            found.append(
                say(
                    "This is a {bits}-bit Python; the wheels need {needed}.",
                    bits=self._interpreter.bits,
                    needed=_BITS,
                )
            )
        if self._interpreter.implementation not in (None, "cpython"):
            found.append(
                say(
                    "PyTorch has no wheels for {implementation}.",
                    implementation=self._interpreter.implementation,
                )
            )
        return tuple(found)

    def python(self) -> str | None:
        """Return the Python as wheels name it: "3.12", or "3.13t" if it is free-threaded."""
        version = self._interpreter.version
        if not version:
            return None
        return ".".join(version.split(".")[:2]) + ("t" if self._interpreter.free_threaded else "")

    def glibc(self) -> str | None:
        """Return the version of glibc that the target Python runs on."""
        return self._interpreter.glibc or self._system.glibc or None

    def l4t(self) -> str | None:
        """Return the Linux for Tegra of a Jetson board."""
        return self._system.l4t or None

    def gpus(self) -> Cards | None:
        """Return the GPUs that a program started here would see; all if a mask hides every one.

        None if it is unknown whether there are any, or which model one of them is.
        """
        try:
            if not self._gpus.present():
                return Cards(cards=())
            everything = self._gpus.all()
        except UnknownFactError:
            return None
        gpus = self._visible() or everything
        cards = [_card(gpu) for gpu in gpus]
        known = tuple(card for card in cards if card is not None)
        if not known or len(known) < len(cards):
            return None
        hidden = _beyond(everything, gpus)
        return Cards(
            cards=known,
            served=self._serves(),
            hidden=tuple(card for gpu in hidden if (card := _card(gpu)) is not None),
            unclear=tuple(gpu.label for gpu in hidden if _card(gpu) is None),
        )

    def situation(self) -> Situation | None:
        """Return what a build for this machine has to fit.

        None if the platform or the GPUs are unknown. An unknown driver or Python is not a limit.
        """
        platform, gpus = self.platform(), self.gpus()
        if platform is None or gpus is None:
            return None
        driver, driver_cuda = self.driver()
        return Situation(
            platform=platform,
            python=self.python(),
            cards=gpus.cards,
            hidden=gpus.hidden,
            driver=driver,
            driver_cuda=driver_cuda,
            driver_os=self.driver_os(),
            glibc=self.glibc(),
            driver_serves=gpus.served,
            l4t=self.l4t(),
        )

    def driver(self) -> tuple[str | None, str | None]:
        """Return the driver's release and the CUDA that it reports itself."""
        cuda = self._driver.cuda() if self._driver.reports_cuda() else None
        try:
            return self._driver.release(), cuda
        except UnknownFactError:
            return None, cuda

    def driver_os(self) -> OperatingSystem | None:
        """Return the system whose driver serves the GPUs: Windows inside WSL; None: unknown."""
        if self._system.os == "windows" or self._system.wsl:
            return "windows"
        return "linux" if self._system.os == "linux" else None

    def _visible(self) -> list[Gpu]:
        try:
            return self._gpus.visible()
        except UnknownFactError:
            return []

    def _serves(self) -> bool:
        try:
            return self._driver.serves()
        except UnknownFactError:
            return False


def left_aside(unclear: Sequence[str]) -> str:
    """Return which hidden GPUs were not considered because they are unknown."""
    return say_many(
        len(unclear),
        "CUDA_VISIBLE_DEVICES hides {gpus}, whose compute capability is unknown. Whether the build "
        "has code for it is unknown, too.",
        "CUDA_VISIBLE_DEVICES hides {gpus}, whose compute capabilities are unknown. Whether the "
        "build has code for them is unknown, too.",
        gpus=in_series(unclear),
    )


def _beyond(everything: list[Gpu], visible: list[Gpu]) -> list[Gpu]:
    """Return the GPUs that are not among the visible ones, which another source may have named."""
    seen = Counter(gpu.compute_capability for gpu in visible)
    beyond = []
    for gpu in everything:
        if seen[gpu.compute_capability] > 0:
            seen[gpu.compute_capability] -= 1
        else:
            beyond.append(gpu)
    return beyond


def _card(gpu: Gpu) -> Card | None:
    capability = gpu.compute_capability
    return Card(gpu.product or gpu.label, capability) if capability else None
