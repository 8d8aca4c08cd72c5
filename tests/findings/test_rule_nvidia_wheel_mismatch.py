from typing import Any

import pytest
from each import each
from rules_machines import (
    NO_TORCH,
    PYTHON,
    SITE,
    VENV,
    commands,
    fine,
    hit,
    not_applicable,
    packages,
    torch_of,
)
from rules_support import ask
from wheel_facts import CUDNN_PATH, NCCL_PATH, claim, loads, lost, pin, torch_291, wheels

from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.libraries import Loading
from gpucheck.facts.torch import (
    AlteredLibrary,
    DamagedLibrary,
    Distribution,
    NvidiaWheels,
    Packages,
    TorchBuild,
    WheelHashes,
)
from gpucheck.findings.form import Fine, Judgement

SLUG = "nvidia-wheel-mismatch"
INSTALL = f"{PYTHON} -m pip install --force-reinstall --no-deps"


def judge(
    found: NvidiaWheels,
    loading: Loading | None = None,
    torch: TorchBuild | None = None,
    installed: Packages | None = None,
    hashes: WheelHashes | None = None,
) -> Judgement:
    sections = (torch or torch_291(), found, loading or loads(), installed or packages(), VENV)
    return ask(SLUG, *sections, *([hashes] if hashes else []))


def damaged(library: str, project: str, **more: Any) -> NvidiaWheels:  # noqa: ANN401  # fields
    fields: dict[str, Any] = {"state": "missing", "size": 0, "recorded_size": 100, **more}
    damaged_library = DamagedLibrary(
        project=project, version="1.0", library=library, path=f"{SITE}/nvidia/x/lib/{library}",
        sources={"*": "RECORD"}, **fields,
    )  # fmt: skip
    return wheels(damaged=[damaged_library])


def test_all_as_pinned_is_fine() -> None:
    fine(judge(wheels()))


@each(
    ("project", "version", "severity"),
    [
        ("nvidia-cudnn-cu12", "9.1.0.70", Severity.ERROR),  # torch was compiled against 9.8
        ("nvidia-cudnn-cu12", "9.9.0.52", Severity.WARNING),
        ("nvidia-cudnn-cu12", "8.9.2.26", Severity.ERROR),
        ("nvidia-cudnn-cu12", "10.0.0.1", Severity.ERROR),
        ("nvidia-nccl-cu12", "2.21.5", Severity.WARNING),  # nccl-version-mismatch judges
        ("nvidia-cublas-cu12", "12.4.5.8", Severity.WARNING),
        ("nvidia-cusparselt-cu12", "0.8.1", Severity.WARNING),
        ("triton", "3.4.0", Severity.WARNING),
        ("triton", "3.6.0", Severity.WARNING),
    ],
)
def test_another_version(project: str, version: str, severity: Severity) -> None:
    answer = hit(judge(wheels({project: version})))
    assert answer.severity is severity
    assert answer.headline.startswith(f"{project} {version} is installed, but PyTorch requires ==")
    (command,) = commands(answer)
    assert command.startswith(f"{INSTALL} {project}==")


@each(
    ("project", "version"),
    [
        ("nvidia-cudnn-cu12", "9.15.1.9"),
        ("nvidia-nccl-cu12", "2.28.9"),
        ("nvidia-cublas-cu12", "12.9.1.4"),
        ("nvidia-cufft-cu12", "11.4.0.6"),
    ],
)
def test_a_newer_one_of_the_same_major_is_fine(project: str, version: str) -> None:
    fine(judge(wheels({project: version})))


def test_an_old_nccl_is_an_error_where_the_loader_was_not_followed() -> None:
    answer = hit(judge(wheels({"nvidia-nccl-cu12": "2.21.5"}), Loading()))
    assert answer.severity is Severity.ERROR
    patch = hit(judge(wheels({"nvidia-nccl-cu12": "2.27.3"}), Loading()))
    assert patch.severity is Severity.WARNING


def test_a_removed_wheel_whose_libraries_are_lost() -> None:
    found = wheels({"nvidia-cublas-cu12": ""})
    loading = loads(missing=[lost("libcublas.so.12"), lost("libcublasLt.so.12")])
    answer = hit(judge(found, loading))
    assert answer.headline == "nvidia-cublas-cu12, which PyTorch requires, is not installed"
    assert (answer.severity, answer.confidence) == (Severity.ERROR, Confidence.CERTAIN)


