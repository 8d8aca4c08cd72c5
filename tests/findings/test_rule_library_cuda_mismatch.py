import pytest
from each import each
from msgspec.structs import replace
from rule_facts import (
    A100,
    CPU_TORCH,
    CUDA_TORCH,
    EMPTY_BUS,
    LINUX,
    NO_TORCH,
    commands,
    hit,
    on_bus,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.libraries import Extension, Extensions
from gpucheck.facts.torch import (
    Distribution,
    Interpreter,
    NvidiaWheels,
    Packages,
    SharedLibrary,
    TorchBuild,
)
from gpucheck.findings.form import Fine, Judgement, NotApplicable

SLUG = "library-cuda-mismatch"
PYTHON = Interpreter(status="ok", executable="/env/bin/python", version="3.11.7", has_pip=True)
CU13 = replace(CUDA_TORCH, version="2.15.0+cu132", cuda="13.2")
CU12 = replace(CUDA_TORCH, version="2.9.1+cu128", cuda="12.8")
OF_12 = ("libcublasLt.so.12", "libcublas.so.12", "libcufft.so.11", "libcudart.so.12")


def file(
    package: str,
    version: str,
    *missing: str,
    nowhere: tuple[str, ...] | None = (),
    cuda: str = "",
    requires_torch: bool = False,
) -> Extension:
    """Return a compiled file of a package that is not linked with torch."""
    return Extension(
        package=package,
        version=version,
        file=f"{package}/_gpu.so",
        python="",
        needs_torch=False,
        requires_torch=requires_torch,
        optional=False,
        cuda=cuda,
        missing_libraries=list(missing),
        nowhere=None if nowhere is None else list(nowhere),
    )


def judge(
    *files: Extension,
    torch: TorchBuild = CU13,
    gpus: Section | None = None,
    python: Interpreter = PYTHON,
) -> Judgement:
    found = Extensions(extensions=list(files))
    return ask(SLUG, LINUX, python, torch, found, gpus or on_bus(A100))


def onnxruntime(*nowhere: str, version: str = "1.22.0", cuda: str = "12") -> Extension:
    return file("onnxruntime-gpu", version, *nowhere, nowhere=nowhere, cuda=cuda)


def test_onnxruntime_for_cuda_12_beside_cuda_13() -> None:
    answer = hit(judge(onnxruntime(*OF_12)))
    assert answer.headline == (
        "onnxruntime-gpu 1.22.0 cannot load its GPU code: it was built for CUDA 12 and needs "
        "libcublasLt.so.12 and 3 more libraries, not found on this machine; torch 2.15.0+cu132 "
        "brings CUDA 13.2"
    )
    assert answer.evidence == ("extensions.extensions.0.nowhere", "torch.cuda")
    assert answer.confidence is Confidence.LIKELY
    assert "pip install onnxruntime-gpu==1.31.1" in commands(answer)
    assert "a PyTorch for CUDA 12 or without PyTorch" in answer.fixes[1].text


def test_onnxruntime_for_cuda_13_beside_cuda_12() -> None:
    of_13 = ("libcublasLt.so.13", "libcudart.so.13")
    answer = hit(judge(onnxruntime(*of_13, version="1.31.1", cuda="13"), torch=CU12))
    assert "pip install onnxruntime-gpu==1.26.0" in commands(answer)


def test_no_release_without_a_wheel_for_this_python() -> None:
    of_13 = ("libcublasLt.so.13", "libcudart.so.13")
    python = replace(PYTHON, version="3.10.12")
    answer = hit(judge(onnxruntime(*of_13, version="1.31.1", cuda="13"), torch=CU12, python=python))
    assert "pip install onnxruntime-gpu==1.23.2" in commands(answer)
    answer = hit(judge(onnxruntime(*OF_12), python=python))
    assert "onnxruntime-gpu==" not in commands(answer)


def test_an_older_cudnn_is_another_major_too() -> None:
    answer = hit(judge(onnxruntime("libcudnn.so.8", version="1.18.0"), torch=CU12))
    assert "libcudnn.so.8 is not on this machine" in answer.headline
    assert "pip install onnxruntime-gpu==1.26.0" in commands(answer)


def test_a_package_that_has_the_cuda_in_its_name() -> None:
    cupy = file("cupy-cuda12x", "14.2.0", "libcufft.so.11", nowhere=("libcufft.so.11",))
    answer = hit(judge(cupy))
    assert answer.headline.startswith(
        "cupy-cuda12x 14.2.0 cannot load its GPU code: it was built for CUDA 12 and needs"
    )
    assert "pip uninstall -y cupy-cuda12x" in commands(answer)
    assert "pip install cupy-cuda13x" in commands(answer)
    assert [(fact, row.source != ()) for fact, row in answer.rows] == [(answer.evidence[0], True)]


def test_several_packages_are_told_together() -> None:
    cupy = file("cupy-cuda12x", "14.2.0", "libcufft.so.11", nowhere=("libcufft.so.11",))
    answer = hit(judge(onnxruntime(*OF_12), cupy))
    assert answer.headline.endswith("; cupy-cuda12x 14.2.0 lacks libcufft.so.11")
    assert answer.evidence[:2] == (
        "extensions.extensions.0.nowhere", "extensions.extensions.1.nowhere",
    )  # fmt: skip
    assert "onnxruntime-gpu==1.31.1" in commands(answer)
    assert "cupy-cuda13x" in answer.fixes[1].commands[-1]


def test_of_an_unknown_package_no_release_is_invented() -> None:
    answer = hit(judge(file("acme-cu12", "1.0", *OF_12, nowhere=OF_12, cuda="12")))
    assert "gpucheck knows no release of acme-cu12 that is built for CUDA 13" in (
        answer.fixes[0].text
    )
    assert commands(answer) == ""


def test_beside_a_cpu_build_nothing_else_brings_cuda() -> None:
    answer = hit(judge(onnxruntime(*OF_12), torch=CPU_TORCH))
    assert "torch 2.6.0+cpu brings no CUDA" in answer.headline
    assert len(answer.fixes) == 1


def test_libraries_that_lie_somewhere_are_fine() -> None:
    found = judge(file("onnxruntime-gpu", "1.22.0", *OF_12, nowhere=()))
    assert isinstance(found, Fine)
    assert "onnxruntime-gpu 1.22.0" in found.reason


@each(
    "soname",
    ["libnccl.so.2", "libcufile.so.0", "libcupti.so.12", "libnvshmem_host.so.3"],
)
def test_a_library_that_only_a_part_needs(soname: str) -> None:
    assert isinstance(judge(onnxruntime(soname)), Fine)


def test_a_library_of_the_same_cuda_that_torch_does_not_bring() -> None:
    answer = hit(judge(onnxruntime("libcurand.so.10", version="1.31.1", cuda="13")))
    assert "libcurand.so.10 is not on this machine" in answer.headline
    assert commands(answer) == "/env/bin/python -m pip install nvidia-curand"
    assert "onnxruntime.preload_dlls()" in answer.fixes[0].text
    cu12 = hit(judge(onnxruntime("libcurand.so.10", "libcusparse.so.12"), torch=CU12))
    assert commands(cu12).endswith("pip install nvidia-curand-cu12 nvidia-cusparse-cu12")


def test_what_is_linked_with_pytorch_or_has_a_library_for_each_cuda_is_judged_elsewhere() -> None:
    each = file("bitsandbytes", "0.50.2", *OF_12, nowhere=OF_12, requires_torch=True)
    linked = replace(file("xformers", "0.0.35", *OF_12, nowhere=None), needs_torch=True)
    assert isinstance(judge(each, linked), NotApplicable)


def test_a_folder_that_no_distribution_owns_is_left_out() -> None:
    assert isinstance(judge(file("cupyx", "", *OF_12, nowhere=OF_12)), NotApplicable)


def test_a_library_that_requires_torch_without_being_linked_with_it() -> None:
    lmdeploy = file("lmdeploy", "0.18.0", *OF_12, nowhere=OF_12, cuda="12", requires_torch=True)
    says = "lmdeploy 0.18.0 cannot load its GPU code: it was built for CUDA 12"
    assert hit(judge(lmdeploy)).headline.startswith(says)


def test_without_a_gpu_or_torch_there_is_nothing_to_judge() -> None:
    assert isinstance(judge(onnxruntime(*OF_12), gpus=EMPTY_BUS), NotApplicable)
    assert isinstance(judge(onnxruntime(*OF_12), torch=NO_TORCH), NotApplicable)
    assert isinstance(judge(), NotApplicable)


def test_where_nobody_has_looked_it_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"extensions\.extensions\.0\.nowhere"):
        judge(file("onnxruntime-gpu", "1.22.0", *OF_12, nowhere=None))


