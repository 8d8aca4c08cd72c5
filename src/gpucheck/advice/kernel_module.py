"""Why the driver's kernel module is not loaded, and the commands that load it."""

import re
import shlex
from collections.abc import Sequence

import msgspec

from gpucheck.advice.driver_packages import UBUNTU
from gpucheck.derived import Derived
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Confidence, Fix, and_then
from gpucheck.facts.driver import Driver, KernelLog
from gpucheck.facts.system import Container, System
from gpucheck.language import in_series, in_turn, say

_HEADERS = {
    "apt": ("sudo apt-get update", "sudo apt-get install -y linux-headers-$(uname -r)"),
    "dnf": ("sudo dnf install -y kernel-devel-$(uname -r)",),
    "yum": ("sudo yum install -y kernel-devel-$(uname -r)",),
}
_NO_NOUVEAU = (
    r"printf 'blacklist nouveau\noptions nouveau modeset=0\n' | "
    "sudo tee /etc/modprobe.d/blacklist-nouveau.conf"
)
_LOAD = "sudo modprobe nvidia"
_REBOOT = "sudo reboot"
_WHOLE_MODULE = ("nvidia", "nvidia-current", "nvidia_current")
_FIND_LINE = (
    "grep -rn nvidia /etc/modprobe.d /run/modprobe.d /usr/lib/modprobe.d /lib/modprobe.d "
    "/proc/cmdline"
)
_OF_PRIME_SELECT = "/lib/modprobe.d/blacklist-nvidia.conf"
"""What ``prime-select intel`` of Ubuntu's nvidia-prime writes, and writes again."""
_AND_KERNEL = ", /proc/cmdline"
"""Named last among the sources, if the kernel's command line blocks a module as well."""
_IN_ORDER = ("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia")

_OF_DKMS = "nvidia-dkms"
_PREBUILT = r"(linux-modules-nvidia-\d{3}(?:-server)?(?:-open)?)-"
"""Its sources lie in /usr/src as well, although DKMS has nothing to do with them."""

_GRUBS = ("dnf", "yum")
_SHOW = "cat /proc/cmdline"
_PLAIN_WORD = r"[A-Za-z0-9_.,=-]{1,1000}"
"""A parameter that neither sed nor the boot loader takes for anything else: root runs both."""


class ModuleCause(msgspec.Struct, frozen=True, kw_only=True):
    """Why the module is not loaded, the facts that prove it, and the fix."""

    why: str
    facts: tuple[str, ...]
    fixes: tuple[Fix, ...]
    confidence: Confidence = Confidence.CERTAIN


