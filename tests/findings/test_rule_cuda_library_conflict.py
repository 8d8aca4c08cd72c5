"""A copy of a CUDA library that lacks what others need of it."""

import pytest
from each import each
from rules_support import ask

from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.libraries import LoadedLibrary, Loading, MissingVersion
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable

SLUG = "cuda-library-conflict"
PINS = {"nvidia-nvjitlink-cu12": "==12.8.93", "nvidia-cudnn-cu12": "==9.10.2.21"}
TORCH = TorchBuild(installed=True, version="2.9.1+cu128", built_for="cuda", cuda="12.8", pins=PINS)
SYSTEM = System(os="linux")
PYTHON = Interpreter(executable="/v/bin/python", has_pip=True, externally_managed=False)
VARIABLES = Environment(variables={"LD_LIBRARY_PATH": "/old/lib64:/own"})


def copy(**more: object) -> LoadedLibrary:
    facts = {
        "soname": "libnvJitLink.so.12", "library": "nvJitLink", "version": "12.1.105",
        "path": "/old/lib64/libnvJitLink.so.12", "found_via": "LD_LIBRARY_PATH",
        "variable_entry": "/old/lib64", "passed_over": ["/v/nvidia/libnvJitLink.so.12"],
    }  # fmt: skip
    return LoadedLibrary(**{**facts, **more})  # type: ignore[arg-type]


def lack(**more: object) -> MissingVersion:
    facts = {
        "needed_by": "libcusparse.so.12", "library": "libnvJitLink.so.12",
        "path": "/old/lib64/libnvJitLink.so.12", "version": "__nvJitLinkCreate_12_8", "fatal": True,
    }  # fmt: skip
    return MissingVersion(**{**facts, **more})  # type: ignore[arg-type]


def judge(lacks: list[MissingVersion], *libraries: LoadedLibrary) -> Judgement:
    loading = Loading(libraries=list(libraries), missing=[], symbol_versions_missing=lacks)
    return ask(SLUG, TORCH, SYSTEM, PYTHON, VARIABLES, loading)


def hit(lacks: list[MissingVersion], *libraries: LoadedLibrary) -> Hit:
    found = judge(lacks, *libraries)
    assert isinstance(found, Hit)
    return found


def test_the_variable_that_wins_is_named_and_its_entry_taken_out() -> None:
    found = hit([lack()], copy())
    assert found.headline == (
        "import torch fails: libnvJitLink.so.12 12.1.105 (/old/lib64/libnvJitLink.so.12) lacks "
        "__nvJitLinkCreate_12_8, which libcusparse.so.12 needs; LD_LIBRARY_PATH puts this copy "
        "first"
    )
    assert found.evidence == ("loading.symbol_versions_missing.0", "loading.libraries.0")
    assert found.fixes[0].commands == ("export LD_LIBRARY_PATH=/own",)


def test_a_release_that_is_only_the_number_of_the_name_is_not_said_twice() -> None:
    found = hit([lack()], copy(version="12"))
    assert "fails: libnvJitLink.so.12 (/old/lib64/" in found.headline


def test_without_another_copy_the_wheel_is_brought_back_as_well() -> None:
    found = hit([lack()], copy(passed_over=[]))
    assert found.headline.endswith(
        "; LD_LIBRARY_PATH leads to this copy, and the loader finds no other"
    )
    commands = found.fixes[0].commands
    assert "nvidia-nvjitlink-cu12==12.8.93" in commands[0]
    assert commands[-1] == "export LD_LIBRARY_PATH=/own"


def test_an_older_wheel_is_replaced() -> None:
    found = hit([lack()], copy(found_via="rpath", variable_entry=""))
    assert "LD_LIBRARY_PATH" not in found.headline
    assert found.fixes[0].commands == (
        "/v/bin/python -m pip install --force-reinstall --no-deps nvidia-nvjitlink-cu12==12.8.93",
    )


def test_a_library_of_no_pin_is_told_in_words() -> None:
    old = copy(soname="libcufft.so.11", found_via="ld.so.cache", variable_entry="")
    found = hit([lack(library="libcufft.so.11")], old)
    assert "the system's loader configuration names this copy" in found.headline
    assert found.fixes[0].commands == ()


def test_what_is_only_opened_when_used_does_not_end_the_import() -> None:
    found = hit([lack(fatal=False), lack(version="first")], copy())
    assert "lacks first" in found.headline
    assert "fails when it is used" in hit([lack(fatal=False)], copy()).headline


@each(
    "lacks",
    [
        [],
        [lack(library="libstdc++.so.6", version="GLIBCXX_3.4.30")],
        [lack(library="libcudnn_graph.so.9", fatal=False)],
    ],
)
def test_what_others_tell_is_no_conflict(lacks: list[MissingVersion]) -> None:
    assert isinstance(judge(lacks, copy()), Fine)


def test_a_foreign_copy_that_has_everything_is_fine() -> None:
    assert isinstance(judge([], copy(version="12.9.86")), Fine)


def preloaded(**more: object) -> LoadedLibrary:
    """Return libcudart of a toolkit that LD_PRELOAD names."""
    path = "/usr/local/cuda/lib64/libcudart.so.12"
    facts = {
        "soname": "libcudart.so.12", "library": "cudart", "version": "12.9.79", "path": path,
        "found_via": "LD_PRELOAD", "variable_entry": path, "owner": "toolkit",
    }  # fmt: skip
    return copy(**{**facts, **more})


@each("way", ["LD_PRELOAD", "ld.so.preload"])
def test_a_preloaded_runtime_of_another_release_is_a_warning(way: str) -> None:
    found = hit([], copy(), preloaded(found_via=way))
    assert found.severity is Severity.WARNING
    assert found.headline.startswith("libcudart.so.12 12.9.79 (/usr/local/cuda/lib64/")
    assert "CUDA 12.8" in found.headline
    assert found.evidence == ("loading.libraries.1", "torch.cuda")


@each(
    "more",
    [
        {"version": "12.8.57"},  # the release that PyTorch was built with
        {"owner": "wheel"},
        {"found_via": "rpath"},
        {"soname": "libnccl.so.2", "library": "nccl"},  # people do that to get a newer one
    ],
)
def test_another_preloaded_copy_is_fine(more: dict[str, object]) -> None:
    assert isinstance(judge([], preloaded(**more)), Fine)


@each("version", [None, "12"])
def test_a_preloaded_runtime_of_an_unknown_release_is_unknown(version: str | None) -> None:
    with pytest.raises(UnknownFactError, match=r"loading\.libraries\.0\.version"):
        judge([], preloaded(version=version))


def test_without_torch() -> None:
    loading = Loading(libraries=[], missing=[], symbol_versions_missing=[])
    assert isinstance(ask(SLUG, TorchBuild(installed=False), loading), NotApplicable)
