"""Paths of the target, which may be a Windows machine that was recorded on another one."""

import glob
import ntpath
import posixpath


def is_windows(path: str) -> bool:
    r"""Whether the path is in Windows notation: ``C:\...`` or ``\\server\...``."""
    return path[1:2] == ":" or path.startswith("\\\\")


def join(folder: str, *names: str) -> str:
    """Join with the separator that the folder uses."""
    return ntpath.join(folder, *names) if is_windows(folder) else posixpath.join(folder, *names)


def pattern(folder: str, *names: str) -> str:
    """Join for ``Host.glob``: the names are patterns, the folder is literal."""
    return join(glob.escape(folder), *names)


def parent(path: str) -> str:
    """Return the folder that contains the path."""
    return ntpath.dirname(path) if is_windows(path) else posixpath.dirname(path)


def name(path: str) -> str:
    """Return the last part of the path."""
    return ntpath.basename(path) if is_windows(path) else posixpath.basename(path)


def distinct(paths: list[str]) -> list[str]:
    """Drop duplicates and empty entries; keep the order."""
    return [path for path in dict.fromkeys(paths) if path]
