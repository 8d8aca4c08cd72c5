"""The section ``loading``: on a recorded environment, and live where this Python has torch."""

import importlib.util
import sys
from pathlib import Path

import machine_files
import msgspec
import pytest
from each import each
from elf_support import elf
from support import machine

from gpucheck.facts.libraries import NOT_READABLE, LoadedLibrary, Loading
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.machine import Host, LiveHost, RecordedHost, Recording
from gpucheck.machine.candidates import TargetWish
from gpucheck.probes import interpreter, loading, torch_build
from gpucheck.probes.reading.versions import Owners, is_cuda, library_name, stem
from gpucheck.selftests.observed import LoadedDifference, compare
from gpucheck.tables.base import Tables
from gpucheck.tables.cuda import RuntimeOpens

MACHINE = "real-torch29-foreign-copies-ok"
FOREIGN = "/opt/cuda-12.1/lib64"
OPENS = Tables().get(RuntimeOpens)
WHEELS = "/home/ana/project/venv/lib/python3.11/site-packages/nvidia"


def section(host: Host, wish: TargetWish | None = None) -> Loading:
    python = interpreter.collect(host, wish or TargetWish())
    return loading.collect(host, python, torch_build.collect(host, python), OPENS)


@pytest.fixture(name="found", scope="module")
def recorded() -> Loading:
    return section(machine_files.host(MACHINE))


def _without(copy: Recording, name: str) -> None:
    for path in [path for path in copy.files if path.endswith(f"/{name}")]:
        del copy.files[path]


def by_name(libraries: list[LoadedLibrary] | None) -> dict[str, LoadedLibrary]:
    return {found.library: found for found in libraries or ()}


def test_libraries_and_how_they_are_found(found: Loading) -> None:
    libraries = by_name(found.libraries)
    cudart = libraries["cudart"]
    assert (cudart.soname, cudart.found_via, cudart.needed_by) == (
        "libcudart.so.12", "rpath", "libtorch_global_deps.so",
    )  # fmt: skip
    assert cudart.path == cudart.real_path == f"{WHEELS}/cuda_runtime/lib/libcudart.so.12"
    assert (cudart.owner, cudart.version, cudart.variable_entry) == ("wheel", "12.8.90", "")
    assert cudart.passed_over == ["/opt/cuda-12.1/lib64/libcudart.so.12"]
    assert libraries["nvJitLink"].found_via == "preload"
    assert libraries["torch_cuda"].owner == "torch"
    assert (libraries["c"].owner, libraries["c"].found_via) == ("system", "default")
    assert libraries["gomp"].owner == "torch"
    assert "m" not in libraries  # of no interest


def test_what_is_opened_later_is_found_from_its_opener(found: Loading) -> None:
    opened = by_name(found.runtime_opened)
    graph = opened["cudnn_graph"]
    assert (graph.found_via, graph.needed_by, graph.owner) == ("runpath", "libcudnn.so.9", "wheel")
    assert opened["cudnn_heuristic"].needed_by == "libcudnn_graph.so.9"
    assert opened["torch_cuda_linalg"].needed_by == "libtorch_cuda.so"
    assert "nvrtc" not in opened  # torch has it loaded


def test_nothing_is_missing(found: Loading) -> None:
    assert found.missing == []
    assert found.symbol_versions_missing == []
    assert found.problems == {}
    assert found.preloading is not None
    assert found.preloading.startswith("libnvrtc, libnvrtc-builtins, libnvJitLink after")


def test_cudnn_parts_follow_the_variable_where_the_wheel_has_runpath() -> None:
    """It was seen so: torch 2.9 with cuDNN 9.26 on LD_LIBRARY_PATH told that version."""
    copy = machine_files.copied(MACHINE)
    copy.files[f"{FOREIGN}/libcudnn_graph.so.9"] = elf("libc.so.6", soname="libcudnn_graph.so.9")
    found = section(RecordedHost(copy))
    assert by_name(found.libraries)["cudnn"].found_via == "rpath"
    part = by_name(found.runtime_opened)["cudnn_graph"]
    assert (part.found_via, part.variable_entry) == ("LD_LIBRARY_PATH", FOREIGN)
    assert part.passed_over == [f"{WHEELS}/cudnn/lib/libcudnn_graph.so.9"]


def test_a_wheel_that_this_user_may_not_read_is_no_wheel_that_is_gone() -> None:
    """Installed by root with umask 077: the loader says "No such file or directory"."""
    copy = machine_files.copied(MACHINE)
    lib = f"{WHEELS.rpartition('/')[0]}/torch/lib/../../nvidia/cudnn/lib"
    hidden = (f"{WHEELS}/cudnn/lib", f"{WHEELS}/cudnn/lib/libcudnn.so.9", f"{lib}/libcudnn.so.9")
    copy.problems.update(dict.fromkeys(hidden, "EACCES: Permission denied"))
    _without(copy, "libcudnn.so.9")
    found = section(RecordedHost(copy))
    lost = next(missing for missing in found.missing or () if missing.soname == "libcudnn.so.9")
    assert (lost.why, lost.path) == (NOT_READABLE, f"{WHEELS}/cudnn")
    assert lost.fatal


