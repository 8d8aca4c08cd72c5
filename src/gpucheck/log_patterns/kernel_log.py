"""Reads single messages of the kernel log: Xids, SXids, lost GPUs, processes killed for memory."""

import re
from datetime import datetime, timezone

import msgspec

from gpucheck.facts.numbers import whole_number

_MICROSECONDS = 1_000_000  # a second of /dev/kmsg
_LONGEST = 400  # chosen: an Xid with its data fits
_TIME_DIGITS = 18  # microseconds of 30,000 years

# Bounds such as {0,60} are above what programs print, and keep a search in a hostile line linear.
# The brackets hold (0000:01:00) of old drivers, and (PCI:0000:01:00) of later ones.
_XID = r"NVRM: Xid \((?P<where>[^()]{1,80})\): (?P<xid>\d{1,5})\b[, ]*(?P<text>.*)"
# common_nvswitch.h (NVSWITCH_PRINT_SXID) and intr_nvswitch.h of NVIDIA's open kernel modules.
_SXID = r"SXid \((?P<where>[^()]{1,80})\): (?P<sxid>\d{4,6}), (?P<text>.*)"
_SXID_DATA = ("Severity ", "Data {")
"""What follows the message of an SXid with the registers that belong to it."""
_CALLED = {"Fatal": True, "Non-fatal": False, "Correctable": False}
_LINK = r"\bLink (\d{1,3})\b"
# The Fabric Manager writes it once more into its own log, without the words of the driver.
_SXID_OF_MANAGER = (
    r"detected NVSwitch (?P<called>non-fatal|fatal) error (?P<sxid>\d{4,6}) on "
    r"(?P<where>[^\n]{0,160}?)(?: port (?P<link>\d{1,3}))?\s*$"
)
# [Jul 09 2024 18:14:07] [ERROR] [tid 12727] ...; the clock has no zone.
_MANAGER_LINE = r"\[([A-Z][a-z]{2}) ([0-9]{1,2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2})\] (.*)"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ADDRESS = (
    r"(?<![0-9A-Fa-f])([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})"
    r"(?:\.([0-7]))?(?![0-9A-Fa-f])"
)
_UUID = r"\b(GPU|MIG)-[0-9A-Fa-f]{8}[-0-9A-Fa-f]*"
# The name may hold any character, so it ends where the kernel's next words begin.
_OOM = (
    r"(?P<cgroup>Memory cgroup o|O)ut of memory(?: \([a-z_]{1,40}\))?: "
    r"Kill(?:ed)? process (?P<pid>\d{1,10}) \((?P<name>[^\n]{1,64}?)\)(?=,| total-vm| score|$)"
)
_LIMIT = (
    r"oom-kill:constraint=CONSTRAINT_MEMCG,[^\n]{0,4000}?,oom_memcg=(?P<group>/[^\n]{0,1000}?),"
    r"task_memcg=[^\n]{0,1000},pid=(?P<pid>\d{1,10}),"
)
"""The line before that of a kill, since Linux 5.0: whose limit was reached."""
# mlx5: "ens1f0np0: Link down"; ixgbe, ice, bnxt: "eth0: NIC Link is Down"; igb: "eth0: igb: eth0
# NIC Link is Down". A name has 15 characters at most (Linux, IFNAMSIZ).
_LINK_OF_NETWORK = (
    r"(?P<interface>[A-Za-z0-9._-]{1,15}): (?:[a-z0-9_]{1,16}: (?P=interface) )?(?:NIC )?"
    r"[Ll]ink (?:is )?(?P<state>[Uu]p|[Dd]own)\b"
)
# Linux, kernel/module/signing.c, module_sig_check(); it does not name the module.
_REJECTED = r"\bLoading of (?:unsigned )?module (?:with [a-z ]{1,30} )?is rejected"
_OFF_BUS = "fallen off the bus"
_OFF_BUS_XID = 79  # the GPU has fallen off the bus
# With -o short-monotonic, as the probe asks for it.
_JOURNAL_LINE = r"\[\s{0,12}(\d{1,12}\.\d{1,9})\] \S{1,255} kernel: (.*)"
# CONFIG_PRINTK_CALLER adds the second bracket.
_DMESG_LINE = r"\[\s{0,12}(\d{1,12}\.\d{1,9})\](?:\[ {0,12}[TC]\d{1,10}\])? (.*)"


class KernelRecord(msgspec.Struct, frozen=True):
    """One message; ``seconds`` are counted from the boot."""

    seconds: float
    text: str


class Xid(msgspec.Struct, frozen=True):
    """An Xid message; ``address`` is "" if it names no PCI device."""

    number: int
    address: str
    message: str


class Sxid(msgspec.Struct, frozen=True):
    """An SXid message; ``fatal`` is what it calls itself, if it does."""

    number: int
    address: str
    link: int | None
    fatal: bool | None
    message: str


class Kill(msgspec.Struct, frozen=True):
    """A process killed for memory; ``scope`` is ``host`` or ``cgroup``."""

    pid: int
    process_name: str
    scope: str


