"""Hides GPUs from a program whose torch cannot use them."""

import itertools

from gpucheck.derived import Derived, Gpu
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import Nvml
from gpucheck.language import in_series, in_turn, say


class HideGpus(Derived):
    """Hides GPUs from a program whose torch cannot use them."""

    def __init__(self, nvml: Nvml, around: Surroundings) -> None:
        self._nvml = nvml
        self._around = around

    def fix(self, works: list[Gpu]) -> Fix | None:
        """Return the fix that leaves only these GPUs visible; None if there are none."""
        if not works:
            return None
        names = in_series([gpu.label for gpu in works])
        products = {gpu.product for gpu in works}
        places = [
            place for place, gpu in enumerate(self._nvml.gpus or ()) if gpu.device_name in products
        ]
        text = say(
            "Or use only {gpus}, which this build supports, and hide the other GPUs from it.",
            gpus=names,
        )
        if len(places) != len(works):
            return Fix(
                text=in_turn((text, say("CUDA_VISIBLE_DEVICES accepts their indices or UUIDs.")))
            )
        values = ("PCI_BUS_ID", ",".join(str(place) for place in places))
        names_of = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")
        pairs = zip(names_of, values, strict=True)
        commands = itertools.chain.from_iterable(self._around.set(*pair) for pair in pairs)
        return Fix(text=text, commands=tuple(commands))
