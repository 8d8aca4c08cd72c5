"""The logic of ``recommend``: from what the user asks to the command that installs it."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpucheck.describe.recommend_machine import (
    DECISIVE,
    cards_of_board,
    describe,
    missing_facts,
    of_sections,
    unless,
)
from gpucheck.describe.recommend_options import (
    FAMILY,
    RecommendRequest,
    board,
    cards,
    check_driver,
    companions,
    python_version,
    with_lock,
)
from gpucheck.interface.errors import UsageError, words_of
from gpucheck.language import in_series, say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.advice import Python
    from gpucheck.advice.companions import Companion
    from gpucheck.advice.recommender import Offer, Recommendation, Situation
    from gpucheck.advice.situations import Cards, MachineFacts
    from gpucheck.describe.recommendation import Missing, Shown
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.tables import Tables
    from gpucheck.tables.jetson import JetpackRow

_DESCRIBING = ("gpu", "os", "arch", "glibc", "jetpack")

_IN_CONDA = say("Run it in the activated conda environment.")
_REMOVE_FIRST = say(
    "If that environment has a PyTorch already, run pip uninstall -y torch first: pip takes any "
    "build of the same release for this one."
)
_NGC = say(
    "The PyTorch here is NVIDIA's own build of an NGC image, and the other libraries of the image "
    "are made for it. A new virtual environment leaves it untouched."
)


class Recommending:
    """One recommendation: what the user asked for, and for which machine.

    Args:
        wish: what the user asked for.
        tables: the compatibility tables.
        collect: returns what the probes find on this machine.

    Raises:
        UsageError: a value makes no sense.
    """

    def __init__(
        self, wish: RecommendRequest, tables: "Tables", collect: "Callable[[], Snapshot]"
    ) -> None:
        wish = with_lock(wish) if wish.like else wish
        self._wish = wish
        self._tables = tables
        self._collect = collect
        self._companions = companions(wish.companions)
        check_driver(wish)
        self._notes: list[str] = []
        self._cards = cards(wish, tables, self._notes)
        self._python_version = python_version(wish.python_version)
        self._board = board(wish, tables)
        self._described = any(getattr(wish, option) for option in _DESCRIBING)
        self._situation_asked: Situation | None = None

    def shown(self) -> "Shown":
        """Return the recommendation with everything that is shown about it."""
        from gpucheck.advice.recommender import Recommendation  # noqa: PLC0415
        from gpucheck.advice.situations import MachineFacts  # noqa: PLC0415
        from gpucheck.describe.recommendation import Choice, Shown  # noqa: PLC0415
        from gpucheck.engine import supply  # noqa: PLC0415

        snapshot = self._snapshot()
        facts: MachineFacts = supply(MachineFacts, snapshot, self._tables)
        if without := facts.without_wheels():
            answer = Recommendation(best=None, reasons=without)
            return Shown(answer=answer, described=self._described)
        situation, missing = self._situation(facts)
        answer, missing = self._answer(situation, missing)
        yours = "" if self._describes_another() else self._yours(situation, answer, snapshot)
        if answer.best is None and self._board is not None:
            self._notes.append(_wheels_for(self._board, self._tables))
        if answer.best is None or missing:
            target = self._target(snapshot)
            choices = tuple(
                Choice(
                    driver=driver_choice.driver,
                    build=driver_choice.offer,
                    commands=self._commands(driver_choice.offer, target)[0],
                )
                for driver_choice in answer.by_driver
            )
            return Shown(
                answer=answer,
                missing=missing,
                choices=choices,
                notes=tuple(dict.fromkeys(self._notes)),
                described=self._described,
                yours=yours,
            )
        commands, verify = self._commands(answer.best, self._target(snapshot))
        self._notes.extend(self._of_source(answer))
        return Shown(
            answer=answer,
            commands=commands if all(commands) else (),  # "": no shell here can be given it
            verify=verify,
            notes=tuple(self._notes),
            described=self._described,
            yours=yours,
        )

    def _describes_another(self) -> bool:
        """Whether a fact of this machine is replaced, or a certain release is asked for."""
        replaced = ("torch", "driver", "driver_cuda", "python_version")
        return self._described or any(getattr(self._wish, name) for name in replaced)

    def _yours(self, situation: "Situation", answer: "Recommendation", snapshot: "Snapshot") -> str:
        """Return that the installed build fits, if it does; "" if it does not or is not known."""
        from gpucheck.advice.recommender import Recommender  # noqa: PLC0415
        from gpucheck.engine import judge_machine  # noqa: PLC0415
        from gpucheck.facts.torch import TorchBuild  # noqa: PLC0415
        from gpucheck.tables.versions import released  # noqa: PLC0415

        torch = snapshot.get(TorchBuild)
        release = ".".join(map(str, released(torch.version) or ()))
        build = "cpu" if torch.built_for == "cpu" else f"cu{(torch.cuda or '').replace('.', '')}"
        if not torch.installed or not release or (build == "cpu" and situation.cards):
            return ""
        this = replace(situation, torch=f"{release}+{build}", glibc=None)
        found = Recommender(self._tables).recommend(this).best
        if found is None or found.torch != release:
            return ""
        newest = answer.best == found
        wrong = judge_machine(snapshot, self._tables).root_causes
        return _fits(found, newest=newest, wrong=wrong)

    def _commands(self, offer: "Offer", target: "Snapshot") -> tuple[tuple[str, ...], str]:
        """Return the commands that install an offer, and the one that verifies it."""
        from gpucheck.advice import Python  # noqa: PLC0415
        from gpucheck.advice.pip_requirement import download  # noqa: PLC0415
        from gpucheck.engine import supply  # noqa: PLC0415
        from gpucheck.facts.torch import Interpreter, TorchBuild  # noqa: PLC0415
        from gpucheck.tables.versions import released  # noqa: PLC0415

        python: Python = supply(Python, target, self._tables)
        torch = target.get(TorchBuild)
        if (
            torch.installed
            and torch.cuda == offer.cuda
            and released(torch.version) == released(offer.torch)
        ):
            self._notes.append(say("This build is already installed."))
        if offer.channel != "pip":
            return self._by_conda(offer, python)
        arguments = self._arguments(offer, python, target)
        if _is_of_ngc(target):
            self._notes.append(_NGC)
            return python.new_environment(arguments), ""
        if self._described and not python.is_closed() and self._wish.tool == "pip":
            self._notes.append(_REMOVE_FIRST)
        executable = target.get(Interpreter).executable or ""
        fix = python.install("", arguments, build=offer.build)
        verify = fix.verify if executable else ""
        commands = fix.commands
        if self._wish.tool == "uv":
            verify = "" if python.is_closed() else verify
            commands = _uv_commands(arguments, python, executable, offer.build)
        commands = (*download(offer), *commands)
        return (*commands, *self._compiled(offer, python), *self._rest(python)), verify

    def _by_conda(self, offer: "Offer", python: "Python") -> tuple[tuple[str, ...], str]:
        """Return the commands with which conda installs an offer, and the one that verifies it."""
        from gpucheck.advice.package_indexes import conda_install  # noqa: PLC0415

        prefix = python.conda_environment()
        if not prefix:
            self._notes.append(_IN_CONDA)
        if offer.cuda and self._described and offer.platform.startswith("linux"):
            self._notes.append(
                say(
                    "On a host without a driver, such as a login node, conda needs "
                    "CONDA_OVERRIDE_CUDA={cuda} in its environment.",
                    cuda=offer.cuda,
                )
            )
        wanted = dict.fromkeys((*self._companions, *python.conda_companions()))
        install = python.quoted(conda_install(offer, tuple(wanted), prefix=prefix))
        # What pip or another channel installed has the same files.
        before = () if python.is_of_conda_forge() else python.remove_torch(offer.build)
        return (*before, install), python.verify() if prefix else ""

    def _compiled(self, offer: "Offer", python: "Python") -> tuple[str, ...]:
        """Return the command for the packages whose setup needs the torch that is now there."""
        wanted = [chosen.requirement() for chosen in self._chosen(offer) if chosen.from_source]
        if not wanted:
            return ()
        words = ("install", "--no-build-isolation", *wanted)
        if self._wish.tool == "uv" and not python.by_uv():
            return (python.quoted(["uv", "pip", *words]),)
        return (python.install_there(*words) if python.is_closed() else python.pip(*words),)

    def _chosen(self, offer: "Offer") -> "tuple[Companion, ...]":
        """Return the packages of ``--with``, beside those of every torch, that fit an offer."""
        from gpucheck.advice.companions import Companions  # noqa: PLC0415

        assert self._situation_asked is not None  # noqa: S101  # an offer answers a situation
        others = Companions(self._tables, self._others())
        return others.chosen(offer, self._situation_asked) or ()

    def _others(self) -> tuple[str, ...]:
        return tuple(name for name in self._companions if name not in FAMILY)

    def _of_source(self, answer: "Recommendation") -> Iterator[str]:
        """Yield what there is to know about packages that come as source."""
        for chosen in answer.companions:
            if chosen.from_source:
                yield say(
                    "{package} comes as source: its setup fetches the wheel that its project made "
                    "for this torch, or compiles it with a CUDA toolkit and a C++ compiler.",
                    package=chosen.package,
                )

    def _rest(self, python: "Python") -> tuple[str, ...]:
        """Return the command for the other packages of ``--like``."""
        wish = self._wish
        if not wish.like or wish.tool == "conda":
            return ()
        if python.is_closed():  # the commands have made an environment of its own
            words = ["uv"] if wish.tool == "uv" else []
            command = python.quoted([*words, "pip", "install", "-r", wish.like])
            self._notes.append(say("Then, in that environment: {command}", command=command))
            return ()
        return (python.pip("install", "-r", wish.like),)

    def _snapshot(self) -> "Snapshot":
        if self._described:
            return describe(self._wish, self._tables, self._cards or (), self._notes)
        return self._collect()

    def _target(self, snapshot: "Snapshot") -> "Snapshot":
        """Return the snapshot that determines how to install.

        Nothing is known about a Python that was not probed. With uv the target is one of uv's.
        """
        from gpucheck.facts.request import Request  # noqa: PLC0415
        from gpucheck.facts.system import System  # noqa: PLC0415
        from gpucheck.facts.torch import Interpreter  # noqa: PLC0415

        if self._python_version is not None:
            system = snapshot.get(System)
            if self._board is not None:
                system = replace(system, jetson=self._board.devices)
            return of_sections(self._tables, system, snapshot.get(Request))
        if self._wish.tool != "uv":
            return snapshot
        interpreter = replace(snapshot.get(Interpreter), has_pip=False, kind="uv")
        sections = {**snapshot.sections, interpreter.name: interpreter}
        return of_sections(self._tables, *sections.values())

    def _situation(self, facts: "MachineFacts") -> "tuple[Situation, tuple[Missing, ...]]":
        """Return what a build has to fit, and which facts of it are missing."""
        from gpucheck.advice.recommender import Situation  # noqa: PLC0415

        gpus = self._gpus(facts)
        driver, driver_cuda, seen = self._driver(facts)
        python = self._python_version or facts.python()
        platform = facts.platform()
        missing = missing_facts(
            platform=platform,
            gpus=gpus,
            python="any" if self._described else python,  # a described machine can have any
            driver=driver or driver_cuda,
        )
        situation = Situation(
            platform=platform or "",
            python=python,
            cards=gpus.cards if gpus else (),
            hidden=gpus.hidden if gpus else (),
            driver=driver,
            driver_cuda=driver_cuda,
            driver_os=facts.driver_os(),
            glibc=self._wish.glibc or (None if self._described else facts.glibc()),
            torch=self._wish.torch,
            driver_serves=bool(gpus and gpus.served and seen),
            l4t=self._l4t(facts),
        )
        return situation, missing

    def _answer(
        self, situation: "Situation", missing: "tuple[Missing, ...]"
    ) -> "tuple[Recommendation, tuple[Missing, ...]]":
        """Return the answer, and which of the missing facts matter to it."""
        from gpucheck.advice.exclusions import usual_range  # noqa: PLC0415
        from gpucheck.advice.recommender import Recommender, SpecifierError  # noqa: PLC0415

        recommender = Recommender(self._tables)
        try:
            answer = self._recommended(situation)
        except SpecifierError as error:
            raise UsageError(say("--torch: {error}.", error=words_of(error))) from error
        if answer.best is not None and situation.python is None and self._described:
            offers = recommender.offers(situation.platform, answer.best.channel)
            pythons = offers.pythons(answer.best)
            self._notes.append(
                say(
                    "Assumed, as no Python was named: one that torch {torch} has wheels for, which "
                    "are {pythons} (--python-version).",
                    torch=answer.best.torch,
                    pythons=usual_range(pythons),
                )
            )
        lacking = {missing_fact.fact for missing_fact in missing}
        if not missing or (answer.best is None and not lacking & DECISIVE):
            return answer, ()  # the missing fact could only exclude more
        return unless(answer, lacking), missing

    def _recommended(self, situation: "Situation") -> "Recommendation":
        """Return what fits: of conda-forge if conda is to install it and there is such a build."""
        from gpucheck.advice.offers import CHANNEL  # noqa: PLC0415
        from gpucheck.advice.recommender import Recommender  # noqa: PLC0415

        recommender = Recommender(self._tables)
        self._situation_asked = replace(situation, companions=self._others())
        by_pip = recommender.recommend(self._situation_asked)
        if self._wish.tool != "conda":
            if by_pip.elsewhere is not None:
                self._notes.append(say("--tool conda shows the command for that build."))
            return by_pip
        by_conda = recommender.recommend(
            replace(situation, channel=CHANNEL, companions=self._companions)
        )
        if by_conda.best is None:
            if by_pip.best is not None:
                oldest = recommender.offers(situation.platform, CHANNEL).oldest()
                not_of_conda = say(
                    "gpucheck knows no build of torch {oldest} or newer of conda-forge that fits, "
                    "so this installs by pip:",
                    oldest=oldest,
                )
                self._notes += [not_of_conda, *by_conda.reasons, _IN_CONDA]
            return by_pip
        if by_pip.best is not None and _is_newer(by_pip.best, by_conda.best):
            self._notes.append(
                say(
                    "pip has PyTorch {torch} for this machine; of conda-forge gpucheck knows no "
                    "newer one than {conda}.",
                    torch=by_pip.best.torch,
                    conda=by_conda.best.torch,
                )
            )
        return by_conda

    def _l4t(self, facts: "MachineFacts") -> str | None:
        if self._board is not None:
            return self._board.l4t
        return None if self._described else facts.l4t()

    def _gpus(self, facts: "MachineFacts") -> "Cards | None":
        from gpucheck.advice.situations import Cards, left_aside  # noqa: PLC0415

        if self._cards is not None:
            return Cards(cards=self._cards)
        if self._board is not None:
            return cards_of_board(self._board, self._tables)
        gpus = None if self._described else facts.gpus()
        if gpus and gpus.unclear:
            self._notes.append(left_aside(gpus.unclear))
        return gpus

    def _driver(self, facts: "MachineFacts") -> tuple[str | None, str | None, bool]:
        """Return release and CUDA of the driver, and whether it is the one that runs here."""
        release, cuda = self._wish.driver, self._wish.driver_cuda
        if self._board is not None:
            # The driver of a board comes with its JetPack, and its number says nothing elsewhere.
            return None, cuda or self._board.cuda, False
        if release or cuda:
            return release, cuda, False
        return (*facts.driver(), True)

    def _arguments(self, offer: "Offer", python: "Python", target: "Snapshot") -> list[str]:
        """Return pip's arguments that install an offer and the wanted or installed companions."""
        from gpucheck.advice import PackageIndexes  # noqa: PLC0415
        from gpucheck.advice.pip_requirement import companion_doubts, requirement  # noqa: PLC0415
        from gpucheck.engine import supply  # noqa: PLC0415

        indexes: PackageIndexes = supply(PackageIndexes, target, self._tables)
        apart = python.is_closed() or _is_of_ngc(target)
        mirror_sentence = indexes.mirror_sentence(uv=self._wish.tool == "uv", elsewhere=apart)
        if offer.is_default and mirror_sentence is not None:
            self._notes.append(mirror_sentence)

        wanted = (*self._companions, *python.torch_family())
        self._notes.extend(companion_doubts(offer, wanted, self._tables))
        return requirement(
            offer, wanted, self._tables, indexes, name_index=False, others=self._chosen(offer)
        )


