"""Which indexes and channels pip, uv and conda are configured for."""

from gpucheck.facts import Notes
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.package_sources import PackageSources
from gpucheck.machine import Host
from gpucheck.probes.torch.reading.condarc import conda_channels
from gpucheck.probes.torch.reading.pip_settings import PipSettings
from gpucheck.probes.torch.reading.uv_settings import uv_index

DEADLINE = 5.0
LANE = "target"


def collect(host: Host, interpreter: Interpreter) -> PackageSources:
    """Read the variables and the few small files in which they are configured."""
    env, notes = host.env(), Notes()
    prefix = interpreter.prefix or env.get("VIRTUAL_ENV", "")
    conda = (interpreter.prefix if interpreter.kind == "conda" else None) or env.get("CONDA_PREFIX")
    pip = PipSettings(host, prefix)
    return PackageSources(
        pip_index=notes.take("pip_index", pip.index()),
        pip_extra_indexes=notes.take("pip_extra_indexes", pip.extra_indexes()),
        uv_index=notes.take("uv_index", uv_index(host)),
        conda_channels=notes.take("conda_channels", conda_channels(host, conda or "")),
        sources=notes.sources,
        problems=notes.problems,
    )
