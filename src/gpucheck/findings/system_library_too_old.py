"""The C library or the C++ library of this machine is older than PyTorch's wheel needs."""

import re

import msgspec

from gpucheck.advice.cuda_libraries import CopyFixes
from gpucheck.derived.wheels import wheel_platform
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.libraries import Loading, MissingVersion
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import say
from gpucheck.tables.torch import TorchBuilds, TorchReleases
from gpucheck.tables.versions import at_least, parse

RULE = Rule(
    "system-library-too-old",
    page="""\
The C library or the C++ library of this machine is older than PyTorch's wheel needs.

PyTorch's wheels are linked against glibc and need at least a certain version of it. From torch 2.7
on this is glibc 2.28, which CentOS 7 and Ubuntu 18.04 do not have. pip refuses such a wheel.
However, a virtual environment or conda environment may contain it if the environment was made on
another machine, copied, or mounted from a shared disk. Alpine Linux has musl in place of glibc;
PyTorch's wheels do not run on it at all.

Symptoms: "/lib64/libc.so.6: version `GLIBC_2.28' not found (required by
.../torch/lib/libtorch_cpu.so)", or the same with ``GLIBCXX_3.4.22`` and libstdc++.so.6.

When it is reported: if gpucheck can follow the loader, it looks up every version that torch's
libraries need in the copies that would be loaded, even if LD_LIBRARY_PATH or conda brings another
libstdc++. Otherwise it compares the wheel's tag and the table of releases with the system. Builds
from conda bring their own C++ library and are judged only by following the loader.

Fix: use a newer operating system or container image, or an older PyTorch.
""",
    title=say("the system's C or C++ library is too old for this PyTorch"),
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=("torch-mixed-install",),
    compat_keys=("glibc",),
)

_OF_SYSTEM = ("GLIBC_", "GLIBCXX_", "CXXABI_", "GCC_")
# PEP 600: the oldest glibc that a wheel runs with.
_MANYLINUX = r"manylinux_([0-9]{1,3})_([0-9]{1,3})_"
# The versions that PyTorch gives its releases; whoever builds one usually adds a part of their own.
_OF_PYTORCH = r"[0-9]{1,3}(?:\.[0-9]{1,3}){2}(?:\+(?:cpu|cu[0-9]{2,4}))?"


