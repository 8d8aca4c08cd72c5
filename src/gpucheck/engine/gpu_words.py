"""What to do with each GPU: the worst that a finding says of it. Nothing is judged here.

The findings name GPUs, and each says what it means for them (``Hit.gpus``). A GPU is kept if it was
read, every check that could have taken it out of service was asked, and none named it. Else its
word is unknown: what hides one GPU from gpucheck hides its faults as well.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

import msgspec

from gpucheck.derived.gpus import is_passed_on
from gpucheck.facts.claims import Severity
from gpucheck.facts.driver import CudaDriver, Nvml, NvmlGpu
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Container, Pci
from gpucheck.findings import all_rules
from gpucheck.findings.form import Check, Finding, GpuWord, OnGpu, Outcome
from gpucheck.language import say

_WORDS: tuple[GpuWord, ...] = get_args(GpuWord)
_OUT_OF_SERVICE = ("drain", "replace")
_OF_A_MACHINE = ("live", "sysroot", "recorded")
Blamed = Mapping[str, tuple[tuple[str, OnGpu], ...]]
"""The GPUs that each finding names, by its slug: each as its check has named it."""


class GpuVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, what to do with it, and why; ``verdict`` is None where nobody can say."""

    index: int | None = None
    """The number that nvidia-smi gives it; None for one that the driver does not list."""
    pci_address: str | None = None
    device_name: str | None = None
    host: str | None = None
    """Of a pre-flight alone, whose GPUs are those of many machines."""
    verdict: GpuWord | None = None
    reason: str = ""
    findings: tuple[str, ...] = ()
    """The slugs of the findings that name it, the one that decides first."""


def worst(words: Iterable[OnGpu]) -> OnGpu:
    """Return the word that outweighs the others; of equal ones the first."""
    return max(words, key=lambda on: _WORDS.index(on.word))


def gpu_verdicts(
    findings: Iterable[Finding], blamed: Blamed, checks: Iterable[Check], snapshot: Snapshot
) -> tuple[GpuVerdict, ...]:
    """Return a verdict of each GPU: first those that the driver lists, in its order."""
    if snapshot.origin not in _OF_A_MACHINE:
        return ()
    places = _Places(snapshot)
    named = {
        slug: [(place, on) for gpu, on in gpus for place in places.of(gpu)]
        for slug, gpus in blamed.items()
    }
    faults: dict[str, list[tuple[str, OnGpu]]] = {place: [] for place in places.rows}
    doubts: list[str] = []
    for finding in findings:
        slug = finding.slug
        if (slug in named and len(named[slug]) < len(blamed[slug])) or _is_of_all(finding, named):
            doubts.append(slug)
        for place, on in named.get(slug, ()):
            if not _is_explained(finding, place, named):
                faults.setdefault(place, []).append((slug, on))
    asked = {check.slug for check in checks if check.outcome is not Outcome.CRASHED}
    missing = [slug for slug in _decisive() if slug not in asked]
    return tuple(
        _verdict(places.row(place), faults[place], places.why_unread(place), missing, doubts)
        for place in faults
    )


def _decisive() -> Iterator[str]:
    """Yield the checks that can take a GPU out of service."""
    for slug, rule in all_rules().items():
        if rule.judge is not None and rule.on_gpu and rule.on_gpu.word in _OUT_OF_SERVICE:
            yield slug


def _is_of_all(finding: Finding, named: Mapping[str, list[tuple[str, OnGpu]]]) -> bool:
    """Whether it stands for a fault of the machine, or of some GPU that nobody can name."""
    if finding.silenced_by is not None or finding.severity is not Severity.ERROR:
        return False
    return all_rules()[finding.slug].drains_node and not named.get(finding.slug)


def _is_explained(
    finding: Finding, place: str, named: Mapping[str, list[tuple[str, OnGpu]]]
) -> bool:
    """Whether what suppresses a finding is about this GPU, or about no GPU: then it says it all."""
    if finding.silenced_by is None:
        return False
    by_cause = [at for at, _on in named.get(finding.silenced_by, ())]
    return not by_cause or place in by_cause


