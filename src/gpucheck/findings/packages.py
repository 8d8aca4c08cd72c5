"""Packages that require, or were compiled for, another release of a package."""

import msgspec

from gpucheck.advice import Python, TorchFixes
from gpucheck.advice.target_python import COMPANIONS
from gpucheck.derived.wheels import PackagePins, PinConflict
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import System
from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import and_more, say
from gpucheck.tables.companions import ExtensionRow
from gpucheck.tables.companions import Extensions as ExtensionTable
from gpucheck.tables.packages import KnownPackages, is_kept_compatible
from gpucheck.tables.torch import TorchReleases

PACKAGE_PIN_CONFLICT = Rule(
    "package-pin-conflict",
    page="""\
An installed package requires another version of PyTorch, or of a library beside it.

vLLM, xformers, torch-tensorrt, JAX and other packages state in their metadata which releases of
PyTorch, Triton, NumPy or NVIDIA's wheels they were made for. pip respects this when it installs
them. It does not when something else is installed later, or with ``--no-deps``: then it prints
"... requires torch==..., but you have torch ... which is incompatible" and goes on.

Symptoms: undefined symbols, functions that PyTorch no longer has (AttributeError, ImportError), a
kernel that Triton cannot compile, or JAX's "Loaded runtime CuDNN library: ... but source was
compiled with: ...". Many such pairs work nevertheless, so this is a warning.

When it is reported: for packages that have to do with PyTorch or CUDA, as ``pip check`` would.
gpucheck does not count three things as conflicts, although pip does: a newer release of NVIDIA's
CUDA libraries of the same major version, which stays compatible; PyTorch's pre-releases in NVIDIA's
images, which count as the release that they precede; and what conda installed, which keeps
requirements of its own. JAX's requirements of cuDNN count although they belong to an extra, because
JAX uses the wheel wherever it is installed. Packages that are missing are not reported.

The requirements of PyTorch itself belong to nvidia-wheel-mismatch, those of torchvision, torchaudio
and torchtext to torch-companion-mismatch.

Fix: install a release of the package that accepts what is installed, or install what the package
requires.
""",
    title=say("a package needs another version of PyTorch or of a library beside it"),
    severity=Severity.WARNING,
    family="torch",
    suppressed_by=("torch-missing", "torch-mixed-install", "extension-abi-mismatch"),
    compat_keys=("packages",),
    observes=True,
)

_MOST_FACTS = 8  # chosen: the evidence of all conflicts together; the headline counts the rest


@PACKAGE_PIN_CONFLICT.check
def check_package_pin_conflict(  # what the commands of the fix are made of
    torch: TorchBuild,
    pins: PackagePins,
    table: ExtensionTable,
    known_packages: KnownPackages,
    python: Python,
    reinstall: TorchFixes,
) -> Judgement:
    """Compare what each package requires with what is installed."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if not pins.owners():
        return NotApplicable(say("no installed package has requirements of PyTorch or CUDA"))
    found = sorted(
        pins.conflicts(),
        key=lambda conflict: (conflict.is_a_patch_apart, conflict.project != "torch"),
    )
    if not found:
        return Fine(say("the requirements of the other packages are met"))
    first = found[0]
    fixes: tuple[Fix, ...]
    if python.is_closed():
        fixes = (reinstall.new_environment(say("Use releases that belong together.")),)
    elif _is_bound_by_torch(first, torch):
        fixes = _fit(first, torch, python, table, known_packages)
    else:
        fixes = (_replace(first, pins, torch, python),)
    return Hit(
        headline=and_more(first.words, len(found) - 1),
        evidence=tuple(dict.fromkeys(fact for conflict in found for fact in conflict.facts))[
            :_MOST_FACTS
        ],
        fixes=fixes,
        confidence=Confidence.POSSIBLE if first.is_a_patch_apart else Confidence.LIKELY,
        rows=tuple(
            (conflict.facts[0], row)
            for conflict in found
            if (row := _row(conflict, table)) is not None
        ),
    )


def _row(conflict: PinConflict, table: ExtensionTable) -> ExtensionRow | None:
    """Return the row of the release, if the requirement is the one that the row has."""
    owner, project = conflict.owner, conflict.project
    row = table.release(owner.project or "", owner.version or "")
    if row is None:
        return None
    listed = row.torch if project == "torch" else row.requires.get(project)
    return row if listed == conflict.specifier else None


def _is_bound_by_torch(conflict: PinConflict, torch: TorchBuild) -> bool:
    """Whether it is torch, or something of which torch cannot do with another version."""
    if conflict.project in ("torch", *COMPANIONS):
        return True
    return conflict.project in (torch.pins or {}) and not is_kept_compatible(conflict.project)


def _fit(
    conflict: PinConflict,
    torch: TorchBuild,
    python: Python,
    table: ExtensionTable,
    known_packages: KnownPackages,
) -> tuple[Fix, ...]:
    """Return how to fit the package to torch, and how to fit torch to the package."""
    name, version = conflict.owner.project or "", conflict.owner.version or ""
    here = f"torch=={torch.version}"
    fitting = table.for_torch(name, torch.version or "") if conflict.project == "torch" else ()
    if fitting:
        other = _fix(
            python,
            say(
                "Install {name} {fitting}, which accepts torch {version}.",
                name=name,
                fitting=fitting[-1],
                version=torch.version,
            ),
            f"{name}=={fitting[-1]}",
            here,
        )
    else:
        other = _fix(python, _let_pip_look(conflict, name, torch.version), "--upgrade", name, here)
    keep = _fix(
        python,
        say(
            "To keep {name} {version}, let pip install the {required} that it requires. If "
            "something else needs {required} {installed}, do this in a separate environment.",
            name=name,
            version=version,
            required=conflict.project,
            installed=conflict.installed,
        ),
        f"{name}=={version}",
        f"{conflict.project}{conflict.specifier}",
    )
    row = known_packages.known(name)
    first, second = (keep, other) if row is not None and row.application else (other, keep)
    return first, or_else(second)


def _let_pip_look(conflict: PinConflict, name: str, torch: str | None) -> str:
    if conflict.project != "torch":
        return say(
            "Let pip look for a release of {name} that is compatible with torch {version}. pip "
            "says so if there is none.",
            name=name,
            version=torch,
        )
    return say(
        "gpucheck knows no release of {name} that accepts torch {version}. Let pip look for one. "
        "pip says so if there is none.",
        name=name,
        version=torch,
    )


def _replace(conflict: PinConflict, pins: PackagePins, torch: TorchBuild, python: Python) -> Fix:
    wanted = f"{conflict.project}{pins.required_of(conflict.project)}"
    if conflict.project not in (torch.pins or {}):
        text = say(
            "Install the {required} that {owner} and the other packages here require. If no "
            "release suits all of them, pip says so.",
            required=conflict.project,
            owner=conflict.owner.project,
        )
        return _fix(python, text, wanted)
    text = say(
        "Install the {required} that {owner} requires. pip then prints an ERROR, because torch "
        "pins another release, but has installed it. Ignore that: torch works with any newer "
        "release of the same major version.",
        required=conflict.project,
        owner=conflict.owner.project,
    )
    return msgspec.structs.replace(_fix(python, text, wanted), verify=python.verify())


def _fix(python: Python, text: str, *words: str) -> Fix:
    return Fix(
        text=text,
        commands=(*python.get_pip(), python.pip("install", *words)),
        verify=python.pip("check"),
    )


NUMPY_ABI_MISMATCH = Rule(
    "numpy-abi-mismatch",
    page="""\
