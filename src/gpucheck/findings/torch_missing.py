"""There is no PyTorch in this Python, or none for it."""

from gpucheck.advice import START_PAGE, Python, TorchFixes
from gpucheck.advice.offers import WINDOWS_ON_ARM_PAGE
from gpucheck.advice.torch_again import NewEnvironment
from gpucheck.derived import Gpus
from gpucheck.derived.wheels import wheel_platform
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.request import Request
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, OtherInterpreter, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import phrase, say
from gpucheck.tables.torch import TorchBuilds, TorchReleases
from gpucheck.tables.versions import capability_numbers

TORCH_MISSING = Rule(
    "torch-missing",
    page="""\
PyTorch is not installed in the Python that gpucheck examined.

Symptoms: ``ModuleNotFoundError: No module named 'torch'``.

Very often PyTorch is installed elsewhere: in another virtual or conda environment that is not
active, in the Python of a notebook kernel, or under another user. gpucheck names the Python it
examined and why it chose that one, and lists other Pythons it found that have PyTorch.

Fix: start the Python that has it (activate its environment), or install it here. A plain ``pip
install torch`` is not right everywhere: on Windows it installs a CPU-only build, and for an old GPU
or an old driver it installs a build that cannot use them. The command that gpucheck prints fits the
GPUs and the driver of this machine.
""",
    title=say("PyTorch is not installed"),
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=("torch-mixed-install", "torch-python-unsupported"),
    another_torch_mends=True,
)


@TORCH_MISSING.check
def check_torch_missing(
    interpreter: Interpreter,
    torch: TorchBuild,
    gpus: Gpus,
    request: Request,
    python: Python,
    install: TorchFixes,
) -> Judgement:
    """Report torch as missing if the target Python answered and has none."""
    if not torch.installed and (why := _why_silent(interpreter)):
        raise UnknownFactError("interpreter.executable", why)
    if torch.is_half_removed:
        return NotApplicable(say("torch was installed, and its files are gone"))
    if hidden := _hidden_by(torch):
        return NotApplicable(say("PyTorch is installed, and {path} hides it", path=hidden))
    if known(torch.installed, "torch.installed"):
        return Fine(
            say("torch {version} is installed", version=torch.version)
            if torch.version
            else say("torch is installed")
        )
    others = [other for other in interpreter.others or () if other.executable]
    is_named = interpreter.chosen_by == "--python"
    fixes = [_use(other, python) for other in others]
    is_own = bool(interpreter.has_gpucheck and not is_named and not others)
    if is_own:
        fixes.append(_NAME_YOURS)
    if (of_this_machine := _install(gpus, request, install)) is not None:
        # Who names a Python wants PyTorch there; otherwise the right one was not activated.
        fixes.insert(0 if is_named else len(fixes), of_this_machine)
    elif not others:
        fixes.append(install.or_of_jetpack(_SEE_PAGE))
    return Hit(
        headline=_headline(interpreter.executable, interpreter.chosen_by, is_own=is_own),
        evidence=(
            "torch.installed",
            *(("interpreter.executable",) if interpreter.executable else ()),
            *(("interpreter.others",) if others else ()),
        ),
        fixes=tuple(fixes),
    )


_SEE_PAGE = Fix(
    text=say(
        "Install PyTorch. {start_page} shows the command for this machine.", start_page=START_PAGE
    )
)
_NAME_YOURS = Fix(
    text=say(
        "This is the Python in which gpucheck is installed. If your programs use another one, "
        "activate its environment, or name it: gpucheck --python PATH"
    )
)


def _hidden_by(torch: TorchBuild) -> str:
    """Return the path that Python imports in place of an installed PyTorch; "" if it does not."""
    installs = torch.installs or []
    if torch.installed or not any(install.kind == "package" for install in installs):
        return ""
    return installs[0].path or "torch" if installs[0].kind != "package" else ""


def _why_silent(interpreter: Interpreter) -> str:
    """Return why the target Python did not answer; "" if it did, or if that is unknown."""
    if interpreter.status == "ok":
        return ""
    why = interpreter.problem("executable")
    if why or not interpreter.status:
        return why
    return say("the target Python: {status}", status=interpreter.status)


def _headline(python: str | None, chosen_by: str | None, *, is_own: bool) -> str:
    if python and chosen_by and is_own:
        return say(
            "PyTorch is not installed in {python}, where gpucheck itself is installed "
            "({chosen_by})",
            python=python,
            chosen_by=phrase(chosen_by),
        )
    if python and chosen_by:
        return say(
            "PyTorch is not installed in {python} ({chosen_by})",
            python=python,
            chosen_by=phrase(chosen_by),
        )
    if python:
        return say("PyTorch is not installed in {python}", python=python)
    if chosen_by:
        return say(
            "PyTorch is not installed in the Python that was examined ({chosen_by})",
            chosen_by=phrase(chosen_by),
        )
    return say("PyTorch is not installed in the Python that was examined")


