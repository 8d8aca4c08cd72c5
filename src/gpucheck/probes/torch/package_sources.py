"""Which indexes and channels pip, uv and conda are configured for."""

import re

from gpucheck.facts import Answer, Notes
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.package_sources import PackageSources
from gpucheck.machine import Host
from gpucheck.probes.torch.reading.condarc import conda_channels
from gpucheck.probes.torch.reading.dist_info import normalise
from gpucheck.probes.torch.reading.pip_settings import PipSettings
from gpucheck.probes.torch.reading.uv_settings import uv_index

DEADLINE = 5.0
_CONSTRAINT = re.compile(r"([A-Za-z0-9][\w.-]{0,100}) *== *([\w.+!-]{1,100})")
_MOST_LINES = 2000
LANE = "packages"


def collect(host: Host, interpreter: Interpreter) -> PackageSources:
    """Read the variables and the few small files in which they are configured."""
    env, notes = host.env(), Notes()
    prefix = interpreter.prefix or env.get("VIRTUAL_ENV", "")
    conda = (interpreter.prefix if interpreter.kind == "conda" else None) or env.get("CONDA_PREFIX")
    pip = PipSettings(host, prefix)
    return PackageSources(
        pip_index=notes.take("pip_index", pip.index()),
        pip_extra_indexes=notes.take("pip_extra_indexes", pip.extra_indexes()),
        pip_constraints=notes.take("pip_constraints", _constraints(host, *pip.constraints())),
        uv_index=notes.take("uv_index", uv_index(host)),
        conda_channels=notes.take("conda_channels", conda_channels(host, conda or "")),
        sources=notes.sources,
        problems=notes.problems,
    )


def _constraints(host: Host, files: list[str], source: str) -> Answer[list[str]]:
    """Read the files that bind every installation of pip to some versions, as NGC's images do."""
    lines = [line for file in files for line in (host.read(file).value or "").splitlines()]
    bound = [found for line in lines[:_MOST_LINES] if (found := _CONSTRAINT.match(line.strip()))]
    return Answer([f"{normalise(match[1])}=={match[2]}" for match in bound], source)
