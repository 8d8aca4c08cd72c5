"""A real CUDA environment, broken in the ways that were tried for real, from files to verdict.

Each breakage is done to a copy of the recorded machine ``real-torch29-foreign-copies-ok``. What
``import torch`` said when the same was done to the real environment stands beside each.
"""

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from elf_support import elf
from test_machines import FOLDER, TABLES, judged, story

from gpucheck.collect import Collector
from gpucheck.engine import Report
from gpucheck.host import RecordedHost
from gpucheck.host.recorded import LINK
from gpucheck.probes.request import Request
from gpucheck.target import TargetWish

MACHINE = FOLDER / "real-torch29-foreign-copies-ok"
PACKAGES = "/home/ana/project/venv/lib/python3.11/site-packages"
FOREIGN = "/opt/cuda-12.1/lib64"
AARCH64 = b"\xb7\x00"
STUB = "/usr/local/cuda-12.8/targets/x86_64-linux/lib/stubs/libcuda.so"

Break = Callable[["Copy"], None]


class Copy:
    """A copy of the machine that may be altered."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(MACHINE, folder)
        self.folder = folder

    def at(self, path: str) -> Path:
        return self.folder / "files" / path.lstrip("/")

    def library(self, project: str, name: str) -> Path:
        return self.at(f"{PACKAGES}/nvidia/{project}/lib/{name}")

    def torch(self, name: str) -> Path:
        return self.at(f"{PACKAGES}/torch/{name}")

    def write(self, path: str, data: bytes) -> None:
        place = self.at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def link(self, path: str, target: str) -> None:
        self.write(path + LINK, target.encode())

    def variable(self, name: str, value: str | None) -> None:
        file = self.folder / "env.json"
        env = json.loads(file.read_text())
        env.pop(name, None)
        if value is not None:
            env[name] = value
        file.write_text(json.dumps(env))

    def wheel_is(self, project: str, version: str) -> None:
        old = next(self.at(PACKAGES).glob(f"{project}-*.dist-info"))
        new = old.with_name(f"{project}-{version}.dist-info")
        old.rename(new)
        name = project.replace("_", "-")
        (new / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (new / "RECORD").unlink()

    def wheel_is_gone(self, project: str) -> None:
        shutil.rmtree(next(self.at(PACKAGES).glob(f"{project}-*.dist-info")))

    def report(self) -> Report:
        host = RecordedHost(self.folder)
        wish = TargetWish(python=None)
        return judged(Collector(host, TABLES, wish=wish, request=Request()).collect().snapshot)


def _preload_older_cudart(copy: Copy) -> None:
    copy.variable("LD_PRELOAD", f"{FOREIGN}/libcudart.so.12")


def _older_cudart_wheel(copy: Copy) -> None:
    place = copy.library("cuda_runtime", "libcudart.so.12")
    place.write_bytes(copy.at(f"{FOREIGN}/libcudart.so.12").read_bytes())
    copy.wheel_is("nvidia_cuda_runtime_cu12", "12.1.105")


def _older_nvjitlink_wheel(copy: Copy) -> None:
    place = copy.library("nvjitlink", "libnvJitLink.so.12")
    place.write_bytes(copy.at(f"{FOREIGN}/libnvJitLink.so.12").read_bytes())
    copy.wheel_is("nvidia_nvjitlink_cu12", "12.1.105")


def _older_nvjitlink_by_variable(copy: Copy) -> None:
    copy.library("nvjitlink", "libnvJitLink.so.12").unlink()
    copy.wheel_is_gone("nvidia_nvjitlink_cu12")


def _cusparse_removed(copy: Copy) -> None:
    copy.library("cusparse", "libcusparse.so.12").unlink()
    copy.wheel_is_gone("nvidia_cusparse_cu12")


def _cudart_removed(copy: Copy) -> None:
    copy.library("cuda_runtime", "libcudart.so.12").unlink()
    copy.wheel_is_gone("nvidia_cuda_runtime_cu12")
    copy.variable("LD_LIBRARY_PATH", None)


def _cusolver_removed(copy: Copy) -> None:
    copy.library("cusolver", "libcusolver.so.11").unlink()
    copy.wheel_is_gone("nvidia_cusolver_cu12")


def _cusparse_cut_off(copy: Copy) -> None:
    place = copy.library("cusparse", "libcusparse.so.12")
    place.write_bytes(place.read_bytes()[:3000])


def _torch_cpu_cut_off(copy: Copy) -> None:
    place = copy.torch("lib/libtorch_cpu.so")
    place.write_bytes(place.read_bytes()[:-64])


def _torch_cpu_gone(copy: Copy) -> None:
    copy.torch("lib/libtorch_cpu.so").unlink()


def _torch_cpu_is_a_pointer(copy: Copy) -> None:
    text = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 431000000\n"
    kept = {f"{PACKAGES}/torch/lib/libtorch_cpu.so": [[0, base64.b64encode(text).decode()]]}
    (copy.folder / "ranges.json").write_text(json.dumps(kept))


def _module_of_another_python(copy: Copy) -> None:
    module = copy.torch("_C.cpython-311-x86_64-linux-gnu.so")
    module.rename(module.with_name("_C.cpython-310-x86_64-linux-gnu.so"))


def _for_another_processor(copy: Copy) -> None:
    for place in (*copy.torch("lib").glob("*.so*"), *copy.torch("").glob("_C*.so")):
        data = place.read_bytes()
        place.write_bytes(data[:18] + AARCH64 + data[20:])


def _old_libstdcxx(copy: Copy) -> None:
    place = "/lib/x86_64-linux-gnu/libstdc++.so.6"
    versions = [f"GLIBCXX_3.4.{n}" for n in range(1, 20)] + ["GLIBCXX_3.4"]
    versions += ["CXXABI_1.3", *(f"CXXABI_1.3.{n}" for n in range(1, 8))]
    copy.write(place, elf("libc.so.6", soname="libstdc++.so.6", versions_defined=versions))


def _old_libstdcxx_by_variable(copy: Copy) -> None:
    copy.write(f"{FOREIGN}/libstdc++.so.6", elf(
        "libc.so.6", soname="libstdc++.so.6", versions_defined=["GLIBCXX_3.4", "CXXABI_1.3"],
    ))  # fmt: skip


def _stub_beside_cudart(copy: Copy) -> None:
    copy.write(STUB, elf("libc.so.6", soname="libcuda.so.1"))
    copy.link(f"{PACKAGES}/nvidia/cuda_runtime/lib/libcuda.so.1", STUB)


BROKEN = [
    # ImportError: .../libc10_cuda.so: undefined symbol: cudaGetDriverEntryPointByVersion, version
    # libcudart.so.12
    (_preload_older_cudart, "cuda-library-conflict", "which LD_PRELOAD loads first, lacks cuda",
     "unset LD_PRELOAD"),
    # the same
    (_older_cudart_wheel, "cuda-library-conflict", "libcudart.so.12 12.1.105",
     "nvidia-cuda-runtime-cu12==12.8.90"),
    # ImportError: .../libcusparse.so.12: undefined symbol: __nvJitLinkCreate_12_8, version
    # libnvJitLink.so.12
    (_older_nvjitlink_wheel, "cuda-library-conflict", "libcusparse.so.12 needs: import torch fails",
     "nvidia-nvjitlink-cu12==12.8.93"),
    # the same
    (_older_nvjitlink_by_variable, "cuda-library-conflict", "which LD_LIBRARY_PATH puts first",
     "nvidia-nvjitlink-cu12==12.8.93"),
    # ImportError: libcusparse.so.12: cannot open shared object file: No such file or directory
    (_cusparse_removed, "cuda-library-missing", "no libcusparse.so.12, which libtorch_cuda.so",
     "nvidia-cusparse-cu12==12.5.8.93"),
    # ValueError: libcudart.so.*[0-9] not found in the system path
    (_cudart_removed, "cuda-library-missing", "no libcudart.so.12, which libtorch_global_deps.so",
     "nvidia-cuda-runtime-cu12==12.8.90"),
    # import torch works; torch.linalg on a GPU is what fails
    (_cusolver_removed, "cuda-library-missing", "what needs it fails when it is used",
     "nvidia-cusolver-cu12==11.7.3.90"),
    # killed by SIGBUS
    (_cusparse_cut_off, "nvidia-wheel-mismatch", "libcusparse.so.12 of nvidia-cusparse-cu12",
     "nvidia-cusparse-cu12==12.5.8.93"),
    # killed by SIGBUS
    (_torch_cpu_cut_off, "torch-import-broken", "libtorch_cpu.so cannot be loaded: the file is cut",
     "--force-reinstall --no-deps torch==2.9.1"),
    # ImportError: libtorch_cpu.so: cannot open shared object file: No such file or directory
    (_torch_cpu_gone, "torch-import-broken", "the loader finds no libtorch_cpu.so",
     "--force-reinstall --no-deps torch==2.9.1"),
    # ImportError: .../libtorch_cpu.so: invalid ELF header
    (_torch_cpu_is_a_pointer, "torch-import-broken", "invalid ELF header", "torch==2.9.1"),
    # ModuleNotFoundError: No module named 'torch._C'
    (_module_of_another_python, "torch-import-broken", "only _C.cpython-310", "torch==2.9.1"),
    (_for_another_processor, "torch-import-broken", "wrong architecture", "torch==2.9.1"),
    # ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found
    (_old_libstdcxx, "system-library-too-old", "GLIBCXX_3.4.19 at most", "container image"),
    (_old_libstdcxx_by_variable, "system-library-too-old", f"{FOREIGN}/libstdc++.so.6",
     "unset LD_LIBRARY_PATH"),
    (_stub_beside_cudart, "libcuda-stub-loaded", "PyTorch would load the CUDA toolkit's stub",
     "libcuda.so.1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("breakage", "slug", "headline", "fix"), BROKEN, ids=[one[0].__name__[1:] for one in BROKEN]
)
def test_a_breakage_has_one_name_and_its_cure(
    tmp_path: Path, breakage: Break, slug: str, headline: str, fix: str
) -> None:
    copy = Copy(tmp_path / "machine")
    breakage(copy)
    report = copy.report()
    assert report.root_causes == (slug,), story(report)
    finding = next(one for one in report.standing if one.slug == slug)
    assert headline in finding.headline
    said = [text for one in finding.fixes for text in (one.text, *one.commands)]
    assert fix in "\n".join(said)
    crashed = [check for check in report.checks if check.outcome.value == "crashed"]
    assert crashed == []


def _without_variable(copy: Copy) -> None:
    copy.variable("LD_LIBRARY_PATH", None)


def _preload_of_the_right_cudart(copy: Copy) -> None:
    copy.variable("LD_PRELOAD", f"{PACKAGES}/nvidia/cuda_runtime/lib/libcudart.so.12")


def _bundled_libgomp_gone(copy: Copy) -> None:
    """The system's serves as well, as it does in reality."""
    copy.write("/lib/x86_64-linux-gnu/libgomp.so.1", copy.torch("lib/libgomp.so.1").read_bytes())
    copy.torch("lib/libgomp.so.1").unlink()


