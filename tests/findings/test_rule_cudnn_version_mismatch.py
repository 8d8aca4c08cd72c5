import pytest
from each import each
from rules_machines import (
    A100,
    NO_TORCH,
    NO_VARIABLES,
    PYTHON,
    UBUNTU,
    V100,
    VENV,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
    torch_of,
)
from rules_support import ask
from wheel_facts import CUDNN_PATH, claim, copy_of, cudnn, loads, torch_291, wheels

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.libraries import LoadedLibrary, Loading
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Judgement

SLUG = "cudnn-version-mismatch"
SKIP = "PYTORCH_SKIP_CUDNN_COMPATIBILITY_CHECK"


def judge(copy: LoadedLibrary | None, torch: TorchBuild | None = None, *more: Section) -> Judgement:
    loading = next((section for section in more if isinstance(section, Loading)), None)
    if loading is None:
        more = (*more, loads(*([copy] if copy else [])))
    names = {type(section) for section in more}
    usual = [
        section for section in (wheels(), UBUNTU, VENV, NO_VARIABLES) if type(section) not in names
    ]
    return ask(SLUG, torch or torch_291(), *usual, *more)


def test_older_than_compiled() -> None:
    answer = hit(judge(cudnn("9.1.0")))
    assert answer.headline == (
        "PyTorch 2.9.1+cu128 was compiled against cuDNN 9.8.0, but would load cuDNN 9.1.0 from "
        f"{CUDNN_PATH}"
    )
    assert answer.evidence[0] == "loading.libraries.0.version"
    assert commands(answer) == (
        f"{PYTHON} -m pip install --force-reinstall --no-deps nvidia-cudnn-cu12==9.10.2.21",
    )


@each("version", ["9.8.0", "9.9.0", "9.10.2", "9.10.1", "9.26.0"])
def test_what_torch_accepts_is_fine(version: str) -> None:
    """9.8 and 9.9 are older than the pin and newer than what torch was compiled against."""
    fine(judge(cudnn(version)))


def test_another_major() -> None:
    hit(judge(cudnn("8.9.7")))
    hit(judge(cudnn("10.0.0")))


def test_only_the_pin_is_known() -> None:
    torch = torch_of("2.8.0+cu126", "12.6", pins={"nvidia-cudnn-cu12": "==9.10.2.21"},
                     cudnn="9.10.2.21")  # fmt: skip
    fine(judge(cudnn("9.10.2"), torch))
    fine(judge(cudnn("9.12.0"), torch))
    hit(judge(cudnn("8.9.7"), torch))
    with pytest.raises(UnknownFactError, match="compiled"):
        judge(cudnn("9.9.0"), torch)


def test_a_given_compiled_version_decides() -> None:
    torch = torch_of("2.8.0+cu126", "12.6", cudnn_compiled="9.5.1", cudnn="9.5.1")
    fine(judge(cudnn("9.5.0"), torch))
    assert "torch.cudnn_compiled" in hit(judge(cudnn("9.4.0"), torch)).evidence


def test_a_newer_torch_than_the_tables_is_not_guessed() -> None:
    torch = torch_of("2.99.0", "15.0", cudnn_compiled="11.0.0", cudnn="11.0.0")
    with pytest.raises(UnknownFactError):
        judge(cudnn("10.0.0"), torch)


def test_a_variable_that_puts_another_copy_first() -> None:
    copy = cudnn("9.1.0", "/opt/cudnn/lib/libcudnn.so.9", found_via="LD_LIBRARY_PATH",
                 variable_entry="/opt/cudnn/lib")  # fmt: skip
    path = Environment(variables={"LD_LIBRARY_PATH": "/opt/cudnn/lib:/opt/lib"})
    answer = hit(judge(copy, None, path))
    assert "found through LD_LIBRARY_PATH" in answer.headline
    assert answer.fixes[0].text.startswith("Remove /opt/cudnn/lib from LD_LIBRARY_PATH, here and")
    assert answer.fixes[0].commands == ("export LD_LIBRARY_PATH=/opt/lib",)


def test_a_comparison_that_was_switched_off_leaves_a_warning() -> None:
    off = Environment(variables={SKIP: "1"})
    answer = hit(judge(cudnn("9.1.0"), None, off))
    assert answer.severity is Severity.WARNING
    assert f"environment.variables.{SKIP}" in answer.evidence
    assert f"{SKIP}=1" in answer.headline
    fine(judge(cudnn("9.9.0"), None, off))


