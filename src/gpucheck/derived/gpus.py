"""The GPUs of this machine, and those that a CUDA program would see."""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from gpucheck.derived.gpu_labels import numbered_gpu, products_of
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.base import Derived
from gpucheck.facts.driver import CudaDriver, DeviceNodes, NvidiaSmi, Nvml
from gpucheck.facts.system import Environment, Pci, PciGpu, System
from gpucheck.language import any_of, say
from gpucheck.tables import Tables
from gpucheck.tables.gpus import capability_of, spellings

# Reads CUDA_VISIBLE_DEVICES in the way of the CUDA driver.
#
# The list is read from the left and ends at the first entry that names no device; everything after
# it is invisible. An index is the number at the start of an entry, so ``1gpu`` is 1. An index that
# occurs twice leaves no device at all. A UUID may be shortened as long as it names one device. The
# rules are NVIDIA's (CUDA programming guide, environment variables) as ``torch.cuda`` applies them.

_LEADING_NUMBER = r"\s*([+-]?[0-9]{1,9})"

_EMPTY = say("an entry is empty")


_OF_TEGRA = " (nvgpu)"
"""What NVML adds to the name of a Jetson's GPU: the kernel driver."""


class Mask(msgspec.Struct, frozen=True, kw_only=True):
    """The devices that a value of CUDA_VISIBLE_DEVICES leaves visible.

    ``chosen`` has positions in the list of devices. ``bad`` is the entry at which reading ended, ""
    if the whole list was valid, and ``why`` says what is wrong with it. ``lost`` are the entries
    that were meant to name a device and do not: none in ``0,-1`` or ``0,``.
    """

    kind: Literal["unset", "empty", "indices", "uuids", "mig"]
    chosen: tuple[int, ...] = ()
    bad: str = ""
    why: str = ""
    lost: tuple[str, ...] = ()


def read_mask(value: str | None, count: int, uuids: Sequence[str | None]) -> Mask:
    """Apply a value to ``count`` devices whose UUIDs are ``uuids`` (None if unknown)."""
    if value is None:
        return Mask(kind="unset", chosen=tuple(range(count)))
    if not value.strip():
        return Mask(kind="empty", why=say("it is empty, which hides every GPU"))
    entries = [entry.strip() for entry in value.split(",")]
    if entries[0].startswith("MIG-"):
        return Mask(kind="mig")
    if entries[0].startswith("GPU-"):
        return _by_uuid(entries, uuids)
    return _by_index(entries, count)


def _by_index(entries: Sequence[str], count: int) -> Mask:
    chosen: list[int] = []
    for at, entry in enumerate(entries):
        number = re.match(_LEADING_NUMBER, entry)
        index = int(number[1]) if number else -1
        if index in chosen:
            why = say("GPU {index} appears twice, which hides every GPU", index=index)
            return Mask(kind="indices", bad=entry, why=why, lost=_named(entries))
        if not 0 <= index < count:
            missing = _why_no_index(entry, index if number else None, count)
            ends = index < 0 if number else not entry
            return Mask(
                kind="indices",
                chosen=tuple(chosen),
                bad=entry or "(empty)",
                why=missing,
                lost=_named(entries[at + 1 :] if ends else entries[at:]),
            )
        chosen.append(index)
    return Mask(kind="indices", chosen=tuple(chosen))


def _why_no_index(entry: str, index: int | None, count: int) -> str:
    if index is None:
        return say('"{entry}" is not a device index', entry=entry) if entry else _EMPTY
    if index < 0:
        return say("{index} ends the list: nothing from there on is visible", index=index)
    if not count:
        return say("there is no GPU")
    if count == 1:
        return say("there is no GPU {index}; the only GPU here is GPU 0", index=index)
    return say(
        "there is no GPU {index}; the GPUs here are 0 to {last}", index=index, last=count - 1
    )


def _why_no_uuid(entry: str, count: int) -> str:
    if not entry:
        return _EMPTY
    if count > 1:
        return say("{entry} names several GPUs", entry=entry)
    return say("{entry} names no GPU of this machine", entry=entry)


def _named(entries: Sequence[str]) -> tuple[str, ...]:
    return tuple(entry for entry in entries if entry)


