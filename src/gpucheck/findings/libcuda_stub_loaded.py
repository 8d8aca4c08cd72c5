"""Programs load the CUDA toolkit's stub of libcuda instead of the driver's libcuda.

The toolkit has an empty libcuda in a folder named ``stubs``, which exists only to link against.

Symptoms: when the loader finds the stub first, CUDA returns 34 (cudaErrorStubLibrary): "CUDA driver
is a stub library". ``torch.cuda.is_available()`` is False and PyTorch prints this as a warning.
nvidia-smi still works.

Causes: ``.../stubs`` is in LD_LIBRARY_PATH or in a file in /etc/ld.so.conf.d, often for a build
that needed it; or somebody linked the stub as libcuda.so.1. Stub folders belong in LIBRARY_PATH,
which only the linker reads.

When it is reported: the libcuda that torch's own libraries would load counts as well. A DT_RPATH or
a conda environment can lead them to a stub that no other program finds. On a host without a GPU,
where programs are only built, the stub is fine.

Fix: remove that folder from the loader's search path.
"""

import posixpath

from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.driver import CudaDriver, Driver
from gpucheck.facts.libraries import LoadedLibrary, Loading
from gpucheck.facts.system import System
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("the stub of libcuda is loaded"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("container-no-gpu", "driver-missing", "wsl-driver-problem"),
    needs_gpu=True,
    refuted_by_cuda="always",
)

_STUB_LIBRARY = 34  # CUDA_ERROR_STUB_LIBRARY


@RULE.check
def check(
    driver: Driver,
    cuda: CudaDriver,
    system: System,
    around: Surroundings,
    loading: Loading,
    says: SelfTestSays,
) -> Judgement:
    """Look for the stub's own error, or for a stub that the loader finds first."""
    first = driver.libcuda[0] if driver.libcuda else None
    stub_first = first is not None and first.kind == "stub"
    taken = _taken_by_torch(loading)
    if taken is not None and cuda.init_code != _STUB_LIBRARY and not stub_first:
        at, library = taken
        return Hit(
            headline=say(
                "PyTorch would load the CUDA toolkit's stub of libcuda ({path}) instead of the "
                "driver's",
                path=library.path,
            ),
            evidence=(f"loading.runtime_opened.{at}",),
            fixes=(_fix(library.path or "", around),),
        )
    seen = says.points_at(RULE.slug)
    if cuda.init_code != _STUB_LIBRARY and not seen:
        if cuda.init_code is not None:
            return Fine(say("the libcuda that was loaded is not a stub"))
        if system.os in ("windows", "macos"):
            return NotApplicable(say("only Linux has stubs of libcuda"))
        known(driver.libcuda, "driver.libcuda")
        if not stub_first:
            return Fine(say("the first libcuda that the loader finds is not a stub"))
    path = cuda.library if cuda.init_code == _STUB_LIBRARY and cuda.library else ""
    evidence = ["cuda_driver.init_code"] if cuda.init_code == _STUB_LIBRARY else [*seen]
    if path:
        evidence.append("cuda_driver.library")
    if first is not None and stub_first:
        path = first.path or path
        evidence += ["driver.libcuda.0.path", "driver.libcuda.0.found_via"]
    return Hit(
        headline=say(
            "Programs load the CUDA toolkit's stub of libcuda ({path}) instead of the driver's",
            path=path,
        )
        if path
        else say("Programs load the CUDA toolkit's stub of libcuda instead of the driver's"),
        evidence=tuple(evidence),
        fixes=(_fix(path, around),),
    )


def _taken_by_torch(loading: Loading) -> tuple[int, LoadedLibrary] | None:
    """Return the stub that torch's CUDA runtime would open, and its index; None if none."""
    for at, library in enumerate(loading.runtime_opened or ()):
        if library.library == "cuda" and f"{library.path}:{library.real_path}".count("/stubs/"):
            return at, library
    return None


def _fix(path: str, around: Surroundings) -> Fix:
    folder = posixpath.dirname(path)
    commands = around.path_without("LD_LIBRARY_PATH", {folder}) if folder else ()
    if commands:
        return Fix(
            text=say(
                "Remove {folder} from LD_LIBRARY_PATH, here and wherever it is set (~/.bashrc, the "
                "image, a module file). If a build needs this folder, put it into LIBRARY_PATH "
                "instead.",
                folder=folder,
            ),
            commands=commands,
        )
    return Fix(
        text=say(
            "Remove the folder of stubs from the loader's configuration (or remove a link named "
            "libcuda.so.1 that leads there), then refresh the loader's cache."
        ),
        commands=("grep -rn stubs /etc/ld.so.conf.d /etc/ld.so.conf", "sudo ldconfig"),
    )
