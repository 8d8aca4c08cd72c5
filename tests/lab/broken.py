"""Environments that are broken as people break them; each shows by plain tools that it is.

``breaks`` gets an environment that works, with torch 2.9.1 for the CPU. What gpucheck prints is
then run as it stands, in one shell of the user.
"""

import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import SHOW, Bench
from stand_ins import SOABI

_OPTIMIZERS = SHOW + "; import torch.optim"
_SHARED = SHOW + "; import torch.multiprocessing"
_ON_GPU = SHOW + "; assert torch.cuda.is_available()"
_CUDNN = "; import importlib.metadata as m; assert m.version('nvidia-cudnn-cu12') == '9.10.2.21'"
_COMPILES = (
    "import os, subprocess, shlex; words = shlex.split(os.environ.get('CXX', 'c++'))"
    "; subprocess.run([*words, '--version'], check=True)"
    "; subprocess.run([*shlex.split(os.environ.get('CC', 'cc')), '--version'], check=True)"
)


@dataclass(frozen=True)
class Broken:
    """One way to break an environment.

    ``shows`` is a line of Python that fails where it is broken. ``slug`` is the finding that names
    it.
    """

    name: str
    slug: str
    breaks: Callable[[Bench], object]
    shows: str = SHOW
    kind: str = "cpu"
    options: tuple[str, ...] = ("--gpus 0",)
    gpu: dict[str, str] | None = None
    """What the fakes of a driver are told, on a machine with an H100."""
    blanks: bool = False
    """Whether the path has blanks."""


def _on_h100(
    name: str,
    slug: str,
    breaks: Callable[[Bench], object],
    kind: str = "cu126",
    shows: str = _ON_GPU,
    **driver: str,
) -> Broken:
    return Broken(name, slug, breaks, shows, kind, ("--no-selftest",), driver)


def _remove(*paths: str) -> Callable[[Bench], object]:
    def breaks(bench: Bench) -> None:
        for path in paths:
            for found in bench.site.glob(path):
                shutil.rmtree(found) if found.is_dir() else found.unlink()

    return breaks


def _cut(path: str, size: int = 100) -> Callable[[Bench], object]:
    return lambda bench: os.truncate(bench.site / path, size)


def _metadata(bench: Bench, version: str) -> None:
    """Leave metadata of another version, as an upgrade does that was broken off."""
    folder = bench.site / f"torch-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    (folder / "INSTALLER").write_text("pip\n")
    files = ("METADATA", "INSTALLER", "RECORD")
    (folder / "RECORD").write_text("".join(f"{folder.name}/{name},,\n" for name in files))


def _backup(bench: Bench) -> None:
    """Do what pip does before it removes a package, and stop there."""
    (bench.site / "torch").rename(bench.site / "~orch")


def _older(project: str, version: str) -> Callable[[Bench], object]:
    return lambda bench: bench.pip("install", "--no-deps", f"{project}=={version}")


def _uninstall(*projects: str) -> Callable[[Bench], object]:
    return lambda bench: bench.pip("uninstall", "-y", *projects)


def _own_file(name: str, text: str = "x = 1\n") -> Callable[[Bench], object]:
    return lambda bench: (bench.work / name).write_text(text)


def _own_folder(name: str) -> Callable[[Bench], object]:
    def breaks(bench: Bench) -> None:
        (bench.work / name).mkdir()
        (bench.work / name / "__init__.py").write_text("x = 1\n")

    return breaks


def _on_pythonpath(bench: Bench) -> None:
    other = bench.folder / "shared"
    shutil.copytree(bench.site / "torch", other / "torch")
    version = other / "torch" / "version.py"
    version.write_text(version.read_text().replace("2.9.1", "2.4.0"))
    (other / "torch" / "lib" / "libtorch_cpu.so").unlink()
    bench.variables["PYTHONPATH"] = str(other)


def _on_pythonpath_of_two(bench: Bench) -> None:
    _on_pythonpath(bench)
    bench.variables["PYTHONPATH"] += f":{bench.home}"


def _companion(bench: Bench) -> None:
    """Install a torchvision that was built for another torch."""
    bench.pip("install", "--no-deps", "torchvision==0.22.0")


def _set(name: str, value: str) -> Callable[[Bench], object]:
    """Set a variable; ``{site}`` and the like are folders of the environment."""

    def breaks(bench: Bench) -> None:
        places = {"site": bench.site, "home": bench.home, "work": bench.work, "env": bench.prefix}
        bench.variables[name] = value.format(**places)

    return breaks


