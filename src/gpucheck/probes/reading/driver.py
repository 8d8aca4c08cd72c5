"""What the driver says of itself: raw answers of NVML and libcuda, and its modules."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpucheck.facts import Answer, Notes
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.probes.reading import platform

# Reads raw answers of NVML and libcuda: plain values, or ``{"error": ...}`` in their place.

T = TypeVar("T")
_BEYOND = 2**64  # what NVML answers has at most 64 bits; more is damage
_NOT_ASKED = say("not asked")


def as_words(error: object) -> str:
    """Return the message in place of an answer; a sentence of gpucheck stays translatable."""
    return error if isinstance(error, str) else str(error)


class RawAnswers:
    """One object of raw answers, and the notes of the fields that are filled from it.

    Args:
        raw: the answers, by key.
        source: the library that answered.
        words: the meaning of error codes.
        unasked: why a key is missing.
    """

    def __init__(
        self, raw: object, source: str, words: Mapping[int, str], unasked: str = _NOT_ASKED
    ) -> None:
        self.notes = Notes()
        self._raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self._source = source
        self._words = words
        self._unasked = unasked

    def answer(self, key: str) -> Answer[Any]:
        """Return the value of a key, or the problem that is in its place."""
        if key not in self._raw:
            return Answer(None, self._source, self._unasked)
        value = self._raw[key]
        code = self.error(key)
        if code is not None:
            words = self._words.get(code) if isinstance(code, int) else as_words(code)
            return Answer(None, self._source, words or say("error {code}", code=code))
        return Answer(value, self._source, say("it gave no value") if value is None else "")

    def error(self, key: str) -> object:
        """Return the error code (or message) of a key; None if there was no error."""
        value = self._raw.get(key)
        return value.get("error") if isinstance(value, dict) else None

    def take(self, field: str, key: str, read: Callable[[Any], T]) -> T | None:
        """Fill a field from a key."""
        return self.notes.take(field, self.answer(key).map(read))

    def fill(self, field: str, value: T) -> T:
        """Fill a field with the meaning of an answer."""
        self.notes.known(field, self._source)
        return value

    def has_code(self, code: int) -> bool:
        """Whether any question was answered with this error code."""
        return any(self.error(key) == code for key in self._raw)


def integer(value: object) -> int:
    """Return a whole number.

    Raises:
        ValueError: the value is not a whole number of 64 bits.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(say("{value} is not a whole number", value=repr(str(value)[:40])))  # noqa: TRY004  # a bad answer
    if not -_BEYOND < value < _BEYOND:
        raise ValueError(say("the number is out of range"))
    return value


def text(value: object) -> str:
    """Return a text without surrounding blanks.

    Raises:
        ValueError: the value is not a text.
    """
    if not isinstance(value, str):
        raise ValueError(say("{value} is not text", value=repr(str(value)[:40])))  # noqa: TRY004  # a bad answer
    return value.strip("\x00 \t\r\n")


def item(at: int, count: int) -> Callable[[object], int]:
    """Read the whole number at one index of a list of ``count`` numbers."""

    def read(value: object) -> int:
        if not isinstance(value, list) or len(value) != count:
            raise ValueError(say("it is not a list of {count} numbers", count=count))
        return integer(value[at])

    return read


def within(key: str) -> Callable[[object], int]:
    """Read the whole number of one key of an object."""

    def read(value: object) -> int:
        return integer(value.get(key) if isinstance(value, dict) else None)

    return read


def flag(read: Callable[[object], int]) -> Callable[[object], bool]:
    """Read a number that means yes or no."""
    return lambda value: read(value) != 0


def capability(value: object) -> str:
    """Read ``[9, 0]`` as ``9.0``."""
    return f"{item(0, 2)(value)}.{item(1, 2)(value)}"


def cuda_version(value: object) -> str:
    """Read 12020 as ``12.2``.

    Raises:
        ValueError: the value is not a version.
    """
    number = integer(value)
    if number < 1000:  # noqa: PLR2004  # the major version is in thousands
        raise ValueError(say("{number} is not a CUDA version", number=number))
    return f"{number // 1000}.{number % 1000 // 10}"


# The driver's kernel modules: loaded ones, and files of installed ones.

