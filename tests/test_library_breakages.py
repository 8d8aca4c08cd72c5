"""A real CUDA environment, broken in the ways that were tried for real, from files to verdict.

Each breakage is done to a copy of the test machine ``real-torch29-foreign-copies-ok``. What
``import torch`` said when the same was done to the real environment is next to each.
"""

from collections.abc import Callable

import machine_files
import pytest
from each import each
from elf_support import elf
from test_machines import TABLES, judged, story

from gpucheck.doctor.collector import Collector
from gpucheck.engine import Report
from gpucheck.facts.request import Request
from gpucheck.machine import RecordedHost
from gpucheck.machine.candidates import TargetWish

pytestmark = pytest.mark.exhaustive

MACHINE = "real-torch29-foreign-copies-ok"
PACKAGES = "/home/ana/project/venv/lib/python3.11/site-packages"
FOREIGN = "/opt/cuda-12.1/lib64"
AARCH64 = b"\xb7\x00"
STUB = "/usr/local/cuda-12.8/targets/x86_64-linux/lib/stubs/libcuda.so"

Break = Callable[["Copy"], None]


class Copy:
    """A copy of the machine that may be altered."""

    def __init__(self) -> None:
        self.recording = machine_files.copied(MACHINE)
        self.files = self.recording.files

    def variable(self, name: str, value: str | None) -> None:
        self.recording.env.pop(name, None)
        if value is not None:
            self.recording.env[name] = value

    def wheel_is(self, project: str, version: str) -> None:
        self.wheel_is_gone(project)
        name = project.replace("_", "-")
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        info = f"{PACKAGES}/{project}-{version}.dist-info"
        self.files[f"{info}/METADATA"] = metadata.encode()

    def wheel_is_gone(self, project: str) -> None:
        info = f"{PACKAGES}/{project}-"
        for path in [path for path in self.files if path.startswith(info)]:
            del self.files[path]

    def report(self) -> Report:
        host = RecordedHost(self.recording)
        wish = TargetWish(python=None)
        return judged(Collector(host, TABLES, wish=wish, request=Request()).collect().snapshot)


def library(project: str, name: str) -> str:
    return f"{PACKAGES}/nvidia/{project}/lib/{name}"


def torch(name: str) -> str:
    return f"{PACKAGES}/torch/{name}"


def _preload_older_cudart(copy: Copy) -> None:
    copy.variable("LD_PRELOAD", f"{FOREIGN}/libcudart.so.12")


def _older_cudart_wheel(copy: Copy) -> None:
    own = library("cuda_runtime", "libcudart.so.12")
    copy.files[own] = copy.files[f"{FOREIGN}/libcudart.so.12"]
    copy.wheel_is("nvidia_cuda_runtime_cu12", "12.1.105")


def _older_nvjitlink_wheel(copy: Copy) -> None:
    own = library("nvjitlink", "libnvJitLink.so.12")
    copy.files[own] = copy.files[f"{FOREIGN}/libnvJitLink.so.12"]
    copy.wheel_is("nvidia_nvjitlink_cu12", "12.1.105")


def _older_nvjitlink_by_variable(copy: Copy) -> None:
    del copy.files[library("nvjitlink", "libnvJitLink.so.12")]
    copy.wheel_is_gone("nvidia_nvjitlink_cu12")


def _cusparse_removed(copy: Copy) -> None:
    del copy.files[library("cusparse", "libcusparse.so.12")]
    copy.wheel_is_gone("nvidia_cusparse_cu12")


def _cudart_removed(copy: Copy) -> None:
    del copy.files[library("cuda_runtime", "libcudart.so.12")]
    copy.wheel_is_gone("nvidia_cuda_runtime_cu12")
    copy.variable("LD_LIBRARY_PATH", None)


def _cusolver_removed(copy: Copy) -> None:
    del copy.files[library("cusolver", "libcusolver.so.11")]
    copy.wheel_is_gone("nvidia_cusolver_cu12")


def _cusparse_cut_off(copy: Copy) -> None:
    path = library("cusparse", "libcusparse.so.12")
    copy.files[path] = copy.files[path][:3000]


def _torch_cpu_cut_off(copy: Copy) -> None:
    path = torch("lib/libtorch_cpu.so")
    copy.files[path] = copy.files[path][:-64]


def _torch_cpu_gone(copy: Copy) -> None:
    del copy.files[torch("lib/libtorch_cpu.so")]


def _torch_cpu_is_a_pointer(copy: Copy) -> None:
    text = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 431000000\n"
    copy.recording.ranges[torch("lib/libtorch_cpu.so")] = [(0, text)]


def _module_of_another_python(copy: Copy) -> None:
    module = copy.files.pop(torch("_C.cpython-311-x86_64-linux-gnu.so"))
    copy.files[torch("_C.cpython-310-x86_64-linux-gnu.so")] = module


def _for_another_processor(copy: Copy) -> None:
    for path, data in copy.files.items():
        if path.startswith((torch("lib/"), torch("_C"))) and ".so" in path:
            copy.files[path] = data[:18] + AARCH64 + data[20:]


def _old_libstdcxx(copy: Copy) -> None:
    place = "/lib/x86_64-linux-gnu/libstdc++.so.6"
    versions = [f"GLIBCXX_3.4.{n}" for n in range(1, 20)] + ["GLIBCXX_3.4"]
    versions += ["CXXABI_1.3", *(f"CXXABI_1.3.{n}" for n in range(1, 8))]
    copy.files[place] = elf("libc.so.6", soname="libstdc++.so.6", versions_defined=versions)


def _old_libstdcxx_by_variable(copy: Copy) -> None:
    copy.files[f"{FOREIGN}/libstdc++.so.6"] = elf(
        "libc.so.6", soname="libstdc++.so.6", versions_defined=["GLIBCXX_3.4", "CXXABI_1.3"]
    )