@RULE.check
def check(
    torch: TorchBuild,
    system: System,
    interpreter: Interpreter,
    environment: Environment,
    builds: TorchBuilds,
    releases: TorchReleases,
    loading: Loading,
    advice: CopyFixes,
) -> Judgement:
    """Compare the system's libraries with those that the wheel was linked against."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if known(system.os, "system.os") != "linux":
        return NotApplicable(say("only Linux wheels depend on the system's C library"))
    if loading.symbol_versions_missing is not None:
        followed = _followed(loading, torch, advice)
        if followed is not None:
            return followed
    if known(torch.installer, "torch.installer") in ("conda", ""):
        return NotApplicable(say("this torch is not a wheel of PyTorch"))
    if system.libc == "musl":
        return _on_musl(torch)
    have, fact = _glibc(interpreter, system)
    need, need_fact = _glibc_needed(torch, system, builds, releases)
    if not at_least(parse(have) or (), parse(need) or ()):
        hit = _too_old("glibc", have, need, (fact, need_fact), torch, advice)
        row = releases.release(torch.version or "")
        if row is not None and row.glibc == need:
            hit = msgspec.structs.replace(hit, rows=((need_fact, row),))
        return hit
    if have != system.glibc or releases.glibc(torch.version or "") != need:
        return Fine(
            say("glibc {have} is new enough", have=have)
        )  # another libstdc++, or a wheel of another kind
    return _cxx(torch, system, interpreter, environment, releases, advice)


def _followed(loading: Loading, torch: TorchBuild, advice: CopyFixes) -> Judgement | None:
    """Judge by the versions that the loader would miss; None if it was not followed."""
    lacks = [
        (at, missing_version)
        for at, missing_version in enumerate(loading.symbol_versions_missing or ())
        if missing_version.version.startswith(_OF_SYSTEM)
    ]
    if not lacks:
        whole = loading.missing == []
        return (
            Fine(say("the C and C++ libraries have every version that is needed"))
            if whole
            else None
        )
    at, lack = min(lacks, key=_telling)
    libraries = loading.libraries or []
    copy = next((library for library in libraries if library.path == lack.path), None)
    evidence = [f"loading.symbol_versions_missing.{at}"]
    if copy is not None:
        evidence.append(f"loading.libraries.{libraries.index(copy)}")
    if copy is not None and copy.found_via in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        fixes = [advice.instead_of(copy)]
    else:
        fixes = advice.newer_system(lack.version, lack.newest)
    return Hit(
        headline=_lacks(lack, torch.version or ""),
        evidence=tuple(evidence),
        fixes=tuple(fixes),
    )


def _lacks(lack: MissingVersion, torch: str) -> str:
    if lack.newest:
        return say(
            "{library} ({path}) has {newest} at most, and {needed_by} of torch {version} needs "
            "{needed}",
            library=lack.library,
            path=lack.path,
            newest=lack.newest,
            needed_by=lack.needed_by,
            version=torch,
            needed=lack.version,
        )
    return say(
        "{library} ({path}) has no {family}, and {needed_by} of torch {version} needs {needed}",
        library=lack.library,
        path=lack.path,
        family=lack.version.partition("_")[0],
        needed_by=lack.needed_by,
        version=torch,
        needed=lack.version,
    )


def _telling(lack: tuple[int, MissingVersion]) -> tuple[bool, int, tuple[int, ...]]:
    """Sort: first what breaks the import, then by family, then the newest version."""
    family, _, number = lack[1].version.partition("_")
    newest = tuple(-part for part in parse(number) or ())
    return lack[1].fatal is False, _OF_SYSTEM.index(f"{family}_"), newest


def _on_musl(torch: TorchBuild) -> Judgement:
    """Judge a build that pip installed: every wheel that PyTorch publishes is for glibc."""
    tag = torch.wheel_tag
    if tag is None and not re.fullmatch(_OF_PYTORCH, torch.version or ""):
        known(tag, "torch.wheel_tag")
    if tag is not None and "manylinux" not in tag:
        return Fine(say("this build was not made for glibc"))
    return Hit(
        headline=say("This system has musl as its C library; PyTorch's wheels need glibc"),
        evidence=("system.libc", "torch.version" if tag is None else "torch.wheel_tag"),
        fixes=(
            Fix(text=say("Use a system or an image with glibc, such as Debian instead of Alpine.")),
        ),
    )


def _glibc(interpreter: Interpreter, system: System) -> tuple[str, str]:
    """Return the glibc that the target runs on, and the fact that says so."""
    if interpreter.glibc and parse(interpreter.glibc):
        return interpreter.glibc, "interpreter.glibc"
    glibc = known(system.glibc, "system.glibc")
    if parse(glibc) is None:
        raise UnknownFactError("system.glibc", say("the C library is not glibc"))
    return glibc, "system.glibc"


def _glibc_needed(
    torch: TorchBuild, system: System, builds: TorchBuilds, releases: TorchReleases
) -> tuple[str, str]:
    """Return the glibc that the wheel needs, and the fact that says so."""
    tag = re.search(_MANYLINUX, torch.wheel_tag or "")
    if tag is not None:
        return f"{tag[1]}.{tag[2]}", "torch.wheel_tag"
    version = known(torch.version, "torch.version")
    if wheel_platform(system) != "linux_x86_64":
        raise UnknownFactError("torch.wheel_tag", say("the table has only wheels for x86_64"))
    row = builds.build(version, torch.cuda, "linux_x86_64") if torch.cuda else None
    need = (row.glibc if row is not None else None) or releases.glibc(version)
    if need is None:
        raise UnknownFactError(
            "torch.version",
            say("it is not known which glibc torch {version} needs", version=version),
        )
    return need, "torch.version"


def _cxx(
    torch: TorchBuild,
    system: System,
    interpreter: Interpreter,
    environment: Environment,
    releases: TorchReleases,
    advice: CopyFixes,
) -> Judgement:
    """Judge libstdc++ if it is the system's: conda and LD_LIBRARY_PATH have their own."""
    release = releases.release(torch.version) if torch.version else None
    need = parse(release.glibcxx) if release is not None else None
    have = parse(system.glibcxx)
    others = interpreter.kind == "conda" or environment.get("LD_LIBRARY_PATH")
    if need is None or have is None or others or at_least(have, need) or release is None:
        return Fine(say("the C library is new enough"))
    if wheel_platform(system) != "linux_x86_64":
        return Fine(say("the C library is new enough"))
    facts = ("system.glibcxx", "torch.version")
    return _too_old(
        "libstdc++ (GLIBCXX)", system.glibcxx or "", release.glibcxx or "", facts, torch, advice
    )


def _too_old(
    what: str,
    have: str,
    need: str,
    facts: tuple[str, ...],
    torch: TorchBuild,
    advice: CopyFixes,
) -> Hit:
    needed = f"{what} {need}"
    glibc = f"GLIBC_{have}" if what == "glibc" else ""
    fixes = advice.newer_system(needed, glibc)
    return Hit(
        headline=say(
            "{library} {have} of this system is older than {need}, which torch {version} needs",
            library=what,
            have=have,
            need=need,
            version=torch.version or "",
        ),
        evidence=facts,
        fixes=tuple(fixes),
        confidence=Confidence.CERTAIN if what == "glibc" else Confidence.LIKELY,
    )
