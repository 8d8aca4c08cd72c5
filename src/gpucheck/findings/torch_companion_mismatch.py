"""torchvision, torchaudio or torchtext was built for another PyTorch than the one installed."""

from typing import NamedTuple

from gpucheck.advice import Python, TorchFixes
from gpucheck.advice.package_indexes import names_its_build
from gpucheck.advice.target_python import COMPANIONS
from gpucheck.derived.extensions import ExtensionPackages
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.torch import Distribution, Interpreter, Packages, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.extension_faults import ExtensionFaults, Fault
from gpucheck.language import Sentence, in_series, say
from gpucheck.tables.companions import Package, PinRow, TorchCompanions
from gpucheck.tables.versions import minor, released

RULE = Rule(
    "torch-companion-mismatch",
    page="""\
torchvision, torchaudio or torchtext was built for another PyTorch than the one installed.

These packages contain compiled code that fits only the PyTorch release (and CUDA major release) it
was built with.

Symptoms: "RuntimeError: operator torchvision::nms does not exist", "undefined symbol" on import,
"Couldn't load custom C++ ops", "Could not run 'torchvision::nms' with arguments from the 'CUDA'
backend" (a CPU build of torchvision with a CUDA build of torch), or "PyTorch and torchvision were
compiled with different CUDA major versions".

Causes: only torch was upgraded, or the two were installed from different indexes.

When it is reported: the package's own requirement of torch in its metadata decides; the table of
releases is used only if this requirement is unknown. A package that states no requirement
(torchaudio from 2.11 on uses only PyTorch's stable interface) is never blamed for its version. A
pair that differs only in the patch release is a warning: it usually works, and it does not count as
the answer to a pasted text. On Linux gpucheck also examines the compiled files, without importing
anything. If they need symbols or libraries of PyTorch that this torch does not have, they do not
belong to it, whatever the versions say.

Fix: install the release that belongs to your torch, from the same index as torch.
""",
    title=say("torchvision, torchaudio or torchtext does not belong to this PyTorch"),
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=("torch-mixed-install",),
    compat_keys=("torchvision", "torchaudio"),
)

_NAMES = (*COMPANIONS, "torchtext")


class _Complaint(NamedTuple):
    """What is wrong with a package beside this torch, and how bad that is."""

    of: Distribution
    why: str
    severity: Severity


@RULE.check
def check(
    torch: TorchBuild,
    packages: Packages,
    interpreter: Interpreter,
    companions: TorchCompanions,
    python: Python,
    reinstall: TorchFixes,
    compiled: ExtensionPackages,
    faults: ExtensionFaults,
) -> Judgement:
    """Compare each companion's requirement, CUDA and symbols with torch's."""

    def fix(distribution: Distribution) -> Fix:
        if python.is_closed() and "conda" not in (distribution.installer, torch.installer):
            return reinstall.new_environment(say("Use releases that belong together."))
        return _fix(distribution, torch, version, companions, interpreter, python, reinstall)

    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    known(packages.distributions, "packages.distributions")
    found = [companion for name in _NAMES if (companion := packages.find(name)) is not None]
    if not found:
        return NotApplicable(say("no torchvision, torchaudio or torchtext is installed"))
    version = known(torch.version, "torch.version")
    complaints, open_question = _complaints(found, torch, version, companions)
    worst = min(
        complaints, key=lambda complaint: complaint.severity is not Severity.ERROR, default=None
    )
    by_files = None
    if worst is None or worst.severity is not Severity.ERROR:
        by_files = _by_files(found, compiled, faults)
    if by_files is not None:
        companion, fault = by_files
        return Hit(
            headline=say(
                "{package} {version} {fault}",
                package=companion.project,
                version=companion.version,
                fault=fault.words,
            ),
            evidence=(*fault.evidence, "torch.version"),
            fixes=(fix(companion),),
            confidence=fault.confidence,
        )
    if worst is not None:
        at = (packages.distributions or []).index(worst.of)
        certain = worst.severity is Severity.ERROR
        return Hit(
            headline=worst.why,
            evidence=("torch.version", f"packages.distributions.{at}"),
            fixes=(fix(worst.of),),
            severity=worst.severity,
            confidence=Confidence.CERTAIN if certain else Confidence.POSSIBLE,
            rows=((f"packages.distributions.{at}", row),)
            if (row := _row(worst.of, companions)) is not None
            else (),
        )
    if open_question is not None:
        raise open_question
    names = in_series([f"{distribution.project} {distribution.version}" for distribution in found])
    return Fine(say("built for torch {version}: {names}", version=version, names=names))


