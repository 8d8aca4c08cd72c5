"""A CPU build of PyTorch in a file that is otherwise about GPUs."""

from collections.abc import Iterator

from gpucheck.describe.files.builds import FAMILY, build_with_line, has_unknown_index, local_of
from gpucheck.describe.files.machines import machines_of
from gpucheck.describe.files.model import Install, Pin, Project
from gpucheck.describe.files.rules.complaint import Complaint, FileTarget
from gpucheck.describe.files.rules.described import judged, word_of
from gpucheck.describe.files.rules.which import final_installs
from gpucheck.facts.claims import Severity
from gpucheck.findings import torch_cpu_only
from gpucheck.language import in_series, say
from gpucheck.tables import Tables
from gpucheck.tables.torch import TorchReleases


def complaints(project: Project, target: FileTarget, tables: Tables) -> Iterator[Complaint]:
    """Yield the installs that surely get a CPU build although GPUs are asked for."""
    if project.not_for_nvidia:
        return
    for install in final_installs(project):
        cpu = _cpu_build(install)
        image = install.image
        if cpu is None and not target.gpus:  # otherwise the engine judges what PyPI has
            cpu = _cpu_build_of_pypi(install, tables)
        if cpu is None:
            continue
        if target.gpus:
            yield Complaint(
                line=cpu.line,
                severity=Severity.ERROR,
                rule=torch_cpu_only.RULE.slug,
                sentence=say(
                    "{what} is a CPU build of PyTorch, which cannot use {gpus}.",
                    what=cpu.name,
                    gpus=in_series(target.gpus),
                ),
                fix=_fix_for(install, target, tables) or _fix(install),
            )
        elif image is not None and image.for_gpus:
            yield Complaint(
                line=cpu.line,
                severity=Severity.WARNING,
                rule=torch_cpu_only.RULE.slug,
                sentence=say(
                    "{what} is a CPU build of PyTorch, but the image {image} is made for GPUs.",
                    what=cpu.name,
                    image=image.reference,
                ),
                fix=_fix(install),
            )


def _fix_for(install: Install, target: FileTarget, tables: Tables) -> str:
    """Return which CUDA build to install on the one GPU that is asked for; "" if it is unclear."""
    torch = install.pin("torch")
    if install.tool == "conda" or torch is None or not torch.version or len(target.gpus) != 1:
        return ""
    driver = (f"driver={target.driver}",) if target.driver else ()
    words = (f"torch={torch.version.partition('+')[0]}+cpu", word_of(target.gpus[0]), *driver)
    found = judged(words, {"torch": torch.line}, tables, ("torch",))
    return next((finding.fix for finding in found if finding.rule == torch_cpu_only.RULE.slug), "")


def _cpu_build(install: Install) -> Pin | None:
    if install.cpu is not None and any(pin.name in FAMILY for pin in install.pins):
        return install.cpu
    if has_unknown_index(install) or not any(pin.name == "torch" for pin in install.pins):
        return None
    build = build_with_line(install)
    if build is None or build[0] != "cpu":
        return None
    torch = install.pin("torch")
    version = torch.version if torch is not None else ""
    return Pin(f"torch {version}".strip() if version else "torch", "", build[1])


def _cpu_build_of_pypi(install: Install, tables: Tables) -> Pin | None:
    """Return torch if PyPI has only its CPU build for the processor that the file names."""
    torch = install.pin("torch")
    if torch is None or install.tool == "conda" or install.indexes or local_of(torch.version):
        return None
    builds = {
        tables.get(TorchReleases).default_build(torch.version, f"linux_{machine}")
        for machine in machines_of(install.machine)
    }
    return Pin(f"torch {torch.version}", "", torch.line) if builds == {"cpu"} else None


def _fix(install: Install) -> str:
    if install.tool == "conda":
        return say("Remove it, and let conda choose the build for CUDA.")
    return say("Name the index of a CUDA build: gpucheck recommend prints it for your GPU.")
