"""A library beside PyTorch was built for CUDA libraries that are not on this machine.

ONNX Runtime, CuPy, faiss, Transformer Engine and others have GPU code without being linked with
PyTorch. Each release is built for one major version of CUDA and of cuDNN, and uses the libraries of
NVIDIA's wheels, of a CUDA toolkit, or those that PyTorch has loaded. A PyTorch for CUDA 13 brings
nothing to a library for CUDA 12.

Symptoms: "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12:
cannot open shared object file" and then a session that runs on the CPU; "ImportError:
libcublas.so.12: cannot open shared object file" or "CuPy failed to load libnvrtc.so.12".

Causes: the library was installed without a look at the CUDA of PyTorch; one of the two was upgraded
to another major version of CUDA.

When it is reported: gpucheck imports nothing. It reads which libraries the files need, and looks
for them where the loader looks and wherever such packages look themselves: in their own folders, in
NVIDIA's wheels, in toolkits and conda environments. A library counts only if there is no such file
in any of these places, and if it does not belong to the CUDA of PyTorch as well, as
libcusparse.so.12 belongs to CUDA 12 and 13. It is a warning: PyTorch is not concerned, and most of
these libraries go on without the GPU.

Fix: install the release that was built for the CUDA of PyTorch. If there is none, give the library
an environment of its own.
"""

import re

from gpucheck.advice import Python
from gpucheck.derived.extension_packages import CompiledPackage, ExtensionPackages, File
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.tables.cuda_sonames import CudaSonames
from gpucheck.tables.extensions import Extensions as ExtensionTable
from gpucheck.tables.known_packages import KnownPackages

RULE = Rule(
    __name__,
    title="a library beside PyTorch was built for CUDA libraries that are not here",
    severity=Severity.WARNING,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install"),
    needs_gpu=True,
)

_NO_SIGN = (
    "libnccl.so", "libcufile.so", "libnvshmem_host.so", "libcupti.so", "libcurand.so",
)  # fmt: skip
"""What only a part for several GPUs, for storage or for profilers needs; and cuRAND, whose name is
the same for every CUDA from 10 on."""
_MOST_NAMED = 3
_IN_NAME = r"(cu(?:da)?)([0-9]{2})(x?)(?=-|\Z)"


@RULE.check
def check(  # what the commands of the fix are made of
    torch: TorchBuild,
    packages: ExtensionPackages,
    sonames: CudaSonames,
    table: ExtensionTable,
    known_packages: KnownPackages,
    python: Python,
) -> Judgement:
    """Look for packages whose CUDA libraries are nowhere."""
    if torch.installed is False:
        return NotApplicable("torch is not installed")

    def nowhere(file: File) -> list[str]:
        return [one for one in _nowhere(file) if here not in sonames.majors_of(one)]

    here = _major(torch)
    judged = [one for one in packages.all() if not one.for_torch]
    for package in judged:
        lost = [(file, names) for file in package.files if (names := nowhere(file))]
        if lost:
            fixes = _fixes(package, _cuda(lost, sonames), torch, table, known_packages, python)
            return _hit(package, lost, sonames, torch, fixes)
    names = ", ".join(one.title for one in judged[:_MOST_NAMED])
    if not names:
        return NotApplicable("no library with GPU code beside PyTorch is installed")
    return Fine(f"the CUDA libraries are there that are needed by {names}")


def _major(torch: TorchBuild) -> str:
    """Return the major version of torch's CUDA; "" if it has none."""
    return (torch.cuda or "").partition(".")[0]


def _nowhere(file: File) -> list[str]:
    """Return the libraries that a file needs and that are nowhere.

    Raises:
        UnknownFactError: nobody has looked for them.
    """
    if not file.extension.missing_libraries:
        return []
    if file.extension.nowhere is None:
        raise UnknownFactError(f"{file.fact}.nowhere")
    return [one for one in file.extension.nowhere if not one.startswith(_NO_SIGN)]


def _cuda(lost: list[tuple[File, list[str]]], sonames: CudaSonames) -> str:
    """Return the major version of CUDA that the missing libraries belong to; "" if it is open."""
    stated = next((file.extension.cuda for file, _ in lost if file.extension.cuda), "")
    majors = (sonames.majors_of(name) for _, names in lost for name in names)
    return stated or next((found[0] for found in majors if len(found) == 1), "")


def _hit(
    package: CompiledPackage,
    lost: list[tuple[File, list[str]]],
    sonames: CudaSonames,
    torch: TorchBuild,
    fixes: tuple[Fix, ...],
) -> Hit:
    cuda = _cuda(lost, sonames)
    names = list(dict.fromkeys(name for _, found in lost for name in found))
    more = f" and {len(names) - 1} more libraries" if len(names) > 1 else ""
    built = f" was built for CUDA {cuda} and" if cuda else ""
    here = f"torch {torch.version} brings CUDA {torch.cuda}" if torch.cuda else (
        f"torch {torch.version} brings no CUDA"
    )  # fmt: skip
    return Hit(
        headline=f"{package.title}{built} needs {names[0]}{more}, of which there is no file here; "
        f"{here}. Its GPU code cannot be loaded",
        evidence=(*(f"{file.fact}.nowhere" for file, _ in lost), "torch.cuda"),
        fixes=fixes,
        confidence=Confidence.LIKELY,
    )


def _fixes(
    package: CompiledPackage,
    cuda: str,
    torch: TorchBuild,
    table: ExtensionTable,
    known_packages: KnownPackages,
    python: Python,
) -> tuple[Fix, ...]:
    """Return how to get a release for the CUDA of torch, or what to do without one."""
    name, here = package.name, _major(torch)
    apart = Fix(
        text=f"Where {package.title} has to stay as it is: give it an environment of its own, with "
        f"a PyTorch for CUDA {cuda} or none."
        if cuda
        else f"Give {package.title} an environment of its own, with the libraries that it needs.",
        verify=python.verify(),
    )
    if not here:
        return (apart,)
    release = table.newest_for_cuda(name, here)
    if release == package.version:
        return (apart,)
    if release is not None:
        text = f"Install {name} {release}, which is built for CUDA {here} like this PyTorch."
        return _replace(python, text, name, f"{name}=={release}"), apart
    sibling = re.sub(_IN_NAME, rf"\g<1>{here}\g<3>", name)
    if sibling != name and known_packages.known(sibling) is not None:
        text = f"Install {sibling}, which is built for CUDA {here} like this PyTorch."
        return _replace(python, text, name, sibling), apart
    none = Fix(
        text=f"gpucheck knows no release of {name} that is built for CUDA {here}; its installation "
        "page says whether there is one.",
        verify=python.verify(),
    )
    return none, apart


def _replace(python: Python, text: str, name: str, new: str) -> Fix:
    return Fix(
        text=text,
        commands=(
            *python.get_pip(),
            python.pip("uninstall", "-y", name),
            python.pip("install", new),
        ),
        verify=python.verify(),
    )
