"""Which build of PyTorch an install or an image has: by names, versions and indexes."""

import re

import msgspec

from gpucheck.describe.files.model import UNKNOWN, Image, Install, NamedIndex, Pin, machine_of_image
from gpucheck.tables.versions import minor

# What the name of an image says: nothing is asked of a registry.

_LONGEST = 300  # chosen: longer than any image's name (docker allows 255 and a tag of 128)
# Base has the runtime alone, runtime adds the libraries, devel headers and nvcc.
_CUDA_TAG = re.compile(
    r"([0-9]{1,2}\.[0-9]{1,2})(?:\.[0-9]{1,2})?-(?:.{0,40}-)?(base|runtime|devel)(?:-|$)"
)
_TORCH_TAG = re.compile(
    r"([0-9]\.[0-9]{1,2}\.[0-9]{1,2})-cuda([0-9]{1,2}\.[0-9]{1,2})-cudnn[0-9.]{1,6}-(runtime|devel)"
)
_PYTHON_TAG = re.compile(r"(3\.[0-9]{1,2})(?:\.[0-9]{1,2})?(?:-|$)")
_NGC = ("pytorch", "cuda", "tensorflow", "tritonserver", "nemo", "cuda-dl-base", "tensorrt")
_FOR_GPUS = ("vllm/vllm-openai", "ghcr.io/huggingface/text-generation-inference")
_OTHER = ("cpu", "rocm", "xpu", "gaudi", "intel", "neuron", "arm", "min", "amd", "hpu", "tpu")


def image_of(reference: str, line: int) -> Image:
    """Return an image with what its name and tag say."""
    found = _by_name(reference.strip(), line)
    machine = machine_of_image(found.reference)
    return msgspec.structs.replace(found, machine=machine) if machine else found


def _by_name(plain: str, line: int) -> Image:
    if len(plain) > _LONGEST or UNKNOWN in plain or "$" in plain:
        return Image(plain[:_LONGEST], line)
    name, _, tag = plain.partition("@")[0].removeprefix("docker.io/").partition(":")
    if "/" in tag:  # the colon was that of a port
        return Image(plain, line)
    if name in ("nvidia/cuda", "nvcr.io/nvidia/cuda"):
        return _of_cuda(plain, tag, line)
    if name == "pytorch/pytorch":
        return _of_torch(plain, tag, line)
    if name in ("python", "library/python") and (found := _PYTHON_TAG.match(tag)):
        return Image(plain, line, python=found[1])
    if _is_of_ngc(name) or name in _FOR_GPUS:
        if any(word in re.split(r"[^a-z]+", tag) for word in _OTHER):
            return Image(plain, line)
        torch = name.endswith(("/pytorch", "/nemo")) or name in _FOR_GPUS
        return Image(plain, line, for_gpus=True, has_torch=torch)
    return Image(plain, line)


def _of_cuda(plain: str, tag: str, line: int) -> Image:
    found = _CUDA_TAG.match(tag)
    if found is None:
        return Image(plain, line, for_gpus=bool(re.match("[0-9]", tag)))
    return Image(plain, line, cuda=minor(found[1]) or "", flavour=found[2], for_gpus=True)


def _of_torch(plain: str, tag: str, line: int) -> Image:
    found = _TORCH_TAG.fullmatch(tag)
    if found is None:
        return Image(plain, line, has_torch=True)
    return Image(
        plain, line, cuda=found[2], torch=found[1], flavour=found[3], for_gpus=True, has_torch=True
    )


def _is_of_ngc(name: str) -> bool:
    place, _, last = name.rpartition("/")
    return place == "nvcr.io/nvidia" and last in _NGC


# Which build of PyTorch an install gets, from the versions and indexes that it names.

