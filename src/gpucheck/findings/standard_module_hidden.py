"""A file of yours has the name of a standard module that PyTorch imports.

Python looks into the folder of a program first. A ``random.py``, ``typing.py`` or ``logging/`` in
it takes the place of the standard one for every package that is imported, PyTorch included.

Symptoms: "module 'random' has no attribute ...", "cannot import name ... from 'typing'", "partially
initialized module", from a line deep in PyTorch or in Python itself. The same program works in
another folder.

When it is reported: if the current folder has such a file, or such a folder with an
``__init__.py``, and another program beside it. Only the names of modules that ``import torch``
loads count. A folder that is itself a package is fine, because its modules have longer names. So is
a copy of the standard library.

Fix: rename the file, and adapt the code that imports it.
"""

from gpucheck.advice import Python
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import and_more, say

RULE = Rule(
    __name__,
    title=say("a file of yours hides a standard module"),
    severity=Severity.WARNING,
    family="torch",
    concern="code",
    suppressed_by=("torch-missing",),
)


@RULE.check
def check(interpreter: Interpreter, torch: TorchBuild, system: System, python: Python) -> Judgement:
    """Report what hides standard modules from a program in the current folder."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    found = known(interpreter.hiding_modules, "interpreter.hiding_modules")
    if not found:
        return Fine(say("no file of the current folder hides a standard module"))
    first = say(
        "{path} hides the standard module of this name from programs in its folder; import torch "
        "loads it",
        path=found[0],
    )
    return Hit(
        headline=and_more(first, len(found) - 1),
        evidence=tuple(f"interpreter.hiding_modules.{at}" for at, _ in enumerate(found)),
        fixes=(
            Fix(
                text=say("Rename this file, and change the code that imports it."),
                commands=tuple(_rename(path, system, python) for path in found),
                verify=python.verify(),
            ),
        ),
        confidence=Confidence.LIKELY,
    )


def _rename(path: str, system: System, python: Python) -> str:
    if system.os == "windows":
        return python.quoted(["ren", path, f"my_{path.rpartition(chr(92))[2]}"])
    folder, _, name = path.rpartition("/")
    return python.quoted(["mv", path, f"{folder}/my_{name}"])
