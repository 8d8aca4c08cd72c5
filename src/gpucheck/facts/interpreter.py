"""The target interpreter: the Python that is diagnosed, why it was chosen, what it reports."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

Status = Literal[
    "ok", "not-found", "not-started", "too-old", "exit-status", "signal", "timed-out",
    "no-answer", "bad-answer",
]  # fmt: skip


Locked = Literal["", "read-only", "permission"]
Kind = Literal["venv", "conda", "uv", "pyenv", "system", "other"]


class OtherInterpreter(Facts, frozen=True, kw_only=True):
    """Another candidate that the user may have meant, and that also has torch."""

    executable: Annotated[str | None, Private("path")] = None
    chosen_by: str | None = None
    torch: str | None = None


class Interpreter(Section, frozen=True, kw_only=True):
    """The Python whose PyTorch is diagnosed."""

    name: ClassVar[str] = "interpreter"
    subject = say(
        "The target interpreter: the Python that is diagnosed, why it was chosen, what it reports."
    )

    status: Status | None = None
    """The result of querying it; everything below is unknown unless this is ``ok``."""
    starts_without: str | None = None
    """A variable without which a Python starts that does not start; "" if none is known."""
    executable: Annotated[str | None, Private("path")] = None
    chosen_by: str | None = None
    """Why this one: ``--python``, ``the active virtual environment`` ..."""
    version: str | None = None
    """``3.11.7``"""
    implementation: str | None = None
    """``cpython``, ``pypy`` ..."""
    platform: str | None = None
    """The platform according to sysconfig: ``linux-x86_64``, ``win-amd64`` ..."""
    bits: int | None = None
    free_threaded: bool | None = None
    prefix: Annotated[str | None, Private("path")] = None
    base_prefix: Annotated[str | None, Private("path")] = None
    kind: Kind | None = None
    sys_path: Annotated[list[str] | None, Private("paths")] = None
    """As for ``python script.py`` in the current folder: that folder comes first."""
    hiding_modules: Annotated[list[str] | None, Private("paths")] = None
    """Files and folders of the current folder that hide standard modules which ``import torch``
    loads; [] if Python does not look there."""
    site_packages: Annotated[list[str] | None, Private("paths")] = None
    user_site: Annotated[str | None, Private("path")] = None
    user_site_enabled: bool | None = None
    externally_managed: bool | None = None
    locked: Locked | None = None
    """Why this user can install nothing there, not even for himself; "" if he can."""
    has_pip: bool | None = None
    has_gpucheck: bool | None = None
    """Whether gpucheck is installed there: the target may then be another Python."""
    glibc: str | None = None
    """The result of ``platform.libc_ver()`` in the target; "" if its C library is not glibc."""
    soabi: str | None = None
    """Tag of extension modules: ``cpython-311-x86_64-linux-gnu``."""
    others: list[OtherInterpreter] | None = None
