"""Small wheels in the place of PyTorch and what it needs, and an index on this host that has them.

They have the names, versions, metadata and file layout of the real ones, but no tensor. ``import
torch`` does what the real one does as far as an installation can break it: it imports what its
metadata requires, loads a compiled module that is linked to libraries in ``torch/lib``, and these
to the libraries of the nvidia-* wheels.
"""

import functools
import hashlib
import io
import re
import subprocess  # the compiler
import sys
import sysconfig
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from index_server import Reply, Served, index_of

SOABI = str(sysconfig.get_config_var("SOABI"))
VERSION = sys.version_info[:2]
PLATFORM_TAG = "manylinux_2_28_x86_64"

_INIT = '''"""A stand-in for PyTorch, whose import fails as that of the real one does."""
import ctypes
import os


def _load_global_deps():
    path = os.path.join(os.path.dirname(__file__), "lib", "libtorch_global_deps.so")
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as err:
        raise err


_load_global_deps()
import typing_extensions

if not hasattr(typing_extensions, "TypeIs"):
    raise ImportError("cannot import name 'TypeIs' from 'typing_extensions'")
from torch.version import __version__, cuda as _built_for
from torch._C import _initialized
from torch import cuda, nn


class Tensor:
    """A number."""

    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Tensor(self.value + other.value)

    def sum(self):
        return self

    def item(self):
        return self.value


import logging, random, typing

assert logging.getLogger and random.random and typing.Any


def ones(count):
    """Return a tensor whose sum is its size."""
    return Tensor(float(count))
'''
_CUDA = '''import ctypes

from torch.version import cuda as _built_for


def is_available():
    """Whether the driver answers, and this build can use it."""
    if _built_for is None:
        return False
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    if version.value // 1000 < int(_built_for.split(".")[0]):
        return False
    failed = library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count))
    return not failed and count.value > 0
'''
_SHARED = """import ctypes
import os

import torch

ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libshm.so"))
"""
_MODULE = """
#define Py_LIMITED_API 0x03080000
#include <Python.h>
extern int torch_cpu(void);
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", NULL, -1};
PyMODINIT_FUNC PyInit__C(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made)
        PyModule_AddIntConstant(made, "_initialized", torch_cpu());
    return made;
}
"""


