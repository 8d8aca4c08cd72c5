"""How to let a module load that a parameter of the kernel's command line blocks."""

import re
import shlex
from collections.abc import Sequence

from gpucheck.facts.claims import Fix
from gpucheck.language import in_series, say

_GRUBS = ("dnf", "yum")
_SHOW = "cat /proc/cmdline"
_PLAIN_WORD = r"[A-Za-z0-9_.,=-]{1,1000}"
"""A parameter that neither sed nor the boot loader takes for anything else: root runs both."""
_REBOOT = "sudo reboot"


def blocking(lines: Sequence[str], modules: Sequence[str]) -> list[str]:
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