def _both(*all_of: Callable[[Bench], object]) -> Callable[[Bench], object]:
    def breaks(bench: Bench) -> None:
        for break_it in all_of:
            break_it(bench)

    return breaks


def _zip_on_pythonpath(bench: Bench) -> None:
    archive = bench.folder / "code.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("torch/__init__.py", "__version__ = '2.4.0'\n")
        file.writestr("torch/version.py", "__version__ = '2.4.0'\n")
    bench.variables["PYTHONPATH"] = str(archive)


def _read_only(bench: Bench) -> None:
    """Mount the environment so that nothing in it can be changed, as an image or a share is."""
    (bench.site / "typing_extensions.py").unlink()
    at = bench.prefix
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    bench.before = ("unshare", "--mount", "sh", "-c", script, str(at))


def _of_another_user(bench: Bench) -> None:
    """Give the environment to another user; root can no longer write there."""
    (bench.site / "typing_extensions.py").unlink()
    for folder, _, files in os.walk(bench.prefix):
        for path in (Path(folder), *(Path(folder) / file for file in files)):
            os.chown(path, 12345, 12345, follow_symlinks=False)
    bench.before = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")


def _in_user_site(bench: Bench) -> None:
    folder = bench.home / ".local" / bench.site.relative_to(bench.prefix)
    shutil.copytree(bench.site / "torch", folder / "torch")
    version = folder / "torch" / "version.py"
    version.write_text(version.read_text().replace("2.9.1", "2.4.0"))
    (folder / "torch" / "lib" / "libtorch_cpu.so").unlink()


def _other_pythons_packages(bench: Bench) -> None:
    folder = bench.folder / "other" / "lib" / "python3.9" / "site-packages"
    shutil.copytree(bench.site / "torch", folder / "torch")
    (folder / "torch" / f"_C.{SOABI}.so").rename(
        folder / "torch" / "_C.cpython-39-x86_64-linux-gnu.so"
    )
    version = folder / "torch" / "version.py"
    version.write_text(version.read_text().replace("2.9.1", "2.4.0"))
    bench.variables["PYTHONPATH"] = str(folder)


def _types(*lines: str) -> Callable[[Bench], object]:
    return lambda bench: bench.typed.extend(lines)


def _installs(*words: str) -> Callable[[Bench], object]:
    return lambda bench: bench.pip("install", "--no-deps", *words)


def _built_elsewhere(bench: Bench) -> None:
    bench.pip(
        "install", "--no-deps", "flash-attn==2.7.4", f"--index-url {bench.index}/whl/elsewhere"
    )


def _other_cudnn(bench: Bench) -> None:
    folder = bench.folder / "old-cuda"
    folder.mkdir()
    (folder / "libcudnn.so.9").write_bytes(b"")
    bench.variables["LD_LIBRARY_PATH"] = f"{folder}:{bench.variables['LD_LIBRARY_PATH']}"


def _nothing(_bench: Bench) -> None:
    """Leave the environment as it is: the machine does not suit it."""


def _preloads(bench: Bench) -> None:
    folder = bench.folder / "old-cuda"
    folder.mkdir()
    (found,) = bench.site.glob("nvidia/cuda_runtime/lib/libcudart.so.12")
    shutil.copy2(found, folder / "libcudart.so.12.4.127")
    bench.variables["LD_PRELOAD"] = str(folder / "libcudart.so.12.4.127")


def _constraint(bench: Bench) -> None:
    file = bench.home / "constraints.txt"
    file.write_text("torch==2.4.0\ntyping-extensions==4.5.0\n")
    bench.variables["PIP_CONSTRAINT"] = str(file)


def _constraint_in_configuration(bench: Bench) -> None:
    _constraint(bench)
    file = bench.home / "pip.conf"
    file.write_text(f"[global]\nconstraint = {bench.variables.pop('PIP_CONSTRAINT')}\n")
    bench.variables["PIP_CONFIG_FILE"] = str(file)