def test_the_wheel_for_another_cuda_in_its_place() -> None:
    cu11 = packages(**{"nvidia-cublas-cu11": "11.11.3.6"})
    answer = hit(judge(wheels({"nvidia-cublas-cu12": ""}), Loading(), installed=cu11))
    assert "nvidia-cublas-cu11 11.11.3.6 is there, which is for another CUDA" in answer.headline
    assert answer.confidence is Confidence.LIKELY


def test_a_wheel_that_is_not_installed_but_whose_libraries_are_found_is_fine() -> None:
    cu11 = packages(**{"nvidia-cublas-cu11": "11.11.3.6"})
    fine(judge(wheels({"nvidia-cublas-cu12": ""}), loads(), installed=cu11))


def test_wheels_for_another_cuda_beside_complete_ones_are_fine() -> None:
    fine(judge(wheels(), installed=packages(**{"nvidia-cublas-cu11": "11.11.3.6"})))


def test_a_missing_triton_is_a_warning() -> None:
    answer = hit(judge(wheels({"triton": ""})))
    assert answer.severity is Severity.WARNING
    assert "torch.compile fails on a GPU" in answer.headline


def test_a_library_that_is_gone() -> None:
    answer = hit(judge(damaged("libcufft.so.11", "nvidia-cufft-cu12")))
    assert answer.headline == (
        "libcufft.so.11 of nvidia-cufft-cu12 1.0 is missing, although the wheel is installed"
    )
    assert answer.evidence == ("nvidia_wheels.damaged.0",)


def test_a_library_that_was_cut_off() -> None:
    found = damaged("libcufft.so.11", "nvidia-cufft-cu12", state="cut-off", size=5)
    answer = hit(judge(found))
    assert answer.severity is Severity.ERROR
    assert "truncated: it has 5 of 100 bytes" in answer.headline


def test_a_library_of_another_size_is_information() -> None:
    found = damaged("libcufft.so.11", "nvidia-cufft-cu12", state="changed", size=102)
    assert hit(judge(found)).severity is Severity.INFO


def altered(project: str) -> WheelHashes:
    altered_library = AlteredLibrary(
        project=project, version="11.3", library="libcufft.so.11", path=f"{SITE}/libcufft.so.11",
        sha256="ab12", sources={"*": "RECORD"},
    )  # fmt: skip
    return WheelHashes(altered=[altered_library], compared=5, left_out="", sources={"*": "RECORD"})


def test_a_library_of_another_content_is_a_warning() -> None:
    answer = hit(judge(wheels(), hashes=altered("nvidia-cufft-cu12")))
    assert answer.severity is Severity.WARNING
    assert answer.headline.startswith("libcufft.so.11 of nvidia-cufft-cu12 11.3 is not the file")
    assert answer.evidence == ("wheel_hashes.altered.0",)
    assert answer.fixes[0].verify.endswith(" -v")
    assert commands(answer) == (f"{INSTALL} nvidia-cufft-cu12==11.3.3.83",)


def test_a_wheel_that_torch_does_not_pin_may_be_altered() -> None:
    fine(judge(wheels(), hashes=altered("nvidia-cufft-cu11")))


def test_what_was_compared_is_told() -> None:
    hashes = WheelHashes(altered=[], compared=55, left_out="1 left out, such as libx.so: EIO")
    answer = judge(wheels(), hashes=hashes)
    assert isinstance(answer, Fine)
    assert "the contents of 55 libraries are as recorded; 1 left out" in answer.reason


@each(
    ("library", "project"),
    [
        ("libnvblas.so.12", "nvidia-cublas-cu12"),  # torch does not use it
        ("libcufftw.so.11", "nvidia-cufft-cu12"),
        ("libcufft.so.10", "nvidia-cufft-cu11"),  # torch does not pin it
    ],
)
def test_what_torch_does_not_use_may_be_gone(library: str, project: str) -> None:
    fine(judge(damaged(library, project)))


def test_a_file_that_another_wheel_has_overwritten() -> None:
    projects = ("nvidia-nccl-cu12", "nvidia-nccl-cu13")
    answer = hit(judge(wheels(shared=[claim(NCCL_PATH, *projects, owner="nvidia-nccl-cu13")])))
    assert answer.headline == (
        "nvidia-nccl-cu13 has overwritten libnccl.so.2 of nvidia-nccl-cu12, which PyTorch requires"
    )
    assert answer.severity is Severity.ERROR
    assert commands(answer) == (
        f"{PYTHON} -m pip uninstall -y nvidia-nccl-cu13",
        f"{INSTALL} nvidia-nccl-cu12==2.27.5",
    )