def split_kmsg(text: str) -> list[KernelRecord]:
    """Split the content of /dev/kmsg: ``priority,number,microseconds,flags;message``."""
    records = []
    for line in text.split("\n"):
        head, semicolon, message = line.partition(";")
        fields = head.split(",")
        # Lines that begin with a blank are key=value pairs of the previous record.
        if not semicolon or not line[:1].isdigit() or len(fields) < 4:  # noqa: PLR2004
            continue
        time = whole_number(fields[2], _TIME_DIGITS)
        if time is not None:
            records.append(KernelRecord(time / _MICROSECONDS, message))
    return records


def split_journal(text: str) -> list[KernelRecord]:
    """Split ``journalctl -o short-monotonic``: ``[seconds] host kernel: message``."""
    return _split(text, _JOURNAL_LINE)


def split_dmesg(text: str) -> list[KernelRecord]:
    """Split ``dmesg``: ``[seconds] message``, with the caller after the time in some kernels."""
    return _split(text, _DMESG_LINE)


def split_manager_log(text: str) -> list[KernelRecord]:
    """Split the Fabric Manager's log: ``[Jul 09 2024 18:14:07] message``.

    The seconds are those since 1970 if its clock has the time of UTC. Lines without a time are left
    out.
    """
    pattern = re.compile(_MANAGER_LINE)
    records = []
    for line in text.split("\n"):
        found = pattern.match(line)
        if found is None or found[1] not in _MONTHS:
            continue
        year, month = int(found[3]), _MONTHS.index(found[1]) + 1
        day, hour, minute, second = (int(found[at]) for at in (2, 4, 5, 6))
        try:
            at = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
        except ValueError:  # a day or an hour that there is not
            continue
        records.append(KernelRecord(at.timestamp(), found[7]))
    return records


def _split(text: str, form: str) -> list[KernelRecord]:
    pattern = re.compile(form)
    found = (pattern.match(line) for line in text.split("\n"))
    return [KernelRecord(float(match[1]), match[2]) for match in found if match]


def parse_xid(text: str) -> Xid | None:
    """Parse an Xid message; None if it is not one."""
    found = re.search(_XID, text) if "NVRM: Xid" in text else None
    if found is None:
        return None
    return Xid(int(found["xid"]), _address(found["where"]), without_uuids(found["text"].strip()))


def parse_sxid(text: str) -> Sxid | None:
    """Parse an SXid message of the driver or of the Fabric Manager; None if it is not one."""
    if "SXid (" in text:
        found = re.search(_SXID, text)
        if found is None or found["text"].startswith(_SXID_DATA):
            return None
        link = re.search(_LINK, found["text"])
        called = _CALLED.get(found["text"].partition(",")[0])
        where, port = found["where"], link[1] if link else None
    elif "detected NVSwitch" in text:
        found = re.search(_SXID_OF_MANAGER, text)
        if found is None:
            return None
        where, port, called = found["where"], found["link"], found["called"] == "fatal"
    else:
        return None
    return Sxid(
        number=int(found["sxid"]),
        address=_address(where),
        link=None if port is None else int(port),
        fatal=called,
        message=found[0][:_LONGEST].strip(),
    )


def parse_oom_kill(text: str) -> Kill | None:
    """Parse the kernel's line about a process that it killed for memory."""
    found = re.search(_OOM, text) if "ut of memory" in text else None
    if found is None:
        return None
    scope = "cgroup" if found["cgroup"] != "O" else "host"
    return Kill(int(found["pid"]), found["name"], scope)


def parse_reached_limit(text: str) -> tuple[int, str] | None:
    """Parse the kernel's line about a group at its limit: who is killed for it, and the group."""
    found = re.search(_LIMIT, text) if text.startswith("oom-kill:") else None
    return (int(found["pid"]), found["group"]) if found is not None else None


def parse_link(text: str) -> tuple[str, bool] | None:
    """Parse a driver's line about the link of a network interface: its name, whether it is up."""
    found = re.search(_LINK_OF_NETWORK, text) if "ink " in text else None
    return (found["interface"], found["state"].lower() == "up") if found is not None else None


def speaks_of_driver(text: str) -> bool:
    """Whether the message comes from NVIDIA's driver."""
    return "NVRM:" in text or ("SXid" in text and "nvidia-nvswitch" in text)


def rejects_module(text: str) -> bool:
    """Whether the kernel says that it refused a module for its signature."""
    return "is rejected" in text and re.search(_REJECTED, text) is not None


def fallen_off_bus(texts: list[str]) -> list[str]:
    """Return the PCI addresses of lost GPUs, each once.

    If a GPU is missing while the driver loads, the message has several lines, and the address is on
    an earlier line than the words.
    """
    lost: dict[str, None] = {}
    earlier = ""
    for text in texts:
        if "NVRM" not in text:
            continue
        xid = parse_xid(text)
        address = xid.address if xid else _address(text)
        if _OFF_BUS in text or (xid is not None and xid.number == _OFF_BUS_XID):
            lost[address or earlier] = None
        earlier = address or earlier
    lost.pop("", None)
    return list(lost)


def without_uuids(text: str) -> str:
    """Shorten a message to a sensible length, and UUIDs to their kind."""
    return re.sub(_UUID, r"\1-...", text[:_LONGEST])


def _address(text: str) -> str:
    """Return the first PCI address in the form of sysfs; "" if there is none."""
    found = re.search(_ADDRESS, text)
    if found is None:
        return ""
    domain, bus, device, function = found.groups()
    return f"{int(domain, 16):04x}:{bus.lower()}:{device.lower()}.{function or 0}"