class ModuleFixes(Derived):
    """Loads, builds and reloads the kernel module."""

    def __init__(
        self,
        driver: Driver,
        log: KernelLog,
        system: System,
        container: Container,
        around: Surroundings,
    ) -> None:
        self._driver = driver
        self._log = log
        self._system = system
        self._container = container
        self._around = around

    def cause(self) -> ModuleCause:
        """Return the first cause that the facts show; if there is none, that nothing loaded it."""
        if self._container.runtime:
            return ModuleCause(
                why=say("the host of this container has not loaded it"),
                facts=("container.runtime",),
                fixes=(self.load(),),
            )
        return (
            self._updated_kernel()
            or self._not_built()
            or self._blocked()
            or self._held_by_nouveau()
            or self._refused()
            or ModuleCause(
                why=say("nothing that gpucheck read shows why"),
                facts=(),
                fixes=(self.load(),),
                confidence=Confidence.LIKELY,
            )
        )

    def load(self) -> Fix:
        """Return the fix that loads the module and shows the kernel's message if it refuses."""
        return Fix(
            text=say("Load the module. If that fails, the kernel log shows why."),
            commands=(_LOAD, "sudo dmesg | grep -i -E 'nvrm|nvidia|nouveau' | tail -n 20"),
        )

    def reload(self) -> Fix:
        """Return the fix that unloads the modules and loads the installed ones."""
        loaded = {
            "nvidia_drm": self._driver.drm_loaded,
            "nvidia_modeset": self._driver.modeset_loaded,
            "nvidia_uvm": self._driver.uvm_loaded,
        }
        modules = " ".join(name for name in _IN_ORDER if loaded.get(name) is not False)
        return Fix(
            text=say(
                "Or, without a restart, reload the modules: stop every program that uses a GPU "
                "(lsof names them), the desktop and nvidia-persistenced first."
            ),
            commands=("sudo lsof /dev/nvidia*", f"sudo rmmod {modules}", _LOAD),
        )

    def _updated_kernel(self) -> ModuleCause | None:
        """A distribution may remove the modules of the old kernel while it is still running."""
        if self._driver.modules_folder is not False:
            return None
        return ModuleCause(
            why=say(
                "the modules of {kernel} are no longer on the disk, as happens after a kernel "
                "update",
                kernel=self._kernel(),
            ),
            facts=("driver.modules_folder", "system.kernel"),
            fixes=(
                Fix(text=say("Restart, so that the updated kernel runs."), commands=(_REBOOT,)),
            ),
            confidence=Confidence.LIKELY,
        )

    def _not_built(self) -> ModuleCause | None:
        driver = self._driver
        if driver.module_files != []:
            return None
        facts = ["driver.module_files", "system.kernel"]
        others = driver.other_kernels_with_module or []
        why = say("there is none for {kernel}", kernel=self._kernel())
        if others:
            facts.append("driver.other_kernels_with_module")
            why = say(
                "there is none for {kernel}, only for {others}",
                kernel=self._kernel(),
                others=in_series(others),
            )
        if driver.dkms_sources:
            facts.append("driver.dkms_sources")
        if driver.nouveau_loaded:
            facts.append("driver.nouveau_loaded")
        return ModuleCause(why=why, facts=tuple(facts), fixes=self._build(others))

    def _build(self, others: list[str]) -> tuple[Fix, ...]:
        fixes = [self._build_here()]
        if others:
            fixes.append(
                Fix(
                    text=say(
                        "Or restart into a kernel that has the module: {others} (choose it in the "
                        "boot menu, under advanced options).",
                        others=in_series(others),
                    ),
                    commands=(_REBOOT,),
                )
            )
        return tuple(fixes)

    def _build_here(self) -> Fix:
        """Return the fix for the running kernel, by how the other kernels got their module."""
        headers = _HEADERS.get(self._system.package_manager or "", ())
        built = bool(self._driver.dkms) or any(
            name.startswith(_OF_DKMS) for name in self._driver.packages or ()
        )
        if not built and (package := self._prebuilt()):
            return Fix(
                text=say(
                    "Install the package with the module for the running kernel: this driver's "
                    "modules are prebuilt."
                ),
                commands=(
                    "sudo apt-get update",
                    f"sudo apt-get install -y {package}-$(uname -r)",
                    _LOAD,
                ),
            )
        if self._driver.dkms_sources == []:
            return Fix(
                text=say(
                    "Install the module for the running kernel from the same place as the driver: "
                    "either the package of prebuilt modules for this kernel, or the driver's DKMS "
                    "package with the kernel's headers. Then load it."
                ),
                commands=(*headers, _LOAD),
            )
        text = say(
            "Build the module for the running kernel; DKMS needs the kernel's headers for it."
        )
        build = ("sudo dkms autoinstall", _LOAD)
        if built:
            return Fix(text=text, commands=(*headers, *build))
        only = say(
            "This works only if dkms status lists nvidia. If it does not, install the package of "
            "prebuilt modules for this kernel, from the same place as the driver."
        )
        return Fix(text=in_turn([text, only]), commands=("dkms status", *headers, *build))

    def _prebuilt(self) -> str:
        """Return Ubuntu's package of prebuilt modules, without the kernel; "" if there is none."""
        found = (re.match(_PREBUILT, name) for name in sorted(self._driver.packages or ()))
        return next((package[1] for package in found if package), "")

    def _blocked(self) -> ModuleCause | None:
        lines = [
            line
            for line in self._driver.blacklist or ()
            if (words := line.split()) and len(words) > 1 and words[1] in _WHOLE_MODULE
        ]
        by_kernel = _blocking(self._driver.blacklist or (), _WHOLE_MODULE)
        if not lines and not by_kernel:
            return None
        manager = self._system.package_manager
        fixes = (self._unblocked_by_files(),) if lines else ()
        if by_kernel:
            other = unblock(by_kernel, _WHOLE_MODULE, manager)
            fixes = (and_then(fixes[0], other) if fixes else other,)
        return ModuleCause(
            why=_who_blocks(lines, by_kernel),
            facts=("driver.blacklist",),
            fixes=fixes,
        )

    def _unblocked_by_files(self) -> Fix:
        files = self._driver.source("blacklist") or say("the file that has it")
        if files.endswith(_AND_KERNEL):
            files = files.removesuffix(_AND_KERNEL)
        if files == _OF_PRIME_SELECT and self._system.distribution in UBUNTU:
            return Fix(
                text=say(
                    "prime-select, which writes {files}, has switched the NVIDIA GPU off. Switch "
                    "it on, then restart.",
                    files=files,
                ),
                commands=("sudo prime-select nvidia", _REBOOT),
            )
        return Fix(
            text=say(
                "Comment out the lines in {files} that block the module, then load it.",
                files=files,
            ),
            commands=(
                _FIND_LINE,
                *_comment_out(files),
                *self._around.rebuild_initramfs(),
                _LOAD,
            ),
        )

    def _held_by_nouveau(self) -> ModuleCause | None:
        if not self._driver.nouveau_loaded:
            return None
        return ModuleCause(
            why=say("nouveau, which cannot run CUDA, holds the GPU"),
            facts=("driver.nouveau_loaded",),
            fixes=(
                Fix(
                    text=say("Keep nouveau from loading, then restart."),
                    commands=(_NO_NOUVEAU, *self._around.rebuild_initramfs(), _REBOOT),
                ),
            ),
        )

    def _refused(self) -> ModuleCause | None:
        if not self._driver.secure_boot:
            return None
        ubuntu = self._system.distribution == "ubuntu"
        key = "/var/lib/shim-signed/mok/MOK.der" if ubuntu else "/var/lib/dkms/mok.pub"
        return ModuleCause(
            why=say(
                "Secure Boot is on and rejects modules that are not signed with an enrolled key"
            ),
            facts=(
                *(("kernel_log.rejected_modules",) if self._log.rejected_modules else ()),
                "driver.secure_boot",
                "driver.module_files",
            ),
            fixes=(
                Fix(
                    text=say(
                        'If modprobe succeeds, you are done. If it says "Key was rejected by '
                        'service", enrol the signing key: choose a password, restart, and enter it '
                        "under Enroll MOK, on this machine's screen or remote console (BMC)."
                    ),
                    commands=(_LOAD, f"sudo mokutil --import {key}", _REBOOT),
                ),
                Fix(
                    text=say("Or switch Secure Boot off in the firmware's setup."),
                    restart="machine",
                ),
            ),
            confidence=Confidence.LIKELY,
        )

    def _kernel(self) -> str:
        if self._system.kernel:
            return say("the running kernel {release}", release=self._system.kernel)
        return say("the running kernel")