_PROC_VERSION = "/proc/driver/nvidia/version"
_MODULES = "/sys/module"
_MODULE_ROOTS = ("/lib/modules", "/run/booted-system/kernel-modules/lib/modules")
"""The second path is that of NixOS."""
_MODULE_FOLDERS = (
    "extra",
    "extra/*",
    "extra/drivers/video/nvidia",
    "extramodules",
    "kernel/drivers/video",
    "kernel/drivers/video/nvidia",
    "kernel/nvidia*",
    "misc",
    "updates",
    "updates/*",
    "weak-updates/*",
)
# Distributions give the module of a branch another name (nvidia-current), and may compress it.
# nvidia-uvm.ko and its like are no main module.
_MODULE_FILE = r"nvidia(?:-(?:current|open|legacy|tesla)[-\w]{0,40})?\.ko(?:\.\w{2,4})?"
_PARTS = ("-uvm", "-drm", "-modeset", "-peermem")
_MOST_FILES = 256  # chosen: a few for each installed kernel
_DKMS_BUILT = "/var/lib/dkms/nvidia*/*/*/*/module"
_DKMS_SOURCES = ("/var/lib/dkms/nvidia*/*/source", "/usr/src/nvidia-*")
_OTHER_MODULES = ("nvidia-fs", "nvidia-peer", "nvidia-gdr")
"""Prefixes of NVIDIA modules that do not belong to the driver."""
_RELEASE = r"\d{2,4}\.\d{1,4}(?:\.\d{1,4})?"
_PROC_RELEASE = r"NVRM version:[^\n]{0,120}?\s(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)\s"
_JETSON_SIGNS = ("/sys/module/nvgpu", "/dev/nvgpu", "/dev/nvhost-ctrl-gpu")
_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_SHIM_OFF = "/sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"
_VARIABLE_VALUE = 4
"""Offset of the value of an EFI variable, after four bytes of attributes."""

_FOLDERS = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
_CMDLINE = "/proc/cmdline"
_CMDLINE_NAMES = ("modprobe.blacklist", "module_blacklist", "rd.driver.blacklist")
_BLOCKED_MODULES = (
    "nouveau",
    "nvidia",
    "nvidia_current",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia_uvm",
)
_NO_OP = ("false", "true")
"""Programs in an ``install`` line that load nothing; other such lines load the module."""
_MOST_SETTINGS = 128  # chosen: distributions bring a dozen
_FILE_LIMIT = 65536  # bytes; chosen: such files have a few lines


def loaded(host: Host, notes: Notes) -> dict[str, Any]:
    """Fill the fields about the running kernel's loaded modules."""
    # The driver itself answers reads of this file: if the driver hangs, so does the read.
    host.stage(f"read {_PROC_VERSION}")
    proc = host.read(_PROC_VERSION, 4096)
    nvidia = _nvidia_loaded(host, proc)
    there = notes.take("module_loaded", _stands_for_module(host, nvidia))
    return {
        "module_loaded": there,
        "module_release": notes.take("module_release", _release(host, proc, nvidia)),
        "module_flavour": notes.take("module_flavour", _flavour(proc, nvidia)),
        "uvm_loaded": notes.take("uvm_loaded", _is_loaded(host, "nvidia_uvm")),
        "modeset_loaded": notes.take("modeset_loaded", _is_loaded(host, "nvidia_modeset")),
        "drm_loaded": notes.take("drm_loaded", _is_loaded(host, "nvidia_drm")),
        "nouveau_loaded": notes.take("nouveau_loaded", _is_loaded(host, "nouveau")),
    }


def installed(host: Host, notes: Notes) -> dict[str, Any]:
    """Fill the fields about module files, DKMS, modprobe.d and Secure Boot."""
    running = host.identity().release
    files = _module_files(host)
    kernels = files.map(lambda paths: {_kernel_of(path) for path in paths})
    folders = [host.exists(f"{root}/{running}") for root in _MODULE_ROOTS]
    folder = next((answer for answer in folders if answer.value is not False), folders[0])
    return {
        "modules_folder": notes.take("modules_folder", folder),
        "module_files": notes.take(
            "module_files", files.map(lambda p: [path for path in p if _kernel_of(path) == running])
        ),
        "other_kernels_with_module": notes.take(
            "other_kernels_with_module", kernels.map(lambda names: sorted(names - {running}))
        ),
        "dkms": notes.take("dkms", host.glob(_DKMS_BUILT).map(_dkms_builds)),
        "dkms_sources": notes.take("dkms_sources", _dkms_sources(host)),
        "blacklist": notes.take("blacklist", _blacklist(host)),
        "secure_boot": notes.take("secure_boot", _secure_boot(host)),
    }


def _is_loaded(host: Host, module: str) -> Answer[bool]:
    """Whether a module is loaded; unknown if the kernel lists no module at all."""
    path = f"{_MODULES}/{module}"
    there = host.exists(path)
    if there.value is False and host.exists(_MODULES).value is not True:
        return Answer(None, _MODULES, say("not found"))
    return there


def _nvidia_loaded(host: Host, proc: Answer[str]) -> Answer[bool]:
    if proc.value is not None:
        return Answer(value=True, source=proc.source)
    return _is_loaded(host, "nvidia")


