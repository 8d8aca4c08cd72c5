"""What the engine says about the machine that a file and the options describe."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from gpucheck.describe.files.builds import (
    build_with_line,
    has_unknown_index,
    is_cuda,
    is_stable,
    local_of,
    torch_indexes,
)
from gpucheck.describe.files.complaint import (
    Complaint,
    FileTarget,
    certain_installs,
    final_installs,
    machines_for,
)
from gpucheck.describe.files.model import ASSUMED, Image, Install, Pin, Project, Stage
from gpucheck.describe.judge import judge_described
from gpucheck.describe.keys import Given, GivenError, read_words
from gpucheck.facts.claims import Severity
from gpucheck.findings.form import Finding
from gpucheck.language import in_series, say
from gpucheck.tables import Tables
from gpucheck.tables.torch import TorchBuilds, TorchReleases
from gpucheck.tables.versions import capability_numbers, minor, parse, released

_KEY_OF = {"torch": "torch", "interpreter": "python", "packages": "packages"}
_CONFLICT = "index-conflict"
_COMPANIONS = ("torchvision", "torchaudio", "numpy")
_PLAIN_IMAGES = ("python", "ubuntu", "debian")
_INSTALLS = " install "
_OTHER_PYTHONS = ("conda", "mamba", "micromamba", "uv", "pyenv", "virtualenv")

_Lines = Mapping[str, int]
"""The line that gave each key."""


def complaints(project: Project, target: FileTarget, tables: Tables) -> Iterator[Complaint]:
    """Yield what the engine finds about each install, and about PyTorch's images."""
    for install in certain_installs(project):
        stage = next((own_stage for own_stage in project.stages if _has(own_stage, install)), None)
        yield from _companions(install, tables)
        yield from _on_all(
            machines_for(install.machine, target, tables),
            partial(_python, install, stage, target, tables),
        )
        yield from _on_all(
            machines_for(install.machine, target, tables), partial(_unpublished, install, tables)
        )
    for install in final_installs(project):
        yield from _build(install, project, target, tables)
    for stage in project.stages:
        untouched = not any(
            pin.name == "torch" for earlier in project.installs for pin in earlier.pins
        ) and not any(earlier.conditional for earlier in stage.installs)
        if stage.final and stage.image is not None and untouched:
            yield from _image(stage.image, stage.machine, target, tables)
    for workload in project.workloads:
        if workload.image is not None:
            yield from _image(workload.image, workload.machine, target, tables)


def _on_all(
    machines: Sequence[str], judge: Callable[[str], Iterator[Complaint]]
) -> Iterator[Complaint]:
    """Yield what is wrong on every machine that it may be: nothing if the tables know none."""
    found = [list(judge(machine)) for machine in machines]
    for complaint in found[0] if found else ():
        alike = [[(other.line, other.rule) for other in others] for others in found]
        if all((complaint.line, complaint.rule) in others for others in alike):
            yield complaint


def _has(stage: Stage, install: Install) -> bool:
    return any(own_install is install for own_install in stage.installs)


def _companions(install: Install, tables: Tables) -> Iterator[Complaint]:
    torch = install.pin("torch")
    if torch is None or not torch.version:
        return
    for name in _COMPANIONS:
        pin = install.pin(name)
        if pin is None or not pin.version:
            continue
        if name == "numpy" and install.tool == "conda":
            continue  # conda's packages of torch are compiled for NumPy versions of their own
        # Without a build of torch nobody knows whether that of its companion is another.
        version = pin.version if local_of(torch.version) else pin.version.partition("+")[0]
        lines = {"torch": torch.line, "packages": pin.line}
        words = (f"torch={torch.version}", f"{name}={version}")
        yield from judged(words, lines, tables, ("packages",))


def _python(
    install: Install, stage: Stage | None, target: FileTarget, tables: Tables, machine: str
) -> Iterator[Complaint]:
    torch = install.pin("torch")
    if torch is None or released(torch.version) is None or install.tool in ("lock", "conda"):
        return
    python = _python_of(install, stage, target, torch, _pythons(torch, machine, tables))
    if python is not None:
        words = (f"torch={torch.version}", f"python={python.version}", *_words_of(machine))
        yield from judged(words, {"torch": torch.line}, tables, ("interpreter",))


