"""Whose code a frame of a traceback is: an installed package's, or the user's own program's."""

import re
from collections.abc import Sequence

import msgspec

from gpucheck.ticket.exceptions import Frame

_TORCH = re.compile(
    r"(?:site|dist)-packages[/\\](?:torch|numpy|functools|contextlib)[/\\]|<frozen|<string>|<__array"
    r"|^/pytorch/|[/\\]torch[/\\](?:nn|_ops|utils|cuda|distributed|autograd)[/\\.]"
)
_PYTHON = re.compile(
    r"[/\\](?:lib(?:64)?[/\\]|Lib[/\\])?python\d(?:\.\d{1,2})?[/\\](?!site-packages|dist-packages)"
    r"(?:[a-z_]{1,30}[/\\]){0,3}[a-z_]{1,30}\.py$|[/\\]Lib[/\\](?:[a-z_]{1,30}[/\\]){0,2}[a-z_]{1,30}\.py$"
)
_INSTALLED = re.compile(r"(?:site|dist)-packages[/\\]([\w-]{1,60})")
_EGG = re.compile(r"[/\\]([\w-]{1,60}?)-[\d.]{1,20}[^/\\]{0,60}\.egg[/\\](\w{1,60})")
_TWICE = re.compile(r"[/\\]([\w-]{2,60})(?=[/\\](?:src[/\\]|python[/\\])?(\w{2,60})[/\\])")
_SOURCES = re.compile(r"(?:^|[/\\])(?:src|python)[/\\](\w{2,60})[/\\]")
_SERVES_ANY = re.compile(
    r"(?:site|dist)-packages[/\\](?:starlette|fastapi|uvicorn|uvloop|anyio|asyncio|pydantic\w{0,10}"
    r"|click|typer|gradio|aiohttp|requests|urllib3|httpx|httpcore|PIL|tqdm|joblib|multiprocess"
    r"|decorator|cloudpickle|dill|pandas|scipy|hydra|fire|jsonargparse)[/\\.]"
)
_TYPED = re.compile(r"<|Cell In")
"""Code that was typed into a session or a notebook."""
_SLASH = re.compile(r"[/\\\\]")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an exception was raised, outside PyTorch and Python."""

    package: str | None
    """The package, or the file name of the user's own program; None for what was typed."""
    installed: bool
    """Whether it is in a package, not in the user's own program."""
    file: str
    """From the package on; of a user's own program the name alone, which tells nothing private."""
    line: int
    function: str


def innermost(frames: Sequence[Frame]) -> Place | None:
    """Return the innermost place that is neither PyTorch's nor Python's own, else the last.

    A framework that serves any program is named only where the text shows no other package.
    """
    if not frames:
        return None
    others = [frame for frame in reversed(frames) if not _is_below(frame.file)]
    special = (frame for frame in others if not _SERVES_ANY.search(frame.file))
    return _place(next(special, others[0] if others else frames[-1]))


def _is_below(file: str) -> bool:
    """Whether a file is of PyTorch or Python, on which everything else rests."""
    return _TORCH.search(file) is not None or _PYTHON.search(file) is not None


def _place(frame: Frame) -> Place:
    at, package = _package(frame.file)
    name = _SLASH.split(frame.file)[-1]
    typed = _TYPED.match(frame.file) is not None
    return Place(
        package=package or (None if typed else name),
        installed=package is not None,
        file=frame.file[at:] if package is not None else name,
        line=frame.line,
        function=frame.function.partition("(")[0],
    )


def _package(file: str) -> tuple[int, str | None]:
    """Return where in a path a package begins, and its name; (0, None) if it is in none."""
    for pattern, group in ((_INSTALLED, 1), (_EGG, 2)):
        found = pattern.search(file)
        if found is not None:
            return found.start(group), found[group]
    for found in _TWICE.finditer(file):
        if found[1].lower().replace("-", "_") == found[2].lower():
            return found.start(2), found[2]
    sources = _SOURCES.search(file)
    return (sources.start(1), sources[1]) if sources is not None else (0, None)