def test_cudnn_asks_for_its_own_release_first() -> None:
    copy = machine_files.copied(MACHINE)
    for name in ("libcudnn_graph.so.9.10.2", "libcudnn_ops.so.9.26.0"):
        library = elf("libc.so.6", soname=name[: name.index(".so") + 5])
        copy.files[f"{FOREIGN}/{name}"] = library
    opened = by_name(section(RecordedHost(copy)).runtime_opened)
    assert opened["cudnn_graph"].found_via == "LD_LIBRARY_PATH"
    assert opened["cudnn_ops"].found_via == "runpath"


def test_a_part_that_this_cudnn_does_not_open_is_not_opened() -> None:
    """9.10 has no tensor_ir: that of a newer cuDNN in the system is none of its business."""
    copy = machine_files.copied(MACHINE)
    name = "libcudnn_engines_tensor_ir.so.9"
    copy.files[f"{FOREIGN}/{name}"] = elf("libc.so.6", soname=name)
    found = section(RecordedHost(copy))
    assert "cudnn_engines_tensor_ir" not in by_name(found.runtime_opened)
    assert found.missing == []


@each(("release", "opened"), [("2.1.2+cu121", True), ("2.9.1+cu128", False)])
def test_nvfuser_is_opened_by_the_torch_that_has_it(release: str, *, opened: bool) -> None:
    copy = machine_files.copied(MACHINE)
    lib = f"{WHEELS.rpartition('/')[0]}/torch/lib"
    name = "libnvfuser_codegen.so"
    copy.files[f"{lib}/{name}"] = elf("libtorch_cuda.so", "libnvrtc.so.12", soname=name)
    host = RecordedHost(copy)
    python = interpreter.collect(host, TargetWish())
    torch = torch_build.collect(host, python)
    torch = msgspec.structs.replace(torch, version=release)
    found = loading.collect(host, python, torch, OPENS)
    assert ("nvfuser_codegen" in by_name(found.runtime_opened)) == opened
    assert found.missing == []


@each(
    ("gone", "expected"),
    [
        ("libcudnn_adv.so.9", ("libcudnn_adv.so.9", "libcudnn.so.9")),
        ("libcudnn_ops.so.9", ("libcudnn_ops.so.9", "libcudnn.so.9")),
        (
            "libcudnn_engines_runtime_compiled.so.9",
            ("libcudnn_engines_runtime_compiled.so.9", "libcudnn_graph.so.9"),
        ),
        ("libnvrtc-builtins.so.12.8", ("libnvrtc-builtins.so.12.8", "libnvrtc.so.12")),
        ("libcusolver.so.11", ("libcusolver.so.11", "libtorch_cuda_linalg.so")),
        ("libnvperf_host.so", None),
        ("libtorch_cuda_linalg.so", None),
    ],
)
def test_what_is_gone_is_told_where_something_fails_of_it(
    gone: str, expected: tuple[str, str] | None
) -> None:
    copy = machine_files.copied(MACHINE)
    _without(copy, gone)
    found = section(RecordedHost(copy))
    missing = [(lost.soname, lost.needed_by, lost.fatal) for lost in found.missing or ()]
    assert missing == ([(*expected, False)] if expected else [])
    assert gone not in [opened.soname for opened in found.runtime_opened or ()]


@each(
    ("name", "change", "why"),
    [
        ("torch/__init__.py", "import os\n", "no function _load_global_deps"),
        ("torch/__init__.py", None, "not there"),
    ],
)
def test_a_preloading_that_is_not_understood_is_unknown(
    name: str, change: str | None, why: str
) -> None:
    copy = machine_files.copied(MACHINE)
    path = f"{WHEELS.removesuffix('/nvidia')}/{name}"
    del copy.files[path]
    if change is not None:
        copy.files[path] = change.encode()
    found = section(RecordedHost(copy))
    if change is None:  # then torch itself is none
        assert found.libraries == []
        return
    assert found.libraries is None
    assert why in found.problem("libraries")


def test_a_variable_of_torch_turns_preloading_off() -> None:
    copy = machine_files.copied(MACHINE)
    copy.env = {"VIRTUAL_ENV": "/home/ana/project/venv", "TORCH_USE_RTLD_GLOBAL": "1"}
    found = section(RecordedHost(copy))
    assert found.preloading == ""
    assert by_name(found.libraries)["nvJitLink"].found_via == "runpath"


def test_the_only_module_of_torch_is_loaded_where_the_interpreter_does_not_say_its_form(
    found: Loading,
) -> None:
    host = machine_files.host(MACHINE)
    python = interpreter.collect(host, TargetWish())
    torch = torch_build.collect(host, python)
    silent = msgspec.structs.replace(python, soabi=None)
    assert loading.collect(host, silent, torch, OPENS).libraries == found.libraries


