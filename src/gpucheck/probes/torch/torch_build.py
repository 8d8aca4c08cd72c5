"""The PyTorch build of the target, read from its files; nothing is imported or executed."""

from gpucheck.facts import Answer, Notes
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.torch_build import NeededPackage, Platform, TorchBuild, TorchInstall
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import join
from gpucheck.probes.torch.reading import metadata
from gpucheck.probes.torch.reading.conda import conda_records
from gpucheck.probes.torch.reading.dist_info import dist_infos
from gpucheck.probes.torch.reading.files import TorchFiles, VersionFacts, find_torch, version_facts
from gpucheck.probes.torch.reading.libraries import Libraries
from gpucheck.probes.torch.reading.needed import needed
from gpucheck.probes.torch.reading.pins import marker_environment, pins

DEADLINE = 5.0
LANE = "target"


def collect(host: Host, interpreter: Interpreter) -> TorchBuild:
    """Read the facts in torch's files; nothing is imported."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or say("the target interpreter is unknown")
        return TorchBuild(problems={"*": why})
    found, problems = find_torch(host, interpreter.sys_path)
    infos = dist_infos(host, interpreter.sys_path)
    notes = Notes()
    notes.known("installs", say("sys.path of the target"))
    notes.known("leftovers", say("sys.path of the target"))
    installs = [_install(host, files) for files in found]
    leftovers = metadata.leftovers(host, interpreter.sys_path, infos)
    if found and found[0].kind == "package":
        conda = conda_records(host, interpreter.prefix)
        own = metadata.Own.of(host, found[0], infos, conda)
        return _build(host, interpreter, own, notes, installs=installs, leftovers=leftovers)
    hidden = problems + metadata.editable_installs(host, infos)
    path = None
    if found:
        path = found[0].path
        notes.known("path", say("sys.path of the target"))
        notes.unknown("*", say("import torch finds {path}, which is not PyTorch", path=path))
    elif hidden:
        notes.unknown("*", hidden[0])
    else:
        notes.unknown("*", say("torch is not installed in the target interpreter"))
    is_known = bool(found) or not hidden
    if is_known:
        notes.known("installed", say("sys.path of the target"))
    return TorchBuild(
        installed=False if is_known else None,
        path=path,
        installs=installs,
        leftovers=leftovers,
        sources=notes.sources,
        problems=notes.problems,
    )


def _install(host: Host, files: TorchFiles) -> TorchInstall:
    facts = version_facts(host, join(files.path, "version.py"))
    version = facts.value.version if facts.value is not None else None
    problems: dict[str, str] = (
        {} if version else {"version": say("it has no readable torch/version.py")}
    )
    sources = {"*": files.path}
    return TorchInstall(
        path=files.path, kind=files.kind, version=version, sources=sources, problems=problems
    )


def _build(
    host: Host,
    interpreter: Interpreter,
    own: metadata.Own,
    notes: Notes,
    *,
    installs: list[TorchInstall],
    leftovers: list[str],
) -> TorchBuild:
    package = own.package
    notes.known("installed", package.path)
    notes.known("path", package.path)
    facts = version_facts(host, join(package.path, "version.py"))
    built_for: Platform | None = notes.take("built_for", facts.map(_built_for))
    libraries = Libraries(host, package, interpreter.prefix or "", built_for)
    notes.unknown("cudnn_compiled", say("the files of a build do not say it"))
    no_metadata = say("there is no metadata of torch")
    required: Answer[dict[str, str]] = Answer(None, package.entry, no_metadata)
    needs: Answer[list[NeededPackage]] = Answer(None, package.entry, no_metadata)
    if own.info is not None:
        environment = marker_environment(interpreter)
        required = pins(host, own.info, own.infos, environment)
        needs = needed(host, own.info, own.infos, interpreter.sys_path or (), environment)
    return TorchBuild(
        installed=True,
        path=package.path,
        version=notes.take("version", facts.map(lambda v: v.version)),
        metadata_version=notes.take("metadata_version", own.version()),
        built_for=built_for,
        cuda=notes.take("cuda", facts.map(lambda v: v.cuda)),
        hip=notes.take("hip", facts.map(lambda v: v.hip or "")),
        git_version=notes.take("git_version", facts.map(lambda v: v.git_version)),
        installer=notes.take("installer", own.installer()),
        arch_list=notes.take("arch_list", libraries.arch_list()),
        cuda_library=notes.take("cuda_library", libraries.has_cuda()),
        pins=notes.take("pins", required),
        needs=notes.take("needs", needs),
        lost_libraries=notes.take("lost_libraries", own.lost_libraries()),
        mapped_bytes=notes.take("mapped_bytes", libraries.mapped_bytes()),
        cudnn=notes.take("cudnn", libraries.cudnn(required, own.conda)),
        nccl=notes.take("nccl", libraries.nccl(required, own.conda)),
        cxx11_abi=notes.take("cxx11_abi", libraries.cxx11_abi()),
        wheel_tag=notes.take("wheel_tag", own.wheel_tag()),
        installs=installs,
        leftovers=leftovers,
        sources=notes.sources,
        problems=notes.problems,
    )


def _built_for(facts: VersionFacts) -> Platform | None:
    """Return what the build is for; None if the file does not even define ``cuda``."""
    if facts.cuda is None:
        return None
    if facts.cuda:
        return "cuda"
    if facts.hip:
        return "rocm"
    return "xpu" if facts.xpu else "cpu"
