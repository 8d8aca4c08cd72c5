"""Whether a capability can belong to the GPU whose name was given with it."""

from gpucheck.describe.keys import GivenError
from gpucheck.language import any_of, say
from gpucheck.tables import Tables
from gpucheck.tables.gpus import GpuProducts, PciDevices, spellings


def refuse_other_capability(name: str, capability: str, tables: Tables) -> None:
    """Refuse a capability that no GPU of this name has, if all of them are known.

    Raises:
        GivenError: the tables have another capability for the name.
    """
    if not name:
        return
    products, devices = tables.get(GpuProducts), tables.get(PciDevices)
    sold = {
        known_capability
        for known in spellings(name)
        for known_capability in (*products.capabilities(known), *devices.capabilities_named(known))
    }
    if sold and not sold & {capability, None}:
        right = any_of(sorted(known_capability for known_capability in sold if known_capability))
        raise GivenError(
            say(
                "gpu={name} and compute_capability={capability} contradict each other: the tables "
                "say {right} for this GPU.",
                name=name,
                capability=capability,
                right=right,
            )
        )
