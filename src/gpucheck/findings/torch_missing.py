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
from gpucheck.facts.request import Request
from gpucheck.facts.torch import Interpreter, OtherInterpreter, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import phrase, say

RULE = Rule(
    __name__,
    title=say("PyTorch is not installed"),
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
