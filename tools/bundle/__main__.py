"""What ``python gpucheck.pyz`` runs: unpacks the packages once for each user, then starts gpucheck.

The archive has the packages for every Python that it supports. Compiled modules cannot be loaded
from an archive. So the files that this Python needs are unpacked into a folder that only this user
can write: below the cache folder, or else below the folder for temporary files. The folder's name
has a hash of the contents, so another release gets a folder of its own.

The syntax is that of Python 3.6, so that an old Python can say that it is too old. What only the
first run needs is imported then: other runs would take twice their time.
"""

import os
import stat
import sys
from importlib.machinery import EXTENSION_SUFFIXES

IDENTITY = "unknown"  # the builder writes a hash of the contents in its place
_OLDEST = (3, 10)
_PACKAGES = "packages/"


class Refusal(Exception):  # noqa: N818  # it is what the user reads
    """The sentence that the user reads instead of a report."""


def say(english: str, chinese: str) -> str:
    """Return the sentence in the user's language; the catalogues are still in the archive."""
    names = ("GPUCHECK_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    language = next((os.environ[name] for name in names if os.environ.get(name)), "")
    return chinese if language.startswith("zh") else english


def is_private(folder: str) -> bool:
    """Make a folder that only this user can write, or say whether it is one.

    One on a file system that does not let its files be executed is of no use: it refuses compiled
    modules.
    """
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        found = os.lstat(folder)
        if os.statvfs(folder).f_flag & os.ST_NOEXEC:
            return False
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and not found.st_mode & 0o022


def cache() -> str:
    """Return the folder below the user's cache folder, or "" if that has no absolute path."""
    above = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(above, "gpucheck") if os.path.isabs(above) else ""


def temporary() -> str:
    """Return the folder for where there is no cache folder."""
    import tempfile

    return os.path.join(tempfile.gettempdir(), "gpucheck-{}".format(os.geteuid()))


def packages(archive: str) -> str:
    """Return the folder with the packages for this Python, unpacked if this is the first run.

    Raises:
        Refusal: the archive has nothing for this Python, or there is no folder for it.
    """
    if sys.version_info < _OLDEST or sys.platform != "linux":
        raise Refusal(unsupported())
    suffix = EXTENSION_SUFFIXES[0]
    name = IDENTITY + suffix.rpartition(".")[0]
    for where in (cache, temporary):
        place = where()
        ready = os.path.join(place, name)
        if place and is_private(place) and (os.path.isdir(ready) or unpack(archive, ready, suffix)):
            return os.path.join(ready, _PACKAGES)
    raise Refusal(
        say(
            "gpucheck.pyz found no folder to unpack itself into. Set XDG_CACHE_HOME to a folder "
            "that you own, on a file system with free space and without the option noexec.",
            "gpucheck.pyz 找不到可以解压自身的文件夹。请将 XDG_CACHE_HOME 设为属于您的文件夹，"
            "其文件系统要有空闲空间，且没有 noexec 选项。",
        )
    )


def unpack(archive: str, ready: str, suffix: str) -> bool:
    """Unpack beside the folder and rename, so that nobody sees half of it. False if it cannot be.

    Raises:
        Refusal: the archive has nothing for this Python.
    """
    import shutil
    import tempfile
    import zipfile

    made = ""
    try:
        with zipfile.ZipFile(archive) as opened:
            names = [name for name in opened.namelist() if name.startswith(_PACKAGES)]
            if not any(name.endswith(suffix) for name in names):
                raise Refusal(unsupported())
            made = tempfile.mkdtemp(prefix=".new-", dir=os.path.dirname(ready))
            wanted = [name for name in names if not name.endswith(".so") or name.endswith(suffix)]
            opened.extractall(made, wanted)  # our own archive
        os.rename(made, ready)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
    return os.path.isdir(ready)  # another process may have been first


def unsupported() -> str:
    """Return why this Python cannot run the archive, and what can."""
    import platform

    this = "{} {}, {}".format(
        platform.python_implementation(), platform.python_version(), platform.platform()
    )
    return say(
        "gpucheck.pyz needs CPython 3.10 to 3.14 on Linux (glibc, x86-64 or AArch64). This is {}. "
        "Another Python can run it and examine this one: python3.11 gpucheck.pyz --python {}",
        "gpucheck.pyz 需要 Linux（glibc，x86-64 或 AArch64）上的 CPython 3.10 至 3.14。当前是 {}。"
        "可以用另一个 Python 运行它来检查当前的 Python：python3.11 gpucheck.pyz --python {}",
    ).format(this, sys.executable)


def run() -> None:
    """Run the command line; it ends the process."""
    archive = os.path.abspath(sys.argv[0])
    try:
        sys.path[0] = packages(archive)  # instead of the archive
        sys.dont_write_bytecode = (
            False  # the folder is ours, and without bytecode a run takes twice as long
        )
    except Refusal as refusal:
        sys.stderr.buffer.write((str(refusal) + "\n").encode("utf-8"))
        sys.exit(2)
    from gpucheck import _about
    from gpucheck.__main__ import main

    _about.bundle = archive
    main()


if __name__ == "__main__":
    run()
