"""NumPy 2 is installed with a PyTorch that was compiled for NumPy 1.

NumPy 2 changed its binary interface (ABI). PyTorch releases before 2.3 (on Windows before 2.4.1)
were compiled against NumPy 1 and do not work with NumPy 2.

Symptoms: "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.x as it may crash"
and "UserWarning: Failed to initialize NumPy: _ARRAY_API not found" on import, then "RuntimeError:
Numpy is not available" from ``tensor.numpy()`` or ``torch.from_numpy()``.

Everything that does not use NumPy continues to work, including GPUs, so this is a warning.

Fix: install ``numpy<2``, or a newer PyTorch.
"""

from gpucheck.advice import Python, TorchFixes
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import System
from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import say
from gpucheck.tables.torch import TorchReleases

RULE = Rule(
    __name__,
    title=say("NumPy 2 with a PyTorch made for NumPy 1"),
    severity=Severity.WARNING,
    family="torch",
    suppressed_by=("torch-mixed-install",),
    compat_keys=("numpy",),
)


@RULE.check
def check(
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
                    "Or upgrade to PyTorch {release} or newer, which works with NumPy 2: {command} "
                    "shows how.",
                    release=newer,
                    command=python.recommend("--torch", f">={newer}"),
                ),
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
