"""PyTorch is not installed in the Python that gpucheck examined.

Symptoms: ``ModuleNotFoundError: No module named 'torch'``.

Very often PyTorch is installed elsewhere: in another virtual or conda environment that is not
active, in the Python of a notebook kernel, or under another user. gpucheck names the Python it
examined and why it chose that one, and lists other Pythons it found that have PyTorch.

Fix: start the Python that has it (activate its environment), or install it here. A plain ``pip
install torch`` is not right everywhere: on Windows it installs a CPU-only build, and for an old GPU
or an old driver it installs a build that cannot use them. The command that gpucheck prints fits the
GPUs and the driver of this machine.
"""

from gpucheck.advice import START_PAGE, Python, TorchFixes
from gpucheck.derived import Gpus
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.interpreter import Interpreter, OtherInterpreter
from gpucheck.facts.request import Request
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, Rule

RULE = Rule(
    __name__,
    title="PyTorch is not installed",
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=("torch-mixed-install", "torch-python-unsupported"),
    another_torch_mends=True,
)


@RULE.check
def check(
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
    if known(torch.installed, "torch.installed"):
        return Fine(f"torch {torch.version} is installed" if torch.version else "it is installed")
    others = [one for one in interpreter.others or () if one.executable]
    fixes = [_use(one, python) for one in others]
    if (of_this_machine := _install(gpus, request, install)) is not None:
        fixes.append(of_this_machine)
    asked = f" ({interpreter.executable})" if interpreter.executable else ""
    chosen = f", taken as {interpreter.chosen_by}" if interpreter.chosen_by else ""
    return Hit(
        headline=f"PyTorch is not installed in the Python that was asked{asked}{chosen}",
        evidence=(
            "torch.installed",
            *(("interpreter.executable",) if interpreter.executable else ()),
            *(("interpreter.others",) if others else ()),
        ),
        fixes=tuple(fixes)
        or (Fix(text=f"Install PyTorch; choose the command for this machine at {START_PAGE}"),),
    )


def _why_silent(interpreter: Interpreter) -> str:
    """Return why the target Python did not answer; "" if it did, or if that is unknown."""
    if interpreter.status == "ok":
        return ""
    why = interpreter.problem("executable")
    return why or (f"the target Python: {interpreter.status}" if interpreter.status else "")


def _use(other: OtherInterpreter, python: Python) -> Fix:
    path = python.quoted([other.executable or ""])
    return Fix(
        text=f"Use {other.executable} instead: it has torch {other.torch or ''}".rstrip()
        + ". Activate its environment, or start your program with it.",
        commands=(f"gpucheck --python {path}",),
        verify=f"gpucheck --python {path}",
    )


def _install(gpus: Gpus, request: Request, install: TorchFixes) -> Fix | None:
    if request.gpus == 0:
        return install.install_cpu("this host is to use no GPU")
    try:
        present = gpus.present()
    except UnknownFactError:
        return None
    return install.install() if present else install.install_cpu("there is no NVIDIA GPU")