NumPy 2 is installed with a PyTorch that was compiled for NumPy 1.

NumPy 2 changed its binary interface (ABI). PyTorch releases before 2.3 (on Windows before 2.4.1)
were compiled against NumPy 1 and do not work with NumPy 2.

Symptoms: "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.x as it may crash"
and "UserWarning: Failed to initialize NumPy: _ARRAY_API not found" on import, then "RuntimeError:
Numpy is not available" from ``tensor.numpy()`` or ``torch.from_numpy()``.

Everything that does not use NumPy continues to work, including GPUs, so this is a warning.

Fix: install ``numpy<2``, or a newer PyTorch.
""",
    title=say("NumPy 2 with a PyTorch made for NumPy 1"),
    severity=Severity.WARNING,
    family="torch",
    suppressed_by=("torch-mixed-install",),
    compat_keys=("numpy",),
)


@NUMPY_ABI_MISMATCH.check
def check_numpy_abi_mismatch(
    torch: TorchBuild,
    packages: Packages,
    system: System,
    releases: TorchReleases,
    python: Python,
    reinstall: TorchFixes,
) -> Judgement:
    """Look for NumPy 2 beside a torch that is known not to work with it."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    known(packages.distributions, "packages.distributions")
    numpy = packages.find("numpy")
    if numpy is None:
        return NotApplicable(say("NumPy is not installed"))
    at = (packages.distributions or []).index(numpy)
    version = known(numpy.version, f"packages.distributions.{at}.version")
    if (whole_number(version.partition(".")[0]) or 0) < 2:  # noqa: PLR2004  # NumPy 2
        return Fine(say("NumPy {version} is older than 2", version=version))
    os = known(system.os, "system.os")
    if os not in ("linux", "windows"):
        return NotApplicable(say("the table of PyTorch releases is about Linux and Windows"))
    if torch.installer == "conda":
        return NotApplicable(say("conda rebuilds PyTorch for its own NumPy"))
    release = known(torch.version, "torch.version")
    works = releases.numpy2(release, "windows" if os == "windows" else "linux")
    if works is None:
        raise UnknownFactError(
            "torch.version",
            say("whether torch {release} works with NumPy 2 is not known", release=release),
        )
    if works:
        return Fine(
            say("torch {release} works with NumPy {version}", release=release, version=version)
        )
    newer = releases.first_with_numpy2("windows" if os == "windows" else "linux")
    return Hit(
        headline=say(
            "NumPy {version} is installed, but torch {release} was compiled for NumPy 1: .numpy() "
            "and torch.from_numpy() fail",
            version=version,
            release=release,
        ),
        evidence=("torch.version", f"packages.distributions.{at}.version"),
        fixes=(
            _older_numpy(python, reinstall),
            Fix(
                text=say(
                    "If your programs need NumPy 2, install PyTorch {release} or newer instead. "
                    "This command shows how.",
                    release=newer,
                ),
                commands=(python.recommend("--torch", f">={newer}"),),
            ),
        ),
    )


def _older_numpy(python: Python, reinstall: TorchFixes) -> Fix:
    text = say("Install a NumPy version that this PyTorch supports.")
    if python.is_closed():
        return reinstall.new_environment(text)
    return Fix(
        text=text,
        commands=(*python.get_pip(), python.pip("install", "numpy<2")),
        verify=python.command("-c", "import torch; print(torch.ones(1).numpy())"),
    )