def _libraries_from_a_matching_toolkit(copy: Copy) -> None:
    """No wheel of cuSPARSE, but the toolkit on LD_LIBRARY_PATH has the same release."""
    library = copy.library("cusparse", "libcusparse.so.12")
    copy.write("/usr/local/cuda-12.8/lib64/libcusparse.so.12", library.read_bytes())
    library.unlink()
    copy.wheel_is_gone("nvidia_cusparse_cu12")
    copy.variable("LD_LIBRARY_PATH", "/usr/local/cuda-12.8/lib64")


def _foreign_of_another_major(copy: Copy) -> None:
    copy.write(f"{FOREIGN}/libcudart.so.11.0", elf("libc.so.6", soname="libcudart.so.11.0"))
    copy.variable("LD_PRELOAD", f"{FOREIGN}/libcudart.so.11.0")


def _other_processor_on_the_way(copy: Copy) -> None:
    copy.write(f"{FOREIGN}/libc.so.6", elf(machine=183, soname="libc.so.6"))


@pytest.mark.parametrize(
    "change",
    [
        _without_variable, _preload_of_the_right_cudart, _bundled_libgomp_gone,
        _libraries_from_a_matching_toolkit, _foreign_of_another_major, _other_processor_on_the_way,
    ],
)  # fmt: skip
def test_healthy_twins_stay_silent(tmp_path: Path, change: Break) -> None:
    copy = Copy(tmp_path / "machine")
    change(copy)
    report = copy.report()
    assert report.verdict == "healthy", story(report)
    outcomes = {check.slug: check.outcome.value for check in report.checks}
    for slug in ("cuda-library-conflict", "cuda-library-missing", "torch-import-broken"):
        assert outcomes[slug] == "fine"