def _complaints(
    found: list[Distribution], torch: TorchBuild, version: str, companions: TorchCompanions
) -> tuple[list[_Complaint], UnknownFactError | None]:
    """Return what is wrong with the packages, and the first question that is open."""
    complaints, open_question = [], None
    for distribution in found:
        try:
            complaint = _complaint(distribution, torch, version, companions)
        except UnknownFactError as unknown:
            open_question = unknown
            continue
        if complaint is not None:
            complaints.append(complaint)
    return complaints, open_question


def _complaint(
    distribution: Distribution, torch: TorchBuild, version: str, companions: TorchCompanions
) -> _Complaint | None:
    """Return what is wrong with the pair, the worse fault if there are two."""
    agrees, wanted = _agrees(distribution, version, companions)
    why = say(
        "{package} {version} was made for torch {wanted}, not {installed}",
        package=distribution.project,
        version=distribution.version,
        wanted=wanted,
        installed=version,
    )
    if agrees is False and minor(_plain(wanted)) != minor(_plain(version)):
        return _Complaint(distribution, why, Severity.ERROR)
    variant = _other_variant(distribution, torch)
    if variant:
        return _Complaint(distribution, variant, Severity.ERROR)
    if agrees is False:
        return _Complaint(distribution, why, Severity.WARNING)
    if agrees is None:
        raise UnknownFactError(
            "packages.distributions",
            say(
                "it is not known which torch {package} {version} was made for",
                package=distribution.project,
                version=distribution.version,
            ),
        )
    return None


def _by_files(
    found: list[Distribution], compiled: ExtensionPackages, faults: ExtensionFaults
) -> tuple[Distribution, Fault] | None:
    """Return the first package whose compiled files cannot be loaded; None if none is known."""
    try:
        packages = {package.name: package for package in compiled.all()}
    except UnknownFactError:
        return None
    for distribution in found:
        package = packages.get(distribution.project or "")
        fault = faults.of(package) if package is not None else None
        if fault is not None and not fault.of_system:
            return distribution, fault
    return None


def _agrees(
    distribution: Distribution, version: str, companions: TorchCompanions
) -> tuple[bool | None, str]:
    """Return whether the requirement of the package is met, and which torch it wants."""
    wanted = distribution.torch_requirement
    if wanted == "":
        return True, ""
    if wanted is None:
        package = _package(distribution)
        if package is None or not distribution.version:
            return None, ""
        pin = companions.pin(package, distribution.version)
        return companions.agrees(package, distribution.version, version), (pin or "").lstrip("=")
    if wanted.startswith("==") and _plain(wanted[2:]) == _plain(version):
        return True, wanted[2:]
    return _satisfies(version, wanted), wanted.removeprefix("==")


def _row(distribution: Distribution, companions: TorchCompanions) -> PinRow | None:
    """Return what the table says of a package; None if its own metadata has said it."""
    package = _package(distribution)
    if distribution.torch_requirement is not None or package is None or not distribution.version:
        return None
    return companions.made_for(package, distribution.version)


def _satisfies(version: str, requirement: str) -> bool | None:
    """Whether a release meets a requirement; None for development builds."""
    if released(version) is None:
        return None
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415

    try:
        return SpecifierSet(requirement).contains(_plain(version))
    except ValueError:  # no specifier, or a number that is too long for Python to convert
        return None


