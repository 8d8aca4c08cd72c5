"""Small wheels in the place of PyTorch and what it needs, and an index on this host that has them.

They have the names, versions, metadata and file layout of the real ones, but no tensor. ``import
torch`` does what the real one does as far as an installation can break it: it imports what its
metadata requires, loads a compiled module that is linked to libraries in ``torch/lib``, and these
to the libraries of the nvidia-* wheels.
"""

import functools
import hashlib
import re
import subprocess  # the compiler
import sys
import sysconfig
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from index_server import Reply, Served, index_of

SOABI = str(sysconfig.get_config_var("SOABI"))
PYTHON_TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
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
    failed = library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count))
    return not failed and count.value > 0
'''
_MODULE = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
extern int torch_cpu(void);
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", NULL, -1, NULL};
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
        lines += [f"Requires-Dist: {one}" for one in self.requires]
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
    words += [str(folder / one) for one in links]
    subprocess.run(words, input=source.encode(), check=True)
    return target.read_bytes()


@functools.cache
def _libraries(folder: Path) -> dict[str, bytes]:
    """Return the compiled files of a stand-in, for the CPU and for CUDA 12, by name."""
    made = {"libcudart.so.12": _compiled(folder, "libcudart.so.12", "int cudart(void){return 12;}")}
    made["libcudnn.so.9"] = _compiled(folder, "libcudnn.so.9", "int cudnn(void){return 9;}")
    made["libc10.so"] = _compiled(folder, "libc10.so", "int c10(void){return 1;}")
    made["libtorch_cpu.so"] = _compiled(
        folder, "libtorch_cpu.so", "int c10(void);int torch_cpu(void){return c10();}", "libc10.so"
    )
    made["libtorch_cuda.so"] = _compiled(
        folder,
        "libtorch_cuda.so",
        "int torch_cuda(void){return 1;}",
        "libcudart.so.12",
        "libcudnn.so.9",
        rpath="$ORIGIN:$ORIGIN/../../nvidia/cuda_runtime/lib:$ORIGIN/../../nvidia/cudnn/lib",
    )
    made["deps.cpu"] = _compiled(
        folder, "deps.cpu", "int deps(void){return 1;}", soname="libtorch_global_deps.so"
    )
    made["deps.cuda"] = _compiled(
        folder, "deps.cuda", "int deps(void){return 1;}", "libcudart.so.12",
        rpath="$ORIGIN/../../nvidia/cuda_runtime/lib", soname="libtorch_global_deps.so",
    )  # fmt: skip
    made["_C.cpu"] = _compiled(
        folder, "_C.cpu", _MODULE, "libtorch_cpu.so", rpath="$ORIGIN/lib", soname="_C.so"
    )
    made["_C.cuda"] = _compiled(
        folder, "_C.cuda", _MODULE, "libtorch_cpu.so", "libtorch_cuda.so", rpath="$ORIGIN/lib",
        soname="_C.so",
    )  # fmt: skip
    return made


def torch(folder: Path, version: str, cuda: str = "") -> Wheel:
    """Return a stand-in for torch of a version such as ``2.9.1+cpu``, built for a CUDA or none."""
    libraries = _libraries(folder)
    kind = "cuda" if cuda else "cpu"
    names = ("libc10.so", "libtorch_cpu.so", *(("libtorch_cuda.so",) if cuda else ()))
    files = {
        "torch/__init__.py": _INIT.encode(),
        "torch/version.py": f"__version__ = {version!r}\ndebug = False\ncuda = {cuda or None!r}\n"
        "git_version = 'stand-in'\nhip = None\nxpu = None\n".encode(),
        "torch/cuda/__init__.py": _CUDA.encode(),
        "torch/nn/__init__.py": b'"""Nothing."""\n',
        "torch/optim/__init__.py": b"import filelock, fsspec, jinja2, networkx, sympy\n",
        f"torch/_C.{SOABI}.so": libraries[f"_C.{kind}"],
        "torch/lib/libtorch_global_deps.so": libraries[f"deps.{kind}"],
        **{f"torch/lib/{name}": libraries[name] for name in names},
    }
    wheels = {"nvidia-cuda-runtime-cu12": f"{cuda}.90", "nvidia-cudnn-cu12": "9.10.2.21"}
    return Wheel(
        "torch",
        version,
        files,
        (
            "filelock", "typing-extensions>=4.10.0", "sympy>=1.13.3", "networkx>=2.5.1", "jinja2",
            "fsspec>=0.8.5",
            *(f"{name}=={release}" for name, release in wheels.items() if cuda),
        ),
        f"{PYTHON_TAG}-{PYTHON_TAG}-{PLATFORM_TAG}",
        {"torchrun": "torch.version:__version__.strip"},
    )  # fmt: skip


def needed(folder: Path) -> list[Wheel]:
    """Return stand-ins for what torch requires, and for packages that are built upon it."""
    libraries = _libraries(folder)
    any_platform = f"py3-none-{PLATFORM_TAG}"
    return [
        Wheel("typing-extensions", "4.15.0", {"typing_extensions.py": b"TypeIs = object()\n"}),
        Wheel("typing-extensions", "4.5.0", {"typing_extensions.py": b"Literal = object()\n"}),
        *(
            Wheel(name, version, {f"{name}/__init__.py": f"__version__ = {version!r}\n".encode()})
            for name, version in (
                ("sympy", "1.14.0"), ("networkx", "3.4.2"), ("jinja2", "3.1.6"),
                ("fsspec", "2025.9.0"), ("filelock", "3.19.1"), ("setuptools", "80.9.0"),
            )
        ),
        *(
            Wheel(
                f"nvidia-{name}-cu12",
                version,
                {f"nvidia/{name.replace('-', '_')}/lib/{library}": libraries[library]},
                tag=any_platform,
            )
            for name, library, versions in (
                ("cuda-runtime", "libcudart.so.12", ("12.6.90", "12.8.90")),
                ("cudnn", "libcudnn.so.9", ("9.10.2.21", "9.5.1.17")),
            )
            for version in versions
        ),
    ]  # fmt: skip


def companion(name: str, version: str, of_torch: str) -> Wheel:
    """Return a stand-in for torchvision or torchaudio, built for one torch."""
    text = f"import torch\n__version__ = {version!r}\nbuilt_for = {of_torch!r}\n"
    files = {f"{name}/__init__.py": text.encode(), f"{name}/version.py": text.encode()}
    tag = f"{PYTHON_TAG}-{PYTHON_TAG}-{PLATFORM_TAG}"
    return Wheel(name, version, files, (f"torch=={of_torch}",), tag)


class Index:
    """The wheels of PyPI and of each build of PyTorch's own index, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[tuple[str, str], list[Path]] = {}

    def add(self, wheel: Wheel, *places: str) -> None:
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
        links = [
            f'<a href="/files/{one.parent.name}/{one.name.replace("+", "%2B")}">{one.name}</a><br/>'
            for one in found
        ]
        page = "\n".join(["<!DOCTYPE html>", *links]).encode()
        return 200, {"Content-Type": "text/html"}, page


@contextmanager
def served(index: Index) -> Iterator[Served]:
    """Serve an index: ``/simple`` is PyPI, ``/whl/cu126`` the index of a build."""
    with index_of(lambda path: index.reply(path.replace("%2B", "+"))) as found:
        yield found
