"""dmesg, the journal and the Fabric Manager's log: Xids, SXids, lines of the driver, OOM kills."""

import re

from gpucheck.facts.base import Draft
from gpucheck.facts.driver import KernelLog, OomKill, SxidEvent, XidEvent
from gpucheck.language import say
from gpucheck.log_patterns import kernel_log as messages
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers.base import Machine

NAME = say("kernel log")
MARKS = (
    "nvrm:", "sxid (", "nvidia-nvswitch", "detected nvswitch", "out of memory: kill",
    "memory cgroup out of memory",
)  # fmt: skip

_MOST = 400  # chosen: a flood repeats itself; 100 change no answer on 752 labelled tickets
_KERNEL = re.compile(r"(?:NVRM:|nvidia-nvswitch)(.{0,400})")


def read(text: Text, machine: Machine) -> None:
    """Read the messages in order."""
    lines = [text.lines[index] for index in text.find(*MARKS, most=_MOST)]
    for at, line in enumerate(lines):
        xid = messages.parse_xid(line.text)
        sxid = messages.parse_sxid(line.text)
        kill = messages.parse_oom_kill(line.text)
        if xid is not None:
            event = machine.item(KernelLog, "xids", XidEvent, at, line)
            event.fill("xid", xid.number, line.source)
            event.fill("message", xid.message, line.source)
            if xid.address:
                event.fill("pci_address", xid.address, line.source)
        elif sxid is not None:
            _of_switch(sxid, machine.item(KernelLog, "sxids", SxidEvent, at, line), line)
        elif kill is not None:
            oom_kill = machine.item(KernelLog, "oom_kills", OomKill, at, line)
            oom_kill.fill("pid", kill.pid, line.source)
            oom_kill.fill("process_name", kill.process_name, line.source)
            oom_kill.fill("scope", kill.scope, line.source)
        elif messages.speaks_of_driver(line.text):
            _message(line, machine)
    lost = [line for line in lines if "NVRM" in line.text]
    for address in messages.fallen_off_bus([line.text for line in lost]):
        machine.add(KernelLog, "fallen_off_bus", address, lost[-1])


def _of_switch(sxid: messages.Sxid, event: Draft, line: Line) -> None:
    event.fill("sxid", sxid.number, line.source)
    event.fill("message", sxid.message, line.source)
    known = {"pci_address": sxid.address or None, "link": sxid.link, "fatal": sxid.fatal}
    for field, value in known.items():
        if value is not None:
            event.fill(field, value, line.source)


def _message(line: Line, machine: Machine) -> None:
    found = _KERNEL.search(line.text)
    if found is not None:
        machine.add(KernelLog, "nvrm", messages.without_uuids(found[0]), line)
