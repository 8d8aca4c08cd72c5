"""The processor that a file names: what is judged for it, and what is not."""

from typing import Any, NamedTuple

from each import each

from gpucheck.describe.files.complaint import FileTarget
from gpucheck.describe.files.lint import lint
from gpucheck.tables import Tables

TABLES = Tables()
CPU, TOO_NEW, PYTHON = "torch-cpu-only", "gpu-too-new-for-torch", "torch-python-unsupported"
TORCH_IMAGE = "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"
CUDA_IMAGE = "nvidia/cuda:12.4.1-runtime-ubuntu22.04"
HOPPER: dict[str, Any] = {"gpus": ("H100",)}
BLACKWELL: dict[str, Any] = {"gpus": ("5090",)}
GRACE: dict[str, Any] = {"gpus": ("GH200",)}


class Case(NamedTuple):
    """A file, the target, its faults, and words of what is not judged."""

    text: str
    target: dict[str, Any]
    found: tuple[str, ...] = ()
    unjudged: str = ""
    name: str = "Dockerfile"


def docker(platform: str, torch: str = "2.6.0", *, image: str = "python:3.11-slim") -> str:
    flag = f"--platform={platform} " if platform else ""
    return f"FROM {flag}{image}\nRUN pip install torch=={torch}\n"


def service(platform: str) -> str:
    platform_line = f"    platform: {platform}\n" if platform else ""
    return f"services:\n  a:\n    image: {TORCH_IMAGE}\n    gpus: all\n{platform_line}"


def pod(spec: str) -> str:
    return (
        f"kind: Pod\nspec:\n{spec}  containers:\n  - name: a\n    image: {TORCH_IMAGE}\n"
        "    resources: {limits: {nvidia.com/gpu: 1}}\n"
    )


def affinity(values: str) -> str:
    return (
        "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "{nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, "
        f"values: [{values}]}}]}}]}}}}}}\n"
    )


def pixi(platforms: str) -> str:
    workspace = f"[workspace]\nplatforms = [{platforms}]\n" if platforms else ""
    return f'{workspace}[pypi-dependencies]\ntorch = "==2.6.0"\n'


CASES = {
    # PyPI's torch 2.6.0 is a CPU build on aarch64, and one without code for a 5090 on x86_64.
    "nothing-said": Case(docker(""), BLACKWELL, (TOO_NEW,)),
    "amd64": Case(docker("linux/amd64"), BLACKWELL, (TOO_NEW,)),
    "arm64": Case(docker("linux/arm64"), HOPPER, (CPU,)),
    "arm64-with-a-variant": Case(docker("linux/arm64/v8"), HOPPER, (CPU,)),
    "arm64-in-an-argument": Case("ARG P=linux/arm64\n" + docker("$P"), HOPPER, (CPU,)),
    "arm64-with-cuda-on-pypi": Case(docker("linux/arm64", "2.12.0"), HOPPER),
    "arm64-in-an-image": Case(docker("", image="arm64v8/python:3.11"), HOPPER, (CPU,)),
    "arm64-of-an-earlier-stage": Case(
        f"FROM --platform=linux/arm64 python:3.11 AS a\n{docker('', image='a')}", HOPPER, (CPU,)
    ),
    "arm64-in-an-image-for-gpus": Case(
        docker("linux/arm64", image=CUDA_IMAGE), {}, (CPU,)
    ),
    "amd64-in-an-image-for-gpus": Case(docker("linux/amd64", image=CUDA_IMAGE), {}),
    "arm64-that-has-no-wheel": Case(
        docker("linux/arm64", "1.7.1"), {}, name="Dockerfile"
    ),
    "python-on-arm64": Case(docker("linux/arm64", "1.13.1"), {}, (PYTHON,)),
    "python-on-amd64": Case(docker("linux/amd64", "1.13.1"), {}),
    "python-on-either": Case(
        docker("$TARGETPLATFORM", "1.13.1", image="python:3.12"), {}, (PYTHON,),
        "leaves the platform to the build"
    ),
    "gpu-that-is-sold-with-arm64": Case(docker(""), GRACE, (CPU,)),
    "gpu-that-is-sold-with-arm64-but": Case(docker("linux/amd64"), GRACE),
    # What is wrong on one of two is not certain.
    "builder": Case(docker("$BUILDPLATFORM"), BLACKWELL, (), "leaves the platform to the build"),
    "target": Case(docker("${TARGETPLATFORM}"), HOPPER, (), "leaves the platform to the build"),
    "target-with-a-default": Case(
        "ARG TARGETPLATFORM=linux/amd64\n" + docker("$TARGETPLATFORM"), BLACKWELL, (),
        "leaves the platform to the build",
    ),
    "part-of-it": Case(docker("linux/$TARGETARCH"), HOPPER, (), "leaves the platform"),
    # Other platforms.
    "riscv": Case(docker("linux/riscv64"), BLACKWELL, (), "line 1, linux/riscv64"),
    "windows": Case(docker("windows/amd64"), BLACKWELL, (), "line 1, windows/amd64"),
    "jetson": Case(
        docker("", image="nvcr.io/nvidia/l4t-base:r35.4.1"), BLACKWELL, (), "line 1, jetson"
    ),
    # Services and pods: the content of PyTorch's image for aarch64 is not known.
    "service": Case(service(""), BLACKWELL, (TOO_NEW,), name="compose.yaml"),
    "service-amd64": Case(service("linux/amd64"), BLACKWELL, (TOO_NEW,), name="compose.yaml"),
    "service-arm64": Case(
        service("linux/arm64"), BLACKWELL, (), "only what pytorch", "compose.yaml"
    ),
    "pod": Case(pod(""), BLACKWELL, (TOO_NEW,), name="pod.yaml"),
    "pod-amd64": Case(
        pod("  nodeSelector: {kubernetes.io/arch: amd64}\n"), BLACKWELL, (TOO_NEW,),
        name="pod.yaml",
    ),
    "pod-arm64": Case(
        pod("  nodeSelector: {kubernetes.io/arch: arm64}\n"), BLACKWELL, (),
        "only what pytorch", "pod.yaml",
    ),
    "pod-near-arm64": Case(pod(affinity("arm64")), BLACKWELL, (), "only what pytorch", "pod.yaml"),
    "pod-near-either": Case(
        pod(affinity("arm64, amd64")), BLACKWELL, (), "only what pytorch", "pod.yaml"
    ),
    "pod-near-amd64": Case(pod(affinity("amd64")), BLACKWELL, (TOO_NEW,), name="pod.yaml"),
    # pixi.
    "pixi": Case(pixi('"linux-64", "osx-arm64"'), BLACKWELL, (TOO_NEW,), name="pixi.toml"),
    "pixi-without-linux": Case(
        pixi('"osx-arm64"'), BLACKWELL, (), "osx-arm64", "pixi.toml"
    ),
}  # fmt: skip


@each("case", CASES.values(), ids=CASES)
def test_a_file_is_judged_for_the_processor_that_it_names(case: Case) -> None:
    done = lint(case.name, case.text.encode(), FileTarget(**case.target), TABLES)
    assert tuple(sorted(complaint.rule for complaint in done.complaints)) == case.found
    assert case.unjudged in " ".join(done.unjudged)
    assert bool(case.unjudged) == bool(done.unjudged)
