"""The file that the dynamic loader would take for each of torch's libraries; none is loaded."""

from gpucheck.facts.libraries import Loading
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.tables.cuda import RuntimeOpens

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "target"


def collect(
    host: Host, interpreter: Interpreter, torch: TorchBuild, opens: RuntimeOpens
) -> Loading:
    """Follow the loader from the interpreter through torch's libraries."""
    if torch.installed is False:
        none = say("torch is not installed")
        return Loading(
            libraries=[], missing=[], runtime_opened=[], preloading="", symbol_versions_missing=[],
            sources={"*": none},
        )  # fmt: skip
    if torch.installed is None:
        return Loading(problems={"*": torch.problem("installed") or say("torch is unknown")})
    if host.identity().os == "macos":
        return Loading(problems={"*": say("gpucheck does not follow the loader of macOS")})
    if host.identity().os == "windows":
        from gpucheck.probes.reading import windows  # noqa: PLC0415  # needed there only

        return windows.resolve(host, interpreter, torch)
    from gpucheck.probes.reading import process_libraries  # noqa: PLC0415  # needed in the child only

    return process_libraries.resolve(host, interpreter, torch, opens)
