"""Exact commands that install, replace or remove PyTorch in the target interpreter."""

import itertools
from collections.abc import Sequence

from msgspec.structs import replace

from gpucheck.advice.exclusions import lacking, usual_range
from gpucheck.advice.offers import CHANNEL
from gpucheck.advice.package_indexes import PackageIndexes, names_its_build
from gpucheck.advice.pip_requirement import companion_doubts, download, requirement
from gpucheck.advice.recommender import Offer, Recommendation, Recommender, Situation
from gpucheck.advice.situations import MachineFacts, left_aside
from gpucheck.advice.target_python import Python
from gpucheck.advice.torch_again import (
    NewEnvironment,
    build_in_words,
    install_build,
    make_by_conda,
    make_environment,
    use_image_with,
    wheel_of_nvidia,
)
from gpucheck.derived import Derived, Gpu
from gpucheck.derived.wheels import wheel_platform
from gpucheck.facts.claims import Fix
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import Container, System
from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.language import Sentence, in_series, in_turn, say
from gpucheck.tables import OperatingSystem, Tables
from gpucheck.tables.jetson import JetsonWheels
from gpucheck.tables.torch import TorchReleases
from gpucheck.tables.versions import released

START_PAGE = "https://pytorch.org/get-started/locally/"
PREVIOUS_PAGE = "https://pytorch.org/get-started/previous-versions/"
_OLD, _LAST_OLD = 1, 13
"""The releases that projects of their time need: 1.x, up to 1.13."""
_AMPERE = 80  # sm_80, for which every build since 2.0 has code
_MOST_REASONS = 4  # chosen: they are read as one paragraph
_BY_THE_SYSTEM = say(
    "If the system's package manager installed this PyTorch, let it install what belongs to it."
)
_OF_NGC = say(
    "Do not replace the PyTorch of this NGC image by pip: the image pins it, and its other "
    "libraries are built for it."
)