def test_files_that_were_not_read_leave_it_open() -> None:
    some = Extensions(extensions=[], left_out="the disk is slow: 3 of 9 files were not read")
    with pytest.raises(UnknownFactError, match="the disk is slow"):
        ask(SLUG, LINUX, PYTHON, CU13, some, on_bus(A100))


def of_onnx_runtime(owner: str) -> Judgement:
    both = ["onnxruntime", "onnxruntime-gpu"]
    shared = SharedLibrary(library="state.so", path="/env/state.so", projects=both, owner=owner)
    installed = Packages(
        distributions=[Distribution(project=project, version="1.23.2") for project in both]
    )
    wheels = NvidiaWheels(pins=[], damaged=[], shared=[shared])
    return ask(
        SLUG, LINUX, PYTHON, CU13, Extensions(extensions=[]), on_bus(A100), wheels, installed
    )


def test_the_onnx_runtime_for_the_cpu_over_that_for_cuda() -> None:
    found = hit(of_onnx_runtime("onnxruntime"))
    assert "onnxruntime has overwritten onnxruntime-gpu" in found.headline
    assert found.fixes[0].commands == (
        "/env/bin/python -m pip uninstall -y onnxruntime",
        "/env/bin/python -m pip install --force-reinstall --no-deps onnxruntime-gpu==1.23.2",
    )


def test_the_onnx_runtime_for_cuda_over_that_for_the_cpu_is_fine() -> None:
    assert isinstance(of_onnx_runtime("onnxruntime-gpu"), NotApplicable)
