"""One Python finds several things named torch, and imports the wrong one or a mixture."""

from collections.abc import Sequence

from msgspec.structs import replace

from gpucheck.advice import Python, TorchFixes
from gpucheck.advice.recommender import Offer
from gpucheck.advice.torch_again import TorchAgain
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Interpreter, TorchBuild, TorchInstall
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, in_turn, say

RULE = Rule(
    "torch-mixed-install",
    page="""\
One Python finds several things named torch, and imports the wrong one or a mixture.

The kinds, in the order in which gpucheck reports them:

- A file ``torch.py`` or a folder ``torch`` of your own comes before the installed PyTorch on
  ``sys.path``, usually in the folder of your script: "module 'torch' has no attribute 'cuda'", or
  "partially initialized module 'torch' ... (most likely due to a circular import)".
- A zip file with a torch, usually on ``PYTHONPATH``.
- Another PyTorch, in the user site (``~/.local``) or on ``PYTHONPATH``, takes priority over the one
  of the environment: the printed version is not the one that you installed, and torchvision or the
  nvidia-* wheels belong to the other.
- Two installations overwrote each other's files in one place (pip over conda, an interrupted
  upgrade): the version in the files differs from the one in the package's metadata. This causes
  "undefined symbol" and "cannot import name".
- One package has the metadata of two versions (an upgrade that was broken off): ``pip list`` says
  one, and the other is imported. This is a warning.
- Left-overs of a removed installation (``~orch``), about which pip warns "Ignoring invalid
  distribution". They do no harm by themselves, so they are only mentioned; metadata without its
  package is a warning.

A PyTorch further back on ``sys.path`` than the environment's own is never imported; that is fine.

Fix: rename your own file; or remove every installation until none is left, and install once.
""",
    title=say("several things named torch hide each other"),
    severity=Severity.ERROR,
    family="torch",
)

_ENVIRONMENTS = ("conda", "venv", "uv")


@RULE.check
def check(  # the target, its torch, what led there, the fixes
    interpreter: Interpreter,
    torch: TorchBuild,
    system: System,
    python: Python,
    reinstall: TorchFixes,
    again: TorchAgain,
    environment: Environment,
) -> Judgement:
    """Look for shadowed, doubled, overwritten and half-removed installs, in this order."""
    installs = known(torch.installs, "torch.installs")
    packages = [install for install in installs if install.kind == "package"]
    if (own := _own_file_first(torch, installs, packages)) is not None:
        if own.kind == "archive":
            return _in_archive(own, installs, python, environment)
        return _shadowed(own, installs, system, python)
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if (hit := _overwritten(torch, python, reinstall, again)) is not None:
        return hit
    if (hit := _outsider_wins(installs, packages, interpreter, python, environment)) is not None:
        return hit
    if (hit := _recorded_twice(torch, python, reinstall, again)) is not None:
        return hit
    if torch.leftovers:
        return _left_over(torch.leftovers, python)
    known(torch.version, "torch.version")
    known(torch.metadata_version, "torch.metadata_version")
    if len(packages) > 1:
        return Fine(say("another torch is further back on sys.path and is never imported"))
    return Fine(say("there is only one torch"))


def _own_file_first(
    torch: TorchBuild, installs: list[TorchInstall], packages: list[TorchInstall]
) -> TorchInstall | None:
    """Return the file or folder that Python imports instead of PyTorch.

    A folder without ``__init__.py`` does not win over a package further back, so what counts is
    what ``torch.path`` says was found, where it says anything.
    """
    if not installs or installs[0].kind == "package":
        return None
    if torch.path and any(torch.path == package.path for package in packages):
        return None
    if installs[0].kind == "folder" and packages and torch.installed:
        return None
    return installs[0]


def _shadowed(
    own: TorchInstall,
    installs: list[TorchInstall],
    system: System,
    python: Python,
) -> Hit:
    is_file = own.kind == "module"
    path = own.path or "torch.py"
    name = "not_torch.py" if is_file else "not_torch"
    slash = "\\" if system.os == "windows" else "/"
    folder = path.rpartition(slash)[0]
    target = f"{folder}{slash}{name}" if folder else name
    windows = system.os == "windows"
    move = ["ren", path, name] if windows else ["mv", path, target]
    kinds = [install.kind for install in installs]
    rename = (
        say("Rename this file, and change the code that imports it.")
        if is_file
        else say("Rename this folder, and change the code that imports it.")
    )
    then = say("PyTorch itself is not installed here: gpucheck then shows the command for it.")
    return Hit(
        headline=_taken_instead(path, kinds, is_file=is_file),
        evidence=(f"torch.installs.{installs.index(own)}",),
        fixes=(
            Fix(
                text=rename if "package" in kinds else in_turn((rename, then)),
                commands=(python.quoted(move),),
            ),
        ),
    )