def _unpublished(install: Install, tables: Tables, machine: str) -> Iterator[Complaint]:
    """Yield a build that PyTorch has never published, from where pip finds nothing else."""
    torch, build = install.pin("torch"), build_with_line(install)
    if torch is None or released(torch.version) is None or build is None or not is_cuda(build[0]):
        return
    indexes = torch_indexes(install)
    if not local_of(torch.version) and any(index.role == "extra" for index in indexes):
        return  # PyPI has another build
    if install.tool == "conda" or not all(is_stable(index.address) for index in indexes):
        return
    builds, plain = tables.get(TorchBuilds), torch.version.partition("+")[0]
    if builds.available(plain, build[0], f"linux_{machine}") is not False:
        return
    there = [row.build for row in builds.of_release(plain, f"linux_{machine}") if row.available]
    yield Complaint(
        line=build[1],
        severity=Severity.ERROR,
        rule=_CONFLICT,
        sentence=say(
            "torch {torch} was never published for {build}; there are builds for {builds}.",
            torch=plain,
            build=build[0],
            builds=in_series(sorted(there)),
        ),
        fix=say("Use one of these builds, or another release."),
    )


def _pythons(torch: Pin, machine: str, tables: Tables) -> tuple[str, ...]:
    """Return the Pythons that this torch has wheels for."""
    return tables.get(TorchReleases).pythons(torch.version, f"linux_{machine}") or ()


def _python_of(
    install: Install, stage: Stage | None, target: FileTarget, torch: Pin, pythons: Sequence[str]
) -> Pin | None:
    """Return the Python, or one that stands for all that the file allows."""
    if install.python is not None:
        return install.python
    image = install.image
    if image is not None and image.python and stage is not None and not _has_other(stage):
        return Pin("python", image.python, image.line)
    oldest = install.python_from
    if oldest is not None:
        wanted = parse(oldest.version)
        with_wheels = [parse(python.rstrip("t")) for python in pythons]
        if (
            wanted
            and with_wheels
            and all(with_wheel is not None and with_wheel < wanted for with_wheel in with_wheels)
        ):
            return oldest
    if target.python and image is None:
        return Pin("python", target.python, torch.line)
    return None


def _has_other(stage: Stage) -> bool:
    return any(
        word.rpartition("/")[2] in _OTHER_PYTHONS or word.startswith(("python3.", "deadsnakes"))
        for command in stage.commands
        for word in command.words
    )


def _build(
    install: Install, project: Project, target: FileTarget, tables: Tables
) -> Iterator[Complaint]:
    """Yield what is wrong with the build of torch on the target's GPUs and driver.

    A driver and a single GPU are judged together, because what to install depends on both.
    """
    driver = () if _may_bring_compat(install.image) or not target.driver else (target.driver,)
    given = [f"driver={release}" for release in driver]
    cards = [(gpu, word_of(gpu)) for gpu in target.gpus]
    if len(cards) == 1:
        facts = [(cards[0][0], (cards[0][1], *given))]
    else:
        facts = [(gpu, (word,)) for gpu, word in cards]
        facts += [("", tuple(given))] if given else []
    for gpu, words in facts:
        about = ("torch", *(("nvml",) if set(given) & set(words) else ()))
        yield from _on_all(
            machines_for(install.machine, target, tables, gpu or None),
            partial(_on, install, project, words, about, tables),
        )


def _on(  # partial gives all but the last
    install: Install,
    project: Project,
    facts: tuple[str, ...],
    about: tuple[str, ...],
    tables: Tables,
    machine: str,
) -> Iterator[Complaint]:
    found = _words_of_build(install, project, machine, tables)
    if found is None:
        return
    words, line = found
    more = (*facts, *_words_of(machine))
    if words[0].partition("=")[0] == "torch" and not _is_certain(install, project):
        yield from _any_build(words[0], more, machine, {"torch": line}, tables, about)
    else:
        yield from judged((*words, *more), {"torch": line}, tables, about)


def _words_of(machine: str) -> tuple[str, ...]:
    return () if machine == ASSUMED else (f"arch={machine}",)


def _may_bring_compat(image: Image | None) -> bool:
    """Whether an image may have the cuda-compat library; an image with CUDA is judged itself."""
    return image is not None and image.reference.partition(":")[0] not in _PLAIN_IMAGES


