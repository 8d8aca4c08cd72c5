"""Compiled extensions of PyTorch in the target, read from their files; nothing is imported."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from gpucheck.facts import Facts, Notes, Private, Section
from gpucheck.host import Host
from gpucheck.probes import _extension_files
from gpucheck.probes._dist_info import DistInfo, dist_infos
from gpucheck.probes.interpreter import Interpreter
from gpucheck.probes.loading import Loading
from gpucheck.probes.torch_build import TorchBuild

if TYPE_CHECKING:
    from gpucheck.probes._extension_needs import Needs

DEADLINE = 5.0
LANE = "target"

_MOST_NAMES = 8


class Extension(Facts, frozen=True, kw_only=True):
    """One compiled file that needs PyTorch or CUDA."""

    package: Annotated[str | None, Private("package")] = None
    """The distribution that it belongs to, else the folder or module: ``flash-attn``."""
    version: str | None = None
    """Of the distribution; "" where none claims the file."""
    file: Annotated[str | None, Private("path")] = None
    """Where it lies in site-packages: ``torchvision/_C.so``."""
    path: Annotated[str | None, Private("path")] = None
    variant_of: Annotated[str | None, Private("path")] = None
    """``file`` without its numbers: of files that share it the package takes one."""
    python: str | None = None
    """The CPython that its name is bound to, such as ``311``; "" when to none."""
    needs_torch: bool | None = None
    built_with: str | None = None
    """The CUDA toolkit that compiled it, such as ``12.8``; no file tells it."""
    cuda: str | None = None
    """Major release of the CUDA libraries that it needs, such as ``12``; "" when it needs none."""
    missing_libraries: list[str] | None = None
    """Libraries of PyTorch and CUDA that it needs and the loader would not find."""
    missing_symbols: list[str] | None = None
    """Some of the symbols that it needs of torch and this torch lacks, as in C++."""
    missing_symbol_count: int | None = None
    cxx11_abi: bool | None = None
    """Whether it was compiled with the strings of C++11, where its missing symbols tell."""
    codes: list[str] | None = None
    """GPU code that it carries: ``sm_80`` (cubin), ``compute_90`` (PTX); [] when none."""


class Extensions(Section, frozen=True, kw_only=True):
    """What is installed beside torch and was compiled against it, or against CUDA."""

    name: ClassVar[str] = "extensions"

    extensions: list[Extension] | None = None
    looked_at: int | None = None
    """How many compiled files were looked at."""
    left_out: str | None = None
    """Why not all files were; "" when all were."""


def collect(
    host: Host, interpreter: Interpreter, torch: TorchBuild, loading: Loading
) -> Extensions:
    """Read the heads of the compiled files, and more of those that need torch or CUDA."""
    if interpreter.sys_path is None or torch.path is None:
        why = interpreter.problem("sys_path") or torch.problem("path") or "torch is not installed"
        return Extensions(problems={"*": why})
    if not (interpreter.platform or "linux").startswith("linux"):
        return Extensions(problems={"*": "only the libraries of Linux are read"})
    if torch.installed is not True:
        return Extensions(problems={"*": "torch is not installed"})
    found = _extension_files.candidates(host, interpreter.sys_path)
    needing = _needing(host, interpreter, torch, loading, found.files) if found.files else []
    infos = dist_infos(host, interpreter.sys_path) if needing else []
    owners = _extension_files.Owners(host, infos)
    return Extensions(
        extensions=[_extension(needs, owners.of(needs.file)) for needs in needing],
        looked_at=len(found.files),
        left_out=found.problem,
        sources={"*": "the compiled files in the target's site-packages"},
    )


def _needing(
    host: Host,
    interpreter: Interpreter,
    torch: TorchBuild,
    loading: Loading,
    files: list[_extension_files.Candidate],
) -> "list[Needs]":
    """Return what the files need; most environments have none, and import nothing for it."""
    from gpucheck.probes._extension_needs import Reader  # noqa: PLC0415  # with what it imports

    reader = Reader(host, torch, interpreter, loading)
    found = [needs for file in files if (needs := reader.read(file)) is not None]
    reader.resolve(found)
    return found


def _extension(needs: "Needs", owner: DistInfo | None) -> Extension:
    from gpucheck.probes._symbol_names import short_name, string_abi  # noqa: PLC0415  # as above

    notes = Notes()
    notes.said("*", needs.file.path)
    lacking = notes.take("missing_symbols", needs.missing_symbols)
    codes = notes.take("codes", needs.codes)
    if lacking is None:
        notes.unknown("missing_symbol_count", notes.problems["missing_symbols"])
    notes.unknown("built_with", "the file does not tell")
    if (abi := string_abi(lacking or [])) is None:
        notes.unknown("cxx11_abi", "no missing symbol tells")
    return Extension(
        package=owner.project if owner is not None else needs.file.top,
        version=owner.version if owner is not None else "",
        file=needs.file.inside,
        path=needs.file.path,
        variant_of=needs.file.variant_of,
        python=needs.file.python,
        needs_torch=needs.needs_torch,
        cuda=needs.cuda,
        missing_libraries=needs.missing_libraries,
        missing_symbols=None if lacking is None else _some([short_name(one) for one in lacking]),
        missing_symbol_count=None if lacking is None else len(lacking),
        cxx11_abi=abi,
        codes=codes,
        sources=notes.sources,
        problems=notes.problems,
    )


def _some(names: list[str]) -> list[str]:
    """Return some of the names, each once."""
    return list(dict.fromkeys(names))[:_MOST_NAMES]