def _verdict(
    row: GpuVerdict,
    faults: list[tuple[str, OnGpu]],
    unread: str,
    missing: list[str],
    doubts: list[str],
) -> GpuVerdict:
    if faults:
        decisive = worst(on for _slug, on in faults)
        each = dict.fromkeys(slug for slug, _on in faults)
        slugs = sorted(each, key=lambda slug: (slug, decisive) not in faults)
        return msgspec.structs.replace(
            row, verdict=decisive.word, reason=decisive.reason, findings=tuple(slugs)
        )
    if unread:
        return msgspec.structs.replace(row, reason=unread)
    if doubts:
        why = say(
            "{slug} concerns the whole machine, or a GPU that cannot be named", slug=doubts[0]
        )
        return msgspec.structs.replace(row, reason=why)
    if missing:
        why = say("the check {slug} was not asked", slug=missing[0])
        return msgspec.structs.replace(row, reason=why)
    return msgspec.structs.replace(row, verdict="keep", reason=say("nothing was found"))


class _Places:
    """The GPUs of a machine, each by one key: those of the driver, then others on the bus."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._nvml = snapshot.get(Nvml).gpus or []
        self._cuda = snapshot.get(CudaDriver).devices or []
        self._tests = snapshot.get(SelfTests)
        self._why_unlisted = (
            say("the driver has said nothing about its GPUs")
            if snapshot.get(Nvml).gpus is None
            else say("the driver does not list it")
        )
        listed = [gpu.pci_address for gpu in self._nvml]
        on_bus = snapshot.get(Pci).gpus or []
        self._bus = [gpu.address or "" for gpu in on_bus]
        self._products = {gpu.address: gpu.product for gpu in on_bus}
        # In a container the bus shows the GPUs of the host, which it may not use.
        is_whole = not snapshot.get(Container).runtime and None not in listed
        unlisted = [
            gpu.address
            for gpu in on_bus
            if is_whole and gpu.address and gpu.address not in listed and not is_passed_on(gpu)
        ]
        # Where the driver lists as many as the bus has, the addresses are written differently.
        unlisted = unlisted if len(self._nvml) < len(on_bus) else []
        self.rows = [*(f"nvml.gpus.{at}" for at in range(len(listed))), *unlisted]
        self._by_address = {a: f"nvml.gpus.{at}" for at, a in enumerate(listed) if a}

    def of(self, gpu: str) -> list[str]:
        """Return the key of a GPU as a check has named it; [] if nobody can say which it is."""
        section, _, at = gpu.rpartition(".")
        if section == "nvml.gpus":
            return [gpu]
        if section == "pci.gpus":
            return self.of(self._bus[int(at)])
        if section == "selftests.under_load":
            return self._with_uuid((self._tests.under_load or [])[int(at)].uuid)
        if gpu.startswith("cuda:"):
            place = whole_number(gpu.removeprefix("cuda:"))  # in a saved report it may be anything
            is_known = place is not None and place < len(self._cuda)
            return self._with_uuid(self._cuda[place or 0].uuid if is_known else None)
        return [self._by_address.get(gpu, gpu)] if gpu else []

    def _with_uuid(self, uuid: str | None) -> list[str]:
        found = [
            f"nvml.gpus.{at}" for at, gpu in enumerate(self._nvml) if uuid and gpu.uuid == uuid
        ]
        return found or (["nvml.gpus.0"] if len(self._nvml) == 1 else [])

    def row(self, place: str) -> GpuVerdict:
        """Return which GPU it is."""
        gpu = self._listed(place)
        if gpu is None:
            return GpuVerdict(pci_address=place, device_name=self._products.get(place))
        return GpuVerdict(index=gpu.index, pci_address=gpu.pci_address, device_name=gpu.device_name)

    def why_unread(self, place: str) -> str:
        """Return why nothing can be said of a GPU that no finding names; "" if it was read."""
        gpu = self._listed(place)
        if gpu is None:
            return self._why_unlisted
        if gpu.lost or gpu.handle_code:
            return say("it does not answer")
        if gpu.memory_total_bytes is None and gpu.temperature_c is None:
            return say("the driver tells nothing about its state")
        failed = [
            result.name
            for _path, result in self._tests.wrong()
            for device in result.device.split(",")
            if device.startswith("cuda:") and place in self.of(device)
        ]
        return say("the self-test {name} failed on it", name=failed[0]) if failed else ""

    def _listed(self, place: str) -> NvmlGpu | None:
        section, _, at = place.rpartition(".")
        return self._nvml[int(at)] if section == "nvml.gpus" else None
