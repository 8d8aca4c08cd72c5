"""How to run the target interpreter, and the exact commands that install into it."""

import ntpath
import re
import shlex
from collections.abc import Sequence

from gpucheck.advice.offers import CHANNEL, Offer
from gpucheck.advice.package_indexes import conda_install
from gpucheck.derived import Derived
from gpucheck.derived.surroundings import in_either, set_in_cmd, set_in_shell
from gpucheck.derived.wheels import meets
from gpucheck.facts.claims import Fix
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, Packages, PackageSources, TorchBuild
from gpucheck.language import Sentence, in_turn, listed, say
from gpucheck.tables.companions import Package
from gpucheck.tables.packages import overwritten_by

COMPANIONS: tuple[Package, ...] = ("torchvision", "torchaudio")
_CONDA_NAMES = ("pytorch", "torchvision", "torchaudio", "cpuonly", "pytorch-cpu")
_CONDA_TORCH = ("pytorch", "libtorch", "pytorch-gpu", "pytorch-cpu")
_REQUIREMENT = r"([A-Za-z0-9][\w.-]{0,100})([=<>!~][=<>!~\w.,*+]{1,100})"
_CUDA_BUILD = r"cu([0-9]{2})[0-9]"
_NOT_BY_PIP = say(
    "pip may not change this Python because another program manages it, so use a virtual "
    "environment."
)
_BY_PIP = say(
    "The commands install it with pip, because gpucheck knows of no conda package that is certain "
    "to fit. conda removes only what the command names; conda packages that depend on it stay. "
    "Those with compiled code may not fit the new one: run gpucheck again, which checks them."
)
_GET_PIP = "https://bootstrap.pypa.io/get-pip.py"  # https://pip.pypa.io/en/stable/installation/
_NO_ENSUREPIP = say(
    "This is Python's embeddable package, which has no ensurepip: get-pip.py installs pip. First "
    "remove the # before import site in the ._pth file beside python.exe, or pip is not found."
)


