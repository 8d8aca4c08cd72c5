"""The compiled files in the target's site-packages that may be extensions of PyTorch."""

import re
import time

import msgspec

from gpucheck.host import Host
from gpucheck.probes._dist_info import DistInfo, normalise
from gpucheck.probes._paths import distinct, join, name, pattern

_SITES = ("site-packages", "dist-packages")
_PROJECT_FILES = ("setup.py", "pyproject.toml")
_NO_EXTENSIONS = frozenset(
    """
    _yaml aiohttp astropy av bcrypt black blis bokeh caffe2 catboost cffi contourpy cryptography
    cuda cupy cupy_backends cupyx cv2 cymem cython Cython decord duckdb faiss fiona fontTools
    frozenlist functorch gensim gevent google greenlet grpc h5py jax jax_cuda12_plugin
    jax_cuda13_plugin jaxlib kiwisolver lightgbm llvmlite lxml markupsafe matplotlib mlflow
    mpi4py msgspec multidict murmurhash mypy mypyc nacl networkx nltk numba numpy onnx
    onnxruntime open3d orjson pandas PIL pip pkg_resources polars preshed psutil psycopg2
    psycopg_binary pyarrow pycuda pydantic_core pyproj PyQt5 PyQt6 PySide2 PySide6 pytorch_triton
    rasterio ray regex rpds safetensors scipy sentencepiece sentry_sdk setuptools shapely
    shiboken6 skimage sklearn spacy sqlalchemy srsly statsmodels sympy tensorflow tensorrt
    tensorrt_libs thinc tiktoken tokenizers torch torchgen tornado tree_sitter triton ujson vtk
    vtkmodules wandb wheel xgboost yaml yarl zmq
    """.split()  # noqa: SIM905  # a list literal of a hundred words is a page long
)
"""Folders that hold no extension of PyTorch, and often a great many files.

CuPy, JAX, ONNX Runtime, Ray, TensorFlow and TensorRT are among them although they use CUDA:
none of them is linked with PyTorch, and each finds CUDA's libraries in ways of its own (by path
in wheels or a toolkit, when they are used), so that a need the loader does not meet is no fault
of theirs.
"""
_SECONDS = 0.4
"""How long folders below packages are looked into; a slow disk has only the packages' own files."""
_MOST_SECONDS = 2.0
_MOST_ENTRIES = 64
_MOST_FOLDERS = 2000
_MOST_OF_PACKAGE = 64
_MOST_FILES = 400
_MOST_RECORDS = 300
_RECORD_LIMIT = 256 * 1024
_CPYTHON = re.compile(r"\.cpython-([0-9]{2,4})(t?)(?:d|-[^.]{1,60})?\.so")
_VERSION = re.compile(r"[0-9]+")


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled file: its path, the entry of sys.path that it lies in, and where below it."""

    path: str
    entry: str
    inside: str

    @property
    def top(self) -> str:
        """The folder in the entry that it lies in, or its own name up to the first dot."""
        folder, slash, _ = self.inside.partition("/")
        return folder if slash else folder.partition(".")[0]

    @property
    def python(self) -> str:
        """The CPython that its name is bound to, such as ``311``; "" when it is bound to none."""
        match = _CPYTHON.search(self.inside)
        return match[1] + match[2] if match else ""

    @property
    def variant_of(self) -> str:
        """The name without its numbers: of the files that share it a package takes one.

        Such as ``libbitsandbytes_cuda118.so`` and ``libbitsandbytes_cuda128.so``.
        """
        return _VERSION.sub("#", self.inside)


class Candidates(msgspec.Struct, frozen=True):
    """What was found, and why that is not all; "" when it is."""

    files: list[Candidate]
    problem: str = ""


def candidates(host: Host, sys_path: list[str]) -> Candidates:
    """Return the compiled files at most two folders deep in the target's site-packages.

    Of a name that stands in several entries an import takes the first. Beside site-packages only
    the folders of projects are looked into, which an editable installation puts on sys.path.
    """
    files: list[Candidate] = []
    seen = set(_NO_EXTENSIONS)
    problems = []
    start = time.monotonic()
    for entry in distinct(sys_path)[:_MOST_ENTRIES]:
        if name(entry) not in _SITES and not _is_project(host, entry):
            continue
        listed = host.glob(pattern(entry, "*"))
        if listed.value is None:
            problems.append(f"{listed.source}: {listed.problem}")
        tops = [top for path in listed.value or () if _may_hold_one(top := name(path))]
        if len(tops) > _MOST_FOLDERS:
            problems.append(f"{len(tops)} packages, {_MOST_FOLDERS} were looked at")
        for top in tops[:_MOST_FOLDERS]:
            spent = time.monotonic() - start
            if spent > _MOST_SECONDS:
                problems.append(f"the disk is slow: from {top} on nothing was looked at")
                break
            if top not in seen:
                seen.add(top)
                files += _below(host, entry, top, deep=spent < _SECONDS)
    if len(files) > _MOST_FILES:
        problems.append(f"{len(files)} compiled files, {_MOST_FILES} were looked at")
    return Candidates(files[:_MOST_FILES], "; ".join(problems[:1]))


def _may_hold_one(top: str) -> bool:
    """Whether a name is that of a compiled file or a package: no module, metadata or ``.libs``."""
    return top.endswith(".so") or ("." not in top and not top.startswith("nvidia"))


def _is_project(host: Host, entry: str) -> bool:
    return any(host.exists(join(entry, file)).value for file in _PROJECT_FILES)


def _below(host: Host, entry: str, top: str, *, deep: bool) -> list[Candidate]:
    if top.endswith(".so"):
        return [Candidate(path=join(entry, top), entry=entry, inside=top)]
    folder = join(entry, top)
    paths = host.glob(pattern(folder, "*.so")).value or []
    if deep:
        paths = [*paths, *(host.glob(pattern(folder, "*", "*.so")).value or ())]
    start = len(join(entry, "x")) - 1
    return [
        Candidate(path=path, entry=entry, inside=path[start:]) for path in paths[:_MOST_OF_PACKAGE]
    ]


class Owners:
    """Tells to which installed distribution a file belongs."""

    def __init__(self, host: Host, infos: list[DistInfo]) -> None:
        self._host = host
        self._infos = infos
        self._recorded: dict[tuple[str, str], DistInfo] | None = None

    def of(self, file: Candidate) -> DistInfo | None:
        """Return the distribution by the name of the folder, then by what distributions list.

        None when none claims it: it was built in place, or copied there.
        """
        plain = normalise(file.top)
        here = [info for info in self._infos if info.entry == file.entry]
        for info in here:
            if info.project == plain:
                return info
        # transformer_engine is of transformer-engine-cu12, flash_attn_2_cuda of flash-attn.
        related = [
            info
            for info in here
            if info.project.startswith(f"{plain}-") or plain.startswith(f"{info.project}-")
        ]
        if related:
            return max(related, key=lambda info: len(info.project))
        return self._by_record().get((file.entry, file.inside))

    def _by_record(self) -> dict[tuple[str, str], DistInfo]:
        """Read the lists of installed files, once, and only when a file's name says too little."""
        if self._recorded is None:
            self._recorded = {}
            for info in self._infos[:_MOST_RECORDS]:
                text = self._host.read(join(info.path, "RECORD"), _RECORD_LIMIT).value or ""
                for line in text.splitlines() if ".so," in text else ():
                    inside, comma, _ = line.partition(",")
                    if comma and inside.endswith(".so"):
                        self._recorded.setdefault((info.entry, inside), info)
        return self._recorded