FAMILY = ("torch", "torchvision", "torchaudio")
# The build is the last part of the path of an index of PyTorch, or of a mirror of it: /whl/cu128.
_BUILD = re.compile(
    r"https?://[A-Za-z0-9.:-]{1,100}/(?:[A-Za-z0-9._/-]{0,100}/)?whl/(?:nightly/|test/)?"
    r"(cpu|cu[0-9]{2,3}|rocm[0-9.]{1,6}|xpu)(?:/torch_stable\.html)?/?"
)
_ALL_BUILDS = re.compile(
    r"https?://[A-Za-z0-9.:-]{1,100}/(?:[A-Za-z0-9._-]{1,100}/){1,5}torch_stable\.html"
)


def build_of(address: str) -> str:
    """Return the build in the address of an index of PyTorch: cu124, cpu; "" for any other.

    Other projects name their indexes in the same way, so the host or a folder must name PyTorch.
    """
    if len(address) >= _LONGEST or "pytorch" not in address:
        return ""
    found = _BUILD.fullmatch(address)
    return found[1] if found else ""


def has_all_builds(address: str) -> bool:
    """Whether an address is PyTorch's page with the wheels of every build.

    A version with a build, such as 1.13.1+cu117, says which of them is meant. Without one pip takes
    the build whose name is the last in the alphabet.
    """
    return (
        len(address) < _LONGEST
        and "pytorch" in address
        and not build_of(address)
        and _ALL_BUILDS.fullmatch(address) is not None
    )


def is_stable(address: str) -> bool:
    """Whether an index has releases, not nightly builds."""
    return "/nightly" not in address and "/test/" not in address


def torch_indexes(install: Install) -> list[NamedIndex]:
    """Return the indexes of builds of PyTorch that torch may come from.

    Of several main ones only the last counts.
    """
    main = [index for index in install.indexes if index.role == "main"]
    return [
        index
        for index in _sources_of_torch(install)
        if build_of(index.address) and (index not in main or index is main[-1])
    ]


def local_of(version: str) -> str:
    """Return the build that a version names: cu117 of 2.0.1+cu117.with.pypi.cudnn."""
    local = version.partition("+")[2].lower()
    first = local.partition(".")[0]
    return first if is_cuda(first) else local


def is_cuda(build: str) -> bool:
    """Whether a build is one for CUDA."""
    return build.startswith("cu") and minor(build) is not None


def build_with_line(install: Install) -> tuple[str, int] | None:
    """Return the build that torch comes as, and the line that says so; None if none is certain."""
    torch = install.pin("torch")
    if torch is not None and local_of(torch.version):
        return local_of(torch.version), torch.line
    found = torch_indexes(install)
    builds = {build_of(index.address) for index in found}
    if len(builds) != 1:
        return None
    build = builds.pop()
    pinned = torch is not None and bool(torch.version)
    beside_pypi = install.tool == "pip" and all(index.role == "extra" for index in found)
    if beside_pypi and is_cuda(build) and not pinned:
        return None  # pip takes the newest release, and PyPI's may be newer
    return build, found[0].line


def has_unknown_index(install: Install) -> bool:
    """Whether an index that torch may come from is only known to the build, or not PyTorch's."""
    torch = install.pin("torch")
    names_build = torch is not None and bool(local_of(torch.version))
    return any(
        not build_of(index.address)
        and not _is_of_pypi(index.address)
        and not (names_build and has_all_builds(index.address))
        for index in _sources_of_torch(install)
    )


def _sources_of_torch(install: Install) -> list[NamedIndex]:
    """Return the indexes that torch may come from: its own if it has one."""
    own = [index for index in install.indexes if index.role == "only" and "torch" in index.of]
    return own or [index for index in install.indexes if not index.of or "torch" in index.of]


def _is_of_pypi(address: str) -> bool:
    return re.fullmatch(r"https://pypi(?:\.python)?\.org/simple/?", address) is not None


def first_of_family(install: Install) -> Pin | None:
    """Return the first package of PyTorch that is asked for."""
    return next((pin for pin in install.pins if pin.name in FAMILY), None)