def _uv_commands(
    arguments: Sequence[str], python: "Python", executable: str, build: str
) -> tuple[str, ...]:
    from gpucheck.advice.target_python import for_uv  # noqa: PLC0415

    if not executable:
        return (python.quoted(["uv", "pip", *for_uv(arguments)]),)
    if python.is_closed():
        return (
            python.quoted(["uv", "venv", "--python", executable, "gpu-env"]),
            python.quoted(["uv", "pip", "install", "--python", "gpu-env", *for_uv(arguments[1:])]),
        )
    return (*python.remove_torch(build), python.pip(*arguments))


def _is_newer(left: "Offer", right: "Offer") -> bool:
    from gpucheck.tables.versions import numbers  # noqa: PLC0415

    return numbers(left.torch) > numbers(right.torch)


def _is_of_ngc(snapshot: "Snapshot") -> bool:
    """Whether NVIDIA built the installed torch for its images: ``2.6.0a0+ecf3bae40a.nv25.01``."""
    from gpucheck.facts.system import Container  # noqa: PLC0415
    from gpucheck.facts.torch import TorchBuild  # noqa: PLC0415

    local = (snapshot.get(TorchBuild).version or "").partition("+")[2]
    return ".nv" in local and bool(snapshot.get(Container).runtime)


def _fits(build: "Offer", *, newest: bool, wrong: Sequence[str]) -> str:
    """Say that the installed build fits; ``wrong`` is what a check finds all the same."""
    if build.cuda:
        what = say(
            "PyTorch {torch}, built for CUDA {cuda} ({build})",
            torch=build.torch, cuda=build.cuda, build=build.build,
        )  # fmt: skip
    else:
        what = say("PyTorch {torch}, the CPU build", torch=build.torch)
    if wrong:
        return say(
            "Your build fits: {build}. However, something else needs attention: {slug} (gpucheck "
            "shows it).",
            build=what, slug=wrong[0],
        )  # fmt: skip
    if newest:
        return say(
            "Your build fits: {build}. It is the newest that does, so nothing needs to be "
            "installed.",
            build=what,
        )
    return say("Your build fits: {build}. Nothing needs to be installed.", build=what)


def _wheels_for(board: "JetpackRow", tables: "Tables") -> str:
    """Return which PyTorch was made for a JetPack."""
    from gpucheck.tables.jetson import JetsonWheels  # noqa: PLC0415

    wheels = tables.get(JetsonWheels).for_l4t(board.l4t)
    if not wheels:
        return say(
            "The tables know no PyTorch that was made for JetPack {jetpack}.", jetpack=board.jetpack
        )
    made = [
        say("{torch} (Python {python})", torch=row.torch, python=row.python)
        if row.python
        else row.torch
        for row in wheels
    ]
    return say(
        "For JetPack {jetpack} NVIDIA made torch {releases}.",
        jetpack=board.jetpack,
        releases=in_series(made),
    )