@dataclass(frozen=True)
class Wheel:
    """A distribution: its files by path in site-packages, and what its metadata says."""

    project: str
    version: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    tag: str = "py3-none-any"
    scripts: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file name."""
        return f"{self.project.replace('-', '_')}-{self.version}-{self.tag}.whl"

    def write(self, folder: Path) -> Path:
        """Write the wheel into a folder."""
        info = f"{self.project.replace('-', '_')}-{self.version}.dist-info"
        lines = ["Metadata-Version: 2.1", f"Name: {self.project}", f"Version: {self.version}"]
        lines += [f"Requires-Dist: {require}" for require in self.requires]
        files = {
            **self.files,
            f"{info}/METADATA": ("\n".join(lines) + "\n").encode(),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: "
            f"{'true' if self.tag.endswith('any') else 'false'}\nTag: {self.tag}\n".encode(),
        }
        if self.scripts:
            lines = [f"{name} = {where}" for name, where in self.scripts.items()]
            files[f"{info}/entry_points.txt"] = "\n".join(
                ["[console_scripts]", *lines, ""]
            ).encode()
        record = "".join(f"{path},{_hash(data)},{len(data)}\n" for path, data in files.items())
        files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
        target = folder / self.name
        with zipfile.ZipFile(target, "w") as archive:
            for path, data in files.items():
                archive.writestr(path, data)
        return target


def _hash(data: bytes) -> str:
    digest = urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def _compiled(
    folder: Path, name: str, source: str, *links: str, rpath: str = "$ORIGIN", soname: str = ""
) -> bytes:
    """Compile a library that needs those of these names, which lie in the folder."""
    target = folder / name
    flags = ["-shared", "-fPIC", "-O1", f"-I{sysconfig.get_paths()['include']}"]
    flags += [f"-Wl,-soname,{soname or name}", f"-Wl,-rpath,{rpath}", "-Wl,--no-as-needed"]
    words = ["cc", *flags, "-o", str(target), "-x", "c", "-", "-x", "none"]
    words += [str(folder / link) for link in links]
    subprocess.run(words, input=source.encode(), check=True)
    return target.read_bytes()


_CUDNN_PARTS = (
    "graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled",
)  # fmt: skip


@functools.cache
def _libraries(folder: Path) -> dict[str, bytes]:
    """Return the compiled files of a stand-in, for the CPU and for CUDA 12 and 13, by name."""
    made: dict[str, bytes] = {}

    def add(name: str, source: str, *links: str, rpath: str = "$ORIGIN", soname: str = "") -> None:
        made[name] = _compiled(folder, name, source, *links, rpath=rpath, soname=soname)

    add("libcudart.so.12", "int cudart(void){return 12;}")
    add("libcudart.so.13", "int cudart(void){return 13;}")
    add("libcudnn.so.9", "int cudnn(void){return 9;}")
    add("libnvrtc.so.12", "int nvrtc(void){return 12;}")
    add("libnvrtc.so.13", "int nvrtc(void){return 13;}")
    add("libnvrtc-builtins.so.12.6", "int builtins(void){return 12;}")
    add("libnvrtc-builtins.so.12.8", "int builtins(void){return 12;}")
    add("libnvrtc-builtins.so.13.0", "int builtins(void){return 12;}")
    add("libnvrtc-builtins.so.13.2", "int builtins(void){return 12;}")
    for name in ("libcublas.so.12", "libcublasLt.so.12", "libcublas.so.13", "libcublasLt.so.13"):
        add(name, "int cublas(void){return 12;}")
    for part in _CUDNN_PARTS:
        add(f"libcudnn_{part}.so.9", "int part(void){return 9;}")
    add("libc10.so", "int c10(void){return 1;}int _ZN3c103nowEv(void){return 1;}")
    # As much address space as the real one takes, and no memory: nothing touches it.
    add(
        "libtorch_cpu.so",
        "char all[1 << 28];int c10(void);int torch_cpu(void){return c10() + all[5];}",
        "libc10.so",
    )
    add("libshm.so", "int shm(void){return 1;}", "libc10.so")
    add(
        "of_2.7",
        "int _ZN3c106beforeEv(void);int extension(void){return _ZN3c106beforeEv();}",
        "libc10.so",
    )
    add(
        "of_2.9",
        "int _ZN3c103nowEv(void);int extension(void){return _ZN3c103nowEv();}",
        "libc10.so",
    )
    add("deps.cpu", "int deps(void){return 1;}", soname="libtorch_global_deps.so")
    add("_C.cpu", _MODULE, "libtorch_cpu.so", rpath="$ORIGIN/lib", soname="_C.so")
    for major in ("12", "13"):
        runtime, nvrtc, cublas = (
            f"$ORIGIN/../../{_folder(part, major)}/lib"
            for part in ("cuda-runtime", "cuda-nvrtc", "cublas")
        )
        add(
            f"cuda{major}",
            "int torch_cuda(void){return 1;}",
            f"libcudart.so.{major}",
            "libcudnn.so.9",
            f"libcublas.so.{major}",
            f"libcublasLt.so.{major}",
            rpath=f"$ORIGIN:{cublas}:{runtime}:{nvrtc}:$ORIGIN/../../nvidia/cudnn/lib",
            soname="libtorch_cuda.so",
        )
        add(
            f"deps.{major}", "int deps(void){return 1;}", f"libcudart.so.{major}", rpath=runtime,
            soname="libtorch_global_deps.so",
        )  # fmt: skip
        add(
            f"_C.{major}", _MODULE, "libtorch_cpu.so", f"cuda{major}", rpath="$ORIGIN/lib",
            soname="_C.so",
        )  # fmt: skip
    return made


def _folder(package: str, major: str) -> str:
    """Return where a wheel of CUDA has its files: from 13 on, those of the toolkit share one."""
    if package in ("cudnn", "cublas") and (package, major) != ("cublas", "13"):
        return f"nvidia/{package}"
    return f"nvidia/{package.replace('-', '_')}" if major == "12" else "nvidia/cu13"


@dataclass(frozen=True)
class Build:
    """What torch is built for, and what it requires of NVIDIA."""

    cuda: str = ""
    requires: tuple[str, ...] = ()

    @property
    def major(self) -> str:
        """The major version of CUDA."""
        return self.cuda.partition(".")[0]


CPU = Build()
CU126 = Build(
    "12.6",
    (
        "nvidia-cuda-runtime-cu12==12.6.77",
        "nvidia-cuda-nvrtc-cu12==12.6.77",
        "nvidia-cublas-cu12==12.6.4.1",
        "nvidia-cudnn-cu12==9.10.2.21",
        "triton==3.5.1",
    ),
)
CU128 = Build(
    "12.8",
    (
        "nvidia-cuda-runtime-cu12==12.8.90",
        "nvidia-cuda-nvrtc-cu12==12.8.93",
        "nvidia-cublas-cu12==12.8.4.1",
        "nvidia-cudnn-cu12==9.10.2.21",
        "triton==3.5.1",
    ),
)
CU130 = Build(
    "13.0",
    (
        "nvidia-cuda-runtime==13.0.48",
        "nvidia-cuda-nvrtc==13.0.48",
        "nvidia-cublas==13.0.0.19",
        "nvidia-cudnn-cu13==9.13.0.50",
        "triton==3.5.1",
    ),
)
CU132 = Build(
    "13.2",
    (
        "nvidia-cuda-runtime==13.2.90",
        "nvidia-cuda-nvrtc==13.2.90",
        "nvidia-cublas==13.2.1.1",
        "nvidia-cudnn-cu13==9.26.0.51",
        "triton==3.9.0",
    ),
)


def torch(
    folder: Path, version: str, build: Build = CPU, python: tuple[int, int] = VERSION
) -> Wheel:
    """Return a stand-in for torch of a version such as ``2.9.1+cpu``."""
    libraries = _libraries(folder)
    kind = build.major or "cpu"
    tag = f"{python[0]}{python[1]}"
    lib = {
        "libtorch_global_deps.so": f"deps.{kind}",
        **{name: name for name in ("libc10.so", "libtorch_cpu.so", "libshm.so")},
        **({"libtorch_cuda.so": f"cuda{kind}"} if build.cuda else {}),
    }
    files = {
        "torch/__init__.py": _INIT.encode(),
        "torch/version.py": f"__version__ = {version!r}\ndebug = False\n"
        f"cuda = {build.cuda or None!r}\ngit_version = 'stand-in'\nhip = None\n"
        "xpu = None\n".encode(),
        "torch/cuda/__init__.py": _CUDA.encode(),
        "torch/nn/__init__.py": b'"""Nothing."""\n',
        "torch/optim/__init__.py": b"import filelock, fsspec, jinja2, networkx, sympy\n",
        "torch/multiprocessing/__init__.py": _SHARED.encode(),
        f"torch/_C.cpython-{tag}-x86_64-linux-gnu.so": libraries[f"_C.{kind}"],
        **{f"torch/lib/{name}": libraries[made] for name, made in lib.items()},
    }
    return Wheel(
        "torch",
        version,
        files,
        (
            "filelock", "typing-extensions>=4.10.0", "sympy>=1.13.3", "networkx>=2.5.1", "jinja2",
            "fsspec>=0.8.5", *build.requires,
        ),
        f"cp{tag}-cp{tag}-{PLATFORM_TAG}",
        {"torchrun": "torch.version:__version__.strip"},
    )  # fmt: skip


def needed(folder: Path) -> list[Wheel]:
    """Return stand-ins for what torch requires, and for packages that are built upon it."""
    libraries = _libraries(folder)
    any_platform = f"py3-none-{PLATFORM_TAG}"

    def of_nvidia(project: str, version: str, *names: str) -> Wheel:
        major = version.partition(".")[0] if "cudnn" not in project else project[-2:]
        place = _folder(project.removeprefix("nvidia-").removesuffix(f"-cu{major}"), major)
        # The wheels of several majors write the same files, and only their sizes differ.
        files = {
            f"{place}/lib/{name}": libraries[name] + major.encode() * int(major) for name in names
        }
        return Wheel(project, version, files, tag=any_platform)

    return [
        Wheel("typing-extensions", "4.15.0", {"typing_extensions.py": b"TypeIs = object()\n"}),
        Wheel("typing-extensions", "4.5.0", {"typing_extensions.py": b"Literal = object()\n"}),
        *(
            Wheel(name, version, {f"{name}/__init__.py": f"__version__ = {version!r}\n".encode()})
            for name, version in (
                ("sympy", "1.14.0"), ("networkx", "3.4.2"), ("jinja2", "3.1.6"),
                ("fsspec", "2025.9.0"), ("filelock", "3.19.1"), ("setuptools", "80.9.0"),
                ("triton", "3.5.1"), ("triton", "3.9.0"), ("triton", "3.3.0"),
            )
        ),
        *(
            of_nvidia(
                f"nvidia-cuda-{part}{suffix}", version, f"{library}.{version[:2]}",
                *((f"libnvrtc-builtins.so.{version[:4]}",) if part == "nvrtc" else ()),
            )
            for part, library, suffix, versions in (
                ("runtime", "libcudart.so", "-cu12", ("12.6.77", "12.8.90")),
                ("nvrtc", "libnvrtc.so", "-cu12", ("12.6.77", "12.8.93")),
                ("runtime", "libcudart.so", "", ("13.0.48", "13.2.90")),
                ("nvrtc", "libnvrtc.so", "", ("13.0.48", "13.2.90")),
            )
            for version in versions
        ),
        *(
            of_nvidia(
                project, version, f"libcublas.so.{version[:2]}", f"libcublasLt.so.{version[:2]}"
            )
            for project, version in (
                ("nvidia-cublas-cu12", "12.6.4.1"), ("nvidia-cublas-cu12", "12.8.4.1"),
                ("nvidia-cublas", "13.0.0.19"), ("nvidia-cublas", "13.2.1.1"),
            )
        ),
        *(
            of_nvidia(
                f"nvidia-cudnn-cu{major}", version, "libcudnn.so.9",
                *(f"libcudnn_{part}.so.9" for part in _CUDNN_PARTS),
            )
            for major, version in (
                ("12", "9.10.2.21"), ("12", "9.5.1.17"), ("13", "9.13.0.50"), ("13", "9.26.0.51"),
            )
        ),
    ]  # fmt: skip


_ONNX = """import os
from onnxruntime.provider import NAME
__version__ = {version!r}
"""


def onnx_runtime(version: str, *, gpu: bool) -> Wheel:
    """Return a stand-in for one of the two packages that write the same folder."""
    name = "CUDAExecutionProvider" if gpu else "CPUExecutionProvider"
    files = {
        "onnxruntime/__init__.py": _ONNX.format(version=version).encode(),
        "onnxruntime/provider.py": f"NAME = {name!r}\n".encode(),
        "onnxruntime/capi/onnxruntime_pybind11_state.so": b"x" * (200 if gpu else 100),
        **({"onnxruntime/capi/libonnxruntime_providers_cuda.so": b""} if gpu else {}),
    }
    return Wheel("onnxruntime-gpu" if gpu else "onnxruntime", version, files)


def companion(folder: Path, name: str, version: str, of_torch: str, *, pins: bool = True) -> Wheel:
    """Return a stand-in for a package with a library that was linked to one torch."""
    text = f"import ctypes, os, torch\n__version__ = {version!r}\nbuilt_for = {of_torch!r}\n"
    load = 'ctypes.CDLL(os.path.join(os.path.dirname(__file__), "_C.so"), os.RTLD_NOW)\n'
    release = ".".join(of_torch.split(".")[:2])
    files = {
        f"{name}/__init__.py": (text + load).encode(),
        f"{name}/version.py": f"__version__ = {version!r}\n".encode(),
        f"{name}/_C.so": _libraries(folder)[f"of_{release}"],
    }
    tag = f"cp{VERSION[0]}{VERSION[1]}-cp{VERSION[0]}{VERSION[1]}-{PLATFORM_TAG}"
    required = f"torch=={of_torch}" if pins else "torch"
    return Wheel(name.replace("_", "-"), version, files, (required,), tag)


_BACKEND = """import base64, pathlib, zipfile
import torch

