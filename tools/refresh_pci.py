# ruff: noqa: INP001  # part of a script
"""What a list of PCI devices (pci.ids) says about GPUs of NVIDIA, as rows for compat_tables/.

A chip has other functions than its GPU: sound, USB, the switch of NVLink. pci.ids has no class
codes, but a name has a form: a GPU is its chip, and the product in brackets if it is sold. What a
function does stands behind the chip ("AD102 High Definition Audio Controller", class 0403), and a
switch has its own name in the brackets.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator

from refresh_sources import Proposal, RefreshError, Row

_NVIDIA = "10de"
# GL is a chip for workstations, M for laptops; both are the chip before them.
# "/ GN21-X11" is the board's name of a chip in laptops.
_GPU = re.compile(r"([A-Z]{2}[0-9]{2,3}B?)(?:GL)?M?(?: / [A-Z0-9-]{2,20})?(?: \[([^]]{1,200})\])?")
_NO_GPU = re.compile(r"switch|bridge|audio|controller", re.IGNORECASE)
_HEADER = re.compile(r"#\s+Version: ([0-9]{4}\.[0-9]{2}\.[0-9]{2})")


def gpu_named(name: str) -> tuple[str, str] | None:
    """Return chip and product ("" if unsold) of a device that is a GPU; None for any other."""
    found = _GPU.fullmatch(name)
    if found is None or _NO_GPU.search(name):
        return None
    return found[1], found[2] or ""


def pci_proposal(text: str, capabilities: dict[str, str], known: Collection[str]) -> Proposal:
    """Return rows for the GPUs of pci.ids that the table lacks; `capabilities` are those of chips.

    Raises:
        RefreshError: the text is not that of pci.ids.
    """
    version = _HEADER.search(text)
    if version is None:
        message = "this is no pci.ids: it has no line '# Version: YYYY.MM.DD'"
        raise RefreshError(message)
    key = f"pci-ids-{version[1]}"
    rows: list[Row] = []
    remarks = []
    lacking: Counter[str] = Counter()
    for device_id, name in _devices(text):
        gpu = gpu_named(name)
        if device_id in known:
            if gpu is None:
                remarks.append(f"pci_devices {device_id}: pci.ids calls it {name}")
            continue
        if gpu is None or not gpu[1]:
            continue  # a chip that nobody sells yet has no name that anybody prints
        chip, product = gpu
        if chip not in capabilities:
            lacking[chip] += 1
            continue
        row = {"device_id": device_id, "chip": chip, "products": product.split(" / ")}
        rows.append({**row, "compute_capability": capabilities[chip], "source": [key]})
    remarks += [f"chips lacks {chip}, the chip of {lacking[chip]} GPUs" for chip in lacking]
    title = f"pci.ids (pci-ids.ucw.cz), version {version[1]}, taken under BSD-3-Clause"
    return Proposal("pci_devices", rows, {key: title}, remarks)


def _devices(text: str) -> Iterator[tuple[str, str]]:
    """Yield the id and the name of each device of NVIDIA."""
    vendor = ""
    for line in text.splitlines():
        if re.match(r"[0-9a-f]{4}  ", line):
            vendor = line[:4]
        elif vendor == _NVIDIA and re.match(r"\t[0-9a-f]{4}  ", line):
            yield line[1:5], line[7:].strip()