@each(("version", "severity"), [("2.32.3", Severity.WARNING), ("2.26.2", Severity.ERROR)])
def test_an_nccl_for_another_cuda_that_is_not_older_is_a_warning(
    version: str, severity: Severity
) -> None:
    """Xgboost after torch: pip writes nvidia-nccl-cu12 last, and torch is imported all the same."""
    found = wheels(
        shared=[claim(NCCL_PATH, "nvidia-nccl-cu12", "nvidia-nccl-cu13", owner="nvidia-nccl-cu13")]
    )
    other = Distribution(project="nvidia-nccl-cu13", version=version)
    answer = hit(judge(found, installed=Packages(distributions=[other])))
    assert answer.severity is severity
    assert answer.headline.startswith("nvidia-nccl-cu13 has overwritten libnccl.so.2")


def test_an_nccl_that_lacks_functions_is_certain() -> None:
    shared = [claim(NCCL_PATH, "nvidia-nccl-cu12", "nvidia-nccl-cu13", owner="nvidia-nccl-cu13")]
    answer = hit(judge(wheels(shared=shared, nccl_functions_missing=["ncclCommResume"])))
    assert answer.headline.endswith("the installed file lacks ncclCommResume")
    assert answer.confidence is Confidence.CERTAIN


@each("owner", [None, ""])
def test_a_file_of_two_wheels_whose_content_is_not_known_is_a_warning(owner: str | None) -> None:
    projects = ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
    shared = [claim(f"{CUDNN_PATH}{at}", *projects, owner=owner) for at in range(9)]
    answer = hit(judge(wheels(shared=shared)))
    assert answer.severity is Severity.WARNING
    assert "more of this kind" not in answer.headline  # one pair of wheels is one trouble


def test_a_file_of_two_wheels_that_is_still_the_right_one_is_only_mentioned() -> None:
    """Xgboost brings nvidia-nccl-cu12 beside a torch for CUDA 13, and both work."""
    projects = ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
    shared = [claim(f"{CUDNN_PATH}{at}", *projects, owner="nvidia-cudnn-cu12") for at in range(9)]
    answer = hit(judge(wheels(shared=shared)))
    assert answer.severity is Severity.INFO
    assert answer.fixes[0].text.startswith("You need not do anything")
    assert not answer.fixes[0].commands


def test_two_wheels_of_others_may_share_what_they_like() -> None:
    shared = [claim(NCCL_PATH, "nvidia-nccl-cu11", "nvidia-nccl-cu13", owner="nvidia-nccl-cu13")]
    fine(judge(wheels(shared=shared)))


def test_one_command_fixes_all_of_the_same_severity() -> None:
    found = wheels(
        {"nvidia-cudnn-cu12": "8.9.2.26", "triton": "3.4.0", "nvidia-cufft-cu12": "10.9"}
    )
    answer = hit(judge(found))
    assert answer.headline.endswith("(1 more of this kind)")
    assert commands(answer) == (
        f"{INSTALL} nvidia-cudnn-cu12==9.10.2.21 nvidia-cufft-cu12==11.3.3.83",
    )


def test_a_range_is_passed_on_to_pip() -> None:
    pins = {"nvidia-nvjitlink": "<14,>=13.2.86"}
    found = NvidiaWheels(
        pins=[pin("nvidia-nvjitlink", "<14,>=13.2.86", "13.1.0")], damaged=[], shared=[]
    )
    answer = hit(judge(found, torch=torch_291(pins=pins)))
    assert answer.severity is Severity.WARNING
    assert commands(answer) == (f"{INSTALL} 'nvidia-nvjitlink<14,>=13.2.86'",)


def test_not_applicable() -> None:
    not_applicable(judge(wheels(), torch=NO_TORCH))
    bindings = pin("cuda-bindings", "<14,>=13.0.3", "")
    not_applicable(judge(NvidiaWheels(pins=[bindings]), torch=torch_of("2.15.0", "13.2")))
    not_applicable(judge(NvidiaWheels(pins=[]), torch=torch_of("2.13.0+cpu")))


def test_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"nvidia_wheels\.pins"):
        judge(NvidiaWheels(problems={"*": "there is no metadata of torch"}))
    with pytest.raises(UnknownFactError, match=r"pins\.0\.state"):
        judge(NvidiaWheels(pins=[pin("nvidia-cudnn-cu12", "===9", "9")], damaged=[], shared=[]))