def test_what_torch_does_not_read_as_switched_off_stays_an_error() -> None:
    for answer in (
        hit(judge(cudnn("9.1.0"), None, Environment(variables={SKIP: "true"}))),
        hit(judge(cudnn("8.9.7"), None, Environment(variables={SKIP: "1"}))),
    ):
        assert answer.severity is None
        assert SKIP not in answer.headline


def test_parts_of_another_release() -> None:
    part = copy_of("libcudnn_ops.so.9", "/opt/cudnn/lib/libcudnn_ops.so.9", "9.1.0")
    answer = hit(judge(None, None, loads(cudnn("9.10.2"), runtime_opened=[part])))
    assert "mixed from two releases" in answer.headline
    assert answer.evidence == (
        "loading.libraries.0.version",
        "loading.runtime_opened.0.version",
    )
    same = copy_of("libcudnn_ops.so.9", "/opt/cudnn/lib/libcudnn_ops.so.9", "9.10.1")
    fine(judge(None, None, loads(cudnn("9.10.2"), runtime_opened=[same])))


def test_a_header_beside_a_part_may_be_old() -> None:
    part = LoadedLibrary(
        soname="libcudnn_ops.so.9", real_path="/opt/cudnn/lib/libcudnn_ops.so.9", version="9.1.0",
        sources={"*": "the loader", "version": "/opt/cudnn/include/cudnn_version.h"},
    )  # fmt: skip
    fine(judge(None, None, loads(cudnn("9.10.2"), runtime_opened=[part])))


def test_a_part_of_which_only_the_major_release_is_known() -> None:
    path = "/opt/cudnn/lib/libcudnn_cnn.so.9"
    unknown = [copy_of("libcudnn_cnn.so.9", path, version) for version in ("9", None)]
    for part in unknown:
        with pytest.raises(UnknownFactError, match="libcudnn_cnn"):
            judge(None, None, loads(cudnn("9.10.2"), runtime_opened=[part]))
        library = copy_of("libcudnn_ops.so.9", "/opt/cudnn/lib/libcudnn_ops.so.9", "9.1.0")
        answer = hit(judge(None, None, loads(cudnn("9.10.2"), runtime_opened=[part, library])))
        assert "9.1.0 (/opt/cudnn/lib/libcudnn_ops.so.9)" in answer.headline


def test_a_newer_wheel_that_has_dropped_the_gpu() -> None:
    torch = torch_of("2.10.0+cu126", "12.6", pins={"nvidia-cudnn-cu12": "==9.10.2.21"},
                     cudnn="9.10.2.21")  # fmt: skip
    answer = hit(judge(cudnn("9.15.0"), torch, nvml(V100)))
    assert "9.15.0" in answer.headline
    assert V100 in answer.headline
    fine(judge(cudnn("9.15.0"), torch, nvml(A100)))
    fine(judge(cudnn("9.10.2"), torch, nvml(V100)))
    pinned = torch_of("2.10.0+cu128", "12.8", cudnn="9.15.1.9")
    fine(judge(cudnn("9.15.1"), pinned, nvml(V100)))  # gpu-too-old-for-torch tells that


def test_an_overwritten_file_is_told_by_another_rule() -> None:
    projects = ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
    over = wheels(shared=[claim(CUDNN_PATH, *projects, owner="nvidia-cudnn-cu13")])
    not_applicable(judge(cudnn("9.1.0"), None, over))
    own = wheels(shared=[claim(CUDNN_PATH, *projects, owner="nvidia-cudnn-cu12")])
    hit(judge(cudnn("9.1.0"), None, own))


def test_not_applicable() -> None:
    not_applicable(judge(cudnn(), NO_TORCH))
    not_applicable(judge(cudnn(), torch_of("2.6.0+cpu")))
    not_applicable(judge(None))


def test_unknown() -> None:
    with pytest.raises(UnknownFactError, match="version"):
        judge(cudnn(None))
    with pytest.raises(UnknownFactError, match=r"loading\.libraries"):
        judge(None, None, Loading(problems={"*": "musl"}))
