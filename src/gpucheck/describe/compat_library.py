"""The effect of a loaded cuda-compat library, from NVIDIA's table of forward compatibility.

On a live machine ``cuInit`` is called. Here the table answers instead: on a kind of GPU that is not
allowed, cuInit fails with 804; on a branch that does not fit, with 803. If the library fits, it
supports its own CUDA version.
"""

from typing import cast

from gpucheck.describe.keys import Given, GivenError
from gpucheck.facts.base import Draft, Drafts
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.system import System
from gpucheck.language import say
from gpucheck.tables import Tables
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.forward_compat import ForwardCompat, GpuKind, kind_of
from gpucheck.tables.gpus import GpuProducts

_SAME: dict[GpuKind, tuple[GpuKind, ...]] = {
    "data-center": ("data-center", "workstation"),
    "workstation": ("workstation", "data-center", "geforce"),
}
"""Other kinds that a GPU of a kind may be called: a Titan is both, like some server boards."""
_LIBRARY = "/usr/local/cuda/compat/libcuda.so.1"
# CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE and CUDA_ERROR_SYSTEM_DRIVER_MISMATCH of cuda.h.
_NOT_ALLOWED, _DOES_NOT_FIT = 804, 803


def read_cuda_compat(given: Given, drafts: Drafts, tables: Tables, names: list[str]) -> None:
    """Fill ``cuda_driver`` if a cuda-compat library is given as loaded."""
    if given.get("cuda_compat_active") != ["true"] or not names:
        return
    draft = drafts.of(CudaDriver)
    if "init_code" in draft.fields or drafts.of(System).fields.get("os") != "linux":
        return
    table = tables.get(ForwardCompat)
    kinds = [_kind(given, name, tables) for name in names]
    allowed = [None if kind is None else table.allowed_on(kind) for kind in kinds]
    if False in allowed:
        source = say("the tables: forward compatibility is not for this kind of GPU")
        draft.fill("init_code", _NOT_ALLOWED, source)
    elif None in allowed:
        why = say(
            "the tables do not say whether this kind of GPU supports cuda-compat: give gpu_kind"
        )
        _unread(drafts, draft, "init_code", why)
    else:
        _on_branch(given, drafts, draft, tables)


def _on_branch(given: Given, drafts: Drafts, draft: Draft, tables: Tables) -> None:
    if not given.get("cuda_compat") or not given.get("driver"):
        return
    cuda, release = given["cuda_compat"][0], given["driver"][0]
    row = tables.get(DriverBranches).branch_of(release)
    state = tables.get(ForwardCompat).state(cuda, row.branch) if row is not None else None
    if state == "compatible":
        draft.fill(
            "cuda",
            cuda,
            say("the libcuda of cuda-compat {cuda}, which fits the driver branch", cuda=cuda),
        )
    elif state == "not-compatible":
        draft.fill(
            "init_code",
            _DOES_NOT_FIT,
            say("the tables: this cuda-compat is for older driver branches"),
        )
    elif state is None:
        why = say(
            "the tables do not have cuda-compat {cuda} on driver {release}",
            cuda=cuda,
            release=release,
        )
        _unread(drafts, draft, "cuda", why)


def _unread(drafts: Drafts, draft: Draft, field: str, why: str) -> None:
    """Leave open which CUDA the library supports: the driver's release does not determine it."""
    drafts.miss(f"cuda_driver.{field}", why)
    draft.fill(
        "library", _LIBRARY, say("as given: {key}={given}", key="cuda_compat_active", given="true")
    )
    draft.unknown("cuda", why)


def refuse_other_kind(given: Given, tables: Tables, names: list[str]) -> None:
    """Refuse a gpu_kind that certainly does not apply to a named GPU.

    Raises:
        GivenError: the tables list the GPU as another kind.
    """
    kind_given = given["gpu_kind"][0] if given.get("gpu_kind") else ""
    for name in names if kind_given else ():
        kind = kind_of(name, tables.get(GpuProducts))
        if kind is not None and kind_given not in _SAME.get(kind, (kind,)):
            raise GivenError(
                say(
                    "gpu={name} and gpu_kind={said} contradict each other: this GPU is of the kind "
                    "{kind}.",
                    name=name,
                    said=kind_given,
                    kind=kind,
                )
            )


def _kind(given: Given, name: str, tables: Tables) -> GpuKind | None:
    if given.get("gpu_kind"):
        return cast("GpuKind", given["gpu_kind"][0])
    return kind_of(name, tables.get(GpuProducts))