class Python(Derived):
    """How to run the target interpreter and install into it."""

    def __init__(
        self,
        interpreter: Interpreter,
        system: System,
        packages: Packages,
        torch: TorchBuild,
        sources: PackageSources,
    ) -> None:
        self._constraints = dict(
            constraint.split("==", 1)
            for constraint in sources.pip_constraints or ()
            if "==" in constraint
        )
        self._interpreter = interpreter
        self._system = system
        self._packages = packages
        self._torch = torch

    @property
    def version(self) -> str | None:
        """The target's version ("3.12.3"); None if it is unknown."""
        return self._interpreter.version

    def _executable(self) -> str:
        """Return the target. JetPack's ``python`` is Python 2, or there is none."""
        return self._interpreter.executable or ("python3" if self._system.jetson else "python")

    def command(self, *arguments: str) -> str:
        """Return a command line that runs the target with these arguments."""
        return self.quoted([self._executable(), *arguments])

    def get_pip(self) -> tuple[str, ...]:
        """Return the command that installs pip if it is missing and has no replacement."""
        if self._interpreter.has_pip is not False or self._interpreter.kind == "uv":
            return ()
        if self._is_embeddable():
            return (f"curl.exe -fsSLO {_GET_PIP}", self.command("get-pip.py"))
        return (self.command("-m", "ensurepip"),)

    def _is_embeddable(self) -> bool:
        """Whether this is Python's embeddable package for Windows, which has no ensurepip.

        Its standard library is a zip file beside the program; every other Python has a Lib.
        """
        entries = [entry.lower().rstrip("\\") for entry in self._interpreter.sys_path or ()]
        return (
            self._system.os == "windows"
            and any(entry.endswith(".zip") for entry in entries)
            and not any(ntpath.basename(entry) == "lib" for entry in entries)
        )

    def pip(self, *arguments: str) -> str:
        """Return a command line that installs into, or removes from, the target.

        A uv environment has no pip of its own, so ``uv pip`` is used for it.
        """
        executable = self._executable()
        if self.by_uv():
            verb, *rest = for_uv([word for word in arguments if word != "-y"])
            return self.quoted(["uv", "pip", verb, "--python", executable, *rest])
        # The variable replaces what pip's files of configuration say.
        free = ["env", "PIP_CONSTRAINT=/dev/null"] if self._are_forbidden(arguments) else []
        return self.quoted([*free, executable, "-m", "pip", *arguments])

    def _are_forbidden(self, arguments: Sequence[str]) -> bool:
        """Whether a constraint of pip allows no version that is asked for."""
        if self._system.os == "windows" or arguments[:1] != ("install",):
            return False
        wanted = (re.fullmatch(_REQUIREMENT, word) for word in arguments[1:])
        return any(
            meets(match[2], self._constraints.get(match[1].lower().replace("_", "-"), "")) is False
            for match in wanted
            if match is not None and match[1].lower().replace("_", "-") in self._constraints
        )

    def by_uv(self) -> bool:
        """Whether uv installs into the target."""
        return self._interpreter.has_pip is False and self._interpreter.kind == "uv"

    def remove_torch(self, build: str = "") -> tuple[str, ...]:
        """Return the commands that uninstall torch and its companions.

        They must run first: for pip, ``2.6.0+cpu`` already satisfies ``torch==2.6.0``. Without
        ``--force`` conda would also remove every package that depends on them.

        Args:
            build: the build that comes next, such as cu126; "" if it is the same one.
        """
        commands = []
        from_conda = self._from_conda()
        if from_conda:
            prefix = self._interpreter.prefix or ""
            commands.append(
                self.quoted(["conda", "remove", "-y", "--force", "-p", prefix, *from_conda])
            )
        if self._torch.installer != "conda" and self._torch.installed:
            words = (*self.torch_family(), *self._in_the_way(build))
            commands.append(self.pip("uninstall", "-y", *words))
        return tuple(commands)

    def may_keep(self, build: str) -> bool:
        """Whether pip may replace torch by another release itself, without an uninstall."""
        return not (self.is_closed() or self._in_the_way(build) or self._from_conda())

    def _in_the_way(self, build: str) -> list[str]:
        """Return the installed wheels whose files the wheels of another build would overwrite."""
        match = re.fullmatch(_CUDA_BUILD, build)
        installed = (d.project or "" for d in self._packages.distributions or ())
        return overwritten_by(match[1], dict.fromkeys(installed)) if match else []

    def _from_conda(self) -> list[str]:
        """Return which packages of PyTorch conda has installed in the target's environment."""
        if not self._interpreter.prefix:
            return []
        conda = [line.split()[0] for line in self._packages.conda_packages or () if line.strip()]
        return [name for name in conda if name in _CONDA_NAMES]

    def is_of_conda_forge(self) -> bool:
        """Whether conda installed this torch from conda-forge, and may install another one here."""
        torch = self._torch
        if torch.installer != "conda" or self.is_closed() or len(torch.recorded or ()) > 1:
            return False
        return any(name in _CONDA_TORCH for name in self._of_conda_forge())

    def conda_companions(self) -> tuple[str, ...]:
        """Return torchvision and torchaudio, as far as they are of conda-forge."""
        found = self._of_conda_forge()
        return tuple(name for name in COMPANIONS if name in found)

    def _of_conda_forge(self) -> list[str]:
        listed = (line.split() for line in self._packages.conda_packages or ())
        return [words[0] for words in listed if words and words[-1] == CHANNEL]

    def conda_environment(self) -> str:
        """Return the folder of the conda environment that is the target; "" if it is none."""
        return (self._interpreter.prefix or "") if self._interpreter.kind == "conda" else ""

    def install_by_conda(self, text: str, offer: Offer) -> Fix:
        """Return the fix in which conda replaces its own torch by a build of conda-forge."""
        again = self._torch.cuda == offer.cuda and self._torch.version == offer.torch
        words = conda_install(
            offer, self.conda_companions(), prefix=self._interpreter.prefix or "", again=again
        )
        return Fix(text=text, commands=(self.quoted(words),), verify=self.verify())

    def new_conda_environment(self, text: str, offer: Offer) -> Fix:
        """Return the fix that creates and activates an environment with a build of conda-forge."""
        words = conda_install(offer, self.torch_family()[1:])[2:]
        python = ".".join((self._interpreter.version or "").split(".")[:2])
        words += [f"python={python}"] if python else []
        create = self.quoted(["conda", "create", "-n", "gpu-env", *words])
        return Fix(text=text, commands=(create, "conda activate gpu-env"))

    def torch_family(self) -> list[str]:
        """Return torch and its installed companions."""
        return ["torch", *(name for name in COMPANIONS if self._packages.find(name))]

    def is_closed(self) -> bool:
        """Whether nothing can be installed here: pip refuses (PEP 668), or the user may not."""
        return bool(self._interpreter.externally_managed or self._interpreter.locked)

    def why_closed(self) -> Sentence:
        """Return why nothing can be installed here."""
        prefix = self._interpreter.prefix or ""
        if self._interpreter.externally_managed:
            return _NOT_BY_PIP
        if self._interpreter.locked == "read-only":
            return say(
                "{prefix} is on a file system that is mounted read-only, so nothing can be changed "
                "there: use a virtual environment elsewhere, or let whoever mounts it change it.",
                prefix=prefix,
            )
        return say(
            "{prefix} belongs to another user, and you may not change it: use a virtual "
            "environment of your own, or let its owner run the command.",
            prefix=prefix,
        )

    def new_environment(self, install: Sequence[str]) -> tuple[str, ...]:
        """Return the commands that create a virtual environment and install into it."""
        return (*self.make_environment(), self.install_there(*install))

    def make_environment(self) -> tuple[str, ...]:
        """Return the commands that create a virtual environment from the target."""
        if self._system.os == "windows":
            return (self.command("-m", "venv", "gpu-env"),)
        # Debian and Ubuntu have the venv module of their Python in a separate package.
        apart = self._system.package_manager == "apt" and self._interpreter.kind == "system"
        return (
            *(("sudo apt-get update", "sudo apt-get install -y python3-venv") if apart else ()),
            f"{self.command('-m', 'venv')} ~/gpu-env",
        )

    def install_there(self, *arguments: str) -> str:
        """Return the command that calls pip in the new virtual environment."""
        if self._system.os == "windows":
            return self.quoted([ntpath.join("gpu-env", "Scripts", "pip.exe"), *arguments])
        return f"~/gpu-env/bin/pip {self.quoted(arguments)}"

    def new_python(self) -> str:
        """Return the Python of the new virtual environment."""
        if self._system.os == "windows":
            return ntpath.join("gpu-env", "Scripts", "python.exe")
        return "~/gpu-env/bin/python"

    def run_there(self) -> Sentence:
        """Say that programs run in the new virtual environment only with its Python."""
        return say(
            "Install your programs' other packages there, and start them with {python}.",
            python=self.new_python(),
        )

    def quoted(self, words: Sequence[str]) -> str:
        """Return the words as one command line for this machine's shell; "" if it has none.

        No fix shows commands without one that it needs (``Interruption``).
        """
        if self._system.os != "windows":
            return shlex.join(words)
        # In PowerShell a quoted program needs &, in cmd it does not; most paths need no quotes.
        quoted = [in_either(word) for word in words]
        return " ".join(quoted) if all(quoted) else ""

    def variable(self, name: str, value: str) -> str:
        """Return the command that sets an environment variable in this machine's shell, or not."""
        if self._system.os == "windows":
            return set_in_cmd(name, value)
        if not value:
            return f"unset {name}"
        return set_in_shell(name, value)

    def with_user_site(self, command: str) -> tuple[str, ...]:
        """Return the commands that run one for which the user site counts, whatever is set."""
        if self._system.os == "windows":
            return ("set PYTHONNOUSERSITE=", command)
        return (f"env -u PYTHONNOUSERSITE {command}",)

    def install(
        self, text: str, arguments: Sequence[str], *, remove: bool = True, build: str = ""
    ) -> Fix:
        """Return the fix that installs with these pip arguments, ``install`` first.

        Args:
            text: what the fix does, in words.
            arguments: the arguments of pip.
            remove: whether to uninstall torch and its companions first.
            build: the build of torch that this installs, such as cu126; "" if it is the same one.
        """
        if self.is_closed():
            return Fix(
                text=in_turn((text, self.why_closed(), self.run_there())),
                commands=self.new_environment(arguments),
                verify=f"gpucheck --python {self.new_python()}",
            )
        before = (*self.get_pip(), *(self.remove_torch(build) if remove else ()))
        if remove and (others := self._in_the_way(build)):
            also = say(
                "Uninstall {packages} too: the new build brings its own.",
                packages=listed(others),
            )
            text = in_turn((text, also))
        if remove and self._from_conda():
            text = in_turn((text, _BY_PIP))
        if self.get_pip() and self._is_embeddable():
            text = in_turn((text, _NO_ENSUREPIP))
        return Fix(text=text, commands=(*before, self.pip(*arguments)), verify=self.verify())

    def verify(self) -> str:
        """Return the command that shows whether the fix worked."""
        executable = self._interpreter.executable
        return self.examine(executable) if executable else "gpucheck"

    def recommend(self, *options: str) -> str:
        """Return the command that shows a torch for this Python, and how to install it."""
        python = self._interpreter.executable
        words = ["gpucheck", "recommend", *(("--python", python) if python else ())]
        return self.quoted([*words, *options]) or self.quoted(["gpucheck", "recommend", *options])

    def examine(self, executable: str) -> str:
        """Return the command that examines a Python; without it if there is no way to write it."""
        return self.quoted(["gpucheck", "--python", executable]) or "gpucheck"


_FOR_UV = {
    "--index-url": ("--default-index",),  # uv ignores --index-url where UV_DEFAULT_INDEX is set
    # Otherwise uv takes a package from the first index that has any release of it.
    "--extra-index-url": ("--index-strategy", "unsafe-best-match", "--index"),
}


def for_uv(arguments: Sequence[str]) -> list[str]:
    """Return arguments of pip for uv."""
    return [new for word in arguments for new in _FOR_UV.get(word, (word,))]
