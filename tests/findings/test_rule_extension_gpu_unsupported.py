import pytest
from each import each
from msgspec.structs import replace
from rule_facts import (
    A100,
    CPU_TORCH,
    CUDA_TORCH,
    EMPTY_BUS,
    HOST,
    LINUX,
    NO_VARIABLES,
    RTX5090,
    commands,
    cuda_sees,
    hit,
    quiet,
)
from rules_machines import packages
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.libraries import Extension, Extensions
from gpucheck.facts.torch import Interpreter
from gpucheck.findings.form import Fine, Judgement

T4 = ("Tesla T4", "7.5")
RTX4090 = ("NVIDIA GeForce RTX 4090", "8.9")
GB10 = ("NVIDIA GB10", "12.1")
TORCH = replace(
    CUDA_TORCH,
    version="2.9.1+cu128",
    cuda="12.8",
    arch_list=["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"],
)
PYTHON = Interpreter(status="ok", executable="/env/bin/python", version="3.11.7", has_pip=True)


def file(
    *codes: str, package: str = "flash-attn", version: str = "2.8.3", unread: bool = False
) -> Extension:
    return Extension(
        package=package,
        version=version,
        file=f"{package}/{'_'.join(codes)}.so",
        variant_of=f"{package}/{'_'.join(codes)}.so",
        python="",
        needs_torch=True,
        missing_libraries=[],
        missing_symbols=[],
        codes=None if unread else list(codes),
        problems={"codes": "it has more GPU code than gpucheck reads"} if unread else {},
    )


def judge(*files: Extension, gpus: tuple[tuple[str, str], ...] = (RTX5090,), **more: Section) -> (
    Judgement
):  # fmt: skip
    sections = {"torch": TORCH, "extensions": Extensions(extensions=list(files)), **more}
    return ask(
        "extension-gpu-unsupported",
        LINUX,
        HOST,
        NO_VARIABLES,
        PYTHON,
        cuda_sees(*gpus),
        *sections.values(),
    )


def test_code_for_older_majors_does_not_run_on_a_newer_gpu() -> None:
    found = hit(judge(file("sm_80", "sm_90")))
    assert "flash-attn 2.8.3 has no code for GPU 0 (NVIDIA GeForce RTX 5090)" in found.headline
    assert "only for sm_80, sm_90" in found.headline
    assert "export TORCH_CUDA_ARCH_LIST=12.0\n" in commands(found)
    assert found.severity is Severity.ERROR


def test_the_release_that_is_there_is_compiled_and_no_other() -> None:
    found = hit(judge(file("sm_80", version="2.8.3+cu128torch2.9")))
    assert "--no-binary flash-attn flash-attn==2.8.3" in commands(found)


def test_a_package_that_pypi_may_not_have_is_not_fetched_from_there() -> None:
    """What PyPI holds under the name of somebody's own package is a stranger's."""
    found = hit(judge(file("sm_80", package="acme-ops", version="1.0")))
    assert "pip" not in commands(found)
    assert any("ompile acme-ops here" in fix.text for fix in found.fixes)


@each(
    ("codes", "gpu"),
    [
        (("sm_80", "sm_90", "sm_120"), RTX5090),
        (("sm_80",), RTX4090),
        (("sm_80", "compute_90", "sm_120"), RTX5090),
        (("sm_120",), GB10),
        (("sm_120f",), GB10),
    ],
)
def test_code_that_runs(codes: tuple[str, ...], gpu: tuple[str, str]) -> None:
    quiet(judge(file(*codes), gpus=(gpu,)))


@each(
    ("built_with", "torch", "quietly"),
    [
        (None, "12.2", True),
        (None, "12.8", False),
        ("12.2", "12.8", True),
        ("12.8", "12.8", True),  # driver-too-old tells it
    ],
)
def test_ptx_runs_only_where_the_driver_compiles_it(
    built_with: str | None, torch: str, *, quietly: bool
) -> None:
    """The driver here supports CUDA up to 12.2, and nothing but the PTX fits this GPU."""
    extension = replace(file("sm_80", "compute_90"), built_with=built_with)
    build = replace(TORCH, cuda=torch)
    if quietly:
        quiet(judge(extension, torch=build))
        return
    with pytest.raises(UnknownFactError, match=r"extensions\.extensions\.0\.built_with"):
        judge(extension, torch=build)


@each("codes", [("sm_90a",), ("compute_90a",), ("sm_100a", "sm_90a")])
def test_code_for_one_chip_runs_on_no_other(codes: tuple[str, ...]) -> None:
    hit(judge(file(*codes)))


def test_a_gpu_that_is_older_than_the_package_is_told_to_do_without() -> None:
    found = hit(judge(file("sm_80", "sm_90", package="flash-attn"), gpus=(T4,)))
    assert "flash-attn, which does not support compute capability 7.5" in found.fixes[0].text
    assert "pip uninstall -y flash-attn" in commands(found)