def test_without_torch_and_without_an_interpreter(tmp_path: Path) -> None:
    host = machine(tmp_path)
    none = loading.collect(host, Interpreter(), TorchBuild(installed=False), OPENS)
    assert none.libraries == []
    assert none.missing == []
    unknown = loading.collect(host, Interpreter(), TorchBuild(problems={"*": "not asked"}), OPENS)
    assert unknown.libraries is None
    assert unknown.problem("libraries") == "not asked"


@each(
    ("soname", "short", "cuda"),
    [
        ("libcudart.so.12", "cudart", True),
        ("libcudart-e409450e.so.11.0", "cudart", True),
        ("libcudnn_ops.so.9", "cudnn_ops", True),
        ("libnvshmem_host.so.3", "nvshmem", True),
        ("libtorch_cuda.so", "torch_cuda", False),
        ("libc10.so", "c10", False),
        ("libgomp-a34b3233.so.1", "gomp", False),
        ("libcuda.so.1", "cuda", False),
        ("libz.so.1", "", False),
        ("libcudartist.so", "", False),
    ],
)
def test_names(soname: str, short: str, *, cuda: bool) -> None:
    assert library_name(soname) == short
    assert is_cuda(soname) is cuda
    assert stem(soname)


@each(
    ("soname", "path", "owner"),
    [
        ("libcudart.so.12", "/v/lib/python3.11/site-packages/nvidia/x/libcudart.so.12", "wheel"),
        ("libc10.so", "/v/lib/python3.11/site-packages/torch/lib/libc10.so", "torch"),
        ("libcudart.so.12", "/v/lib/libcudart.so.12.8.90", "conda"),
        ("libcudart.so.12", "/usr/local/cuda-12.8/targets/x86_64-linux/libcudart.so", "toolkit"),
        ("libcudart.so.12", "/opt/nvidia/hpc_sdk/Linux_x86_64/25.1/cuda/lib64/x.so", "toolkit"),
        ("libcudnn.so.9", "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0", "system"),
        ("libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.570.1", "driver"),
        ("libnvrm_gpu.so", "/usr/lib/aarch64-linux-gnu/nvidia/libnvrm_gpu.so", "driver"),
        ("libcudart.so.12", "/home/me/lib/libcudart.so.12", "other"),
    ],
)  # fmt: skip
def test_owners(tmp_path: Path, soname: str, path: str, owner: str) -> None:
    packages = "/v/lib/python3.11/site-packages"
    python = Interpreter(kind="conda", prefix="/v", sys_path=["/w", packages])
    torch = TorchBuild(path=f"{packages}/torch")
    assert Owners(machine(tmp_path), python, torch).owner(soname, path, path) == owner


def library(soname: str, path: str) -> LoadedLibrary:
    return LoadedLibrary(soname=soname, real_path=path)


def test_differences_from_a_live_process() -> None:
    predicted = Loading(
        libraries=[library("libcudart.so.12", "/w/libcudart.so.12"),
                   library("libcublas.so.12", "/w/libcublas.so.12.8")],
        runtime_opened=[library("libcudnn_ops.so.9", "/w/libcudnn_ops.so.9"),
                        library("libcudnn_cnn.so.9", "/w/libcudnn_cnn.so.9")],
    )  # fmt: skip
    same = ["/w/libcudart.so.12", "/w/libcublas.so.12.8", "/usr/lib/libz.so.1", "/x/_ssl.so"]
    assert compare(predicted, same) == []
    assert compare(predicted, [*same, "/w/libcudnn_ops.so.9"]) == []
    other = [
        "/w/libcudart.so.12",
        "/o/libcublas.so.12.1",
        "/o/libcudnn_cnn.so.9",
        "/o/libnccl.so.2",
    ]
    assert compare(predicted, other) == [
        LoadedDifference("libcublas.so.12", "/w/libcublas.so.12.8", "/o/libcublas.so.12.1"),
        LoadedDifference("libcudnn_cnn.so.9", "/w/libcudnn_cnn.so.9", "/o/libcudnn_cnn.so.9"),
        LoadedDifference("libnccl.so.2", "", "/o/libnccl.so.2"),
    ]
    assert compare(predicted, []) == [
        LoadedDifference("libcudart.so.12", "/w/libcudart.so.12", ""),
        LoadedDifference("libcublas.so.12", "/w/libcublas.so.12.8", ""),
    ]
    assert compare(Loading(), other) == []


@pytest.mark.process
def test_the_prediction_for_this_very_interpreter() -> None:
    """With the torch of the tests: what is predicted is what a fresh process has loaded."""
    if sys.platform != "linux" or importlib.util.find_spec("torch") is None:
        pytest.skip("no torch here")
    import json  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    import gpucheck.worker  # noqa: PLC0415

    script = Path(gpucheck.worker.__file__).with_name("loaded.py")
    finished = subprocess.run(
        [sys.executable, str(script), "MARK"], capture_output=True, text=True, check=True
    ).stdout
    answer = json.loads(finished.split("MARK")[1])
    predicted = section(LiveHost(), TargetWish(python=sys.executable))
    if predicted.libraries is None:
        pytest.skip(predicted.problem("libraries"))
    assert answer["error"] == ""
    assert compare(predicted, answer["libraries"]) == []
