"""The CUDA libraries that the user describes: wheels, cuDNN, NCCL, and a loaded cuda-compat."""

from typing import Any, cast

from gpucheck.derived.wheels import pinned_wheel
from gpucheck.describe.keys import Given, GivenError
from gpucheck.facts.base import NOT_GIVEN, Draft, Drafts
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.libraries import NOT_FOUND, LoadedLibrary, Loading, MissingLibrary
from gpucheck.facts.system import System
from gpucheck.facts.torch import NvidiaWheels, PinnedWheel, SharedLibrary, TorchBuild
from gpucheck.language import any_of, in_series, say
from gpucheck.tables import Tables
from gpucheck.tables.cuda import CudaComponents, component_of
from gpucheck.tables.cudnn import CudnnSublibraries
from gpucheck.tables.driver import DriverBranches, ForwardCompat, GpuKind, kind_of
from gpucheck.tables.gpus import GpuProducts, PciDevices, spellings
from gpucheck.tables.packages import stem
from gpucheck.tables.torch import TorchPins, TorchReleases
from gpucheck.tables.versions import minor

# The effect of a loaded cuda-compat library, from NVIDIA's table of forward compatibility.
#
# On a live machine ``cuInit`` is called. Here the table answers instead: on a kind of GPU that is
# not allowed, cuInit fails with 804; on a branch that does not fit, with 803. If the library fits,
# it supports its own CUDA version.

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


# The wheels of CUDA libraries, cuDNN and NCCL that the user describes.

_SAME_FILE = {
    "nvidia-cudnn": "libcudnn.so.{}",
    "nvidia-nccl": "libnccl.so.{}",
    "nvidia-nvshmem": "libnvshmem_host.so.{}",
    "nvidia-cusparselt": "libcusparseLt.so.{}",
}
"""Wheels installed into one folder for every CUDA, and their main file by major release."""
_TOOLKIT = "cuda-toolkit"
_TOOLKIT_WHEELS = (
    "nvidia-cublas", "nvidia-cuda-cupti", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime",
    "nvidia-cufft", "nvidia-curand", "nvidia-cusolver", "nvidia-cusparse", "nvidia-nvjitlink",
    "nvidia-nvtx",
)  # fmt: skip


def describe_libraries(given: Given, drafts: Drafts, tables: Tables) -> None:
    """Fill ``loading`` and ``nvidia_wheels`` from what is given about cuDNN, NCCL and the wheels.

    This must run after ``torch`` and ``packages``. Only named wheels are compared: a wheel that was
    not named may be installed all the same.
    """
    _wheels(given, drafts, tables)
    _loaded(given, drafts)
    _sonames(given, drafts, tables)


def _source(given: Given, key: str) -> str:
    return say("as given: {key}={given}", key=key, given=",".join(given[key]) or "none")


def _wheels(given: Given, drafts: Drafts, tables: Tables) -> None:
    keys = [key for key in ("nvidia_packages", "triton") if key in given]
    if not keys:
        return
    installed: dict[str, tuple[str, str]] = {}
    for key in keys:
        for value in given[key]:
            project, _, version = value.rpartition("==")
            name = (project or key).lower().replace("_", "-").replace(".", "-")
            installed.setdefault(name, (version, _source(given, key)))
    pins = _pins(drafts, tables)
    draft = drafts.of(NvidiaWheels)
    if pins is None:
        why = say("the tables do not have what this torch requires, or torch was not given")
        draft.unknown("pins", why if given.get("torch") else NOT_GIVEN)
        return
    says = (
        say("the tables: the metadata of PyPI's wheel")
        if pins
        else say("such a wheel requires no other wheels")
    )
    drafts.of(TorchBuild).fill("pins", pins, says)
    found = [pin for pin in (_pin(p, s, installed) for p, s in pins.items()) if pin is not None]
    sources = in_series([_source(given, key) for key in keys])
    draft.fill("pins", found, say("{sources}, and the tables", sources=sources))
    draft.fill("shared", _shared(installed, sources), sources)


def _pin(project: str, specifier: str, installed: dict[str, tuple[str, str]]) -> PinnedWheel | None:
    """Compare a pin with what was named: the wheel itself, or its variant for another CUDA."""
    sources = {"specifier": say("the tables: the metadata of PyPI's wheel")}
    if project in installed:
        version, source = installed[project]
        return pinned_wheel(project, specifier, version, {"*": source, **sources})
    if any(stem(other) == stem(project) for other in installed):
        named = say("as given: only the wheel for another CUDA is named")
        return pinned_wheel(project, specifier, "", {"*": named, **sources})
    return None