class TorchFixes(Derived):
    """Which torch to install, according to ``recommend``, and the commands that install it."""

    def __init__(  # noqa: PLR0913, PLR0917  # the target, the machine and where builds come from
        self,
        python: Python,
        system: System,
        torch: TorchBuild,
        container: Container,
        facts: MachineFacts,
        packages: Packages,
        indexes: PackageIndexes,
        environment: NewEnvironment,
        tables: Tables,
    ) -> None:
        self._python = python
        self._environment = environment
        self._indexes = indexes
        self._system = system
        self._torch = torch
        self._container = container
        self._facts = facts
        self._packages = packages
        self._tables = tables
        self._recommender = Recommender(tables)
        self._release = (torch.version or "").partition("+")[0]
        self._numbers = released(torch.version)

    def offer(self) -> Offer | None:
        """Return the build to install: of the installed release if one fits, otherwise the newest.

        None if no build is known to fit, or too little is known about the machine.
        """
        found = self._recommended()
        return found.best if found is not None else None

    def install(self, why: str = "") -> Fix | None:
        """Return the fix that replaces torch by a build that fits every GPU and the driver.

        None if no build is known to fit. If no wheel has code for the GPUs, it is conda-forge's
        build in a new environment, if it is not older than the installed one; if only those for
        another Python have it, an environment with this Python.
        """
        found = self._recommended()
        if found is not None and found.elsewhere is not None and self._may_move(found.elsewhere):
            return self._python.new_conda_environment(
                in_turn((found.reasons[0], make_by_conda(found.elsewhere))), found.elsewhere
            )
        if found is not None and self._needs_another_python(found) and not self._is_of_ngc():
            return self._with_another_python()
        if found is None or found.best is None:
            return None
        what, more = self._anew(found.best), self._more(found)
        if self._is_of_ngc():
            return Fix(text=in_turn((use_image_with(what, why), *more, _OF_NGC)))
        text = in_turn((install_build(what, why), *more, *self._mirror_sentences(found.best)))
        return self._installing(text, found.best)

    def _may_move(self, there: Offer) -> bool:
        """Whether a build of conda-forge may replace this environment: nobody is sent back years.

        A desktop's GT 710 beside a PyTorch for the CPU is no fault because of a build of 2023.
        """
        mine, other = self._numbers, released(there.torch)
        return not self._is_of_ngc() and (mine is None or other is None or other >= mine)

    def _installing(self, text: str, offer: Offer) -> Fix:
        """Return the fix that installs a build with the program that its channel is for."""
        if offer.channel != "pip":
            return self._python.install_by_conda(text, offer)
        fix = self._by_pip(text, offer)
        return replace(fix, commands=(*download(offer), *fix.commands))

    def _by_pip(self, text: str, offer: Offer) -> Fix:
        words = self._requirement(offer)
        if self._facts.python() is not None or not self._python.may_keep(offer.build):
            return self._python.install(text, words, build=offer.build)
        # Where the Python is unknown, it may be too old for this release: then nothing is lost.
        mine, family = self._numbers, self._python.torch_family()
        if mine is None and len(family) == 1 and words[2:3] == ["--index-url"] and not offer.index:
            words[1] += f"+{offer.build}"  # this replaces any other build, of the same release too
        elif mine is None or mine == released(offer.torch):
            return self._python.install(text, words, build=offer.build)
        return self._python.install(text, words, remove=False)

    def _anew(self, offer: Offer) -> Sentence:
        """Return the build to install, told apart from the installed one if their numbers agree."""
        local = (self._torch.version or "").partition("+")[2]
        same = self._numbers == released(offer.torch) and self._torch.cuda == offer.cuda
        if not same or local == offer.build or not offer.cuda or offer.channel != "pip":
            return build_in_words(offer)
        return say(
            "PyTorch's own build of {torch} for CUDA {cuda} ({build}) instead of the installed one",
            torch=offer.torch,
            cuda=offer.cuda,
            build=offer.build,
        )

    def instead(self) -> tuple[Fix, ...]:
        """Return what to install instead: for an older driver, or if no project needs the old one.

        The first where the driver is unknown, the second beside a release before 2.0.
        """
        found = self._recommended()
        if found is None or found.best is None or self._is_of_ngc():
            return ()
        if self._needs_another_python(found):
            return ()
        if self._is_old() and names_its_build(found.best.torch):
            return self._or_newest(found.best)
        by_driver = tuple(
            self._installing(
                say(
                    "Or, if the driver is {release} or newer but older than {newer}: install "
                    "{build}.",
                    release=choice.driver,
                    newer=before.driver,
                    build=build_in_words(choice.offer),
                ),
                choice.offer,
            )
            for before, choice in itertools.pairwise(found.by_driver)
        )
        return (*by_driver, *self._or_keep())

    def _or_keep(self) -> tuple[Fix, ...]:
        """Return which old releases have code, where one without a name has none for Ampere."""
        numbers = [whole_number(code.partition("_")[2]) for code in self._torch.arch_list or ()]
        situation = self._facts.situation()
        old = all(number is not None and number < _AMPERE for number in numbers)
        if self._torch.version or not numbers or not old or situation is None:
            return ()
        found = self._recommender.recommend(replace(situation, torch=f"<{_OLD + 1}"))
        if found.best is None:
            return ()
        text = say(
            "If your project needs its old PyTorch, keep the release in a build with code for this "
            "GPU: {offers}. The commands of that time: {page}",
            offers=in_series([str(offer) for offer in (found.best, *found.alternatives)]),
            page=PREVIOUS_PAGE,
        )
        return (Fix(text=text),)

    def _is_old(self) -> bool:
        """Whether the installed release is one before 2.0, which old projects need."""
        return bool(self._torch.installed and self._numbers and self._numbers[0] == _OLD)

    def _or_newest(self, best: Offer) -> tuple[Fix, ...]:
        """Return how to install the newest release instead of an old one."""
        newest = self._newest() if self._facts.python() is not None else None
        if newest is not None and newest.torch == best.torch:
            return ()
        old = ".".join(best.torch.split(".")[:2])
        if newest is None:
            fix = self._environment.with_a_build(
                say("If nothing needs PyTorch {old}, take a newer one.", old=old)
            )
            return (fix,) if fix is not None else ()
        text = say(
            "If nothing needs PyTorch {old}: install {build}.",
            old=old,
            build=build_in_words(newest),
        )
        return (self._installing(text, newest),)

    def _needs_another_python(self, found: Recommendation) -> bool:
        """Whether a build fits this machine only with another Python than the target, or may.

        A Python that is unknown is one of those that the old release has wheels for.
        """
        situation = self._facts.situation()
        if situation is None:
            return False
        if found.best is None:
            if situation.python is None or found.elsewhere is not None:
                return False
            return self._of_release(replace(situation, python=None)).best is not None
        if situation.python is not None or not self._is_old() or found.best.channel != "pip":
            return False
        release = self._tables.get(TorchReleases).pythons(
            self._torch.version or "", situation.platform
        )
        offers = self._recommender.offers(situation.platform)
        return not set(release or ()) <= set(offers.pythons(found.best))

    def install_for(self, limit: str) -> Fix | None:
        """Return the fix that installs a build that a limit of this machine allows.

        None if no build is known to fit. The installed release comes first, in another build.

        Args:
            limit: what excludes the installed build: "the driver you have".
        """
        found, newest = self._recommended(), self._newest()
        if found is not None and self._needs_another_python(found):
            return None  # that is a larger change than what the limit is about
        offer = found.best if found is not None else None
        if offer is None or newest is None or offer.torch == newest.torch:
            return self.install(say("it is the newest that runs on {limit}", limit=limit))
        return self.install(
            say(
                "this build of your release runs on {limit}; the newest release that runs on it is "
                "{newest}",
                limit=limit,
                newest=newest,
            )
        )

    def why_none(self) -> str:
        """Return why no build fits, in sentences; "" if unknown."""
        found = self._recommended()
        if found is None or found.best is not None or not found.reasons:
            return ""
        return in_turn(found.reasons[:_MOST_REASONS])

    def search(self, words: str) -> Fix:
        """Return the fix to search for a build, with the reason why none is named."""
        why = self.why_none()
        return Fix(text=in_turn([words, why]) if why else words)

    def install_cpu(self, why: str) -> Fix | None:
        """Return the fix that installs a CPU build; None if pip has none for this place."""
        if self._facts.without_cpu_wheels() or self._is_of_ngc():
            return None
        offer = self._cpu_offer()
        if offer is not None:
            words = self._requirement(offer)
        else:
            words = ["install", *self._python.torch_family()]
            if self._system.os == "linux":
                words += ["--index-url", self._indexes.of_build("cpu")]
        mirror = self._mirror_sentences(offer) if offer is not None else ()
        text = in_turn((say("Install the CPU build: {why}.", why=why), *mirror))
        return self._python.install(text, words, remove=offer is not None)

    def _cpu_offer(self) -> Offer | None:
        """Return the CPU build of the installed release, or else the newest one that runs here."""
        platform = self._facts.platform()
        if platform is None:
            return None
        place = Situation(platform=platform, python=self._facts.python(), glibc=self._facts.glibc())
        if self._numbers is not None:
            same = self._recommender.recommend(replace(place, torch=self._release))
            if same.best is not None:
                return same.best
        return self._recommender.recommend(place).best

    def new_environment(self, text: str) -> Fix:
        """Return the fix that creates an environment, for a Python that pip may not modify.

        The environment gets a build that fits the machine, the companions that are installed here,
        and a NumPy that works with this build. If no build is known to fit, the fix refers to
        ``recommend``.
        """
        found = self._recommended(without_gpu=True)
        best = found.best if found is not None else None
        inside = self._python.new_python()
        mirror: tuple[Sentence, ...] = ()
        if best is None:
            commands: tuple[str, ...] = (
                *self._python.make_environment(),
                f"gpucheck recommend --python {inside}",
            )
        else:
            commands = (
                *download(best),
                *self._python.new_environment(self._requirement(best, elsewhere=True)),
            )
            mirror = self._mirror_sentences(best, elsewhere=True)
            if self._packages.find("numpy"):
                commands += (self._python.install_there("install", self._numpy_for(best)),)
        return Fix(
            text=in_turn(
                (text, make_environment(best), *mirror, _BY_THE_SYSTEM, self._python.run_there())
            ),
            commands=commands,
            verify=f"gpucheck --python {inside}",
        )

    def of_jetpack(self) -> Fix:
        """Return where a Jetson gets its PyTorch if pip has none, with what the tables know."""
        l4t = self._system.l4t or ""
        rows = self._tables.get(JetsonWheels).for_l4t(l4t)
        return wheel_of_nvidia(l4t, [row.torch for row in rows])

    def or_of_jetpack(self, fix: Fix) -> Fix:
        """Return this fix, which leads to PyTorch's own page, or that of a Jetson on a Jetson."""
        return self.of_jetpack() if self._system.jetson else fix

    def index_of(self, build: str, torch: str) -> tuple[str, str]:
        """Return pip's option that says where a build such as cu126 of a torch is."""
        return self._indexes.options(build, torch)

    def verify(self) -> str:
        """Return the command that shows whether the fix worked."""
        return self._python.verify()

    def is_listed_for(self, gpu: Gpu) -> bool:
        """Whether the build to install was made for this GPU, or has it in its list."""
        offer = self.offer()
        if offer is None or offer.of_board or gpu.compute_capability is None:
            return True
        offers = self._recommender.offers(offer.platform)
        return offer in offers.with_code_for(gpu.compute_capability)

    def has_no_build(self, gpus: Sequence[Gpu]) -> bool:
        """Whether no build of the tables has code for any of these GPUs, whatever the driver."""
        platform = wheel_platform(self._system)
        capabilities = {gpu.compute_capability for gpu in gpus}
        if platform is None or None in capabilities or not capabilities:
            return False
        offers = self._recommender.offers(platform)
        return not any(offers.reaches(capability) for capability in capabilities if capability)

    def _recommended(self, *, without_gpu: bool = False) -> Recommendation | None:
        """Return a build that fits every GPU; None if too little is known or nothing can fit."""
        situation = self._facts.situation()
        if situation is None or self._facts.without_wheels():
            return None
        if not situation.cards and not without_gpu:
            return None
        if self._python.is_of_conda_forge():
            by_conda = self._of_release(
                replace(situation, channel=CHANNEL, companions=self._python.conda_companions())
            )
            if by_conda.best is not None:
                return by_conda
        return self._of_release(situation)

    def _of_release(self, situation: Situation) -> Recommendation:
        """Return the installed build if it fits, else one of its release, else the newest."""
        recommend, release = self._recommender.recommend, self._release
        if self._numbers is not None:
            if self._torch.cuda and situation.channel == "pip":
                build = "cu" + self._torch.cuda.replace(".", "")
                here = recommend(replace(situation, torch=f"{release}+{build}"))
                if here.best is not None:
                    return here
            same = recommend(replace(situation, torch=release))
            if same.best is not None and released(same.best.torch) == self._numbers:
                return same
        if self._is_old() and situation.channel == "pip":
            # The smallest change for a project of that time is the next release of that time.
            for minor in range((*(self._numbers or ()), 0)[1], _LAST_OLD + 1):
                near = recommend(replace(situation, torch=f"{_OLD}.{minor}"))
                if near.best is not None:
                    return near
        return recommend(situation)

    def _with_another_python(self) -> Fix | None:
        python = self._facts.python()
        if python is not None:
            why = say("No build for Python {python} fits this machine.", python=python)
        else:
            why = say(
                "What fits this machine needs a newer Python than PyTorch {release} may have.",
                release=self._release,
            )
        return self._environment.with_a_build(why)

    def _newest(self) -> Offer | None:
        """Return the newest build that fits, whatever release is installed."""
        found, situation = self._recommended(), self._facts.situation()
        if situation is None or found is None or found.best is None:
            return None
        wider = replace(
            situation, channel=found.best.channel, companions=self._python.conda_companions()
        )
        return self._recommender.recommend(wider).best

    def _requirement(self, offer: Offer, *, elsewhere: bool = False) -> list[str]:
        """Return pip's arguments that install this build and the installed companions.

        Without a mirror of PyPI they name the index even if PyPI has this very build, because pip
        may be configured for another one.
        """
        family = self._python.torch_family()
        name_index = not self._mirror_sentences(offer, elsewhere=elsewhere)
        return requirement(offer, family, self._tables, self._indexes, name_index=name_index)

    def _mirror_sentences(self, offer: Offer, *, elsewhere: bool = False) -> tuple[Sentence, ...]:
        """Return the sentence about the mirror that has this build, if one is configured."""
        if not offer.is_default:
            return ()
        apart = elsewhere or self._python.is_closed()
        uv = self._python.by_uv() and not apart
        mirror_sentence = self._indexes.mirror_sentence(uv=uv, elsewhere=apart)
        return () if mirror_sentence is None else (mirror_sentence,)

    def _numpy_for(self, offer: Offer) -> str:
        os: OperatingSystem = "windows" if self._system.os == "windows" else "linux"
        works = self._tables.get(TorchReleases).numpy2(offer.torch, os)
        return "numpy<2" if works is False else "numpy"

    def _more(self, found: Recommendation) -> list[str]:
        """Return what else the user must know: GPUs that are left out, and the required driver."""
        sentences = list(found.left_out)
        mine = self._numbers if self._torch.installed else None
        if mine is not None and found.best is not None and released(found.best.torch) != mine:
            sentences.append(
                say(
                    "gpucheck knows no build of {release} that fits this machine, so {torch} "
                    "replaces it.",
                    release=self._release,
                    torch=found.best.torch,
                )
            )
        gpus = self._facts.gpus()
        if gpus is not None and gpus.unclear:
            sentences.append(left_aside(gpus.unclear))
        if found.oldest_driver and not any(self._facts.driver()):
            sentences.append(
                say("It needs driver {release} or newer.", release=found.oldest_driver)
            )
        if found.best is not None:
            if self._facts.python() is None and found.best.channel == "pip":
                pythons = self._recommender.offers(found.best.platform).pythons(found.best)
                sentences.append(
                    say("It has wheels for Python {python}.", python=usual_range(pythons))
                )
            wanted = self._python.torch_family() if found.best.channel == "pip" else ()
            sentences += companion_doubts(found.best, wanted, self._tables)
            sentences += lacking(found.best)
        return sentences

    def _is_of_ngc(self) -> bool:
        """Whether NVIDIA built this torch for its images: ``2.6.0a0+ecf3bae40a.nv25.01``."""
        local = (self._torch.version or "").partition("+")[2]
        return ".nv" in local and bool(self._container.runtime)  # Jetson's wheels have it too
