"""A cuda-compat library is loaded on a GPU that does not support forward compatibility.

NVIDIA's cuda-compat packages put a newer ``libcuda`` in front of the driver's, so that an older
driver runs programs of a newer CUDA. That works on NVIDIA's data-centre GPUs, on selected RTX
boards and on Jetson, with Linux drivers only. On any other GPU (GeForce above all) ``cuInit``
refuses with error 804. CUDA images carry such a library below ``/usr/local/cuda/compat``, and some
put it on LD_LIBRARY_PATH.

What you see: ``torch.cuda.is_available()`` is False with "Error 804: forward compatibility was
attempted on non supported HW".

The same error comes when the kernel module and the libraries are of different releases after an
update; where their releases show it, that is told as driver-library-mismatch.

Cure: take the compat folder out of LD_LIBRARY_PATH, so that the driver's own libcuda is loaded.
If the driver is then too old for this PyTorch, update it.
"""

import posixpath

from gpucheck.facts import known
from gpucheck.findings import Confidence, Fine, Fix, Hit, Judgement, Severity
from gpucheck.fixes import DriverRemedies
from gpucheck.probes.cuda_driver import CudaDriver
from gpucheck.probes.driver import Driver
from gpucheck.rules import Rule
from gpucheck.views.surroundings import Surroundings

RULE = Rule(
    title="forward compatibility is not supported on this GPU",
    severity=Severity.ERROR,
    family="driver",
    yields_to=("driver-library-mismatch", "wsl-driver-problem"),
    needs_gpu=True,
)

_NOT_SUPPORTED = 804


@RULE.check
def check(
    cuda: CudaDriver, driver: Driver, around: Surroundings, update: DriverRemedies
) -> Judgement:
    """Error 804 says it; a compat library that is loaded first is the usual reason."""
    if known(cuda.init_code, "cuda_driver.init_code") != _NOT_SUPPORTED:
        return Fine("cuInit did not refuse forward compatibility")
    path = _compat_library(cuda, driver)
    loaded = f": {path} is loaded" if path else ""
    return Hit(
        headline=f"cuInit fails with error 804: this GPU does not support cuda-compat{loaded}",
        evidence=("cuda_driver.init_code", *(("cuda_driver.library",) if cuda.library else ())),
        fixes=(
            _without(path, around),
            update.install(reason="a driver new enough needs no cuda-compat"),
        ),
        confidence=Confidence.CERTAIN if path else Confidence.LIKELY,
    )


def _compat_library(cuda: CudaDriver, driver: Driver) -> str:
    """Return the compat library that was loaded, or that the loader comes to first."""
    loaded = cuda.library or ""
    if "compat" in posixpath.dirname(loaded).split("/"):
        return loaded
    first = driver.libcuda[0] if driver.libcuda else None
    return first.path or "" if first is not None and first.kind == "compat" else ""


def _without(path: str, around: Surroundings) -> Fix:
    folder = posixpath.dirname(path)
    commands = around.path_without("LD_LIBRARY_PATH", {folder}) if folder else ()
    text = "Load the driver's own libcuda: take the cuda-compat folder out of LD_LIBRARY_PATH"
    if commands:
        return Fix(text=f"{text}, here and where it is set.", commands=commands)
    return Fix(
        text=f"{text} and out of the loader's configuration, then refresh its cache.",
        commands=("grep -rn compat /etc/ld.so.conf.d /etc/ld.so.conf", "sudo ldconfig"),
    )
