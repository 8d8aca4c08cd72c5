"""Wheels: the platforms that have them, those that torch pins, and pins that exclude each other."""

import msgspec

from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.base import Derived
from gpucheck.facts.libraries import Extensions
from gpucheck.facts.system import System
from gpucheck.facts.torch import Distribution, Packages, PinnedWheel, TorchBuild
from gpucheck.language import say
from gpucheck.tables.companions import Extensions as ExtensionTable
from gpucheck.tables.companions import major_of
from gpucheck.tables.packages import is_kept_compatible
from gpucheck.tables.versions import at_least, compare, parse, released

# The platforms for which PyTorch has wheels.


def wheel_platform(system: System) -> str | None:
    """Return the platform as in the table of builds; None if torch has no CUDA there.

    "windows" is Windows on x86_64. For Windows on Arm NVIDIA publishes builds, PyTorch none.
    """
    if system.os == "windows" and (system.machine or "").lower() in ("arm64", "aarch64"):
        return "windows_aarch64"
    if system.os == "windows" and system.machine in ("x86_64", "AMD64", None):
        return "windows"
    if system.os == "linux" and system.machine in ("x86_64", "aarch64") and not system.jetson:
        return f"linux_{system.machine}"
    return None


# Whether an installed wheel is the one that torch pins.

_SIGNS = ("==", "~=", "!=", "<=", ">=", "<", ">")  # the longer signs first: "<" also begins "<="


def pinned_wheel(
    project: str, specifier: str, installed: str, sources: dict[str, str]
) -> PinnedWheel:
    """Compare the installed version of a wheel, "" if it is not installed, with torch's pin."""
    fits = meets(specifier, installed) if installed else None
    missing = not installed
    problems: dict[str, str] = (
        {}
        if missing or fits is not None
        else {"state": say("{specifier} is not understood", specifier=specifier)}
    )
    return PinnedWheel(
        project=project,
        specifier=specifier,
        installed=installed,
        state="missing" if missing else None if fits is None else "ok" if fits else "other-version",
        sources=sources,
        problems=problems,
    )


def meets(specifier: str, version: str) -> bool | None:
    """Return whether a version meets a specifier such as ``<14,>=13.2.86`` or ``==13.2.86.*``.

    None if either is not purely numeric, unless the two are the same text.
    """
    answers = [_meets(part, version) for part in specifier.split(",") if part]
    if False in answers:
        return False
    return None if None in answers else True


def _meets(part: str, version: str) -> bool | None:
    operator = next((sign for sign in _SIGNS if part.startswith(sign)), "")
    wanted = part.removeprefix(operator)
    if operator == "==" and wanted == version:
        return True
    have, want = parse(version.partition("+")[0]), parse(wanted.removesuffix(".*"))
    if have is None or want is None or not operator or ("*" in wanted and operator != "=="):
        return None
    if wanted.endswith(".*"):
        return (*have, *(0,) * len(want))[: len(want)] == want
    if operator == "~=":
        return at_least(have, want) and (*have, *(0,) * len(want))[: len(want) - 1] == want[:-1]
    order = compare(have, want)
    return {
        "==": order == 0,
        "!=": order != 0,
        "<=": order <= 0,
        ">=": order >= 0,
        "<": order < 0,
        ">": order > 0,
    }[operator]


# Installed packages whose metadata excludes the version of something else that is installed.

_COMPANIONS = ("torchvision", "torchaudio", "torchtext")


class PinConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement that what is installed does not meet."""

    owner: Distribution
    project: str
    """What it requires."""
    specifier: str
    installed: str
    facts: tuple[str, ...]

    @property
    def words(self) -> str:
        """The conflict as a clause."""
        return say(
            "{owner} {version} requires {project}{specifier}, but {project} {installed} is "
            "installed",
            owner=self.owner.project,
            version=self.owner.version,
            project=self.project,
            specifier=self.specifier,
            installed=self.installed,
        )

    @property
    def is_a_patch_apart(self) -> bool:
        """Whether exactly one release is required, and the installed one differs in its patch."""
        wanted = released(self.specifier.removeprefix("=="))
        have = released(self.installed)
        return None not in (wanted, have) and (wanted or ())[:2] == (have or ())[:2]


class PackagePins(Derived):
    """Compares the requirements of the installed packages with what is installed.

    Requirements that have findings of their own are left out: those of torch itself, and those that
    torchvision, torchaudio and torchtext have of torch.
    """

    def __init__(self, packages: Packages, torch: TorchBuild) -> None:
        self._packages = packages
        self._torch = torch
        self._first: dict[str | None, tuple[int, Distribution]] = {}
        """What an import would take of each project, and its place."""
        for at, distribution in enumerate(packages.distributions or ()):
            self._first.setdefault(distribution.project, (at, distribution))

    def owners(self) -> list[tuple[int, Distribution]]:
        """Return the packages that are judged, each as an import would take it.

        conda keeps requirements of its own, which may be wider than those in the metadata.

        Raises:
            UnknownFactError: the installed packages are unknown.
        """
        found = known(self._packages.distributions, "packages.distributions")
        return [
            (at, distribution)
            for at, distribution in enumerate(found)
            if self._first.get(distribution.project or "", (-1,))[0] == at
            and distribution.requirements is not None
            and distribution.project != "torch"
            and distribution.installer != "conda"
        ]

    def conflicts(self) -> list[PinConflict]:
        """Return the requirements that are not met, in the order of the packages."""
        return [
            conflict
            for at, owner in self.owners()
            for project, specifier in (owner.requirements or {}).items()
            if (conflict := self._conflict(at, owner, project, specifier)) is not None
        ]

    def required_of(self, project: str) -> str:
        """Return all that the packages, except torch, require of a project, as one specifier."""
        parts: dict[str, None] = {}
        for _, owner in self.owners():
            for part in (owner.requirements or {}).get(project, "").split(","):
                if part:
                    parts[part] = None
        return ",".join(parts)

    def _conflict(
        self, at: int, owner: Distribution, project: str, specifier: str
    ) -> PinConflict | None:
        if project == "torch" and owner.project in _COMPANIONS:
            return None
        version, fact = self._installed(project)
        if not version or admits(specifier, version) is not False:
            return None
        if is_kept_compatible(project) and _is_newer_of_same_major(version, specifier):
            return None
        return PinConflict(
            owner=owner,
            project=project,
            specifier=specifier,
            installed=version,
            facts=(f"packages.distributions.{at}.requirements.{project}", fact),
        )

    def _installed(self, project: str) -> tuple[str, str]:
        """Return the version of a project and the fact that has it; "" if it is not installed."""
        if project == "torch" and self._torch.version:
            return self._torch.version, "torch.version"
        at, found = self._first.get(project, (0, None))
        if found is None or found.installer == "conda":
            return "", ""
        return found.version or "", f"packages.distributions.{at}.version"


def admits(specifier: str, version: str) -> bool | None:
    """Return whether a specifier admits a version; None if either cannot be parsed.

    A pre-release build that somebody made counts as that release, too: NVIDIA's images call their
    PyTorch 2.6.0a0, and it has what 2.6.0 has.
    """
    plain = version.partition("+")[0]
    answer = meets(specifier, plain) if "+" not in specifier else None
    if answer is not None:
        return answer
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415
    from packaging.version import Version  # noqa: PLC0415

    try:
        accepted, parsed = SpecifierSet(specifier), Version(version)
        return accepted.contains(parsed, prereleases=True) or (
            parsed.is_prerelease and accepted.contains(parsed.base_version)
        )
    except ValueError:  # neither is a version, or a number is too long for Python to convert
        return None


def _is_newer_of_same_major(version: str, specifier: str) -> bool:
    """Whether it is newer than every bound, and of their major release."""
    have = parse(version)
    bounds = [parse(part.lstrip("=~<>!").removesuffix(".*")) for part in specifier.split(",")]
    return have is not None and all(
        bound is not None and bound[0] == have[0] and bound <= have for bound in bounds
    )


# Whether the wheel that PyPI has of a release is for the CUDA of torch.


class OtherCuda(msgspec.Struct, frozen=True, kw_only=True):
    """A release whose wheel on PyPI is for another CUDA major than the installed torch."""

    package: str
    version: str
    cuda: str
    platform: str
    fact: str


class WheelsOfPypi(Derived):
    """Judges installed releases by what the tables say about their wheels on PyPI.

    Only where nobody has seen their files, which say what they need.
    """

    def __init__(
        self,
        packages: Packages,
        extensions: Extensions,
        torch: TorchBuild,
        system: System,
        table: ExtensionTable,
    ) -> None:
        self._packages = packages
        self._extensions = extensions
        self._torch = torch
        self._system = system
        self._table = table

    def for_other_cuda(self) -> OtherCuda | None:
        """Return the first release for another CUDA; None if none is known.

        Raises:
            UnknownFactError: PyTorch's index has another wheel under the very same version.
        """
        platform, cuda = wheel_platform(self._system), (self._torch.cuda or "").partition(".")[0]
        seen = self._extensions.extensions is not None
        if seen or platform is None or not cuda or self._torch.installer == "conda":
            return None
        for at, found in enumerate(self._packages.distributions or ()):
            package, version = found.project or "", found.version or ""
            row = self._table.wheel(package, version, platform)
            if row is None or "+" in version or found.installer == "conda":
                continue
            if row.pypi_build is None or not row.is_for_other_cuda_on_pypi(cuda):
                continue
            fact = f"packages.distributions.{at}"
            theirs = major_of(row.pypi_build)
            if row.build_for(cuda) and not row.named_by_build:
                raise UnknownFactError(
                    fact,
                    say(
                        "{package} {version} of PyPI is for CUDA {theirs}, that of PyTorch's index "
                        "for CUDA {cuda} as well, and the version does not tell them apart",
                        package=package,
                        version=version,
                        theirs=theirs,
                        cuda=cuda,
                    ),
                )
            return OtherCuda(
                package=package, version=version, cuda=theirs, platform=platform, fact=fact
            )
        return None