def _in_archive(
    own: TorchInstall, installs: list[TorchInstall], python: Python, environment: Environment
) -> Hit:
    path = own.path or ""
    by_variable = path in _entries(environment)
    fix = Fix(
        text=say(
            "Remove {path} from the .pth file or program that adds it to sys.path.", path=path
        ),
        verify=python.verify(),
    )
    return Hit(
        headline=say(
            "import torch looks into the archive {path}, which has a torch: Python cannot load "
            "compiled modules from there",
            path=path,
        ),
        evidence=(
            f"torch.installs.{installs.index(own)}",
            *(("environment.variables.PYTHONPATH",) if by_variable else ()),
        ),
        fixes=(_without_entry(path, python, environment) if by_variable else fix,),
    )


def _taken_instead(path: str, kinds: Sequence[str | None], *, is_file: bool) -> str:
    if "package" in kinds:
        if is_file:
            return say(
                "import torch loads the file {path} instead of the installed PyTorch", path=path
            )
        return say(
            "import torch loads the folder {path} instead of the installed PyTorch", path=path
        )
    if is_file:
        return say("import torch loads the file {path} instead of PyTorch", path=path)
    return say("import torch loads the folder {path} instead of PyTorch", path=path)


def _overwritten(
    torch: TorchBuild, python: Python, reinstall: TorchFixes, again: TorchAgain
) -> Hit | None:
    if not torch.version or not torch.metadata_version:
        return None
    public, _, local = torch.version.partition("+")
    if public == torch.metadata_version.partition("+")[0] or local.startswith("git"):
        return None  # an in-place build updates version.py but not the metadata
    fix = reinstall.install(say("first repeat the removal until pip finds no torch"))
    return Hit(
        headline=say(
            "The files of torch are of version {version}, but its metadata says {metadata}: two "
            "installations overwrote each other",
            version=torch.version,
            metadata=torch.metadata_version,
        ),
        evidence=("torch.version", "torch.metadata_version"),
        fixes=(_removing_each(fix or again.once(), python, torch, reinstall.offer()),),
    )


def _outsider_wins(
    installs: list[TorchInstall],
    packages: list[TorchInstall],
    interpreter: Interpreter,
    python: Python,
    environment: Environment,
) -> Hit | None:
    """Report a torch from outside the environment that wins over the environment's own."""
    if len(packages) < 2:  # noqa: PLR2004  # two make a mixture
        return None
    first, others = packages[0], packages[1:]
    prefix = interpreter.prefix
    if prefix and _inside(first.path, prefix):
        return None
    in_user_site = _inside(first.path, interpreter.user_site or "")
    if in_user_site and interpreter.kind not in _ENVIRONMENTS:
        return None  # pip install --user over the system's package: intended
    hidden = [install for install in others if _inside(install.path, prefix)] if prefix else others
    differing = [
        install for install in hidden if install.version and install.version != first.version
    ]
    if first.version is None or not differing:
        if hidden and (first.version is None or any(install.version is None for install in hidden)):
            raise UnknownFactError("torch.installs", say("the version of one of them is unknown"))
        return None
    by_variable = _on_pythonpath(first, environment)
    return Hit(
        headline=_hides(first, differing[0], by_variable=by_variable),
        evidence=(
            *(f"torch.installs.{installs.index(install)}" for install in (first, differing[0])),
            *(("interpreter.prefix",) if prefix else ("interpreter.executable",)),
            *(("environment.variables.PYTHONPATH",) if by_variable else ()),
        ),
        fixes=_keep_one(first, python, environment, in_user_site=in_user_site),
        severity=None if prefix else Severity.WARNING,
    )


def _hides(first: TorchInstall, other: TorchInstall, *, by_variable: bool) -> str:
    if by_variable:
        return say(
            "torch {version} in {path}, which is on PYTHONPATH, hides torch {hidden} in {there}",
            version=first.version,
            path=first.path,
            hidden=other.version,
            there=other.path,
        )
    return say(
        "torch {version} in {path} hides torch {hidden} in {there}",
        version=first.version,
        path=first.path,
        hidden=other.version,
        there=other.path,
    )


def _on_pythonpath(install: TorchInstall, environment: Environment) -> bool:
    """Whether the folder in which a torch lies is an entry of PYTHONPATH."""
    path = (install.path or "").replace("\\", "/")
    return any(path == f"{entry.rstrip('/')}/torch" for entry in _entries(environment))