def _shared(installed: dict[str, tuple[str, str]], source: str) -> list[SharedLibrary]:
    """Return the files that two of the named wheels write: the same major release for two CUDAs."""
    found = []
    for base, library in _SAME_FILE.items():
        majors: dict[str, list[str]] = {}
        for project, (version, _source) in installed.items():
            if stem(project) == base:
                majors.setdefault(version.partition(".")[0], []).append(project)
        found += [
            SharedLibrary(
                library=library.format(major),
                projects=sorted(projects),
                sources={"*": source},
                problems={"owner": NOT_GIVEN, "path": NOT_GIVEN},
            )
            for major, projects in majors.items()
            if len(projects) > 1
        ]
    return found


def _pins(drafts: Drafts, tables: Tables) -> dict[str, str] | None:
    """Return what PyPI's wheel of the release requires; None for another build, or if unknown.

    A CPU build requires none, and wheels for Windows bundle CUDA's libraries.
    """
    torch, system = drafts.of(TorchBuild).fields, drafts.of(System).fields
    version, cuda = torch.get("version"), torch.get("cuda")
    if not version or torch.get("installer") != "pip":
        return None
    if torch.get("built_for") == "cpu" or system["os"] == "windows":
        return {}
    if not cuda:
        return None
    is_linux = system["os"] == "linux"
    platform = f"linux_{system['machine']}" if is_linux else str(system["os"])
    if minor(tables.get(TorchReleases).default_build(version, platform)) != cuda:
        return _of_build(torch, cuda, is_linux=is_linux)
    rows = tables.get(TorchPins).pins(version, platform)
    if rows is None:
        return None
    found: dict[str, str] = {}
    for row in rows:
        if row.package == _TOOLKIT:
            found.update(_of_toolkit(row.specifier, row.extras, tables))
        else:
            found[row.package] = row.specifier
    return found


def _of_build(torch: dict[str, Any], cuda: str, *, is_linux: bool) -> dict[str, str] | None:
    """Return what is known about a build outside PyPI: its cuDNN and NCCL."""
    if not is_linux:
        return None
    suffix = f"-cu{cuda.partition('.')[0]}"
    names = {"nvidia-cudnn": torch.get("cudnn"), "nvidia-nccl": torch.get("nccl")}
    pins = {f"{name}{suffix}": f"=={version}" for name, version in names.items() if version}
    return pins or None


def _of_toolkit(specifier: str, extras: tuple[str, ...], tables: Tables) -> dict[str, str]:
    """Return the wheels that belong to the extras of ``cuda-toolkit``."""
    release = specifier.removeprefix("==")
    found = {}
    for project in _TOOLKIT_WHEELS:
        component = component_of(project)
        if component is None or component not in extras:
            continue
        version = tables.get(CudaComponents).version(release, component)
        if version:
            found[project] = f"=={version}.*"
    return found


def _loaded(given: Given, drafts: Drafts) -> None:
    """Note which cuDNN and NCCL would be loaded, by their versions."""
    found = []
    for key, library in (("cudnn_runtime", "cudnn"), ("nccl", "nccl")):
        for version in given.get(key, ()):
            source = _source(given, key)
            # Rules check only the start of the name, so any name of the main library serves here.
            library_file = LoadedLibrary(
                soname=library, library=library, version=version, sources={"*": source}
            )
            found.append((library_file, source))
    if found:
        sources = in_series([source for _, source in found])
        drafts.of(Loading).fill("libraries", [library_file for library_file, _ in found], sources)


def _sonames(given: Given, drafts: Drafts, tables: Tables) -> None:
    """Return whether the required cuDNN is among the names that were found."""
    key = next((k for k in ("cudnn_sonames_found", "cudnn_runtime") if k in given), "")
    is_absent = key == "cudnn_runtime" and not given[key]
    if not key or (key == "cudnn_runtime" and not is_absent):
        return
    needed = _needed(given, drafts, tables)
    if not needed:
        return
    source = _source(given, key)
    found = [] if is_absent else given[key]
    draft = drafts.of(Loading)
    if any(name == needed or name.startswith(f"{needed}.") for name in found):
        library_file = LoadedLibrary(
            soname=needed,
            library="cudnn",
            sources={"*": source},
            problems={"version": NOT_GIVEN, "path": NOT_GIVEN},
        )
        draft.fill("libraries", [library_file], source)
        draft.fill("missing", [], source)
        return
    lost = MissingLibrary(
        soname=needed,
        searched=f"found: {', '.join(found) or 'none'}",
        why=NOT_FOUND,
        path="",
        fatal=True,
        sources={"*": source},
    )
    draft.fill("missing", [lost], source)
    draft.fill("libraries", [], source)


def _needed(given: Given, drafts: Drafts, tables: Tables) -> str:
    if given.get("cudnn_soname_needed"):
        return given["cudnn_soname_needed"][0]
    torch = drafts.of(TorchBuild).fields
    if torch.get("built_for") != "cuda" or drafts.of(System).fields["os"] != "linux":
        return ""
    return tables.get(CudnnSublibraries).main(torch.get("cudnn") or "") or ""


# Whether a capability can belong to the GPU whose name was given with it.


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