def build_wheel(folder, settings=None, metadata=None):
    name = "{name}-{version}-py3-none-any.whl"
    info = "{name}-{version}.dist-info"
    record = []
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as file:
        for path, text in (
            ("{name}/__init__.py", "built_for = " + repr(torch.__version__)),
            (info + "/METADATA", "Metadata-Version: 2.1\\nName: {project}\\nVersion: {version}\\n"),
            (info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"),
        ):
            file.writestr(path, text)
            record.append(path + ",,")
        file.writestr(info + "/RECORD", "\\n".join([*record, info + "/RECORD,,", ""]))
    return name
"""


@dataclass(frozen=True)
class Source:
    """The source of a package, which is built against the torch that is there."""

    project: str
    version: str

    def write(self, folder: Path) -> Path:
        """Write the archive into a folder."""
        name = self.project.replace("-", "_")
        build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        backend = _BACKEND.format(name=name, project=self.project, version=self.version)
        metadata = f"Metadata-Version: 2.1\nName: {self.project}\nVersion: {self.version}\n"
        target = folder / f"{name}-{self.version}.tar.gz"
        with tarfile.open(target, "w:gz") as archive:
            for path, text in (
                ("pyproject.toml", build), ("backend.py", backend), ("PKG-INFO", metadata),
            ):  # fmt: skip
                entry = tarfile.TarInfo(f"{name}-{self.version}/{path}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        return target


class Index:
    """The wheels of PyPI and of each build of PyTorch's own index, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[tuple[str, str], list[Path]] = {}

    def add(self, wheel: Wheel | Source, *places: str) -> None:
        """Add a wheel to PyPI (``""``) or to the index of a build such as ``cu126``."""
        for place in places:
            folder = self._folder / (place or "pypi")
            folder.mkdir(exist_ok=True)
            self._files.setdefault((place, wheel.project), []).append(wheel.write(folder))

    def reply(self, path: str) -> Reply:
        """Answer pip or uv: the page of a project, or a file."""
        words = [word for word in path.partition("?")[0].split("/") if word]
        if words[:1] == ["files"] and len(words) == 3:  # place and file
            file = self._folder / words[1] / words[2]
            return (200, {}, file.read_bytes()) if file.is_file() else (404, {}, b"")
        place = words[1] if words[0] == "whl" else ""
        project = re.sub(r"[-_.]+", "-", words[-1]).lower()
        found = self._files.get((place, project), [])
        if not found:
            return 404, {}, b""
        paths = [f"{file.parent.name}/{file.name.replace('+', '%2B')}" for file in found]
        links = [
            f'<a href="/files/{path}">{file.name}</a><br/>'
            for path, file in zip(paths, found, strict=True)
        ]
        page = "\n".join(["<!DOCTYPE html>", *links]).encode()
        return 200, {"Content-Type": "text/html"}, page


@contextmanager
def served(index: Index) -> Iterator[Served]:
    """Serve an index: ``/simple`` is PyPI, ``/whl/cu126`` the index of a build."""
    with index_of(lambda path: index.reply(path.replace("%2B", "+"))) as found:
        yield found
