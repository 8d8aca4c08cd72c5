"""Compares what `recommend` proposes with what `compat` says, on everything the tables describe.

    PYTHON_WITH_GPUCHECK benchmarks/agreement.py [--jobs N] [--every N]

A described machine is a system (Linux on x86_64 and aarch64, Windows, WSL 2, macOS, a Jetson with
each JetPack), a compute capability, a driver and a Python. The drivers are every branch, as a
number alone, as a release and as a release that says its CUDA, and the releases at which a CUDA
starts to run. The Pythons are all for which any release of PyTorch has wheels, the free-threaded
ones included, one that is older and one that is newer.

1. What `recommend` proposes, and what it says a newer driver would allow, `compat` finds healthy.
2. A build of each kind in the tables, on each GPU and driver: if `compat` finds it healthy,
   `recommend --torch` proposes it, and the other way round.
3. Every release of PyTorch with every Python: the same.
4. Every product name is the same GPU for both.
5. What `recommend --tool conda` proposes, `compat` finds healthy.

Each difference is printed; there must be none. ``--every N`` takes each Nth comparison.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gpucheck.advice.recommender import Card, Offer, Recommender, Situation
from gpucheck.advice.situations import GpuNameError, cards_named
from gpucheck.describe.judge import describe, judge_described
from gpucheck.describe.keys import read_object
from gpucheck.facts.system import Pci
from gpucheck.tables import OperatingSystem, Tables
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.gpus import GpuArchitectures, GpuProducts
from gpucheck.tables.jetson import Jetpacks
from gpucheck.tables.torch import TorchBuilds, TorchReleases
from gpucheck.tables.versions import numbers, parse

HEALTHY = "healthy"
_ANY_RELEASE = ".150"
"""A number that is later than every release at which a CUDA starts to run."""


class Surroundings(Struct, frozen=True):
    """A system: what `compat` is told, and the platform of its wheels."""

    name: str
    given: tuple[tuple[str, str], ...]
    platform: str
    driver_os: OperatingSystem


class Driver(NamedTuple):
    """A driver as it is given: a release, a branch, and the CUDA that it reports ("" if not)."""

    release: str
    cuda: str = ""


class Found(Struct):
    """How many comparisons were made, and what differed."""

    compared: int = 0
    differences: list[str] = []

    def add(self, other: "Found") -> None:
        """Add what another process found."""
        self.compared += other.compared
        self.differences = self.differences + other.differences


SYSTEMS = (
    Surroundings("linux x86_64", (("os", "linux"), ("arch", "x86_64")), "linux_x86_64", "linux"),
    Surroundings("linux aarch64", (("os", "linux"), ("arch", "aarch64")), "linux_aarch64", "linux"),
    Surroundings("windows", (("os", "windows"), ("arch", "x86_64")), "windows", "windows"),
    Surroundings("wsl2", (("os", "wsl2"), ("arch", "x86_64")), "linux_x86_64", "windows"),
)


@cache
def the_tables() -> Tables:
    """Return the built-in tables, once for each process."""
    return Tables()


@cache
def recommender() -> Recommender:
    """Return the recommender of these tables."""
    return Recommender(the_tables())


def capabilities() -> list[str]:
    """Return every compute capability that a table has, the oldest first."""
    described = {row.compute_capability for row in the_tables().get(GpuArchitectures).rows}
    sold = {row.compute_capability for row in the_tables().get(GpuProducts).rows}
    return sorted((one for one in described | sold if one), key=numbers)


def pythons() -> list[str]:
    """Return every Python with a wheel of any release, one that is older and one newer."""
    rows = the_tables().get(TorchReleases).rows
    with_wheels = {one for row in rows for every in row.pythons.values() for one in every}
    return sorted({*with_wheels, "3.5", "3.99", "3.99t"}, key=_python_order)


def _python_order(python: str) -> tuple[tuple[int, ...], bool]:
    return numbers(python.removesuffix("t")), python.endswith("t")


def drivers(os: OperatingSystem) -> list[Driver]:
    """Return the drivers to describe, the oldest first."""
    found = []
    for row in the_tables().get(DriverBranches).rows:
        release = f"{row.branch}{_ANY_RELEASE}"
        found += [Driver(row.branch), Driver(release)]
        found += [Driver(release, row.cuda)] if row.cuda and parse(row.cuda) else []
    table = the_tables().get(CudaDrivers)
    cuda = {row.cuda for row in the_tables().get(TorchBuilds).rows}
    oldest = {least for one in cuda if (least := table.oldest_driver(one, os))}
    for first in oldest:
        *head, last = first.split(".")
        before = ".".join([*head, f"{int(last) - 1:0{len(last)}d}"])
        found += [Driver(first)] + ([Driver(before)] if int(last) else [])
    return sorted(set(found), key=lambda one: (numbers(one.release), one))


def _is_boundary(driver: Driver) -> bool:
    """Whether a driver is one at which a CUDA starts to run, or the release before it."""
    return not driver.release.endswith(_ANY_RELEASE) and "." in driver.release


@cache
def verdict(  # one argument for each fact
    system: Surroundings, capability: str, driver: Driver, python: str, torch: str, build: str
) -> str:
    """Return what `compat` says of a build on a described machine."""
    given = {
        **dict(system.given),
        "compute_capability": capability,
        "python": python,
        "torch": f"{torch}+{build}",
        "torch_source": "pytorch-index",
    }
    if driver.release:
        given["driver"] = driver.release
    if driver.cuda:
        given["driver_cuda"] = driver.cuda
    report = judge_described(read_object(given), the_tables()).report
    return " ".join((report.verdict, *report.root_causes))


def situation(
    system: Surroundings, capability: str, driver: Driver, python: str | None, torch: str = ""
) -> Situation:
    """Return what `recommend` takes for a described machine."""
    return Situation(
        platform=system.platform,
        python=python,
        cards=(Card(capability, capability),),
        driver=driver.release or None,
        driver_cuda=driver.cuda or None,
        driver_os=system.driver_os,
        torch=torch,
    )


def proposals(every: int, system: Surroundings, capability: str) -> Found:
    """Compare what `recommend` proposes for one GPU with `compat`."""
    found, count = Found(), itertools.count()
    for driver, python in itertools.product(drivers(system.driver_os), pythons()):
        if next(count) % every:
            continue
        answer = recommender().recommend(situation(system, capability, driver, python))
        allowed = [(driver, answer.best)] if answer.best else []
        if answer.driver_update and answer.driver_needed:
            allowed.append((Driver(answer.driver_needed), answer.driver_update))
        for with_driver, offer in allowed:
            found.compared += 1
            said = verdict(system, capability, with_driver, python, offer.torch, offer.build)
            if said != HEALTHY:
                found.differences.append(
                    f"{system.name}, {capability}, {with_driver}, Python {python}: recommend "
                    f"proposes {offer}, compat says {said}"
                )
    return found


def conda_proposals(every: int, system: Surroundings, capability: str) -> Found:
    """Compare what `recommend --tool conda` proposes for one GPU with `compat`.

    One way only: conda-forge's builds have PTX, which runs, and which `recommend` does not count.
    """
    found, count = Found(), itertools.count()
    pythons = ("3.9", "3.10", "3.13", "3.14", "3.14t")
    for driver, python in itertools.product(drivers(system.driver_os), pythons):
        if next(count) % every:
            continue
        asked = replace(situation(system, capability, driver, python), channel="conda-forge")
        best = recommender().recommend(asked).best
        if best is None:
            continue
        found.compared += 1
        given = {
            **dict(system.given), "compute_capability": capability, "python": python,
            "torch": best.torch, "torch_source": "conda-forge", "cuda": best.cuda,
            "driver": driver.release, **({"driver_cuda": driver.cuda} if driver.cuda else {}),
        }  # fmt: skip
        report = judge_described(read_object(given), the_tables()).report
        if report.verdict != HEALTHY:
            found.differences.append(
                f"{system.name}, {capability}, {driver}, Python {python}: recommend proposes "
                f"{best} of conda-forge, compat says {' '.join(report.root_causes)}"
            )
    return found


def builds(every: int, system: Surroundings, capability: str) -> Found:
    """Compare both answers about each kind of build on one GPU with each driver that says enough.

    Of a branch it is the release with its CUDA; a branch alone and a release alone are in
    `proposals`.
    """
    found, count = Found(), itertools.count()
    said = [one for one in drivers(system.driver_os) if one.cuda or _is_boundary(one)]
    for driver, offer in itertools.product(said, kinds(system.platform)):
        if next(count) % every:
            continue
        python = recommender().offers(system.platform).pythons(offer)[0]
        found.compared += 1
        _compare(found, system, capability, driver, python, offer)
    return found


def releases(every: int, system: Surroundings, capability: str) -> Found:
    """Compare both answers about each release with each Python, on a driver that runs all."""
    found, count = Found(), itertools.count()
    newest = drivers(system.driver_os)[-1]
    for offer, python in itertools.product(_one_a_release(system.platform, capability), pythons()):
        if next(count) % every:
            continue
        found.compared += 1
        _compare(found, system, capability, newest, python, offer)
    return found


def _compare(  # one argument for each fact
    found: Found,
    system: Surroundings,
    capability: str,
    driver: Driver,
    python: str,
    offer: Offer,
) -> None:
    asked = situation(system, capability, driver, python, f"{offer.torch}+{offer.build}")
    proposed = recommender().recommend(asked).best is not None
    said = verdict(system, capability, driver, python, offer.torch, offer.build)
    if proposed is not (said == HEALTHY):
        answer = "proposes" if proposed else "does not propose"
        found.differences.append(
            f"{system.name}, {capability}, {driver}, Python {python}: recommend {answer} {offer}, "
            f"compat says {said}"
        )


@cache
def kinds(platform: str) -> tuple[Offer, ...]:
    """Return one offer of each kind: the same CUDA, code, cuDNN and confirmation are one kind."""
    table = the_tables().get(TorchBuilds)
    found: dict[tuple[object, ...], Offer] = {}
    for offer in recommender().offers(platform).with_cuda():
        row = table.build(offer.torch, offer.cuda, platform)
        if row is not None:
            kind = (row.cuda, row.arch_list, row.ptx, row.cudnn, row.confirmed)
            found.setdefault(kind, offer)
    return tuple(found.values())


def _one_a_release(platform: str, capability: str) -> list[Offer]:
    """Return a build of each release with code for a GPU."""
    found: dict[str, Offer] = {}
    for offer in recommender().offers(platform).with_code_for(capability):
        found.setdefault(offer.torch, offer)
    return list(found.values())


_OF_BOARDS = ("35.4.1", "540.3.0", "540.4.0", "540.9.0", "580.00", "595.78")
"""Releases of the drivers of boards: of JetPack 5 to 7.2."""


def board_drivers(every: int) -> Found:
    """Compare both answers about Jetson boards, by the release of their driver and by GPU."""
    found, count = Found(), itertools.count()
    board = Surroundings(
        "a board", (("os", "linux"), ("arch", "aarch64")), "linux_aarch64", "linux"
    )
    products = the_tables().get(GpuProducts)
    jetsons = [one for one in capabilities() if products.is_jetson(one)]
    for release, capability in itertools.product(_OF_BOARDS, jetsons):
        for offer in kinds(board.platform):
            if next(count) % every:
                continue
            python = recommender().offers(board.platform).pythons(offer)[0]
            found.compared += 1
            _compare(found, board, capability, Driver(release), python, offer)
    return found


def boards(every: int) -> Found:
    """Compare both answers about Jetson boards, by JetPack and GPU; and about macOS."""
    found, count = Found(), itertools.count()
    products = the_tables().get(GpuProducts)
    jetsons = [one for one in capabilities() if products.is_jetson(one)]
    for row, capability in itertools.product(the_tables().get(Jetpacks).rows, jetsons):
        given = (("os", "linux"), ("arch", "aarch64"), ("jetpack", row.jetpack))
        system = Surroundings(f"JetPack {row.jetpack}", given, "linux_aarch64", "linux")
        driver = Driver("", row.cuda or "")
        for offer in kinds(system.platform):
            if next(count) % every or not row.cuda:
                continue
            python = recommender().offers(system.platform).pythons(offer)[0]
            found.compared += 1
            _compare(found, system, capability, driver, python, offer)
    macos = Surroundings("macos", (("os", "macos"),), "macos_arm64", "linux")
    for capability, python in itertools.product(capabilities(), pythons()):
        if next(count) % every:
            continue
        for driver in (Driver("580.150", "13.0"), Driver("418.150")):
            found.compared += 1
            best = recommender().recommend(situation(macos, capability, driver, python)).best
            said = verdict(macos, capability, driver, python, "2.2.2", "cu121")
            if best is not None or said == HEALTHY:
                found.differences.append(f"macOS, {capability}: {best}, {said}")
    return found


def names() -> Found:
    """Compare which GPU a product name is for both commands."""
    found = Found()
    for row in the_tables().get(GpuProducts).rows:
        found.compared += 1
        described = describe(read_object({"gpu": row.product}), the_tables()).sections["pci"]
        gpus = described.gpus if isinstance(described, Pci) else None
        said = {gpu.compute_capability for gpu in gpus or ()}
        try:
            named = {card.capability for card in cards_named([row.product], the_tables()) or ()}
        except GpuNameError:
            named = {None}  # type: ignore[arg-type]  # several GPUs have this name
        if said != named:
            found.differences.append(f"{row.product}: recommend {named}, compat {said}")
    return found


def everything(every: int, jobs: int) -> Iterator[tuple[str, Found]]:
    """Yield each question, and what was found."""
    yield "product names", names()
    yield "Jetson boards and macOS", boards(every)
    yield "drivers of Jetson boards", board_drivers(every)
    products = the_tables().get(GpuProducts)
    # A board's GPU is part of an ARM processor that runs Linux: elsewhere there is none.
    pairs = [
        (system, capability)
        for system, capability in itertools.product(SYSTEMS, capabilities())
        if system.platform == "linux_aarch64" or not products.is_jetson(capability)
    ]
    questions = (
        ("Pythons", releases),
        ("builds", builds),
        ("proposals", proposals),
        ("conda-forge", conda_proposals),
    )
    with ProcessPoolExecutor(jobs) as pool:
        for title, question in questions:
            found = Found()
            ask = partial(question, every)
            for one in pool.map(ask, *zip(*pairs, strict=True)):
                found.add(one)
            yield title, found


def main() -> int:
    """Print what was compared and what differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    arguments = parser.parse_args()
    start, differences = time.monotonic(), 0
    for title, found in everything(arguments.every, arguments.jobs):
        seconds = time.monotonic() - start
        sys.stdout.write(
            f"{title}: {found.compared} comparisons, {len(found.differences)} differences "
            f"({seconds:.0f} s so far)\n"
        )
        sys.stdout.writelines(f"  {one}\n" for one in found.differences)
        sys.stdout.flush()
        differences += len(found.differences)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