def _use(other: OtherInterpreter, python: Python) -> Fix:
    path = other.executable or ""
    return Fix(
        text=say(
            "Use {python} instead: it has torch {version}. Activate its environment, or start your "
            "program with it.",
            python=other.executable,
            version=other.torch,
        )
        if other.torch
        else say(
            "Use {python} instead: it has torch. Activate its environment, or start your program "
            "with it.",
            python=other.executable,
        ),
        commands=(python.quoted(["gpucheck", "--python", path]),),
        verify=python.examine(path),
    )


def _install(gpus: Gpus, request: Request, install: TorchFixes) -> Fix | None:
    if request.gpus == 0:
        return install.install_cpu(say("this host is to use no GPU"))
    try:
        present = gpus.present()
    except UnknownFactError:
        return None
    return install.install() if present else install.install_cpu(say("there is no NVIDIA GPU"))


TORCH_PYTHON_UNSUPPORTED = Rule(
    "torch-python-unsupported",
    page="""\
PyTorch has no wheel for this Python or this system.

Symptoms: "ERROR: Could not find a version that satisfies the requirement torch (from versions:
none)" and "No matching distribution found for torch".

Causes: PyTorch publishes wheels only for 64-bit CPython, and each release supports only a few
Python versions. A Python that has just been released has no wheels for months, and one past its end
of life gets no new ones. There are no wheels for PyPy, for 32-bit Pythons and for systems with musl
in place of glibc (Alpine Linux), and none on PyPI for Windows on Arm.

When it is reported: a PyTorch that is installed anyway (from conda-forge, a distribution or your
own build) is not judged here.

Fix: use an environment with a Python that has wheels; uv and conda install such a Python for you.
""",
    title=say("PyTorch has no wheel for this Python or system"),
    severity=Severity.ERROR,
    family="torch",
    compat_keys=("python",),
)

_BITS = 64  # PyTorch has wheels for 64-bit Pythons only


@TORCH_PYTHON_UNSUPPORTED.check
def check_torch_python_unsupported(
    interpreter: Interpreter,
    torch: TorchBuild,
    system: System,
    releases: TorchReleases,
    builds: TorchBuilds,
    environment: NewEnvironment,
    install: TorchFixes,
) -> Judgement:
    """Look for a torch wheel for the target's Python, if it has no torch."""
    if torch.installed is None and interpreter.status not in (None, "ok"):
        raise UnknownFactError("interpreter.executable", interpreter.problem("executable"))
    if known(torch.installed, "torch.installed"):
        if _is_windows_on_arm(system):
            return _on_windows_on_arm(torch, releases, builds, install)
        return _described(interpreter, torch, system, releases, environment)
    known(system.os, "system.os")
    if system.jetson:
        return NotApplicable(say("a Jetson uses the wheels of its JetPack"))
    platform = _platform(system)
    if platform is None:
        raise UnknownFactError("system.machine", say("the tables do not have this processor"))
    if system.libc == "musl":
        return _on_musl()
    pythons = _pythons(releases, platform)
    if interpreter.implementation not in (None, "cpython"):
        fact, what = "interpreter.implementation", str(interpreter.implementation)
    elif interpreter.bits not in (None, _BITS):
        fact = "interpreter.bits"
        what = say("a {bits}-bit Python", bits=interpreter.bits)
    else:
        version = _version(interpreter)
        if version in pythons:
            return Fine(
                say("some release of PyTorch has a wheel for Python {python}", python=version)
            )
        fact, what = "interpreter.version", f"Python {version}"
    having = [row for row in releases.newest_first() if row.pythons.get(platform)]
    return Hit(
        headline=say(
            "PyTorch has no wheel for {what}; there are wheels for {span}",
            what=what,
            span=_span(pythons),
        ),
        evidence=(fact, "torch.installed"),
        fixes=environment.fixes(_newest_first(pythons), platform),
        confidence=_confidence(pythons, interpreter, fact),
        rows=((fact, having[0]), (fact, having[-1])),
    )


def _described(
    interpreter: Interpreter,
    torch: TorchBuild,
    system: System,
    releases: TorchReleases,
    environment: NewEnvironment,
) -> Judgement:
    """Judge a wheel that is only described; a wheel on the disk was installable."""
    platform = _platform(system)
    if platform is None and system.jetson and "+cu" in (torch.version or ""):
        platform = f"linux_{system.machine}"  # PyTorch's own wheel for ARM servers
    described = torch.path is None and torch.installer == "pip"
    if not described or platform is None:
        return Fine(say("torch is installed"))
    pythons = releases.pythons(torch.version or "", platform)
    if pythons is None and system.os == "macos" and releases.release(torch.version or ""):
        return _no_wheel_for_mac(torch, system)
    if not pythons or interpreter.version is None:
        return Fine(say("nothing in the tables excludes this Python"))
    version = _version(interpreter)
    if version in pythons:
        return Fine(
            say(
                "torch {version} has a wheel for Python {python}",
                version=torch.version,
                python=version,
            )
        )
    return Hit(
        headline=say(
            "torch {version} has no wheel for Python {python}; it has wheels for {span}",
            version=torch.version,
            python=version,
            span=_span(_alike(pythons, version)),
        ),
        evidence=("interpreter.version", "torch.version"),
        fixes=environment.fixes(_newest_first(pythons), platform),
    )


