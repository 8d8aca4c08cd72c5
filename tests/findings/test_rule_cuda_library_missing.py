"""A CUDA library that the loader does not find."""

from each import each
from rules_support import ask
from wheel_facts import unreadable

from gpucheck.facts.libraries import Loading, MissingLibrary
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable

SLUG = "cuda-library-missing"
PINS = {"nvidia-cusparse-cu12": "==12.5.8.93", "nvidia-cublas-cu12": "==12.8.4.1"}
TORCH = TorchBuild(installed=True, version="2.9.1+cu128", built_for="cuda", cuda="12.8", pins=PINS)
PYTHON = Interpreter(executable="/v/bin/python", has_pip=True, externally_managed=False)


def lost(soname: str, *, fatal: bool = True, why: str = "not found") -> MissingLibrary:
    return MissingLibrary(soname=soname, needed_by="libtorch_cuda.so", why=why, fatal=fatal)


def judge(*missing: MissingLibrary, torch: TorchBuild = TORCH) -> Judgement:
    return ask(SLUG, torch, PYTHON, System(os="linux"), Loading(missing=list(missing)))


def test_the_pinned_wheels_are_installed_again() -> None:
    found = judge(lost("libcusparse.so.12"), lost("libcublasLt.so.12"), lost("libcublas.so.12"))
    assert isinstance(found, Hit)
    assert found.headline == (
        "import torch fails: the loader does not find libcusparse.so.12, which libtorch_cuda.so "
        "needs, nor 2 more libraries"
    )
    assert found.evidence == tuple(f"loading.missing.{at}" for at in range(3))
    (command,) = found.fixes[0].commands
    assert command == (
        "/v/bin/python -m pip install --force-reinstall --no-deps "
        "nvidia-cusparse-cu12==12.5.8.93 nvidia-cublas-cu12==12.8.4.1"
    )


def test_what_only_permissions_hide_is_not_installed_again() -> None:
    hidden = (
        ("libcublas.so.12", "/v/nvidia/cublas/lib/libcublas.so.12"),
        ("libcublasLt.so.12", "/v/nvidia/cublas/lib/libcublasLt.so.12"),
        ("libcusparse.so.12", "/v/nvidia/cusparse"),
    )
    found = judge(*(unreadable(*arguments) for arguments in hidden), lost("libcufft.so.11"))
    assert isinstance(found, Hit)
    assert found.headline.startswith(
        "libtorch_cuda.so needs libcublas.so.12; the file exists, but the permissions of "
    )
    assert found.evidence == tuple(f"loading.missing.{at}" for at in range(3))
    assert found.fixes[0].commands == (
        "chmod -R a+rX /v/nvidia/cublas/lib", "chmod -R a+rX /v/nvidia/cusparse",
    )  # fmt: skip


def test_what_is_opened_later_comes_last_and_says_so() -> None:
    found = judge(lost("libcusparse.so.12", fatal=False))
    assert isinstance(found, Hit)
    assert found.headline.endswith("needs it and fails when it is used")
    both = judge(lost("libcusparse.so.12", fatal=False), lost("libcublas.so.12"))
    assert isinstance(both, Hit)
    assert "does not find libcublas.so.12" in both.headline


@each("installer", ["conda", "pip"])
def test_a_build_without_pins_is_told_in_words(installer: str) -> None:
    torch = TorchBuild(installed=True, built_for="cuda", cuda="12.8", pins={}, installer=installer)
    found = judge(lost("libcusparse.so.12"), torch=torch)
    assert isinstance(found, Hit)
    assert found.fixes[0].commands == ()
    assert ("conda" if installer == "conda" else "CUDA 12.8") in found.fixes[0].text


@each(
    "missing",
    [
        (),
        (lost("libcudnn.so.9"), lost("libcudnn_ops.so.9"), lost("libnccl.so.2")),
        (lost("libgomp.so.1"),),
        (lost("libcusparse.so.12", why="file too short"),),
        (lost("libcuda.so.1"),),
    ],
)
def test_what_has_another_name_is_not_told_here(missing: tuple[MissingLibrary, ...]) -> None:
    assert isinstance(judge(*missing), Fine)


def test_without_torch() -> None:
    assert isinstance(judge(torch=TorchBuild(installed=False)), NotApplicable)
