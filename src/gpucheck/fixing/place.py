"""Where the packages of the target are, and whether this user may change them."""

import os
from pathlib import Path

import click
import msgspec

from gpucheck import _about
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, Kind
from gpucheck.language import Sentence, say

_HOME = ".gpucheck"
_OF_THE_SYSTEM = "/usr"
_OWN_ENVIRONMENTS = ("venv", "uv", "conda")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """An environment: its Python, the folders that its packages are in, and that of our states."""

    python: str
    prefix: str
    packages: tuple[str, ...]
    scripts: str
    """The folder of its programs; "" where others are in it, too."""
    home: str
    kind: Kind
    windows: bool = False
    holds_gpucheck: bool = False
    """Whether packages that gpucheck itself uses are in it."""


class RefusedPlaceError(Exception):
    """Nothing may be changed here; the message is one sentence for the user."""


def place_of(snapshot: Snapshot) -> Place:
    """Return where the target has its packages.

    Raises:
        RefusedPlaceError: the target may not be changed.
    """
    target = snapshot.get(Interpreter)
    if target.status != "ok" or not target.executable or not target.prefix or not target.kind:
        raise RefusedPlaceError(say("It is not known where this Python has its packages."))
    if target.externally_managed is not False:
        raise RefusedPlaceError(
            say(
                "Another program manages this Python, so gpucheck changes nothing in it. Create a "
                "virtual environment."
            )
        )
    prefix = os.path.realpath(target.prefix)
    return _checked(target, prefix, windows=snapshot.get(System).os == "windows")


def _checked(target: Interpreter, prefix: str, *, windows: bool) -> Place:
    apart = target.kind in _OWN_ENVIRONMENTS
    found = [os.path.realpath(site_folder) for site_folder in target.site_packages or ()]
    packages = [
        site_folder
        for site_folder in dict.fromkeys(found)
        if Path(site_folder).is_dir() and _is_in(site_folder, prefix)
    ]
    scripts = str(Path(prefix) / ("Scripts" if windows else "bin")) if apart else ""
    home = prefix
    user = target.user_site or ""
    locked = [site_folder for site_folder in packages if not os.access(site_folder, os.W_OK)]
    if locked and not apart and target.user_site_enabled and not _is_root() and Path(user).is_dir():
        # pip then installs for this user alone.
        packages, locked, home = [os.path.realpath(user)], [], str(Path(user).parent)
    elif prefix == _OF_THE_SYSTEM:
        raise RefusedPlaceError(
            say(
                "This Python belongs to the operating system, so gpucheck changes nothing in it. "
                "Create a virtual environment."
            )
        )
    if not packages:
        raise RefusedPlaceError(say("It is not known where this Python has its packages."))
    for folder in (*packages, home, *([scripts] if scripts else [])):
        _refuse_foreign(folder)
    for folder in (*locked, home):
        if not os.access(folder, os.W_OK):
            raise RefusedPlaceError(say("{folder} cannot be written by this user.", folder=folder))
    return Place(
        python=target.executable or "",
        prefix=prefix,
        packages=tuple(packages),
        scripts=scripts,
        home=str(Path(home) / _HOME),
        kind=target.kind or "other",
        windows=windows,
        holds_gpucheck=any(
            _is_in(module.__file__ or "", prefix) for module in (_about, click, msgspec)
        ),
    )


def _refuse_foreign(folder: str) -> None:
    if not hasattr(os, "geteuid"):
        return
    owner = Path(folder).stat().st_uid
    if owner != os.geteuid():
        raise RefusedPlaceError(_of_another(folder, owner))


def _of_another(folder: str, owner: int) -> Sentence:
    return say(
        "{folder} belongs to another user ({uid}), who alone may change it: run gpucheck fix as "
        "that user.",
        folder=folder,
        uid=owner,
    )


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _is_in(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(folder.rstrip(os.sep) + os.sep)
