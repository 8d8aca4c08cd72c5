import msgspec
import pytest
from each import each
from rules_machines import (
    A100,
    NO_TORCH,
    NO_VARIABLES,
    PYTHON,
    UBUNTU,
    VENV,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
    packages,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.libraries import Extension, Extensions
from gpucheck.facts.system import Pci
from gpucheck.facts.torch import Distribution, Packages, TorchBuild
from gpucheck.findings.form import Judgement

SLUG = "torch-companion-mismatch"
CU124 = torch_of("2.6.0+cu124", "12.4")


def judge(torch: TorchBuild, **versions: str | tuple[str, str]) -> Judgement:
    return ask(SLUG, torch, packages(numpy="1.26.4", **versions), VENV, UBUNTU)


def test_the_right_pair_is_fine() -> None:
    fine(judge(CU124, torchvision=("0.21.0+cu124", "==2.6.0"), torchaudio=("2.6.0", "==2.6.0")))


def test_torchvision_of_another_release() -> None:
    answer = hit(judge(CU124, torchvision=("0.20.1+cu124", "==2.5.1")))
    assert answer.headline == "torchvision 0.20.1+cu124 was made for torch 2.5.1, not 2.6.0+cu124"
    assert answer.severity is Severity.ERROR
    assert answer.evidence == ("torch.version", "packages.distributions.1")
    remove, install = commands(answer)
    assert remove == f"{PYTHON} -m pip uninstall -y torchvision"
    index = "--index-url https://download.pytorch.org/whl/cu124"
    assert install == f"{PYTHON} -m pip install torchvision==0.21.0 {index}"


def test_a_python_that_pip_may_not_change_gets_an_environment() -> None:
    debian = msgspec.structs.replace(VENV, kind="system", externally_managed=True)
    found = packages(torchvision=("0.20.1+cu124", "==2.5.1"))
    answer = ask(SLUG, CU124, found, debian, UBUNTU, nvml(A100), NO_VARIABLES)
    install = commands(answer)[-1]
    assert install.startswith("~/gpu-env/bin/pip install torch==2.6.0 torchvision==0.21.0 ")
    assert not any("uninstall" in command for command in commands(answer))


def test_a_torch_from_the_default_index_keeps_it() -> None:
    answer = judge(torch_of("2.6.0", "12.4"), torchaudio=("2.5.1", "==2.5.1"))
    assert commands(answer)[1] == f"{PYTHON} -m pip install torchaudio==2.6.0"


def test_a_patch_release_apart_is_a_warning() -> None:
    answer = hit(judge(torch_of("2.5.1", "12.4"), torchvision=("0.20.0", "==2.5.0")))
    assert answer.severity is Severity.WARNING
    assert answer.confidence is Confidence.POSSIBLE


def test_another_build_is_worse_than_a_patch_release_apart() -> None:
    cu121 = torch_of("2.5.1+cu121", "12.1")
    answer = hit(judge(cu121, torchvision=("0.20.0+cu121", "==2.5.0"), torchaudio="2.5.1+rocm6.2"))
    assert answer.headline.startswith("torchaudio 2.5.1+rocm6.2 is built for ROCm, but torch 2.5.1")
    answer = hit(judge(cu121, torchvision=("0.20.0+cpu", "==2.5.0")))
    assert answer.severity is Severity.ERROR
    assert "is a CPU build" in answer.headline


def test_a_cuda_build_beside_a_torch_for_rocm() -> None:
    torch = TorchBuild(
        installed=True,
        version="2.4.0+rocm6.1",
        built_for="rocm",
        cuda="",
        hip="6.1",
        sources={"*": "t"},
    )
    answer = hit(judge(torch, torchvision=("0.19.0+cu121", "==2.4.0")))
    assert answer.headline.startswith("torchvision 0.19.0+cu121 is built for CUDA, but torch 2.4.0")


def test_without_metadata_the_table_answers() -> None:
    hit(judge(CU124, torchvision="0.20.1"))
    fine(judge(CU124, torchvision="0.21.0"))


@each("torch", ["2.6.0", "2.15.0", "2.16.0a0+gitabc"])
def test_no_requirement_is_no_mismatch(torch: str) -> None:
    fine(judge(torch_of(torch, "13.2"), torchaudio=("2.11.0", ""), torchtext=("0.18.0", "")))


def test_an_open_requirement_holds_for_later_releases() -> None:
    fine(judge(torch_of("2.15.0", "13.2"), torchvision=("0.29.2", ">=2.14.0")))
    hit(judge(torch_of("2.13.0", "13.0"), torchvision=("0.29.2", ">=2.14.0")))


def test_a_nightly_pair_fits_by_name_and_is_unknown_else() -> None:
    nightly = torch_of("2.16.0.dev20261101+cu132", "13.2")
    fine(judge(nightly, torchvision=("0.31.0.dev20261101+cu132", "==2.16.0.dev20261101")))
    with pytest.raises(UnknownFactError, match="not known"):
        judge(nightly, torchvision=("0.31.0.dev20261030", "==2.16.0.dev20261030"))


def test_a_hostile_requirement_is_unknown() -> None:
    with pytest.raises(UnknownFactError):
        judge(CU124, torchvision=("0.21.0", "=!=;;"))


def test_torchtext_is_judged_by_its_metadata() -> None:
    answer = hit(judge(CU124, torchtext=("0.17.0", "==2.2.0")))
    assert commands(answer) == (f"{PYTHON} -m pip uninstall -y torchtext",)
    with pytest.raises(UnknownFactError):
        judge(CU124, torchtext="0.17.0")


def test_a_cpu_torchvision_beside_a_cuda_torch() -> None:
    answer = hit(judge(CU124, torchvision=("0.21.0+cpu", "==2.6.0")))
    assert "CPU build" in answer.headline
    assert commands(answer)[1].endswith("/whl/cu124")


def test_a_cuda_torchvision_beside_a_cpu_torch() -> None:
    hit(judge(torch_of("2.6.0+cpu"), torchvision=("0.21.0+cu124", "==2.6.0")))


def test_another_cuda_minor_is_fine_another_major_is_not() -> None:
    fine(judge(CU124, torchvision=("0.21.0+cu126", "==2.6.0")))
    hit(judge(CU124, torchvision=("0.21.0+cu118", "==2.6.0")))


def test_a_cpu_torchaudio_beside_a_cuda_torch_works() -> None:
    fine(judge(CU124, torchaudio=("2.6.0+cpu", "==2.6.0")))


def compiled(package: str = "torchvision", *, symbols: tuple[str, ...] = (),
             libraries: tuple[str, ...] = ()) -> Extensions:  # fmt: skip
    return Extensions(
        extensions=[
            Extension(
                package=package,
                version="0.21.0",
                file=f"{package}/_C.so",
                variant_of=f"{package}/_C.so",
                python="",
                needs_torch=True,
                cuda="12",
                missing_libraries=list(libraries),
                missing_symbols=list(symbols),
                missing_symbol_count=len(symbols),
                codes=[],
            )
        ]
    )


def test_compiled_files_that_do_not_fit_count_whatever_the_versions_say() -> None:
    versions = packages(torchvision=("0.21.0", "==2.6.0"))
    broken = compiled(symbols=("c10::TensorImpl::decref_pyobject",))
    answer = hit(ask(SLUG, CU124, versions, VENV, UBUNTU, broken))
    assert "torch 2.6.0+cu124 lacks c10::TensorImpl::decref_pyobject" in answer.headline
    assert "torchvision==0.21.0" in commands(answer)[-1]
    fine(ask(SLUG, CU124, versions, VENV, UBUNTU, compiled()))
    fine(ask(SLUG, CU124, versions, VENV, UBUNTU, compiled("other", symbols=("c10::x",))))


def test_pypis_torchvision_cannot_be_imported_beside_a_cpu_build_even_without_a_gpu() -> None:
    torch = torch_of("2.6.0+cpu", "")
    torch = msgspec.structs.replace(torch, built_for="cpu", arch_list=[])
    versions = packages(torchvision=("0.21.0", "==2.6.0"))
    broken = compiled(libraries=("libc10_cuda.so",))
    answer = hit(ask(SLUG, torch, versions, VENV, UBUNTU, broken, Pci(gpus=[])))
    assert answer.severity in (None, Severity.ERROR)
    assert "needs libc10_cuda.so" in answer.headline
    assert "--index-url https://download.pytorch.org/whl/cpu" in commands(answer)[-1]


def test_conda_is_asked_where_conda_installed() -> None:
    found = Packages(
        distributions=[
            Distribution(
                project="torchvision",
                version="0.20.1",
                installer="conda",
                torch_requirement="==2.5.1",
            )
        ]
    )
    answer = ask(SLUG, CU124, found, VENV, UBUNTU)
    assert commands(answer) == ("conda install -p /home/ada/venv torchvision=0.21.0",)


def test_what_it_has_nothing_to_say_about() -> None:
    not_applicable(ask(SLUG, NO_TORCH))
    not_applicable(judge(CU124))
    with pytest.raises(UnknownFactError, match=r"packages\.distributions"):
        ask(SLUG, CU124)
    with pytest.raises(UnknownFactError, match=r"torch\.version"):
        judge(msgspec.structs.replace(CU124, version=None), torchvision="0.21.0")


def test_a_requirement_with_a_number_that_python_does_not_convert_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match="which torch torchvision"):
        judge(CU124, torchvision=("0.99", f"<{'9' * 4999}"))
