"""The Python that is examined does not start, because PYTHONHOME leads it to another one.

PYTHONHOME says where a Python has its standard library. Whoever sets it for one Python breaks every
other: the library belongs to another version, or is not there.

Symptoms: "Fatal Python error: Failed to import encodings module", "ModuleNotFoundError: No module
named 'encodings'", "SRE module mismatch".

When it is reported: if the Python ends with an error, and starts without the variable. gpucheck's
own Python may be the one that does not start. Then no program in it can say so: ``env -u PYTHONHOME
gpucheck`` starts it.

Fix: unset the variable. No installation needs it.
"""

from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import Interpreter
from gpucheck.findings.form import Fine, Hit, Judgement, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("PYTHONHOME keeps Python from starting"),
    severity=Severity.ERROR,
    family="torch",
)


@RULE.check
def check(interpreter: Interpreter, environment: Environment, around: Surroundings) -> Judgement:
    """Report a variable without which the Python starts."""
    variable = interpreter.starts_without
    if not variable:
        return Fine(say("no variable is known to keep the Python from starting"))
    return Hit(
        headline=say(
            "{python} does not start: {variable}={value} leads it to the standard library of "
            "another Python",
            python=interpreter.executable,
            variable=variable,
            value=environment.get(variable),
        ),
        evidence=("interpreter.status", f"environment.variables.{variable}"),
        fixes=(
            Fix(
                text=say(
                    "Unset the variable. Also remove the line that sets it: in the file with which "
                    "your shell starts, or in your job script."
                ),
                commands=around.unset(variable),
            ),
        ),
    )