def _stub_beside_cudart(copy: Copy) -> None:
    copy.files[STUB] = elf("libc.so.6", soname="libcuda.so.1")
    copy.recording.links[library("cuda_runtime", "libcuda.so.1")] = STUB


BROKEN = [
    # ImportError: .../libc10_cuda.so: undefined symbol: cudaGetDriverEntryPointByVersion, version
    # libcudart.so.12
    (_preload_older_cudart, "cuda-library-conflict", "LD_PRELOAD loads this copy first",
     "unset LD_PRELOAD"),
    # the same
    (_older_cudart_wheel, "cuda-library-conflict", "libcudart.so.12 12.1.105",
     "nvidia-cuda-runtime-cu12==12.8.90"),
    # ImportError: .../libcusparse.so.12: undefined symbol: __nvJitLinkCreate_12_8, version
    # libnvJitLink.so.12
    (_older_nvjitlink_wheel, "cuda-library-conflict", "which libcusparse.so.12 needs",
     "nvidia-nvjitlink-cu12==12.8.93"),
    # the same
    (_older_nvjitlink_by_variable, "cuda-library-conflict", "LD_LIBRARY_PATH leads to this copy",
     "nvidia-nvjitlink-cu12==12.8.93"),
    # ImportError: libcusparse.so.12: cannot open shared object file: No such file or directory
    (_cusparse_removed, "cuda-library-missing", "find libcusparse.so.12, which libtorch_cuda.so",
     "nvidia-cusparse-cu12==12.5.8.93"),
    # ValueError: libcudart.so.*[0-9] not found in the system path
    (_cudart_removed, "cuda-library-missing", "libcudart.so.12, which libtorch_global_deps.so",
     "nvidia-cuda-runtime-cu12==12.8.90"),
    # import torch works; torch.linalg on a GPU is what fails
    (_cusolver_removed, "cuda-library-missing", "needs it and fails when it is used",
     "nvidia-cusolver-cu12==11.7.3.90"),
    # killed by SIGBUS
    (_cusparse_cut_off, "nvidia-wheel-mismatch", "libcusparse.so.12 of nvidia-cusparse-cu12",
     "nvidia-cusparse-cu12==12.5.8.93"),
    # killed by SIGBUS
    (_torch_cpu_cut_off, "torch-import-broken", "libtorch_cpu.so cannot be loaded: the file is cut",
     "--force-reinstall --no-deps torch==2.9.1"),
    # ImportError: libtorch_cpu.so: cannot open shared object file: No such file or directory
    (_torch_cpu_gone, "torch-import-broken", "the loader does not find libtorch_cpu.so",
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


@each(
    ("breakage", "slug", "headline", "fix"),
    BROKEN,
    ids=[breakage[0].__name__[1:] for breakage in BROKEN],
)
def test_a_breakage_has_one_name_and_its_fix(
    breakage: Break, slug: str, headline: str, fix: str
) -> None:
    copy = Copy()
    breakage(copy)
    report = copy.report()
    assert report.root_causes == (slug,), story(report)
    finding = next(standing for standing in report.standing if standing.slug == slug)
    assert headline in finding.headline
    texts = [text for one_fix in finding.fixes for text in (one_fix.text, *one_fix.commands)]
    assert fix in "\n".join(texts)
    crashed = [check for check in report.checks if check.outcome.value == "crashed"]
    assert crashed == []


def _without_variable(copy: Copy) -> None:
    copy.variable("LD_LIBRARY_PATH", None)


def _preload_of_the_right_cudart(copy: Copy) -> None:
    copy.variable("LD_PRELOAD", f"{PACKAGES}/nvidia/cuda_runtime/lib/libcudart.so.12")


def _bundled_libgomp_gone(copy: Copy) -> None:
    """The system's serves as well, as it does in reality."""
    bundled = copy.files.pop(torch("lib/libgomp.so.1"))
    copy.files["/lib/x86_64-linux-gnu/libgomp.so.1"] = bundled


def _libraries_from_a_matching_toolkit(copy: Copy) -> None:
    """No wheel of cuSPARSE, but the toolkit on LD_LIBRARY_PATH has the same release."""
    own = copy.files.pop(library("cusparse", "libcusparse.so.12"))
    copy.files["/usr/local/cuda-12.8/lib64/libcusparse.so.12"] = own
    copy.wheel_is_gone("nvidia_cusparse_cu12")
    copy.variable("LD_LIBRARY_PATH", "/usr/local/cuda-12.8/lib64")


def _foreign_of_another_major(copy: Copy) -> None:
    copy.files[f"{FOREIGN}/libcudart.so.11.0"] = elf("libc.so.6", soname="libcudart.so.11.0")
    copy.variable("LD_PRELOAD", f"{FOREIGN}/libcudart.so.11.0")


def _other_processor_on_the_way(copy: Copy) -> None:
    copy.files[f"{FOREIGN}/libc.so.6"] = elf(machine=183, soname="libc.so.6")


@each(
    "change",
    [
        _without_variable, _preload_of_the_right_cudart, _bundled_libgomp_gone,
        _libraries_from_a_matching_toolkit, _foreign_of_another_major, _other_processor_on_the_way,
    ],
)  # fmt: skip
def test_healthy_twins_stay_silent(change: Break) -> None:
    copy = Copy()
    change(copy)
    report = copy.report()
    assert report.verdict == "healthy", story(report)
    outcomes = {check.slug: check.outcome.value for check in report.checks}
    for slug in ("cuda-library-conflict", "cuda-library-missing", "torch-import-broken"):
        assert outcomes[slug] == "fine"