ALL = (
    # Files of torch that are gone or damaged.
    Broken("package-gone", "torch-import-broken", _remove("torch")),
    Broken("init-gone", "torch-import-broken", _remove("torch/__init__.py")),
    Broken("compiled-module-gone", "torch-import-broken", _remove("torch/_C.*.so")),
    Broken("library-gone", "torch-import-broken", _remove("torch/lib/libtorch_cpu.so")),
    Broken("libraries-gone", "torch-import-broken", _remove("torch/lib/*.so")),
    Broken("library-empty", "torch-import-broken", _cut("torch/lib/libtorch_cpu.so", 0)),
    Broken("library-cut", "torch-import-broken", _cut("torch/lib/libc10.so")),
    Broken("compiled-module-cut", "torch-import-broken", _cut(f"torch/_C.{SOABI}.so")),
    Broken("pip-was-interrupted", "torch-import-broken", _backup),
    Broken("never-installed", "torch-missing", _uninstall("torch")),
    # Packages that torch requires.
    Broken("typing-extensions-gone", "torch-import-broken", _remove("typing_extensions*")),
    Broken("typing-extensions-file-gone", "torch-import-broken", _remove("typing_extensions.py")),
    Broken("typing-extensions-old", "torch-import-broken", _older("typing-extensions", "4.5.0")),
    Broken("typing-extensions-removed", "torch-import-broken", _uninstall("typing-extensions")),
    Broken("sympy-gone", "torch-import-broken", _remove("sympy*"), _OPTIMIZERS),
    Broken("jinja2-removed", "torch-import-broken", _uninstall("jinja2"), _OPTIMIZERS),
    Broken("filelock-folder-gone", "torch-import-broken", _remove("filelock"), _OPTIMIZERS),
    Broken("two-removed", "torch-import-broken", _uninstall("networkx", "fsspec"), _OPTIMIZERS),
    Broken("torchvision-of-another-torch", "torch-companion-mismatch", _companion,
           "import torchvision; assert torchvision.built_for == '2.9.1'"),
    # Several things named torch.
    Broken("metadata-of-two", "torch-mixed-install", lambda bench: _metadata(bench, "2.4.0"),
           "import importlib.metadata as m; assert len([d for d in m.distributions() "
           "if d.metadata['Name'] == 'torch']) == 1; " + SHOW),
    Broken("own-torch-py", "torch-mixed-install", _own_file("torch.py")),
    Broken("own-torch-folder", "torch-mixed-install", _own_folder("torch")),
    Broken("pythonpath", "torch-mixed-install", _on_pythonpath),
    Broken("pythonpath-of-two", "torch-mixed-install", _on_pythonpath_of_two),
    Broken("zip-on-pythonpath", "torch-mixed-install", _zip_on_pythonpath),
    Broken("other-pythons-packages", "torch-mixed-install", _other_pythons_packages),
    # Standard modules that a file of the user hides.
    Broken("own-random-py", "standard-module-hidden", _own_file("random.py")),
    Broken("own-typing-py", "standard-module-hidden", _own_file("typing.py")),
    Broken("own-logging-folder", "standard-module-hidden", _own_folder("logging")),
    # What is not linked, but loaded later.
    Broken("late-library-gone", "torch-import-broken", _remove("torch/lib/libshm.so"), _SHARED),
    # The shell.
    Broken("cxx-nonsense", "compiler-missing", _set("CXX", "/opt/gcc-4/bin/g++"), _COMPILES,
           options=("--gpus 0", "--for build")),
    Broken("cc-nonsense", "compiler-missing", _set("CC", "no-such-cc"), _COMPILES,
           options=("--gpus 0", "--for build")),
    Broken("cc-and-cxx", "compiler-missing", _both(_set("CC", "gcc-4.4"), _set("CXX", "g++-4.4")),
           _COMPILES, options=("--gpus 0", "--for build")),
    Broken("address-space", "process-limit-too-low", _types("ulimit -S -v 200000")),
    Broken("pythonhome", "python-does-not-start", _set("PYTHONHOME", sys.base_prefix), kind="3.13"),
    Broken("no-setuptools", "compiler-missing", _uninstall("setuptools"),
           "import setuptools", options=("--gpus 0", "--for build")),
    # Places that cannot be changed, or by another tool.
    Broken("read-only", "torch-import-broken", _read_only),
    Broken("of-another-user", "torch-import-broken", _of_another_user),
    Broken("blanks-in-the-path", "torch-import-broken", _remove("torch"), blanks=True),
    Broken("conda-package-gone", "torch-import-broken", _remove("torch"), kind="conda"),
    Broken("conda-requirement-gone", "torch-import-broken", _remove("sympy*"), _OPTIMIZERS,
           kind="conda"),
    Broken("conda-user-site", "torch-mixed-install", _in_user_site, kind="conda"),
    Broken("debian-package-gone", "torch-import-broken", _remove("torch"), kind="debian"),
    Broken("debian-requirement-gone", "torch-import-broken", _remove("typing_extensions*"),
           kind="debian"),
    Broken("uv-package-gone", "torch-import-broken", _remove("torch"), kind="uv"),
    Broken("uv-requirement-gone", "torch-import-broken", _remove("typing_extensions*"), kind="uv"),
    Broken("uv-torch-missing", "torch-missing", _remove("torch", "torch-*"), kind="uv"),
    Broken("python-3.13", "torch-import-broken", _remove("torch/lib/libc10.so"), kind="3.13"),
    Broken("python-3.8", "torch-import-broken", _remove("torch/lib/libc10.so"), kind="3.8"),
    Broken("pip-missing", "torch-import-broken", _remove("torch/lib/libc10.so", "pip*")),
    Broken("constraint", "torch-import-broken",
           _both(_remove("typing_extensions*"), _constraint)),
    Broken("constraint-in-configuration", "torch-import-broken",
           _both(_remove("typing_extensions*"), _constraint_in_configuration)),
    # Packages that were built upon torch.
    Broken("torchaudio", "torch-companion-mismatch", _installs("torchaudio==2.7.0"),
           "import torchaudio"),
    Broken("flash-attn", "extension-abi-mismatch", _built_elsewhere,
           "import flash_attn"),
    Broken("xformers", "extension-abi-mismatch", _installs("xformers==0.0.30"), "import xformers"),
    # Machines with a GPU.
    _on_h100("cpu-build", "torch-cpu-only", _nothing, "cpu"),
    _on_h100("driver-too-old", "driver-too-old", _nothing, "cu130",
             FAKE_NVML_RELEASE="550.54.14", FAKE_CUDA_VERSION="12040"),
    _on_h100("cudnn-wheel-gone", "cudnn-missing", _remove("nvidia/cudnn", "nvidia_cudnn*")),
    _on_h100("cudnn-wheel-removed", "cudnn-missing", _uninstall("nvidia-cudnn-cu12")),
    _on_h100("cudnn-file-gone", "cudnn-missing", _remove("nvidia/cudnn/lib/libcudnn.so.9")),
    _on_h100("cudart-removed", "cuda-library-missing", _uninstall("nvidia-cuda-runtime-cu12")),
    _on_h100("cudart-cut", "torch-import-broken",
             _cut("nvidia/cuda_runtime/lib/libcudart.so.12")),
    _on_h100("cudnn-of-another-release", "nvidia-wheel-mismatch",
             _installs("nvidia-cudnn-cu12==9.5.1.17"), shows=_ON_GPU + _CUDNN),
    _on_h100("library-path-with-cudnn", "cudnn-missing", _other_cudnn),
    _on_h100("preloaded-cudart", "cuda-library-conflict", _preloads,
             shows=_ON_GPU + "; assert 'old-cuda' not in open('/proc/self/maps').read()"),
    _on_h100("hidden-by-nothing", "visible-devices-hides-gpus", _set("CUDA_VISIBLE_DEVICES", "")),
    _on_h100("hidden-by-minus-one", "visible-devices-hides-gpus",
             _set("CUDA_VISIBLE_DEVICES", "-1")),
    _on_h100("no-such-gpu", "visible-devices-hides-gpus", _set("CUDA_VISIBLE_DEVICES", "3")),
    _on_h100("ptx-jit", "ptx-jit-forced", _set("CUDA_FORCE_PTX_JIT", "1"),
             shows=_ON_GPU + "; import os; assert 'CUDA_FORCE_PTX_JIT' not in os.environ"),
    _on_h100("onnxruntime-over-gpu", "library-cuda-mismatch",
             _both(_installs("onnxruntime-gpu==1.23.2"), _installs("onnxruntime==1.23.2")),
             shows="import onnxruntime; assert onnxruntime.NAME == 'CUDAExecutionProvider'"),
    _on_h100("triton-gone", "nvidia-wheel-mismatch", _uninstall("triton"),
             shows=_ON_GPU + "; import triton"),
    _on_h100("triton-of-another-release", "nvidia-wheel-mismatch", _installs("triton==3.3.0"),
             shows=_ON_GPU + "; import triton; assert triton.__version__ == '3.5.1'"),
)  # fmt: skip