def _by_uuid(entries: Sequence[str], uuids: Sequence[str | None]) -> Mask:
    chosen: list[int] = []
    for place, entry in enumerate(entries):
        found = [at for at, uuid in enumerate(uuids) if uuid and uuid.startswith(entry)]
        if len(found) != 1 or not entry.startswith("GPU-"):
            return Mask(
                kind="uuids",
                chosen=tuple(chosen),
                bad=entry or "(empty)",
                why=_why_no_uuid(entry, len(found)),
                lost=_named(entries[place:]),
            )
        if found[0] in chosen:
            why = say("{entry} appears twice, which hides every GPU", entry=entry)
            return Mask(kind="uuids", bad=entry, why=why, lost=_named(entries))
        chosen.append(found[0])
    return Mask(kind="uuids", chosen=tuple(chosen))


_NO_DEVICE = 100
"""The result of ``cuInit`` if a mask, or anything else, hides every GPU."""
_PASSED_ON = ("pci-stub", "xen-pciback", "pciback")
"""Drivers, other than those called vfio, that reserve a device for virtual machines."""


def is_passed_on(gpu: PciGpu) -> bool:
    """Whether the host reserves this GPU for its virtual machines."""
    driver = (gpu.bound_driver or "").replace("_", "-")
    return "vfio" in driver.split("-") or driver in _PASSED_ON


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, from the source with the most details.

    ``facts`` are the paths that prove it: first of the name, then of the compute capability.
    """

    label: str
    compute_capability: str | None
    facts: tuple[str, ...]
    product: str = ""
    pci_address: str = ""

    @property
    def has_product(self) -> bool:
        """Whether the product name is known."""
        return bool(self.product) and self.facts[0].endswith(("device_name", "product"))


class Gpus(Derived):
    """The GPUs of this machine, and those that a CUDA program would see."""

    def __init__(  # every section that may show a GPU
        self,
        pci: Pci,
        nvml: Nvml,
        smi: NvidiaSmi,
        cuda_driver: CudaDriver,
        nodes: DeviceNodes,
        system: System,
        environment: Environment,
        tables: Tables,
    ) -> None:
        self._pci = pci
        self._nvml = nvml
        self._smi = smi
        self._tables = tables
        self._cuda = cuda_driver
        self._nodes = nodes
        self._system = system
        self._environment = environment

    def present(self) -> bool:
        """Whether this machine has an NVIDIA GPU of its own, with or without a driver.

        Raises:
            UnknownFactError: no source that could answer was readable.
        """
        if self.seen_by():
            return True
        if self._system.os == "macos":
            return False
        driver_sees_none = self._nvml.init_code == 0 and self._nvml.gpus == []
        if driver_sees_none and (self._system.os == "windows" or self._system.wsl):
            return False
        if self._system.os == "windows" and self._pci.gpus is None:
            if why := self._pci.problem("gpus"):
                raise UnknownFactError("pci.gpus", why)
            reason = self._nvml.problem("gpus") or say("on Windows only the driver shows this")
            raise UnknownFactError("nvml.gpus", reason)
        if self._system.wsl:
            raise UnknownFactError("nvml.gpus", say("WSL shows a GPU only through its driver"))
        known(self._pci.gpus, "pci.gpus")
        return False

    def seen_by(self) -> tuple[str, ...]:
        """Return the facts that show a GPU; empty if none does."""
        seen = []
        if self._nvml.gpus:
            seen.append("nvml.gpus")
        if self._cards():
            seen.append("pci.gpus")
        if self._cuda.device_count:
            seen.append("cuda_driver.device_count")
        if self._pci.jetson_gpu:
            seen.append("pci.jetson_gpu")
        if self._smi.gpu_names:
            seen.append("nvidia_smi.gpu_names")
        return tuple(seen)

    def all(self) -> list[Gpu]:
        """Return every GPU, from NVML, else the bus, else the CUDA driver, else nvidia-smi.

        Raises:
            UnknownFactError: no source that could answer was readable.
        """
        if self._nvml.gpus:
            return [self._from_nvml(at) for at in range(len(self._nvml.gpus))]
        if self._cards():
            return [self._from_pci(at) for at in self._cards()]
        if self._cuda.devices:
            return [self._from_cuda(at) for at in range(len(self._cuda.devices))]
        if self._smi.gpu_names:
            return [self._from_smi(at) for at in range(len(self._smi.gpu_names))]
        if not self.present():
            return []
        raise UnknownFactError(
            "nvml.gpus", self._nvml.problem("gpus") or say("no list of the GPUs")
        )

    def on_bus(self) -> list[Gpu]:
        """Return every GPU on the PCI bus, served or not; ``all()`` if the bus shows none.

        In a container these are the GPUs of the host.

        Raises:
            UnknownFactError: no source that could answer was readable.
        """
        cards = self._cards()
        if len(self._nvml.gpus or ()) > len(cards) or not cards:
            return self.all()
        by_address = {gpu.pci_address: gpu for gpu in (self.all() if self._nvml.gpus else ())}
        from_bus = [self._from_pci(at) for at in cards]
        return [by_address.get(gpu.pci_address, gpu) for gpu in from_bus]

    def mask(self) -> Mask:
        """Return which GPUs CUDA_VISIBLE_DEVICES leaves visible.

        Raises:
            UnknownFactError: the environment, the GPUs, or the UUIDs that would decide are unknown.
        """
        known(self._environment.variables, "environment.variables")
        value = self._environment.get("CUDA_VISIBLE_DEVICES")
        gpus = self.all()
        uuids = [gpu.uuid for gpu in self._nvml.gpus or ()] or [None] * len(gpus)
        mask = read_mask(value, len(gpus), uuids)
        if mask.kind == "indices" and mask.bad and not self._nvml.gpus and self._are_named_only():
            raise UnknownFactError("nvml.gpus", say("no list of the GPUs"))
        if mask.kind == "uuids" and mask.bad and None in uuids:
            raise UnknownFactError(
                "nvml.gpus", say("CUDA_VISIBLE_DEVICES names UUIDs, unknown here")
            )
        return mask

    def _are_named_only(self) -> bool:
        """Whether the GPUs are those that a text names in passing, which may not be all."""
        return any(gpu.address is None and gpu.product for gpu in self._pci.gpus or ())

    def visible(self) -> list[Gpu]:
        """Return the GPUs that a CUDA program started here would see.

        The CUDA driver's own list decides. Without it the mask is applied to all GPUs. An index
        counts them by speed unless ``CUDA_DEVICE_ORDER`` is PCI_BUS_ID, so it does not identify a
        GPU if the machine has several kinds.

        Raises:
            UnknownFactError: they cannot be determined.
        """
        if self._cuda.init_code == 0 and self._cuda.devices is not None:
            return [self._from_cuda(at) for at in range(len(self._cuda.devices))]
        if self._cuda.init_code == _NO_DEVICE:
            return []
        gpus = self.all()
        mask = self.mask()
        if mask.kind == "mig":
            raise UnknownFactError(
                "cuda_driver.devices", say("CUDA_VISIBLE_DEVICES names MIG devices")
            )
        everything = len(mask.chosen) in (0, len(gpus))
        by_bus = self._environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
        alike = len({(gpu.product, gpu.compute_capability) for gpu in gpus}) <= 1
        if not (everything or by_bus or alike or mask.kind == "uuids"):
            raise UnknownFactError(
                "cuda_driver.devices",
                say(
                    "there are GPUs of several kinds, and an index does not show which one is meant"
                ),
            )
        return [gpus[at] for at in mask.chosen]

    def _cards(self) -> list[int]:
        """Return the places on the bus of all GPUs except those reserved for virtual machines."""
        gpus = self._pci.gpus or []
        return [at for at, gpu in enumerate(gpus) if not is_passed_on(gpu)]

    def _from_nvml(self, at: int) -> Gpu:
        gpu = (self._nvml.gpus or [])[at]
        name = gpu.device_name or "an NVIDIA GPU"
        index = gpu.index if gpu.index is not None else at
        fact = f"nvml.gpus.{at}"
        facts = [f"{fact}.device_name"] if gpu.device_name else [f"{fact}.index"]
        capability = gpu.compute_capability
        if capability:
            facts.append(f"{fact}.compute_capability")
        elif (on_bus := self._on_bus(gpu.pci_address)) is not None:
            capability = (self._pci.gpus or [])[on_bus].compute_capability
            facts.append(f"pci.gpus.{on_bus}.compute_capability")
        return Gpu(
            label=numbered_gpu(index, name.removesuffix(_OF_TEGRA)),
            compute_capability=capability,
            facts=tuple(facts),
            product=name,
            pci_address=gpu.pci_address or "",
        )

    def _on_bus(self, address: str | None) -> int | None:
        places = [gpu.address for gpu in self._pci.gpus or ()]
        return places.index(address) if address and address in places else None

    def _from_pci(self, at: int) -> Gpu:
        gpu = (self._pci.gpus or [])[at]
        device = (
            say("NVIDIA device {device_id}", device_id=gpu.device_id)
            if gpu.device_id
            else say("an NVIDIA GPU")
        )
        name = gpu.product or device
        label = any_of(products_of(gpu.product)) if gpu.product else device
        facts = [f"pci.gpus.{at}.product" if gpu.product else f"pci.gpus.{at}.device_id"]
        if gpu.compute_capability:
            facts.append(f"pci.gpus.{at}.compute_capability")
        has_address = ":" in (gpu.address or "")
        return Gpu(
            label=say("{gpu} at {address}", gpu=label, address=gpu.address)
            if has_address
            else label,
            compute_capability=gpu.compute_capability,
            facts=tuple(facts),
            product=name,
            pci_address=gpu.address or "",
        )

    def _from_cuda(self, at: int) -> Gpu:
        device = (self._cuda.devices or [])[at]
        name = device.device_name or say("an NVIDIA GPU")
        fact = f"cuda_driver.devices.{at}"
        facts = [f"{fact}.{field}" for field in ("device_name", "compute_capability")]
        return Gpu(
            label=numbered_gpu(at, name),
            compute_capability=device.compute_capability,
            facts=tuple(facts),
            product=name,
        )

    def _from_smi(self, at: int) -> Gpu:
        """Return a GPU of which only the name was printed; its chip is that of the product."""
        name = (self._smi.gpu_names or [])[at]
        found = (capability_of(spelling, self._tables) for spelling in spellings(name))
        return Gpu(
            label=numbered_gpu(at, name),
            compute_capability=next((capability for capability in found if capability), None),
            facts=("nvidia_smi.gpu_names",),
            product=name,
        )


class NoGpu(Derived):
    """Whether this machine certainly has no NVIDIA GPU; many rules ask, so it is computed once."""

    def __init__(self, gpus: Gpus) -> None:
        try:
            self.surely = not gpus.present()
        except UnknownFactError:
            self.surely = False


# The GPUs of NVML's list that a CUDA program sees.


class GpuPlaces(Derived):
    """Places in ``nvml.gpus``: NVML counts by the bus, CUDA by speed and behind a mask."""

    def __init__(self, nvml: Nvml, cuda_driver: CudaDriver, gpus: Gpus) -> None:
        self._nvml = nvml
        self._cuda = cuda_driver
        self._gpus = gpus

    def visible(self) -> list[int]:
        """Return the places of the GPUs that a CUDA program started here would see.

        Raises:
            UnknownFactError: they cannot be determined.
        """
        gpus = known(self._nvml.gpus, "nvml.gpus")
        uuids = [gpu.uuid for gpu in gpus]
        devices = self._cuda.devices
        if self._cuda.init_code == 0 and devices is not None:
            if len(devices) == len(gpus):
                return list(range(len(gpus)))
            found = [uuids.index(d.uuid) for d in devices if d.uuid and d.uuid in uuids]
            if len(found) == len(devices):
                return sorted(found)
            raise UnknownFactError("cuda_driver.devices", say("not matched with NVML's GPUs"))
        mask = self._gpus.mask()
        alike = len({gpu.device_name for gpu in gpus}) <= 1 and mask.kind == "indices"
        if mask.kind in ("unset", "uuids", "empty") or alike:
            return sorted(mask.chosen)
        raise UnknownFactError(
            "cuda_driver.devices", say("an index does not show which GPU is meant")
        )
