"""Reads the Windows registry."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucheck.machine.base import RegistryKey, RegistryValue

_MOST_SUBKEYS = 4096  # chosen: the largest key that probes list has one for each PCI device


DISPLAYS = "{4d36e968-e325-11ce-bfc1-08002be10318}"
"""The class of display adapters."""
DEVICES = r"HKLM\SYSTEM\CurrentControlSet\Enum\PCI"
_OF_DISPLAYS = "PCI\\CC_03"


def is_display(values: Mapping[str, RegistryValue]) -> bool:
    """Whether a device is a display adapter; without a driver only its compatible IDs say so."""
    if of_class := values.get("ClassGUID"):
        return str(of_class).lower() == DISPLAYS
    compatible = values.get("CompatibleIDs", ())
    return isinstance(compatible, tuple) and any(
        name.upper().startswith(_OF_DISPLAYS) for name in compatible
    )


def read(key: str, names: Sequence[str]) -> RegistryKey:
    r"""Return the subkeys of ``HKLM\...`` and its values of these names.

    Raises:
        OSError: there is no such key, or it may not be read.
    """
    import winreg  # noqa: PLC0415  # on Windows only

    system: Any = winreg  # type checkers know it on Windows only
    with system.OpenKey(
        system.HKEY_LOCAL_MACHINE,
        key.partition("\\")[2],
        0,
        system.KEY_READ | system.KEY_WOW64_64KEY,
    ) as opened:
        count = min(system.QueryInfoKey(opened)[0], _MOST_SUBKEYS)
        subkeys = tuple(system.EnumKey(opened, at) for at in range(count))
        values: dict[str, RegistryValue] = {}
        for name in names:
            try:
                value = system.QueryValueEx(opened, name)[0]
            except FileNotFoundError:
                continue
            if isinstance(value, list):
                values[name] = tuple(map(str, value))
            elif isinstance(value, str | int):
                values[name] = value
    return RegistryKey(values=values, subkeys=subkeys)