def _other_variant(distribution: Distribution, torch: TorchBuild) -> str:
    """Return what is wrong with the package's CUDA, according to its local version."""
    local = (distribution.version or "").partition("+")[2]
    if local.startswith("rocm") and torch.built_for == "cuda":
        return say(
            "{package} {version} is built for ROCm, but torch {torch} for CUDA",
            package=distribution.project,
            version=distribution.version,
            torch=torch.version,
        )
    if local.startswith("cu") and torch.built_for == "rocm":
        return say(
            "{package} {version} is built for CUDA, but torch {torch} for ROCm",
            package=distribution.project,
            version=distribution.version,
            torch=torch.version,
        )
    if local == "cpu" and torch.built_for == "cuda" and distribution.project == "torchvision":
        return say(
            "torchvision {version} is a CPU build, but torch {torch} is built for CUDA {cuda}",
            version=distribution.version,
            torch=torch.version,
            cuda=torch.cuda,
        )
    cuda = minor(local)
    if cuda is None:
        return ""
    if torch.built_for == "cpu":
        return say(
            "{package} {version} is built for CUDA {cuda}, but torch is a CPU build",
            package=distribution.project,
            version=distribution.version,
            cuda=cuda,
        )
    if torch.built_for == "cuda" and torch.cuda and torch.cuda.split(".")[0] != cuda.split(".")[0]:
        return say(
            "{package} {version} is built for CUDA {cuda}, but torch for CUDA {wanted}",
            package=distribution.project,
            version=distribution.version,
            cuda=cuda,
            wanted=torch.cuda,
        )
    return ""


def _fix(  # what a command for one package is made of
    distribution: Distribution,
    torch: TorchBuild,
    version: str,
    companions: TorchCompanions,
    interpreter: Interpreter,
    python: Python,
    reinstall: TorchFixes,
) -> Fix:
    package = _package(distribution)
    right = companions.companion_for(version, package) if package else None
    name = distribution.project or ""
    if right is None:
        return Fix(
            text=say(
                "Remove {name}, or replace it with the release that was made for torch {version}.",
                name=name,
                version=version,
            ),
            commands=(*python.get_pip(), python.pip("uninstall", "-y", name)),
            verify=python.verify(),
        )
    if "conda" in (distribution.installer, torch.installer) and interpreter.prefix:
        return Fix(
            text=say("Let conda install the {name} that belongs to your torch.", name=name),
            commands=(
                python.quoted(["conda", "install", "-p", interpreter.prefix, f"{name}={right}"]),
            ),
            verify=python.verify(),
        )
    local = version.partition("+")[2]
    index = reinstall.index_of(local, version) if _is_index(local) else ()
    by_build = bool(index) and names_its_build(version) and package == "torchvision"
    return Fix(
        text=_install(name, right, version, again=right == _plain(distribution.version or "")),
        commands=(
            *python.get_pip(),
            python.pip("uninstall", "-y", name),
            python.pip("install", f"{name}=={right}" + f"+{local}" * by_build, *index),
        ),
        verify=python.verify(),
    )


def _install(name: str, right: str, version: str, *, again: bool) -> Sentence:
    """Say which build is installed; ``again``: the installed one is another of this version."""
    if again and _is_index(version.partition("+")[2]):
        return say(
            "Reinstall {name} {right} from the index of torch {version}: the installed build of "
            "this release is for another PyTorch.",
            name=name,
            right=right,
            version=version,
        )
    if again:
        return say(
            "Reinstall {name} {right}: the installed build of this release is for another PyTorch.",
            name=name,
            right=right,
        )
    if _is_index(version.partition("+")[2]):
        return say(
            "Install {name} {right}, which belongs to torch {version}, from the same index.",
            name=name,
            right=right,
            version=version,
        )
    return say(
        "Install {name} {right}, which belongs to torch {version}.",
        name=name,
        right=right,
        version=version,
    )


def _package(distribution: Distribution) -> Package | None:
    return next((name for name in COMPANIONS if name == distribution.project), None)


def _is_index(local: str) -> bool:
    return local in ("cpu", "xpu") or minor(local) is not None or local.startswith("rocm")


def _plain(version: str) -> str:
    return version.partition("+")[0]
