"""Libraries that are opened by name when they are used: a table of who opens what.

The names were read in the libraries themselves and in LD_DEBUG's log of real processes.
``{major}`` is the number in the opener's own SONAME, ``{cuda}`` the major version of torch's CUDA.
cuDNN asks for each of its parts by its whole version first (``libcudnn_ops.so.9.10.2``, then
``.so.9.10``), so that a part of another release is taken only where the file names do not tell.
"""

from typing import Literal

import msgspec

from gpucheck.loader import Library, Lost, Opened, Process

Need = Literal["needed", "optional"]


class Opening(msgspec.Struct, frozen=True):
    """A library that another opens; ``needed``: what opens it fails without it."""

    opener: str
    soname: str
    need: Need


TABLE = (
    Opening("cudart", "libcuda.so.1", "optional"),
    Opening("cudnn", "libcudnn_graph.so.{major}", "needed"),
    Opening("cudnn", "libcudnn_ops.so.{major}", "needed"),
    Opening("cudnn", "libcudnn_cnn.so.{major}", "needed"),
    Opening("cudnn", "libcudnn_adv.so.{major}", "needed"),
    Opening("cudnn", "libcudnn_ext.so.{major}", "optional"),
    Opening("cudnn_graph", "libcudnn_heuristic.so.{major}", "needed"),
    Opening("cudnn_graph", "libcudnn_engines_precompiled.so.{major}", "needed"),
    Opening("cudnn_graph", "libcudnn_engines_runtime_compiled.so.{major}", "needed"),
    Opening("cudnn_graph", "libcudnn_engines_tensor_ir.so.{major}", "optional"),
    Opening("cudnn_graph", "libnvrtc.so.{cuda}", "optional"),
    Opening("torch_cuda", "libtorch_cuda_linalg.so", "optional"),
    Opening("cublasLt", "libnvrtc.so.{cuda}", "optional"),
    Opening("cufft", "libnvJitLink.so.{cuda}", "optional"),
    Opening("cusparseLt", "libnvrtc.so.{cuda}", "optional"),
    Opening("cupti", "libnvperf_host.so", "optional"),
    Opening("nccl", "libnccl-net.so", "optional"),
    Opening("nccl", "libnccl-tuner.so", "optional"),
    Opening("torch_cpu", "libcaffe2_nvrtc.so", "optional"),
)
_OLD_CUDNN = tuple(
    Opening("cudnn", f"libcudnn_{part}.so.{{major}}", "needed")
    for part in ("ops_infer", "ops_train", "cnn_infer", "cnn_train", "adv_infer", "adv_train")
)
_PARTS_SINCE = 9
"""cuDNN 9 replaced the parts for inference and training by others."""
_PARTS_FROM = 8


class RuntimeOpened(msgspec.Struct, frozen=True):
    """A library that would be opened, or cannot be."""

    opener: Library
    opening: Opening
    soname: str
    library: Library | None
    lost: tuple[Lost, ...]


def runtime_opened(
    process: Process, names: dict[str, Library], cuda: str, cudnn: str
) -> list[RuntimeOpened]:
    """Open what the table says, one after the other, as the process would.

    Args:
        process: with torch loaded; it has what was opened afterwards.
        names: the loaded libraries by the names of the table, ``cudnn`` or ``torch_cuda``.
        cuda: the major version of torch's CUDA, "" when unknown.
        cudnn: the version of the cuDNN that is loaded, "" when unknown.
    """
    openers = dict(names)
    done = []
    for opening in _table(openers.get("cudnn")):
        opener = openers.get(opening.opener)
        if opener is None or ("{cuda}" in opening.soname and not cuda):
            continue
        soname = opening.soname.replace("{major}", _major(opener)).replace("{cuda}", cuda)
        there = process.loaded_as(soname)
        if there is not None and there.loader is None and there in names.values():
            continue  # torch has it loaded: the name finds it
        opened = _open(process, soname, opener, cudnn)
        done.append(RuntimeOpened(opener, opening, soname, opened.library, tuple(opened.lost)))
        if opened.library is not None:
            stem = soname.partition(".so")[0].removeprefix("lib")
            openers.setdefault(stem, opened.library)
    return done


def _open(process: Process, soname: str, opener: Library, cudnn: str) -> Opened:
    """Open a library under the names that the opener tries, one after the other."""
    numbers = cudnn.split(".")[:3]
    if soname.startswith("libcudnn_") and len(numbers) == 3:  # noqa: PLR2004  # major.minor.patch
        stem = soname.partition(".so.")[0]
        for length in (3, 2):
            opened = process.open(
                f"{stem}.so.{'.'.join(numbers[:length])}", opener, needed_by=opener.label
            )
            if opened.library is not None:
                return opened
    return process.open(soname, opener, needed_by=opener.label)


def _table(cudnn: Library | None) -> tuple[Opening, ...]:
    """Return the table for the cuDNN that is there: up to 7 it is one file."""
    major = _major(cudnn) if cudnn is not None else ""
    if not major.isdecimal() or int(major) >= _PARTS_SINCE:
        return TABLE
    rest = tuple(one for one in TABLE if not one.opener.startswith("cudnn"))
    return (*_OLD_CUDNN, *rest) if int(major) >= _PARTS_FROM else rest


def _major(library: Library) -> str:
    return library.label.partition(".so.")[2].partition(".")[0]