def test_one_file_that_runs_is_enough() -> None:
    quiet(judge(file("sm_90a", package="vllm"), file("sm_80", "sm_120", package="vllm")))


def test_a_package_without_gpu_code_is_not_judged() -> None:
    quiet(judge(file(package="pkg")))


def test_code_that_was_not_all_read_is_no_ground_to_blame() -> None:
    with pytest.raises(UnknownFactError, match=r"extensions\.extensions\.0\.codes"):
        judge(file(unread=True))
    quiet(judge(file(unread=True, package="vllm"), file("sm_120", package="vllm")))
    with pytest.raises(UnknownFactError):
        judge(file(unread=True, package="vllm"), file("sm_80", package="vllm"))


def test_some_of_the_gpus() -> None:
    found = hit(judge(file("sm_80"), gpus=(A100, RTX5090)))
    assert found.severity is Severity.WARNING
    assert "1 of 2 visible GPUs" in found.headline


def test_kernels_for_some_gpus_are_only_mentioned() -> None:
    found = hit(judge(file("sm_90a", package="torchao"), gpus=(A100,)))
    assert found.severity is Severity.INFO
    both = hit(judge(file("sm_90a", package="torchao"), file("sm_80"), gpus=(RTX5090,)))
    assert both.severity is Severity.ERROR


def test_a_gpu_that_torch_itself_cannot_use_is_another_finding() -> None:
    quiet(judge(file("sm_80"), gpus=(("NVIDIA GeForce GTX 1080", "6.1"),)))


def test_a_cpu_build_and_no_gpu() -> None:
    quiet(judge(file("sm_80"), torch=CPU_TORCH))
    quiet(ask("extension-gpu-unsupported", LINUX, EMPTY_BUS, TORCH, NO_VARIABLES))


def test_a_stray_library_of_cuda_is_no_extension_of_torch() -> None:
    stray = replace(file("sm_80", package="lib", version=""), needs_torch=False)
    quiet(judge(stray))


def test_what_is_not_linked_with_torch_is_only_mentioned() -> None:
    other = replace(file("sm_80", package="xgboost"), needs_torch=False, requires_torch=False)
    found = hit(judge(other))
    assert found.severity is Severity.INFO
    assert "so PyTorch is not affected" in found.headline
    assert "Nothing needs to be done" in found.fixes[0].text
    assert hit(judge(replace(other, requires_torch=True))).severity is Severity.ERROR
    first = hit(judge(other, file("sm_80", package="flash-attn")))
    assert first.headline.startswith("flash-attn")


def test_the_part_for_torch_of_a_package_that_does_without_is_only_mentioned() -> None:
    assert hit(judge(replace(file("sm_80"), optional=True))).severity is Severity.INFO


def test_unread_code_of_what_is_not_linked_with_torch_leaves_nothing_open() -> None:
    other = replace(file(unread=True, package="spconv"), needs_torch=False)
    quiet(judge(other))
    answer = judge(other, file("sm_120"))
    assert isinstance(answer, Fine)
    assert "spconv" not in answer.reason


def test_files_that_were_left_out_leave_the_question_open() -> None:
    for files in ([], [file("sm_120")]):
        left = Extensions(extensions=files, left_out="the disk is slow")
        with pytest.raises(UnknownFactError, match="the disk is slow"):
            judge(extensions=left)
    hit(judge(extensions=Extensions(extensions=[file("sm_80")], left_out="the disk is slow")))


def test_the_row_of_a_release_counts_where_no_code_was_seen() -> None:
    for package, version, gpu in (
        ("flash-attn", "2.8.3", T4),
        ("bitsandbytes", "0.50.2", ("GTX 970", "5.2")),
    ):
        listed = packages(**{package: version})
        code = replace(TORCH, arch_list=["sm_50", *(TORCH.arch_list or ())])
        found = hit(judge(gpus=(gpu,), packages=listed, torch=code))
        assert found.confidence is Confidence.LIKELY
        assert f"{package} {version} is not made for GPU 0" in found.headline
        assert f"pip uninstall -y {package}" in commands(found)
        quiet(judge(gpus=(gpu, A100), packages=listed, torch=code))
        quiet(judge(gpus=(A100,), packages=listed))
    assert "pip install bitsandbytes==0.47.0" in commands(found)


def test_the_code_that_was_seen_outweighs_the_row() -> None:
    seen = file("sm_75", "sm_80")
    quiet(judge(seen, gpus=(T4,), packages=packages(**{"flash-attn": "2.8.3"})))


def test_xformers_works_without_its_own_kernels_on_older_gpus() -> None:
    seen = file("sm_75", "sm_80", package="xformers", version="0.0.35")
    code = replace(TORCH, arch_list=["sm_61", *(TORCH.arch_list or ())])
    found = hit(judge(seen, gpus=(("GTX 1080", "6.1"),), torch=code))
    assert found.severity is Severity.INFO