def _who_blocks(lines: Sequence[str], by_kernel: Sequence[str]) -> str:
    blocking_lines = in_series([*lines, *by_kernel])
    if not by_kernel:
        return say("modprobe.d blocks it ({lines})", lines=blocking_lines)
    if not lines:
        return say("the kernel command line blocks it ({lines})", lines=blocking_lines)
    return say("modprobe.d and the kernel command line block it ({lines})", lines=blocking_lines)


def _comment_out(file_list: str) -> tuple[str, ...]:
    """Return the command that makes comments of the lines in these files, and keeps a copy.

    None if one of them is no file of modprobe: the kernel's command line is changed otherwise.
    """
    files = file_list.split(", ")
    if not all(file.startswith("/") and file.endswith(".conf") for file in files):
        return ()
    lines = "^ *(blacklist|alias|install) +nvidia( .*)?$"  # no slash: redaction looks for paths
    return (f"sudo sed -E -i.bak 's,{lines},#&,' {shlex.join(files)}",)


def _blocking(lines: Sequence[str], modules: Sequence[str]) -> list[str]:
    """Return the parameters, such as ``module_blacklist=nvidia``, that block one of the modules."""
    return [line for line in lines if "=" in line and set(modules) & set(_blocked(line))]


def unblock(parameters: Sequence[str], modules: Sequence[str], manager: str | None) -> Fix:
    """Return the fix that removes the modules from these parameters, and restarts.

    Other modules stay blocked. The commands are those of the boot loader that the package manager's
    distributions have; for others there is only the sentence.
    """
    kept = {word: _without(word, modules) for word in parameters}
    words = in_series(list(parameters))
    change: tuple[str, ...] = ()
    is_plain = all(re.fullmatch(_PLAIN_WORD, word) for word in parameters)
    if is_plain and manager == "apt":
        edits = [_edit(word, left) for word, left in kept.items()]
        change = (f"sudo sed -E -i.bak {shlex.join(edits)} /etc/default/grub", "sudo update-grub")
    elif is_plain and manager in _GRUBS:
        change = tuple(_by_grubby(word, left) for word, left in kept.items())
    else:
        return Fix(
            text=say(
                "Remove nvidia from {words} on the kernel command line, in the configuration of "
                "the boot loader. Then restart.",
                words=words,
            ),
            commands=(_SHOW,),
            restart="machine",
        )
    return Fix(
        text=say(
            "Remove nvidia from {words} on the kernel command line, then restart.", words=words
        ),
        commands=(_SHOW, *change, _REBOOT),
    )


def _blocked(word: str) -> list[str]:
    return word.partition("=")[2].split(",")


def _without(word: str, modules: Sequence[str]) -> str:
    """Return the parameter with the modules that it still blocks; "" if none is left."""
    left = [module for module in _blocked(word) if module not in modules]
    return f"{word.partition('=')[0]}={','.join(left)}" if left else ""


def _edit(word: str, left: str) -> str:
    """Return an expression of sed; without a slash, because redaction looks for paths."""
    return f"-es#(^|[^[:alnum:]_.-]){re.escape(word)}($|[^[:alnum:]_.,-])#\\1{left}\\2#"


def _by_grubby(word: str, left: str) -> str:
    added = f" --args={shlex.quote(left)}" if left else ""
    return f"sudo grubby --update-kernel=ALL --remove-args={shlex.quote(word)}{added}"
