"""Code compiled on this machine: by NVRTC, by ``torch.compile``, by the compiler of an extension.

A program that compiles nothing needs none of these, so the test runs only if it is named.
"""

from __future__ import annotations

import contextlib
import os
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

from .. import reference
from ..bench import Bench, Failed, synchronize
from ..errors import explain
from ..reference import not_tested
from ..words import say

NAME = "jit"
PER = "gpu"
LEVELS = ()
ABOUT = "code compiled on the spot: NVRTC, torch.compile, a small extension (only when named)"
# Empty caches: 20 s of an idle core, 26 s on an H100 (docs/evidence.md); nvcc takes longer.
SECONDS = {"quick": 300, "standard": 300, "stress": 300}

Torch = Any  # the module, of any version
Tensor = Any

_FUSED = "template <typename T> T fused(T x, T y) { return x * y + T(2) * x; }"
_TENSOR = "#include <ATen/core/Tensor.h>"
_BINDING = (
    _TENSOR
    + """
#include <torch/csrc/utils/pybind.h>
at::Tensor twice(at::Tensor x)%s
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("twice", &twice); }
"""
)
"""Without <torch/extension.h>, which would cost a CPU core three times as long."""
_KERNEL = """
__global__ void twice_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + x[i];
}
at::Tensor twice(at::Tensor x) {
  auto y = x.new_empty(x.sizes());
  int n = x.numel();
  twice_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
_ON_CPU = {"twice.cpp": _BINDING % " { return x.add(x); }"}
_ON_GPU = {"binding.cpp": _BINDING % ";", "twice.cu": _TENSOR + _KERNEL}
_NOT_MADE_FOR_IT = ("not supported on Python", "not yet supported for", "GPUTooOldForTriton")
_NOT_MAPPED = "failed to map segment from shared object"
_NO_COMPILER = (
    "Failed to find C compiler", "InvalidCxxCompiler", "No working C++ compiler",
    "Compiler: cl is not found", "['where', 'cl']",  # on Windows
)  # fmt: skip
_NO_TOOL = (
    "Ninja is required",
    "CUDA_HOME",
    "No module named 'setuptools'",
    "No module named 'pkg_",
)


def run(bench: Bench) -> None:
    """Try each way to compile, even if another one has failed."""
    failures = []
    with _folder(bench) as folder:
        for part in (_nvrtc, _compiled, _extension):
            failure = _attempt(bench, part, folder)
            if failure is not None:
                failures.append(failure)
    if failures:
        first, *others = failures
        first.data["others"] = [other.detail for other in others]
        raise first


@contextlib.contextmanager
def _folder(bench: Bench) -> Iterator[str]:
    """Make a folder for compiled code and for the files that killed compilers leave behind."""
    before = os.environ.get("TMPDIR"), tempfile.tempdir
    with bench.own_folder("gpucheck-jit-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield folder
        finally:
            del os.environ["TMPDIR"]
            if before[0] is not None:
                os.environ["TMPDIR"] = before[0]
            tempfile.tempdir = before[1]


def _attempt(bench: Bench, part: Callable[[Bench, str], None], folder: str) -> Failed | None:
    """Run one part; return how it failed, None if it did not fail."""
    try:
        part(bench, folder)
        synchronize(bench)
    except Failed as failed:
        return failed
    except Exception as error:  # noqa: BLE001  # compilers fail in every way there is
        return _judged(bench, part.__name__.strip("_"), error, folder)
    return None


def _judged(bench: Bench, part: str, error: Exception, folder: str) -> Failed | None:
    """Return what the exception of a part means; None if the part cannot be used here."""
    words = f"{type(error).__name__}: {error}"
    first = str(error).strip().splitlines()[:1]
    if any(each in words for each in _NOT_MADE_FOR_IT):
        not_tested(bench, part, say("torch says: {words}", words="".join(first)[:200]))
        return None
    if part == "extension" and any(each in words for each in _NO_TOOL):
        not_tested(
            bench, part, say("there is no complete toolchain: {words}", words="".join(first)[:200])
        )
        return None
    failure = explain(error)
    if _NOT_MAPPED in words and _forbids_execution(folder):
        detail = say(
            "{part}: compiled code cannot be loaded from {mount}, which is mounted with noexec",
            part=part,
            mount=_mount_of(folder),
        )
        return Failed("mounted-noexec", detail, failure["data"])
    wanted = _wanted(words)
    if wanted:
        detail = say(
            "{part}: {wanted} is not there, and code cannot be compiled without it",
            part=part,
            wanted=wanted,
        )
        return Failed("compiler-missing", detail, {**failure["data"], "wanted": wanted})
    return Failed(
        failure["kind"],
        say("{part}: {detail}", part=part, detail=failure["detail"]),
        failure["data"],
    )


def _forbids_execution(folder: str) -> bool:
    return hasattr(os, "statvfs") and bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def _mount_of(folder: str) -> str:
    place = Path(folder)
    while not place.is_mount():
        place = place.parent
    return str(place)


def _wanted(words: str) -> str:
    """Return what a compilation lacked, "" if it failed for another reason."""
    if any(each in words for each in _NO_COMPILER):
        return say("a C compiler")
    if "Python.h" in words:
        return "Python.h"
    headers = Path(sysconfig.get_paths()["include"], "Python.h")
    if "CalledProcessError" in words and not headers.is_file():
        return "Python.h"  # Triton does not pass on what the compiler wrote
    return ""


def _numbers(bench: Bench, seed: int) -> Tensor:
    """Return integers for which no order of operations rounds anything."""
    source = reference.generator(bench.torch, bench.seed + seed)
    return reference.integers(bench.torch, source, (64, 96), 4)


def _nvrtc(bench: Bench, _folder: str) -> None:
    """Compile an element-wise function by NVRTC, as torch itself does for rare functions."""
    torch = bench.torch
    create = getattr(getattr(torch.cuda, "jiterator", None), "_create_jit_fn", None)
    if bench.device.type != "cuda" or create is None:
        not_tested(bench, "nvrtc", say("NVRTC compiles for NVIDIA GPUs only, and needs torch 1.12"))
        return
    bench.stage(say("compiling with NVRTC"))
    left, right = _numbers(bench, 0), _numbers(bench, 1)
    got = create(_FUSED)(left.float().to(bench.device), right.float().to(bench.device))
    reference.same("a function compiled by NVRTC", got, left * right + 2 * left, bench)


def _compiled(bench: Bench, folder: str) -> None:
    """Compile a function with ``torch.compile``: Triton on a GPU, a C++ compiler on the CPU."""
    torch = bench.torch
    if not hasattr(torch, "compile"):
        not_tested(bench, "compiled", say("torch.compile exists from torch 2.0 on"))
        return
    bench.stage("torch.compile")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder, "inductor"))
    os.environ["TRITON_CACHE_DIR"] = str(Path(folder, "triton"))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    values = _numbers(bench, 2)

    def function(given: Tensor) -> Tensor:
        return (given * 3 + 1).relu().sum(1)

    got = torch.compile(function, fullgraph=True)(values.float().to(bench.device))
    reference.same("a function compiled by torch.compile", got, function(values), bench)


def _extension(bench: Bench, folder: str) -> None:
    """Build and load a C++ extension; for a GPU with a kernel of its own, by nvcc."""
    from torch.utils import cpp_extension  # noqa: PLC0415  # needs setuptools, which may be missing

    bench.stage(say("building an extension"))
    is_cuda = bench.device.type == "cuda"
    if is_cuda and not cpp_extension.CUDA_HOME:
        not_tested(bench, "extension", say("there is no CUDA toolkit with nvcc"))
        return
    place = Path(folder, "extension")
    place.mkdir()
    for name, code in (_ON_GPU if is_cuda else _ON_CPU).items():
        Path(place, name).write_text(code, encoding="ascii")
    module = cpp_extension.load(
        "gpucheck_twice",
        sources=sorted(str(file) for file in place.iterdir()),
        extra_cflags=["-O0"],
        build_directory=str(place),
    )
    values = _numbers(bench, 3)
    got = module.twice(values.float().to(bench.device))
    reference.same("an extension built here", got, 2 * values, bench)
