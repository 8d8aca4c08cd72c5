"""A library beside PyTorch needs CUDA libraries that are not on this machine."""

import re

import msgspec

from gpucheck.advice import Python
from gpucheck.derived.extensions import CompiledPackage, ExtensionPackages, File
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.torch import NvidiaWheels, Packages, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, in_series, listed, say, say_many
from gpucheck.tables.base import Row
from gpucheck.tables.companions import Extensions as ExtensionTable
from gpucheck.tables.cuda import CudaSonames
from gpucheck.tables.packages import KnownPackages, wheel_for_cuda, wheel_of_file

RULE = Rule(
    "library-cuda-mismatch",
    page="""\
A library beside PyTorch needs CUDA libraries that are not on this machine.

ONNX Runtime, CuPy, faiss, Transformer Engine and others have GPU code without being linked with
PyTorch. Each release is built for one major version of CUDA and of cuDNN, and uses the libraries of
NVIDIA's wheels, of a CUDA toolkit, or those that PyTorch has loaded. A PyTorch for CUDA 13 brings
nothing to a library for CUDA 12, and no PyTorch brings all libraries of its CUDA.

Symptoms: "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12:
cannot open shared object file" and then a session that runs on the CPU; "ImportError:
libcublas.so.12: cannot open shared object file" or "CuPy failed to load libnvrtc.so.12".

Another fault of the kind: ``onnxruntime`` was installed over ``onnxruntime-gpu``, often because
another package requires it. Both write the same files, and only one of them can use CUDA.

Causes: the library was installed without a look at the CUDA of PyTorch; one of the two was upgraded
to another major version of CUDA; the library was installed without the extra that brings NVIDIA's
wheels.

When it is reported: gpucheck imports nothing. It reads which libraries the files need, and looks
for them where the loader looks and wherever such packages look themselves: in their own folders, in
NVIDIA's wheels, in toolkits and conda environments. A library is missing only if there is no such
file in any of these places. Libraries for several GPUs (NCCL, NVSHMEM), for storage (cuFile) and
for profilers (CUPTI) do not count, because only parts of a package need them. It is a warning:
PyTorch is not affected, and most of these packages go on without the GPU.

Fix: install the release that was built for the CUDA of PyTorch. If there is none, give the library
a separate environment. If only a library of the same CUDA is missing, install NVIDIA's wheel of it;
ONNX Runtime finds wheels only after ``onnxruntime.preload_dlls()``.
""",
    title=say("a library beside PyTorch needs CUDA libraries that are not here"),
    severity=Severity.WARNING,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install"),
    needs_gpu=True,
)

_OPTIONAL = ("libnccl.so", "libcufile.so", "libnvshmem_host.so", "libcupti.so")
_CUDNN = "nvidia-cudnn"
"""Torch brings its own; a library that needs another is for another major version of it."""
_FOR_CPU, _FOR_CUDA = "onnxruntime", "onnxruntime-gpu"
_MOST_NAMED = 3  # chosen: each has a fix of its own
# As a part of a name: cupy-cuda12x, nvidia-cublas-cu12.
_IN_NAME = r"(cu(?:da)?)([0-9]{2})(x?)(?=-|\Z)"


class _Lack(msgspec.Struct, frozen=True, kw_only=True):
    """A package, the CUDA that it was built for ("" if that is open), and what it lacks."""

    package: CompiledPackage
    cuda: str
    names: tuple[str, ...]
    facts: tuple[str, ...]
    rows: tuple[Row, ...] = ()
    """Those that say of which CUDA its libraries are, unless its name says it."""


