"""PyTorch needs a CUDA library that the dynamic loader does not find.

Symptoms: "ImportError: libcusparse.so.12: cannot open shared object file: No such file or
directory", "OSError: libcublas.so.12: cannot open shared object file" or "ValueError:
libcudart.so.*[0-9] not found in the system path" from ``import torch``.

Causes:
- An nvidia-* wheel was removed, or pip removed its files along with another wheel that owned them.
- An installation was interrupted.
- PyTorch was built against a toolkit that has since been removed or is not in the loader's search
  path.

When it is reported: only what the loader would do counts. It does not matter whether a library
comes from a wheel, conda, a toolkit or the system. A missing library that only a profiler opens is
not a fault. cuDNN and NCCL have findings of their own, and libcuda belongs to the driver.

Fix: reinstall the wheel that this PyTorch pins; the command names it. If the library exists but its
permissions keep this user out, the command changes them.
"""

from gpucheck.advice.cuda_libraries import WheelFixes
from gpucheck.derived.loaded import keeps_out, needs_permission
from gpucheck.facts import known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.libraries import Loading, MissingLibrary
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, say, say_many
from gpucheck.tables.packages import wheel_of_file

RULE = Rule(
    __name__,
    title=say("a CUDA library cannot be found"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install"),
)

_OF_OTHERS = ("nvidia-cudnn", "nvidia-nccl")


@RULE.check
def check(torch: TorchBuild, loading: Loading, advice: WheelFixes) -> Judgement:
    """Report CUDA libraries that the loader does not find, the fatal ones first."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    missing = known(loading.missing, "loading.missing")
    found = [
        (at, library, wheel)
        for at, library in enumerate(missing)
        if (library.why == "not found" or keeps_out(library))
        and (wheel := wheel_of_file(library.soname)) is not None
        and wheel not in _OF_OTHERS
    ]
    if not found:
        return Fine(say("the loader finds every CUDA library that this torch needs"))
    found.sort(key=lambda lack: lack[1].fatal is False)
    if keeps_out(found[0][1]):
        return _unreadable(
            [(at, library) for at, library, _ in found if keeps_out(library)], advice
        )
    names = list(dict.fromkeys(library.soname for _, library, _ in found))
    wheels = dict.fromkeys(wheel for _, _, wheel in found)
    pinned = [project for wheel in wheels if (project := advice.pinned(wheel))]
    return Hit(
        headline=_headline(found[0][1], names),
        evidence=tuple(f"loading.missing.{at}" for at, _, _ in found),
        fixes=(advice.reinstall(pinned) if pinned else _elsewhere(names[0], torch),),
    )


def _unreadable(found: list[tuple[int, MissingLibrary]], advice: WheelFixes) -> Hit:
    first = found[0][1]
    fixes = {
        library.path: advice.readable(library.path or "", library.soname) for _, library in found
    }
    commands = dict.fromkeys(command for fix in fixes.values() for command in fix.commands)
    fix = fixes[first.path]
    return Hit(
        headline=needs_permission(first.needed_by, first),
        evidence=tuple(f"loading.missing.{at}" for at, _ in found),
        fixes=(Fix(text=fix.text, commands=tuple(commands), verify=fix.verify),),
    )


def _headline(first: MissingLibrary, names: list[str]) -> Sentence:
    words = {"soname": names[0], "needed_by": first.needed_by}
    more = len(names) - 1
    if first.fatal and not more:
        return say(
            "import torch fails: the loader does not find {soname}, which {needed_by} needs",
            **words,
        )
    if first.fatal:
        return say_many(
            more,
            "import torch fails: the loader does not find {soname}, which {needed_by} needs, nor "
            "{count} more library",
            "import torch fails: the loader does not find {soname}, which {needed_by} needs, nor "
            "{count} more libraries",
            **words,
        )
    if not more:
        return say(
            "The loader does not find {soname}: {needed_by} needs it and fails when it is used",
            **words,
        )
    return say_many(
        more,
        "The loader does not find {soname}, nor {count} more library: {needed_by} needs it and "
        "fails when it is used",
        "The loader does not find {soname}, nor {count} more libraries: {needed_by} needs it and "
        "fails when it is used",
        **words,
    )


def _elsewhere(soname: str, torch: TorchBuild) -> Fix:
    if torch.installer == "conda":
        return Fix(
            text=say(
                "Reinstall the conda package that has {soname} in this environment.", soname=soname
            )
        )
    if not torch.cuda:
        return Fix(
            text=say(
                "This PyTorch pins no wheels: it needs {soname} of the CUDA that it was built "
                "with, from a toolkit on the loader's path. Install that toolkit, or a PyTorch "
                "from its wheels.",
                soname=soname,
            )
        )
    return Fix(
        text=say(
            "This PyTorch pins no wheels: it needs {soname} of CUDA {cuda}, which it was built "
            "with, from a toolkit on the loader's path. Install that toolkit, or a PyTorch from "
            "its wheels.",
            soname=soname,
            cuda=torch.cuda,
        )
    )