def _stands_for_module(host: Host, nvidia: Answer[bool]) -> Answer[bool]:
    if platform.wsl_version(host):
        return host.exists("/dev/dxg")
    if nvidia.value is not True and platform.jetson_model(host).value:
        for sign in _JETSON_SIGNS:
            if host.exists(sign).value:
                return Answer(value=True, source=sign)
    return nvidia


def _release(host: Host, proc: Answer[str], nvidia: Answer[bool]) -> Answer[str]:
    if platform.wsl_version(host):
        return Answer(None, "", say("the driver is that of Windows"))
    if nvidia.value is not True:
        return nvidia.map(lambda _loaded: "")
    module = host.line(f"{_MODULES}/nvidia/version")
    understood = re.fullmatch(_RELEASE, module.value or "") is not None
    return module if understood else proc.map(_proc_release)


def _proc_release(text: str) -> str | None:
    found = re.search(_PROC_RELEASE, text)
    return found[1] if found else None


def _flavour(proc: Answer[str], nvidia: Answer[bool]) -> Answer[str]:
    if nvidia.value is not True:
        return nvidia.map(lambda _loaded: "")
    return proc.map(_flavour_of_line)


def _flavour_of_line(text: str) -> str | None:
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    if "Kernel Module" not in line:
        return None
    return "open" if "Open Kernel Module" in line else "proprietary"


def _module_files(host: Host) -> Answer[list[str]]:
    """Return the nvidia.ko of every installed kernel."""
    found: set[str] = set()
    for root in _MODULE_ROOTS:
        if host.exists(root).value is not True:
            continue
        for folder in _MODULE_FOLDERS:
            paths = host.glob(f"{root}/*/{folder}/nvidia*.ko*").value or []
            found.update(path for path in paths[:_MOST_FILES] if _is_main_module(path))
    return Answer(sorted(found), ", ".join(_MODULE_ROOTS[:1]))


def _is_main_module(path: str) -> bool:
    name = path.rpartition("/")[2]
    main = name.partition(".ko")[0]
    return re.fullmatch(_MODULE_FILE, name) is not None and not main.endswith(_PARTS)


def _kernel_of(path: str) -> str:
    return path.partition("/modules/")[2].partition("/")[0]


def _dkms_builds(paths: list[str]) -> list[str]:
    builds = []
    for path in paths:
        module, release, kernel, _machine = path.split("/")[4:8]
        if not module.startswith(_OTHER_MODULES) and re.fullmatch(_RELEASE, release):
            builds.append(f"{release} {kernel}")
    return sorted(set(builds))


def _dkms_sources(host: Host) -> Answer[list[str]]:
    releases = set()
    for path in host.glob(_DKMS_SOURCES[0]).value or ():
        module, release = path.split("/")[4:6]
        releases.add("" if module.startswith(_OTHER_MODULES) else release)
    for path in host.glob(_DKMS_SOURCES[1]).value or ():
        name = path.rpartition("/")[2]
        releases.add("" if name.startswith(_OTHER_MODULES) else name.rpartition("-")[2])
    return Answer(
        sorted(release for release in releases if re.fullmatch(_RELEASE, release)),
        "/usr/src, /var/lib/dkms",
    )


def _secure_boot(host: Host) -> Answer[bool]:
    """Read the firmware variable, and the one of shim that disables its effect."""
    variable = host.read_bytes(_SECURE_BOOT, 16).map(_efi_switch)
    if variable.value:
        shim = host.read_bytes(_SHIM_OFF, 16).map(_efi_switch)
        return Answer(not shim.value, shim.source if shim.value else variable.source)
    if variable.value is False or not variable.missing:
        return variable
    if not host.glob("/sys/firmware/*").value:
        return Answer(None, "/sys/firmware", say("hidden from this container"))
    if host.exists("/sys/firmware/efi").value is False:
        return Answer(value=False, source=say("/sys/firmware: no EFI"))
    if not host.glob("/sys/firmware/efi/efivars/*").value:
        return Answer(None, "/sys/firmware/efi/efivars", say("not mounted"))
    return Answer(value=False, source="/sys/firmware/efi/efivars")


def _efi_switch(data: bytes) -> bool | None:
    return data[_VARIABLE_VALUE] == 1 if len(data) > _VARIABLE_VALUE else None


def _blacklist(host: Host) -> Answer[list[str]]:
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
    return sorted(by_name.values())[:_MOST_SETTINGS]


def _blocking_lines(text: str) -> list[str]:
    return [
        " ".join(words)
        for line in text.splitlines()
        if (words := line.partition("#")[0].split()) and _blocks(words)
    ]


def _blocks(words: list[str]) -> bool:
    verb, *rest = words
    if not rest or rest[0].replace("-", "_") not in _BLOCKED_MODULES:
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
        if name in _CMDLINE_NAMES and any(module in _BLOCKED_MODULES for module in modules):
            found.append(word)
    return found
