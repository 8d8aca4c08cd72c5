"""What the kernel's log says: the SXids of NVSwitches, and how long ago something was."""

from msgspec.structs import replace

from gpucheck.advice import DriverFixes
from gpucheck.derived.driver_state import DriverState
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError
from gpucheck.facts.base import Derived
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, KernelLog, Nvml, SxidEvent
from gpucheck.findings.form import Hit
from gpucheck.language import Sentence, say
from gpucheck.tables.error_codes import SxidRow, Sxids

# How long ago something happened, for a headline.

_HOUR, _MINUTE = 3600, 60  # seconds


def with_age(headline: str, seconds: float) -> str:
    """Add to a headline how long ago it happened."""
    return say("{headline}, {ago}", headline=headline, ago=how_long_ago(seconds))


def how_long_ago(seconds: float) -> Sentence:
    """Return a time as a part of a sentence."""
    if seconds >= 2 * _HOUR:
        return say("{hours} hours ago", hours=int(seconds // _HOUR))
    return say("{minutes} min ago", minutes=max(int(seconds // _MINUTE), 1))


# What the SXids of the kernel's log say about the NVSwitches.

_LONG_AGO = 24 * 3600.0  # as with Xids: GPUs that answer a day later are no emergency
_LINKS = "nvidia-smi nvlink --status"
_KERNEL = "sudo dmesg | grep -i sxid"
_MANAGER_LOG = "/var/log/fabricmanager.log"
_MANAGER = f"sudo grep 'detected NVSwitch' {_MANAGER_LOG}"


class NvswitchErrors(Derived):
    """The worst SXid of the log that asks for something.

    Fatal ones count, and those of the others that stall a GPU. The word of the message itself wins
    over the table, because the generations of NVSwitches differ, and a number may have changed its
    meaning with the driver.
    """

    def __init__(  # the log, its numbers, whose they are, what works
        self, log: KernelLog, sxids: Sxids, nvml: Nvml, cuda: CudaDriver, driver: DriverState
    ) -> None:
        self._events = log.sxids or []
        self._sxids = sxids
        self._driver = driver
        gpus = nvml.gpus or []
        self._gpus_answer = bool(gpus) and not any(gpu.lost for gpu in gpus)
        self._cuda_starts = cuda.init_code == 0

    def hit(self, around: Surroundings, update: DriverFixes) -> Hit | None:
        """Return what to report; None if no SXid asks for anything."""
        ranked = [(self._rank(event), at) for at, event in enumerate(self._events)]
        worst = max(ranked, default=(0, 0))  # of several the newest
        if not worst[0]:
            return None
        event = self._events[worst[1]]
        row = self._row(event)
        doubtful = self._is_old(event) or self._may_be_a_reset(row)
        mild = doubtful or not self._is_fatal(event)
        what = say("{sxid} of {nvswitch}", sxid=_named(event, row), nvswitch=_where(event))
        ago = event.seconds_ago
        path = f"kernel_log.sxids.{worst[1]}"
        return Hit(
            headline=say(
                "{what}: {impact}",
                what=with_age(what, ago) if ago else what,
                impact=self._impact(event, row),
            ),
            evidence=(f"{path}.sxid", f"{path}.message"),
            fixes=self._fixes(event, row, around, update),
            severity=Severity.WARNING if mild else Severity.ERROR,
            confidence=Confidence.POSSIBLE if doubtful else Confidence.LIKELY,
        )

    def _row(self, event: SxidEvent) -> SxidRow | None:
        try:
            release = self._driver.release()
        except UnknownFactError:
            release = ""
        return self._sxids.sxid(event.sxid or 0, release)

    def _rank(self, event: SxidEvent) -> int:
        """Return 0 for an event that asks for nothing, and more for a worse one."""
        row = self._row(event)
        if not self._is_fatal(event):
            stalls = row is not None and row.impact == "gpu-stalls"
            return 1 if stalls and not self._is_old(event) else 0
        if row is not None and row.impact == "broken-link":
            return 2  # it may follow from another
        return 4 if row is not None and row.kind == "always-fatal" else 3

    def _is_fatal(self, event: SxidEvent) -> bool:
        if event.fatal is not None:
            return event.fatal
        row = self._row(event)
        return row is not None and row.kind in ("fatal", "always-fatal")

    def _is_old(self, event: SxidEvent) -> bool:
        ago = event.seconds_ago
        return self._gpus_answer and (ago is None or ago > _LONG_AGO)

    def _may_be_a_reset(self, row: SxidRow | None) -> bool:
        """Whether a GPU at the other end was reset on purpose: CUDA starts, so no link is missed.

        CUDA does not start on a GPU that is not part of the fabric (error 802).
        """
        return row is not None and row.impact == "broken-link" and self._cuda_starts

    def _impact(self, event: SxidEvent, row: SxidRow | None) -> Sentence:
        if row is not None and row.impact == "broken-link":
            return say("a bad contact, or the other end of the link was reset or switched off")
        if not self._is_fatal(event):
            return say("the NVLink traffic of a GPU stalls, and its programs end with Xid 45")
        if row is not None and row.kind == "always-fatal":
            return say("the whole NVLink fabric needs a reset")
        return say("the GPU behind this port has no working NVLink until a reset")

    def _fixes(
        self, event: SxidEvent, row: SxidRow | None, around: Surroundings, update: DriverFixes
    ) -> tuple[Fix, ...]:
        if not self._is_fatal(event):
            return (
                _PARTITIONS if row is not None and row.recovery == "routing" else _again(event),
            )
        if around.in_container() or (row is not None and row.recovery == "restart"):
            return update.reboot(say("this resets the GPUs and the NVSwitches")), _service(event)
        return replace(_RESET, verify=_look(event)[1]), _service(event)


def _named(event: SxidEvent, row: SxidRow | None) -> str:
    name = f"SXid {event.sxid}"
    return name if row is None else say("{name} ({meaning})", name=name, meaning=row.mnemonic)


def _where(event: SxidEvent) -> Sentence:
    if not event.pci_address:
        return say("an NVSwitch")
    if event.link is None:
        return say("the NVSwitch at PCI {address}", address=event.pci_address)
    return say(
        "link {link} of the NVSwitch at PCI {address}", link=event.link, address=event.pci_address
    )


_RESET = Fix(
    text=say(
        "Stop everything that uses the GPUs and reset all of them together, which also resets the "
        "NVSwitches. If that is refused, restart the machine. After a reset look for new SXids "
        "only: the log keeps the old ones until a restart."
    ),
    commands=("sudo nvidia-smi --gpu-reset", "sudo systemctl restart nvidia-fabricmanager"),
    restart="machine",
)
_PARTITIONS = Fix(
    text=say(
        "The Fabric Manager was given partitions that do not allow this traffic: compare them with "
        "the GPUs that the program uses."
    ),
    commands=("journalctl -u nvidia-fabricmanager --no-pager -n 30",),
)


def _service(event: SxidEvent) -> Fix:
    return Fix(
        text=say(
            "If it comes back, the contacts, the baseboard or a GPU need service. The commands "
            "show which links are down, and the SXids for the supplier."
        ),
        commands=_look(event),
    )


def _again(event: SxidEvent) -> Fix:
    return Fix(
        text=say(
            "Start the program again; in a virtual machine, restart the guest. If it comes back, "
            "reset all GPUs together."
        ),
        commands=_look(event),
    )


def _look(event: SxidEvent) -> tuple[str, str]:
    """Return the commands that show the links, and the log that has the event."""
    return _LINKS, _MANAGER if event.source("sxid") == _MANAGER_LOG else _KERNEL