def _words_of_build(
    install: Install, project: Project, machine: str, tables: Tables
) -> tuple[tuple[str, ...], int] | None:
    """Return the keys of the build of torch, and its line; None if no build is certain."""
    torch = install.pin("torch")
    if (
        torch is None
        or has_unknown_index(install)
        or not all(is_stable(index.address) for index in torch_indexes(install))
    ):
        return None
    if install.tool == "conda":
        if install.cpu or install.cuda is None or not minor(install.cuda.version):
            return None
        cuda = (f"cuda={minor(install.cuda.version)}", "torch_source=pytorch-channel")
        version = (f"torch={torch.version}",) if torch.version else ()
        return (*version, *cuda), install.cuda.line
    build = build_with_line(install)
    if build is not None and is_cuda(build[0]):
        if not torch.version:
            return (f"cuda={minor(build[0])}",), build[1]
        plain, local = torch.version.partition("+")[0], local_of(torch.version)
        row = tables.get(TorchBuilds).build(plain, build[0], f"linux_{machine}")
        if not local and row is None:
            return None  # the index may not have it, and PyPI another build
        return (f"torch={plain}+{build[0]}", "torch_source=pytorch-index"), build[1]
    if build is None and not torch_indexes(install) and torch.version:
        in_image = install.image is not None and install.image.has_torch
        return (
            None
            if in_image or project.not_for_nvidia
            else ((f"torch={torch.version}",), torch.line)
        )
    return None


def _is_certain(install: Install, project: Project) -> bool:
    """Whether the build is certain: a requirement may be installed from any index."""
    return (
        project.kind in ("dockerfile", "lock")
        or install.tool == "conda"
        or build_with_line(install) is not None
    )


def _any_build(
    torch: str,
    more: tuple[str, ...],
    machine: str,
    lines: _Lines,
    tables: Tables,
    about: tuple[str, ...],
) -> Iterator[Complaint]:
    """Yield the finding about PyPI's build if every other build of the release has it as well."""
    rows = tables.get(TorchBuilds).of_release(torch.partition("=")[2], f"linux_{machine}")
    others = [
        list(judged((f"{torch}+{row.build}", *more), lines, tables, about))
        for row in rows
        if row.available and row.build.startswith("cu")
    ]
    if others and all(others):
        yield from judged((torch, *more), lines, tables, about)


def word_of(gpu: str) -> str:
    """Return the key and value of a GPU that is named by its product or compute capability."""
    return f"{'gpu' if capability_numbers(gpu) is None else 'compute_capability'}={gpu}"


def _image(image: Image, machine: str, target: FileTarget, tables: Tables) -> Iterator[Complaint]:
    """Yield what is wrong with PyTorch's image on a GPU, as far as it is known: on x86_64."""
    if not image.torch or not image.cuda or machine not in ("", ASSUMED):
        return
    words = (f"torch={image.torch}", f"cuda={image.cuda}", "torch_source=pytorch-index")
    for gpu in target.gpus:
        yield from judged((*words, word_of(gpu)), {"torch": image.line}, tables, ("torch",))


def judged(
    words: tuple[str, ...], lines: _Lines, tables: Tables, about: tuple[str, ...]
) -> Iterator[Complaint]:
    """Yield the findings about the described machine whose evidence is in these sections."""
    try:
        given: Given = read_words(words)
        report = judge_described(given, tables).report
    except GivenError:
        return
    for finding in report.standing:
        sections = [evidence.fact.partition(".")[0] for evidence in finding.evidence]
        if finding.severity is Severity.INFO or not set(about) & set(sections):
            continue
        yield Complaint(
            line=_line_of(sections, lines),
            severity=finding.severity,
            rule=finding.slug,
            sentence=say("{headline}.", headline=finding.headline),
            fix=_fix_of(finding),
        )


def _line_of(sections: list[str], lines: _Lines) -> int:
    keys = [_KEY_OF[section] for section in sections if section in _KEY_OF]
    by_others = [lines[key] for key in keys if key != "torch" and key in lines]
    return (by_others or [lines["torch"]])[0]


def _fix_of(finding: Finding) -> str:
    """Return what to do first, and what of PyTorch the file is to install."""
    if not finding.fixes:
        return ""
    fix = finding.fixes[0]
    arguments = (command.partition(_INSTALLS)[2] for command in fix.commands)
    requirement = next((argument for argument in arguments if argument.startswith("torch==")), "")
    if not requirement:
        return fix.text
    return say("{fix} Write: {requirement}", fix=fix.text, requirement=requirement)
