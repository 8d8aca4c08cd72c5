"""Runs in the target interpreter and describes it: one JSON answer between two marks.

It is run by its path, with the mark as its only argument. Every Python must be able to *parse* it,
so that an old Python can say that it is too old. Hence it has no f-strings and no annotations. Each
import costs time in the target, so ``sysconfig``, ``platform`` and ``json`` are avoided where their
answers can be found in another way.
"""
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

import os
import sys

OLDEST = (3, 8)


def json_text(value):
    """Return the value as JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return "{%s}" % ",".join(json_text(k) + ":" + json_text(value[k]) for k in value)
    if isinstance(value, list):
        return "[%s]" % ",".join([json_text(item) for item in value])
    return '"%s"' % "".join([_escape(char) for char in value])


def _escape(char):
    code = ord(char)
    if char in '"\\':
        return "\\" + char
    if 0x20 <= code < 0x7F:
        return char
    if 0xD800 <= code <= 0xDFFF:
        return "\\ufffd"  # half a character: a file name that is no UTF-8
    if code > 0xFFFF:
        code -= 0x10000
        return "\\u%04x\\u%04x" % (0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF))
    return "\\u%04x" % code


def tell(answer):
    """Write the answer to the real stdout, even if sys.stdout has been replaced."""
    mark = sys.argv[1]
    text = ("\n" + mark + json_text(answer) + mark + "\n").encode("ascii")
    while text:
        text = text[os.write(1, text) :]


def stand_aside():
    """Put the current folder where the folder of a user's script would be on sys.path."""
    own = os.path.dirname(os.path.realpath(__file__))
    if not sys.path or os.path.realpath(sys.path[0]) != own:
        return  # isolated, or -P: no script's folder is put there
    try:
        sys.path[0] = os.getcwd()
    except OSError:
        del sys.path[0]  # the current folder has been removed


def describe():
    """Describe this interpreter as plain data."""
    base_prefix = getattr(sys, "base_prefix", sys.prefix)
    answer = {
        "executable": sys.executable or "",
        "version": _version(),
        "implementation": sys.implementation.name,
        "platform": _platform(),
        "bits": 64 if sys.maxsize > 2**32 else 32,
        "free_threaded": "free-threading" in sys.version or "t" in getattr(sys, "abiflags", ""),
        "prefix": sys.prefix,
        "base_prefix": base_prefix,
        "sys_path": [entry for entry in sys.path if isinstance(entry, str)],
        "has_pip": _has_pip(),
        "externally_managed": sys.prefix == base_prefix and _is_marked_external(),
        "glibc": _glibc(),
        "soabi": _soabi(),
    }
    answer.update(_site())
    answer["locked"] = _locked(answer)
    return answer


def _version():
    number = "%d.%d.%d" % sys.version_info[:3]
    stage = {"alpha": "a", "beta": "b", "candidate": "rc"}.get(sys.version_info[3])
    return number if stage is None else "%s%s%d" % (number, stage, sys.version_info[4])


def _platform():
    if sys.platform == "linux":
        return "linux-" + os.uname().machine  # all that sysconfig does there
    import sysconfig  # noqa: PLC0415

    return sysconfig.get_platform()


def _has_pip():
    folders = [entry for entry in sys.path if isinstance(entry, str)]
    return any(os.path.isfile(os.path.join(entry, "pip", "__init__.py")) for entry in folders)


def _is_marked_external():
    return os.path.isfile(os.path.join(os.path.dirname(os.__file__), "EXTERNALLY-MANAGED"))


def _glibc():
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        return ""
    words = (libc or "").split()
    return words[1] if len(words) > 1 and words[0] == "glibc" else ""


def _soabi():
    """Return the tag of extension modules, such as ``cpython-311-x86_64-linux-gnu``."""
    try:
        import _imp  # noqa: PLC0415

        suffix = _imp.extension_suffixes()[0]
    except (ImportError, AttributeError, IndexError):
        return None
    return suffix.strip(".").rpartition(".")[0]


def _site():
    """Return the settings of the site module; they are empty if it was not loaded (``-S``)."""
    site = sys.modules.get("site")
    if site is None:
        return {"site_packages": [], "user_site": "", "user_site_enabled": False}
    return {
        "user_site_enabled": bool(getattr(site, "ENABLE_USER_SITE", False)),
        "site_packages": _ask(site, "getsitepackages"),
        "user_site": _ask(site, "getusersitepackages"),
    }


def _locked(answer):
    """Return why nothing can be installed: into none of the folders, nor for this user alone."""
    folders = [folder for folder in answer["site_packages"] or () if os.path.isdir(folder)]
    if not folders or answer["user_site_enabled"] or os.name != "posix":
        return ""
    if any(os.access(folder, os.W_OK) for folder in folders):
        return ""
    read_only = all(os.statvfs(folder).f_flag & os.ST_RDONLY for folder in folders)
    return "read-only" if read_only else "permission"


def _ask(site, question):
    try:
        return getattr(site, question)()
    except Exception:  # noqa: BLE001  # the target's site module may do anything
        return None


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        tell({"too_old": sys.version.split()[0]})
    else:
        stand_aside()
        tell({"description": describe()})
