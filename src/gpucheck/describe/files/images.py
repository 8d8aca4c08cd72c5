"""What the name of an image says: nothing is asked of a registry."""

import re

import msgspec

from gpucheck.describe.files.machines import machine_of_image
from gpucheck.describe.files.model import UNKNOWN, Image
from gpucheck.tables.versions import minor

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