def _entries(environment: Environment) -> list[str]:
    value = (environment.get("PYTHONPATH") or "").replace(";", ":")
    return [entry for entry in value.split(":") if entry]


def _folder(path: str | None) -> str:
    at = path or ""
    return at[: max(at.rfind("/"), at.rfind("\\"), 0)] or at


def _keep_one(
    first: TorchInstall, python: Python, environment: Environment, *, in_user_site: bool
) -> tuple[Fix, ...]:
    if _on_pythonpath(first, environment):
        return (_without_entry(_folder(first.path), python, environment),)
    if not in_user_site:
        return (
            Fix(
                text=say(
                    "If you want the torch of the environment, remove {folder} from PYTHONPATH, or "
                    "from the module or .pth file that adds it.",
                    folder=_folder(first.path),
                ),
                verify=python.verify(),
            ),
        )
    return (
        Fix(
            text=say(
                "Keep Python's user folder (the user site) out of this environment. Also add the "
                "line to your shell's startup file or your job script."
            ),
            commands=(python.variable("PYTHONNOUSERSITE", "1"),),
            verify=python.verify(),
        ),
        Fix(
            text=say(
                "Or remove the torch of the user site for good. Do it only once: pip removes the "
                "first torch that Python finds, and the second time this would be the torch of the "
                "environment."
            ),
            commands=python.with_user_site(python.pip("uninstall", "-y", "torch")),
            verify=python.verify(),
        ),
    )


def _without_entry(folder: str, python: Python, environment: Environment) -> Fix:
    """Return the fix that takes a folder off PYTHONPATH."""
    value = environment.get("PYTHONPATH") or ""
    separator = ";" if ";" in value else ":"
    rest = [word for word in value.split(separator) if word and word.rstrip("/\\") != folder]
    return Fix(
        text=say(
            "If you want the torch of the environment, take {folder} off PYTHONPATH. Also change "
            "the line that sets it, in your shell's startup file or your job script.",
            folder=folder,
        ),
        commands=(python.variable("PYTHONPATH", separator.join(rest)),),
        verify=python.verify(),
    )


def _recorded_twice(
    torch: TorchBuild, python: Python, reinstall: TorchFixes, again: TorchAgain
) -> Hit | None:
    """Report one package with the metadata of two: pip and others may take the wrong one."""
    versions = torch.recorded
    others = [version for version in versions if version != torch.metadata_version]
    if len(versions) < 2 or not others or not torch.version:  # noqa: PLR2004  # two make a mixture
        return None
    fix = reinstall.install(say("first repeat the removal until pip finds no torch"))
    return Hit(
        headline=say(
            "torch {version} is imported, but there is also metadata of torch {other}: pip may "
            "list, check and remove the wrong one",
            version=torch.version,
            other=others[0],
        ),
        evidence=("torch.version", "torch.leftovers"),
        fixes=(_removing_each(fix or again.once(), python, torch, reinstall.offer()),),
        severity=Severity.WARNING,
    )


def _removing_each(fix: Fix, python: Python, torch: TorchBuild, offer: Offer | None) -> Fix:
    """Return the fix with a removal for each version.

    pip removes one at a time. After a single removal the files are gone and the other version's
    metadata are not, so pip would install nothing: "Requirement already satisfied".
    """
    removal = python.remove_torch(offer.build if offer else "")
    times = max(1, len(torch.recorded))
    commands = [
        again
        for command in fix.commands
        for again in [command] * (times if command in removal else 1)
    ]
    return replace(fix, commands=tuple(commands))


def _left_over(leftovers: list[str], python: Python) -> Hit:
    shown = in_series(leftovers[:3])
    return Hit(
        headline=say("Leftovers of a partly removed torch: {files}", files=shown),
        evidence=("torch.leftovers",),
        fixes=(
            Fix(
                text=say(
                    "Delete {files} from the folder of torch (those whose names start with ~ are "
                    "backups of pip).",
                    files=shown,
                ),
                verify=python.verify(),
            ),
        ),
        severity=Severity.INFO if _are_backups(leftovers) else Severity.WARNING,
    )


def _are_backups(leftovers: list[str]) -> bool:
    """Whether all are backups that pip made before a removal: Python never looks there."""
    names = [path.replace("\\", "/").rpartition("/")[2] for path in leftovers]
    return all(name.startswith("~") for name in names)


def _inside(path: str | None, folder: str) -> bool:
    if not path or not folder:
        return False
    plain, root = (text.replace("\\", "/").rstrip("/") for text in (path, folder))
    return plain == root or plain.startswith(f"{root}/")
