"""The PyTorch build of the target, read from its files; nothing is imported or executed."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Answer, Facts, Notes, Private, Section
from gpucheck.host import Host
from gpucheck.probes import _torch_metadata
from gpucheck.probes._conda import conda_records
from gpucheck.probes._dist_info import dist_infos
from gpucheck.probes._paths import join
from gpucheck.probes._pins import marker_environment, pins
from gpucheck.probes._torch_files import TorchFiles, VersionFacts, find_torch, version_facts
from gpucheck.probes._torch_libraries import Libraries, Platform
from gpucheck.probes.interpreter import Interpreter

DEADLINE = 5.0
LANE = "target"


class TorchInstall(Facts, frozen=True, kw_only=True):
    """One torch on sys.path."""

    path: Annotated[str | None, Private("path")] = None
    version: str | None = None
    kind: Literal["package", "module", "folder"] | None = None
    """``package``: an installed torch; ``module``: a file torch.py; ``folder``: a folder named
    torch that is not PyTorch."""


class TorchBuild(Section, frozen=True, kw_only=True):
    """The torch that ``import torch`` would find."""

    name: ClassVar[str] = "torch"

    installed: bool | None = None
    """Whether ``import torch`` finds a PyTorch."""
    path: Annotated[str | None, Private("path")] = None
    version: str | None = None
    """The version in ``torch/version.py``, with the local part: ``2.6.0+cu124``."""
    metadata_version: str | None = None
    """The version in the dist-info; differs from ``version`` if two installs were mixed."""
    built_for: Platform | None = None
    cuda: str | None = None
    """CUDA that torch was built for, such as ``12.4``; "" for another kind of build."""
    hip: str | None = None
    git_version: str | None = None
    installer: str | None = None
    """``pip``, ``uv``, ``conda`` ...; "" if the metadata names none."""
    arch_list: list[str] | None = None
    """``sm_80`` (cubin) and ``compute_90`` (PTX) codes compiled in; [] for a CPU build."""
    cuda_library: bool | None = None
    """Whether ``libtorch_cuda`` is in ``torch/lib``."""
    pins: dict[str, str] | None = None
    """What its metadata requires of nvidia-* and triton, extras resolved: name to specifier."""
    cudnn: str | None = None
    """The cuDNN that it pins or bundles; "" if there is neither."""
    cudnn_compiled: str | None = None
    """The cuDNN that it was compiled against, which may be older than the one that it pins. The
    files of a build do not contain it; it is given to ``gpucheck compat``, and a table has it for
    some wheels."""
    nccl: str | None = None
    """The NCCL that it pins or bundles; "" for a build without NCCL."""
    cxx11_abi: bool | None = None
    wheel_tag: str | None = None
    """Tag of the wheel it came from, such as ``cp311-cp311-manylinux_2_28_x86_64``."""
    installs: list[TorchInstall] | None = None
    """Every torch on sys.path, in the order of import: the first one is taken."""
    leftovers: list[str] | None = None
    """Damaged or half-removed installs (``~orch``, a dist-info without its package)."""


def collect(host: Host, interpreter: Interpreter) -> TorchBuild:
    """Read the facts in torch's files; nothing is imported."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or "the target interpreter is unknown"
        return TorchBuild(problems={"*": why})
    found, problems = find_torch(host, interpreter.sys_path)
    infos = dist_infos(host, interpreter.sys_path)
    notes = Notes()
    notes.said("installs", "sys.path of the target")
    notes.said("leftovers", "sys.path of the target")
    installs = [_install(host, files) for files in found]
    leftovers = _torch_metadata.leftovers(host, interpreter.sys_path, infos)
    if found and found[0].kind == "package":
        conda = conda_records(host, interpreter.prefix)
        own = _torch_metadata.Own.of(host, found[0], infos, conda)
        return _build(host, interpreter, own, notes, installs=installs, leftovers=leftovers)
    hidden = problems + _torch_metadata.editable_installs(host, infos)
    path = None
    if found:
        path = found[0].path
        notes.said("path", "sys.path of the target")
        notes.unknown("*", f"import torch finds {path}, which is no PyTorch")
    elif hidden:
        notes.unknown("*", hidden[0])
    else:
        notes.unknown("*", "torch is not installed in the target interpreter")
    is_known = bool(found) or not hidden
    if is_known:
        notes.said("installed", "sys.path of the target")
    return TorchBuild(
        installed=False if is_known else None,
        path=path,
        installs=installs,
        leftovers=leftovers,
        sources=notes.sources,
        problems=notes.problems,
    )


def _install(host: Host, files: TorchFiles) -> TorchInstall:
    said = version_facts(host, join(files.path, "version.py"))
    version = said.value.version if said.value is not None else None
    problems = {} if version else {"version": "no torch/version.py that can be read"}
    sources = {"*": files.path}
    return TorchInstall(
        path=files.path, kind=files.kind, version=version, sources=sources, problems=problems
    )


def _build(
    host: Host,
    interpreter: Interpreter,
    own: _torch_metadata.Own,
    notes: Notes,
    *,
    installs: list[TorchInstall],
    leftovers: list[str],
) -> TorchBuild:
    package = own.package
    notes.said("installed", package.path)
    notes.said("path", package.path)
    said = version_facts(host, join(package.path, "version.py"))
    built_for: Platform | None = notes.take("built_for", said.map(_built_for))
    libraries = Libraries(host, package, interpreter.prefix or "", built_for)
    notes.unknown("cudnn_compiled", "the files of a build do not tell it")
    required: Answer[dict[str, str]] = Answer(None, package.entry, "no metadata of torch there")
    if own.info is not None:
        required = pins(host, own.info, own.infos, marker_environment(interpreter))
    return TorchBuild(
        installed=True,
        path=package.path,
        version=notes.take("version", said.map(lambda v: v.version)),
        metadata_version=notes.take("metadata_version", own.version()),
        built_for=built_for,
        cuda=notes.take("cuda", said.map(lambda v: v.cuda)),
        hip=notes.take("hip", said.map(lambda v: v.hip or "")),
        git_version=notes.take("git_version", said.map(lambda v: v.git_version)),
        installer=notes.take("installer", own.installer()),
        arch_list=notes.take("arch_list", libraries.arch_list()),
        cuda_library=notes.take("cuda_library", libraries.has_cuda()),
        pins=notes.take("pins", required),
        cudnn=notes.take("cudnn", libraries.cudnn(required, own.conda)),
        nccl=notes.take("nccl", libraries.nccl(required, own.conda)),
        cxx11_abi=notes.take("cxx11_abi", libraries.cxx11_abi()),
        wheel_tag=notes.take("wheel_tag", own.wheel_tag()),
        installs=installs,
        leftovers=leftovers,
        sources=notes.sources,
        problems=notes.problems,
    )


def _built_for(said: VersionFacts) -> Platform | None:
    """Return what the build is for; None if the file does not even define ``cuda``."""
    if said.cuda is None:
        return None
    if said.cuda:
        return "cuda"
    if said.hip:
        return "rocm"
    return "xpu" if said.xpu else "cpu"
