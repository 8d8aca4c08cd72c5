"""Stages that compile CUDA code without a compiler for it, or keep one that they do not use."""

import re
from collections.abc import Iterator

from gpucheck.describe.files.model import Image, Pin, Project, Stage
from gpucheck.describe.files.rules.complaint import Complaint
from gpucheck.facts.claims import Severity
from gpucheck.findings import toolkit_missing
from gpucheck.language import say
from gpucheck.tables import Tables
from gpucheck.tables.packages import KnownPackages

_WITHOUT = ("base", "runtime")
_BRINGS = (
    "cuda-toolkit", "cuda-nvcc", "cuda-minimal-build", "cuda-compiler", "nvidia-cuda-toolkit",
    "cudatoolkit-dev", "cuda-libraries-dev", "cuda-command-line-tools", "nvidia-cuda-nvcc",
)  # fmt: skip
_WHOLE_TOOLKIT = re.compile(r"cuda(?:[-=][0-9].{0,60})?")
_BUILDS = (
    "cmake", "ninja", "make", "gcc", "g++", "build-essential", "setup.py", "nvcc", "cargo", "git",
    "flash-attn", "flash_attn", "deepspeed", "vllm", "git+", "-e", ".", "wheel", "bdist_wheel",
    "ninja-build", "--no-build-isolation", "go", "python3-dev", "build",
)  # fmt: skip
_SHELLS = (".sh", ".py")


def complaints(project: Project, tables: Tables) -> Iterator[Complaint]:
    """Yield the commands that need nvcc in an image without it, and a final image with it."""
    for stage in project.stages:
        if stage.image is None or not stage.image.cuda:
            continue
        if stage.image.flavour in _WITHOUT and not _brings_toolkit(stage):
            yield from _missing(stage, stage.image, tables)
        elif stage.final and stage.image.flavour == "devel" and not _builds(stage, project):
            yield Complaint(
                line=stage.line,
                severity=Severity.INFO,
                rule="devel-image",
                sentence=say(
                    "The final image is made of {image}, which has a CUDA compiler, and no step "
                    "compiles anything.",
                    image=stage.image.reference,
                ),
                fix=say(
                    "A runtime image is several GB smaller, if no program compiles when it runs."
                ),
            )


def _missing(stage: Stage, image: Image, tables: Tables) -> Iterator[Complaint]:
    for command in stage.commands:
        if command.words[0].rpartition("/")[2] == "nvcc" and not command.conditional:
            yield _complaint(Pin("nvcc", "", command.line), image, Severity.ERROR)
            return
    known = tables.get(KnownPackages)
    for install in stage.installs:
        if install.tool == "conda" or install.conditional:
            continue
        for pin in install.pins:
            row = known.known(pin.name)
            if row is not None and row.pypi == ("source",) and not install.indexes:
                yield Complaint(
                    line=pin.line,
                    severity=Severity.WARNING,
                    rule=toolkit_missing.RULE.slug,
                    sentence=say(
                        "PyPI has only the source of {package}, and {image} has no nvcc to compile "
                        "it: it fails unless its setup finds a wheel that was made for this torch.",
                        package=pin.name,
                        image=image.reference,
                    ),
                    fix=_fix(),
                )


def _complaint(pin: Pin, image: Image, severity: Severity) -> Complaint:
    return Complaint(
        line=pin.line,
        severity=severity,
        rule=toolkit_missing.RULE.slug,
        sentence=say(
            "{command} is run, but {image} has none.", command=pin.name, image=image.reference
        ),
        fix=_fix(),
    )


def _fix() -> str:
    return say("Compile in a stage of the devel image, and copy the result into this one.")


def _brings_toolkit(stage: Stage) -> bool:
    """Whether a step may bring nvcc: a package, an installer, a copy, or a script."""
    return stage.copies_toolkit or any(
        _may_bring(word) for command in stage.commands for word in command.words
    )


def _may_bring(word: str) -> bool:
    return bool(
        word == "COPY"
        or word.startswith((*_BRINGS, "nvidia/label"))
        or word.endswith((".run", ".sh"))
        or "cuda_" in word
        or _WHOLE_TOOLKIT.fullmatch(word)
    )


def _builds(stage: Stage, project: Project) -> bool:
    """Whether a step may compile something."""
    found = [word for command in stage.commands for word in command.words]
    return (
        not found
        or len(project.stages) == 1
        or any(
            word in _BUILDS or word.startswith("git+") or word.endswith(_SHELLS) for word in found
        )
    )
