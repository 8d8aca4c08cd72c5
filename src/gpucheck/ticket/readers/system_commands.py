"""Output of ordinary commands: nvcc, gcc, uname, os-release, ldd, lspci, df, ulimit, tegrastats."""

import itertools
import re

from gpucheck.facts.driver import Driver
from gpucheck.facts.system import LimitsOfProcess, Pci, PciGpu, System
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers._fields import read_platform, read_system
from gpucheck.ticket.readers.base import Machine

NAME = say("system commands")
_SHM_PLACE = "/dev/shm"  # noqa: S108  # words to look for
MARKS = (
    "cuda compilation tools", "pretty_name=", "gnu/linux", "nvidia corporation", _SHM_PLACE,
    "max locked memory", "gcc (", "ldd (", "kernel module  ", "-microsoft", "gr3d_freq ",
    "(release), revision", "- l4t: ",
)  # fmt: skip
RANK = 2  # behind what asks the driver and PyTorch themselves

_NVCC = re.compile(r"Cuda compilation tools, release (\d{1,2}\.\d)(?:, V(\d{1,2}\.\d\.\d{1,4}))?")
_NAME = re.compile(r"PRETTY_NAME=\"?([^\"]{1,80})")
_DESCRIPTION = re.compile(r"^Description:\s{1,8}(\S.{1,60})")
_UNAME = re.compile(
    r"\bLinux \S{1,80} (\d{1,2}\.\d{1,3}\.\d{1,3}[\w.+~-]{0,60}) .{0,120}?(x86_64|aarch64|ppc64le)"
)
_LDD = re.compile(r"^ldd \([^()]{1,60}\) (\d\.\d{1,3})")
_GCC = re.compile(
    r"^(?:x86_64-linux-gnu-)?(?:gcc|g\+\+|cc|c\+\+)(?:-\d{1,2})? "
    r"\(.{1,60}\) (\d{1,2}\.\d{1,2}\.\d{1,2})"
)
_LSPCI = re.compile(
    r"((?:[0-9A-Fa-f]{4}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]) (?:VGA compatible|3D|Display) "
    r"controller(?: \[\w{4}\])?: NVIDIA Corporation (\S.{0,100})"
)
_PRODUCT = re.compile(r"\[(?![0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}\])(\w[^\[\]]{1,60})\]")
"""What is in brackets after the chip, without the ids that ``lspci -nn`` adds."""
_LINK = re.compile(
    r"\s{1,16}Lnk(Cap|Sta):\s.{0,40}?Speed ([\d.]{1,5})GT/s(?: \(\w{1,12}\))?, Width x(\d{1,2})\b"
)
_MOST_BELOW = 80
"""Lines of one device in the output of ``lspci -vv``."""
_MODULE = re.compile(
    r"NVIDIA UNIX (?:Open )?\S{0,24}\s?Kernel Module (?:for \S{1,10} )?\s{0,4}(\d{3}\.\d[\d.]{1,8})"
)
_SHM = re.compile(
    r"^(?:shm|tmpfs)\s{1,24}(\d\S{0,12})\s{1,16}\S{1,12}\s{1,16}\S{1,12}\s{1,16}\d{1,3}% /dev/shm"
)
_TEGRASTATS = re.compile(r"RAM \d{1,7}/\d{1,7}MB .{0,400}\bGR3D_FREQ ")
_TEGRA = re.compile(r"# R(\d{2}) \(release\), REVISION: (\d{1,2}\.\d{1,2})\b")
"""A line of ``/etc/nv_tegra_release``."""
_L4T = re.compile(r"^\s{0,4}- L4T: (\d{2})\.(\d{1,2}\.\d{1,2})$")
"""What ``jetson_release`` says of it."""
_MEMLOCK = re.compile(r"max locked memory\s{1,24}\(kbytes, -l\)\s{1,4}(\d{1,15}|unlimited)")


def read(text: Text, machine: Machine) -> None:
    """Look for the line of each command."""
    for index in text.find(
        "cuda compilation tools", "pretty_name=", "description:", "linux ", "ldd (", "gcc (",
        "g++ (", "nvidia corporation", "kernel module  ", _SHM_PLACE, "max locked memory",
        "gr3d_freq ", "(release), revision", "- l4t: ",
    ):  # fmt: skip
        line = text.lines[index]
        for pattern, take_value in _VALUES:
            if (found := pattern.search(line.text)) is not None:
                take_value(found[1], line, machine)
        for pattern, take in _READERS:
            if (found := pattern.search(line.text)) is not None:
                take(found, line, machine)
        card = _LSPCI.search(line.text)
        if card is not None:
            _card(card, line, text.after(index, _MOST_BELOW), machine)


def _kernel(found: re.Match[str], line: Line, machine: Machine) -> None:
    read_platform(f"Linux-{found[1]}-{found[2]}", line, machine)


def _libc(found: re.Match[str], line: Line, machine: Machine) -> None:
    machine.fill(System, "libc", "glibc", line)
    machine.fill(System, "glibc", found[1], line)


def _card(found: re.Match[str], line: Line, below: list[Line], machine: Machine) -> None:
    """Read a card, and the link that ``lspci -vv`` shows below it."""
    product = _PRODUCT.search(found[2])
    address = found[1].lower()
    address = address if address.count(":") > 1 else f"0000:{address}"
    gpu = machine.item(Pci, "gpus", PciGpu, address, line)
    gpu.fill("address", address, line.source)
    if product is not None:
        gpu.fill("product", product[1], line.source)
    for row in itertools.takewhile(lambda row: row.text[:1].isspace(), below):
        link = _LINK.match(row.text)
        if link is not None:
            most = "_max" if link[1] == "Cap" else ""
            gpu.fill(f"link_speed{most}", float(link[2]), row.source)
            gpu.fill(f"link_width{most}", int(link[3]), row.source)


def _module(found: re.Match[str], line: Line, machine: Machine) -> None:
    machine.fill(Driver, "module_release", found[1], line)
    machine.fill(Driver, "module_loaded", value=True, line=line)


def _memlock(found: re.Match[str], line: Line, machine: Machine) -> None:
    limit = -1 if found[1] == "unlimited" else int(found[1]) * 1024
    machine.fill(LimitsOfProcess, "memlock_bytes", limit, line)


def _jetson(_found: re.Match[str], line: Line, machine: Machine) -> None:
    machine.fill(System, "jetson", "Jetson", line)


def _l4t(found: re.Match[str], line: Line, machine: Machine) -> None:
    _jetson(found, line, machine)
    machine.fill(System, "l4t", f"{found[1]}.{found[2]}", line)


_VALUES = (
    (_NVCC, fields.toolkit), (_NAME, read_system), (_DESCRIPTION, read_system), (_GCC, fields.gcc),
    (_SHM, fields.shm_size),
)  # fmt: skip
"""Lines of which the first group is a value that other formats have, too."""
_READERS = (
    (_UNAME, _kernel), (_LDD, _libc), (_MODULE, _module), (_MEMLOCK, _memlock),
    (_TEGRASTATS, _jetson), (_TEGRA, _l4t), (_L4T, _l4t),
)  # fmt: skip
