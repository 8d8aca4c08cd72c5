"""Whether the NCCL that torch would load has the functions that torch calls."""

from gpucheck.facts import Answer
from gpucheck.facts.loading import Loading
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import join
from gpucheck.tables.versions import at_least, parse

_START = "nccl"
_SONAME = "libnccl.so"


def missing_functions(host: Host, torch: TorchBuild, loading: Loading) -> Answer[list[str]]:
    """Return the NCCL functions that libtorch_cuda needs and that the copy does not define.

    An NCCL that is not older than the pinned one has them all, so it is not read.
    """
    copy = next(
        (library for library in loading.libraries or () if library.soname.startswith(_SONAME)), None
    )
    if copy is None or not copy.real_path or not torch.path:
        return Answer(None, "", say("it is not known which NCCL would be loaded"))
    have, want = parse(copy.version), parse(torch.nccl)
    if have is None or want is None:
        return Answer(
            None, copy.real_path, say("its version, or the version that torch pins, is unknown")
        )
    if at_least(have[:2], want[:2]):
        return Answer(
            [], say("{path} is not older than the version that torch pins", path=copy.real_path)
        )
    from gpucheck.machine.binaries.elf import missing_symbols, read_elf, undefined_symbols  # noqa: PLC0415  # rare

    user = read_elf(host, join(torch.path, "lib", "libtorch_cuda.so"))
    library = read_elf(host, copy.real_path)
    if user.value is None or library.value is None:
        failed = library if user.value is not None else user
        return Answer(None, failed.source, failed.problem)
    needed = undefined_symbols(host, user.value)
    if needed.value is None:
        return Answer(None, needed.source, needed.problem)
    names = [
        symbol.name for symbol in needed.value if symbol.name.startswith(_START) and not symbol.weak
    ]
    return missing_symbols(host, library.value, names).map(sorted)