def _platform(system: System) -> str | None:
    """Return the platform of the wheels; the table of releases has macOS as well."""
    if system.os != "macos":
        return None if _is_windows_on_arm(system) else wheel_platform(system)
    processor = "arm64" if system.machine in ("arm64", "aarch64") else system.machine
    return f"macos_{processor}" if processor in ("arm64", "x86_64") else None


def _is_windows_on_arm(system: System) -> bool:
    return system.os == "windows" and (system.machine or "").lower() in ("arm64", "aarch64")


def _on_windows_on_arm(
    torch: TorchBuild, releases: TorchReleases, builds: TorchBuilds, install: TorchFixes
) -> Judgement:
    """Judge a wheel that is only described: NVIDIA alone has some for this system."""
    version = torch.version or ""
    if torch.path is not None or torch.installer != "pip" or not releases.release(version):
        return Fine(say("torch is installed"))
    if torch.cuda and builds.available(version, torch.cuda, "windows_aarch64"):
        return Fine(say("NVIDIA publishes torch {version} for Windows on Arm", version=version))
    return Hit(
        headline=say("torch {version} has no wheel on PyPI for Windows on Arm", version=version),
        evidence=("system.machine", "torch.version"),
        fixes=(
            install.install()
            or Fix(
                text=say(
                    "NVIDIA publishes PyTorch for the GPUs of such machines in an index of its "
                    "own; this page has the command and what it needs: {page}",
                    page=WINDOWS_ON_ARM_PAGE,
                )
            ),
        ),
    )


def _no_wheel_for_mac(torch: TorchBuild, system: System) -> Hit:
    return Hit(
        headline=say(
            "torch {version} has no wheel for macOS on {machine}",
            version=torch.version,
            machine=system.machine,
        ),
        evidence=("system.machine", "torch.version"),
        fixes=(Fix(text=say("Use an older release of torch, or a Mac with an Apple processor.")),),
    )


def _on_musl() -> Hit:
    return Hit(
        headline=say("PyTorch has no wheel for systems with musl; its wheels need glibc"),
        evidence=("system.libc", "torch.installed"),
        fixes=(
            Fix(text=say("Use a system or an image with glibc, such as Debian instead of Alpine.")),
        ),
    )


def _version(interpreter: Interpreter) -> str:
    """Return the Python version as the tables write it, such as "3.12" or "3.13t"."""
    version = ".".join(known(interpreter.version, "interpreter.version").split(".")[:2])
    return f"{version}t" if interpreter.free_threaded else version


def _pythons(releases: TorchReleases, platform: str) -> tuple[str, ...]:
    """Return the Pythons for which any release has wheels."""
    return tuple(
        dict.fromkeys(
            python
            for release in releases.newest_first()
            for python in release.pythons.get(platform, ())
        )
    )


def _usual(pythons: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the versions of the Pythons that are not free-threaded, in order."""
    found = [capability_numbers(python) for python in pythons if not python.endswith("t")]
    return sorted(numbers for numbers in found if numbers)


def _alike(pythons: tuple[str, ...], version: str) -> tuple[str, ...]:
    """Return the Pythons that are free-threaded or not as a version is; all if none is."""
    found = tuple(python for python in pythons if python.endswith("t") == version.endswith("t"))
    return found or pythons


def _span(pythons: tuple[str, ...]) -> str:
    usual = _usual(pythons)
    versions = usual or _usual(tuple(python.rstrip("t") for python in pythons))
    first, last = (f"{major}.{minor}" for major, minor in (versions[0], versions[-1]))
    if usual:
        if first == last:
            return f"Python {first}"
        return say("Python {first} to {last}", first=first, last=last)
    if first == last:
        return say("free-threaded Python {version}", version=first)
    return say("free-threaded Python {first} to {last}", first=first, last=last)


def _newest_first(pythons: tuple[str, ...]) -> list[str]:
    return [f"{major}.{minor}" for major, minor in reversed(_usual(pythons))]


def _confidence(pythons: tuple[str, ...], interpreter: Interpreter, fact: str) -> Confidence:
    """Return how certain it is: a Python newer than the table may have wheels by now."""
    have = capability_numbers(".".join((interpreter.version or "").split(".")[:2]))
    newer = fact == "interpreter.version" and have is not None and have > _usual(pythons)[-1]
    return Confidence.LIKELY if newer else Confidence.CERTAIN
