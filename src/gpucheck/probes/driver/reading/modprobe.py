"""What prevents the modules nvidia and nouveau from loading: modprobe.d and the command line."""

from gpucheck.facts import Answer
from gpucheck.machine import Host

_FOLDERS = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
_CMDLINE = "/proc/cmdline"
_CMDLINE_NAMES = ("modprobe.blacklist", "module_blacklist", "rd.driver.blacklist")
_MODULES = (
    "nouveau",
    "nvidia",
    "nvidia_current",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia_uvm",
)
_NO_OP = ("false", "true")
"""Programs in an ``install`` line that load nothing; other such lines load the module."""
_MOST_FILES = 128
_FILE_LIMIT = 65536


def blacklist(host: Host) -> Answer[list[str]]:
    """Return the lines that block a module, each once; the source names the files."""
    lines: list[str] = []
    files: list[str] = []
    for path in _configuration(host):
        blocking = _blocking_lines(host.read(path, _FILE_LIMIT).value or "")
        lines += blocking
        files += [path] if blocking else []
    by_kernel = _blocked_by_kernel(host.read(_CMDLINE, _FILE_LIMIT).value or "")
    if by_kernel:
        lines += by_kernel
        files.append(_CMDLINE)
    return Answer(list(dict.fromkeys(lines)), ", ".join(files) or "modprobe.d")


def _configuration(host: Host) -> list[str]:
    """Return the files that modprobe reads: of two with the same name, the one found first."""
    by_name: dict[str, str] = {}
    for folder in _FOLDERS:
        for path in host.glob(f"{folder}/*.conf").value or ():
            by_name.setdefault(path.rpartition("/")[2], path)
    return sorted(by_name.values())[:_MOST_FILES]


def _blocking_lines(text: str) -> list[str]:
    return [
        " ".join(words)
        for line in text.splitlines()
        if (words := line.partition("#")[0].split()) and _blocks(words)
    ]


def _blocks(words: list[str]) -> bool:
    verb, *rest = words
    if not rest or rest[0].replace("-", "_") not in _MODULES:
        return False
    if verb == "blacklist":
        return True
    if verb == "install":
        return len(rest) > 1 and rest[1].rpartition("/")[2] in _NO_OP
    return verb == "alias" and rest[1:] == ["off"]


def _blocked_by_kernel(cmdline: str) -> list[str]:
    """Return the parameters that block one of our modules, as they stand there."""
    found = []
    for word in cmdline.split():
        name, _, value = word.partition("=")
        modules = [module.replace("-", "_") for module in value.split(",")]
        if name in _CMDLINE_NAMES and any(module in _MODULES for module in modules):
            found.append(word)
    return found