@RULE.check
def check(  # what the commands of the fix are made of
    torch: TorchBuild,
    packages: ExtensionPackages,
    sonames: CudaSonames,
    table: ExtensionTable,
    known_packages: KnownPackages,
    python: Python,
    wheels: NvidiaWheels,
    installed: Packages,
) -> Judgement:
    """Look for an overwritten package, then for packages whose CUDA libraries are nowhere."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if (hit := _overwritten(wheels, installed, python)) is not None:
        return hit
    judged = [package for package in packages.all() if _is_judged(package, known_packages)]
    found = [lack for package in judged if (lack := _lack(package, sonames)) is not None]
    if found:
        fixes = [
            _fixes(found_lack, torch, table, known_packages, python)
            for found_lack in found[:_MOST_NAMED]
        ]
        return _hit(found, torch, fixes)
    if left_out := packages.left_out():
        raise UnknownFactError("extensions.left_out", left_out)
    if not judged:
        return NotApplicable(say("no library with GPU code is installed besides PyTorch"))
    names = listed([package.title for package in judged[:_MOST_NAMED]])
    return Fine(say("the CUDA libraries that {packages} need are there", packages=names))


def _overwritten(wheels: NvidiaWheels, installed: Packages, python: Python) -> Hit | None:
    """Report an ONNX Runtime for CUDA whose files are those of the one for the CPU."""
    for at, shared in enumerate(wheels.shared or ()):
        if shared.owner != _FOR_CPU or _FOR_CUDA not in (shared.projects or ()):
            continue
        found = installed.find(_FOR_CUDA)
        version = found.version if found is not None else None
        wanted = f"{_FOR_CUDA}=={version}" if version else _FOR_CUDA
        again = python.install(
            say(
                "Remove {cpu}, and reinstall {cuda}: both write the same files.",
                cpu=_FOR_CPU,
                cuda=_FOR_CUDA,
            ),
            ["install", "--force-reinstall", "--no-deps", wanted],
            remove=False,
        )
        removal = () if python.is_closed() else (python.pip("uninstall", "-y", _FOR_CPU),)
        return Hit(
            headline=say(
                "{cpu} has overwritten {cuda}: ONNX Runtime runs on the CPU alone",
                cpu=_FOR_CPU,
                cuda=_FOR_CUDA,
            ),
            evidence=(f"nvidia_wheels.shared.{at}",),
            fixes=(msgspec.structs.replace(again, commands=(*removal, *again.commands)),),
        )
    return None


def _is_judged(package: CompiledPackage, known_packages: KnownPackages) -> bool:
    """Whether it is a distribution that is not linked with torch and has code for one CUDA only."""
    row = known_packages.known(package.name)
    linked = any(file.extension.needs_torch for file in package.files)
    per_cuda = row is not None and row.library_per_cuda
    return bool(package.version and package.files) and not linked and not per_cuda


def _lack(package: CompiledPackage, sonames: CudaSonames) -> _Lack | None:
    """Return what a package needs and what is nowhere; None if nothing is."""
    lost = [(file, lacking) for file in package.files if (lacking := _nowhere(file))]
    if not lost:
        return None
    names = tuple(dict.fromkeys(name for _, lacking in lost for name in lacking))
    stated = next((file.extension.cuda for file, _ in lost if file.extension.cuda), "")
    of_one = [found[0] for name in names if len(found := sonames.of(name)) == 1]
    row = of_one[0] if of_one and not stated else None
    return _Lack(
        package=package,
        cuda=stated or (row.cuda if row is not None else ""),
        names=names,
        facts=tuple(f"{file.fact}.nowhere" for file, _ in lost),
        rows=(row,) if row is not None else (),
    )


def _nowhere(file: File) -> list[str]:
    """Return the libraries that a file needs and that are nowhere.

    Raises:
        UnknownFactError: nobody has looked for them.
    """
    if not file.extension.missing_libraries:
        return []
    if file.extension.nowhere is None:
        raise UnknownFactError(f"{file.fact}.nowhere")
    return [soname for soname in file.extension.nowhere if not soname.startswith(_OPTIONAL)]


def _hit(found: list[_Lack], torch: TorchBuild, fixes: list[tuple[Fix, ...]]) -> Hit:
    first = found[0]
    if first.cuda and first.cuda == (torch.cuda or "").partition(".")[0]:
        headline = _is_lost(first)
    else:
        headline = say("{needs}; {brings}", needs=_needs(first), brings=_brings(torch))
    for lack in found[1:_MOST_NAMED]:
        headline = say(
            "{headline}; {package} lacks {library}",
            headline=headline,
            package=lack.package.title,
            library=lack.names[0],
        )
    return Hit(
        headline=headline,
        evidence=(*(fact for lack in found for fact in lack.facts), "torch.cuda"),
        fixes=fixes[0] if len(fixes) == 1 else tuple(own[0] for own in fixes),
        confidence=Confidence.LIKELY,
        rows=tuple((lack.facts[0], row) for lack in found for row in lack.rows),
    )


def _is_lost(lack: _Lack) -> Sentence:
    """Return what is not there of the very CUDA that torch is built for."""
    return say_many(
        len(lack.names),
        "{package} cannot load its GPU code: {libraries} is not on this machine",
        "{package} cannot load its GPU code: {libraries} are not on this machine",
        package=lack.package.title,
        libraries=_libraries(lack),
    )


def _libraries(lack: _Lack) -> str:
    libraries, more = lack.names[0], len(lack.names) - 1
    if not more:
        return libraries
    return say_many(
        more,
        "{library} and {count} more library",
        "{library} and {count} more libraries",
        library=libraries,
    )


def _needs(lack: _Lack) -> str:
    """Return what a package needs and what is not there."""
    libraries = _libraries(lack)
    if not lack.cuda:
        return say(
            "{package} cannot load its GPU code: it needs {libraries}, not found on this machine",
            package=lack.package.title,
            libraries=libraries,
        )
    return say(
        "{package} cannot load its GPU code: it was built for CUDA {cuda} and needs {libraries}, "
        "not found on this machine",
        package=lack.package.title,
        cuda=lack.cuda,
        libraries=libraries,
    )


def _brings(torch: TorchBuild) -> str:
    if not torch.cuda:
        return say("torch {version} brings no CUDA", version=torch.version)
    return say("torch {version} brings CUDA {cuda}", version=torch.version, cuda=torch.cuda)


def _fixes(
    lack: _Lack,
    torch: TorchBuild,
    table: ExtensionTable,
    known_packages: KnownPackages,
    python: Python,
) -> tuple[Fix, ...]:
    """Return how to get what fits the CUDA of torch, and what to do if the package has to stay."""
    here = (torch.cuda or "").partition(".")[0]
    name, title = lack.package.name, lack.package.title
    if here and lack.cuda == here and (wheels := _wheels(lack)):
        return (_bring(wheels, python),)
    apart = Fix(
        text=say(
            "If {package} has to stay as it is, give it a separate environment, with a PyTorch for "
            "CUDA {cuda} or without PyTorch.",
            package=title,
            cuda=lack.cuda,
        )
        if lack.cuda
        else say(
            "Give {package} a separate environment with the libraries that it needs.",
            package=title,
        ),
        verify=python.verify(),
    )
    release = table.newest_for_cuda(name, here, python.version)
    if not here or release == lack.package.version:
        return (apart,)
    if release is not None:
        text = _built_alike(f"{name} {release}", here)
        return _replace(python, text, name, f"{name}=={release}"), or_else(apart)
    sibling = re.sub(_IN_NAME, rf"\g<1>{here}\g<3>", name)
    if sibling != name and known_packages.known(sibling) is not None:
        return _replace(python, _built_alike(sibling, here), name, sibling), or_else(apart)
    none = Fix(
        text=say(
            "gpucheck knows no release of {package} that is built for CUDA {cuda}; its "
            "installation page says whether there is one.",
            package=name,
            cuda=here,
        ),
        verify=python.verify(),
    )
    return none, or_else(apart)


def _built_alike(package: str, cuda: str) -> str:
    return say(
        "Install {package}, which is built for CUDA {cuda} like this PyTorch.",
        package=package,
        cuda=cuda,
    )


def _wheels(lack: _Lack) -> list[str]:
    """Return NVIDIA's wheels of what is missing; [] if one library has none that fits."""
    wheels = [wheel_of_file(name) for name in lack.names]
    if None in wheels or _CUDNN in wheels:
        return []
    return list(dict.fromkeys(wheel_for_cuda(wheel, lack.cuda) for wheel in wheels if wheel))


def _bring(wheels: list[str], python: Python) -> Fix:
    return Fix(
        text=say(
            "Install what is missing: {wheels}. Some packages must be told to load it: ONNX "
            "Runtime by onnxruntime.preload_dlls() before the first session.",
            wheels=in_series(wheels),
        ),
        commands=(*python.get_pip(), python.pip("install", *wheels)),
        verify=python.verify(),
    )


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
