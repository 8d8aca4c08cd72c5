"""The fixes for a copy of a library that does not fit: remove it, or install another."""

import shlex

from gpucheck.advice.nvidia_wheels import WheelFixes
from gpucheck.advice.torch_install import TorchFixes
from gpucheck.derived import Derived
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Fix, or_else
from gpucheck.facts.libraries import LoadedLibrary
from gpucheck.facts.system import Environment
from gpucheck.language import in_turn, say
from gpucheck.tables.packages import wheel_of_file

WHERE = say("here and wherever it is set (~/.bashrc, the image, a module file)")


class CopyFixes(Derived):
    """How to make the loader take the copy that belongs to this PyTorch."""

    def __init__(
        self,
        around: Surroundings,
        environment: Environment,
        wheels: WheelFixes,
        torch: TorchFixes,
    ) -> None:
        self._around = around
        self._environment = environment
        self._wheels = wheels
        self._torch = torch

    def instead_of(self, copy: LoadedLibrary) -> Fix:
        """Return the fix that makes the loader skip this copy, or replaces it."""
        entry = copy.variable_entry or ""
        base = wheel_of_file(copy.soname)
        project = self._wheels.pinned(base) if base else ""
        if copy.found_via == "LD_LIBRARY_PATH":
            commands = self._around.path_without("LD_LIBRARY_PATH", {entry})
            if project and not copy.passed_over:
                again = self._wheels.reinstall([project])
                return Fix(
                    text=in_turn(
                        (
                            again.text,
                            say(
                                "Remove {entry} from LD_LIBRARY_PATH, {where}.",
                                entry=entry,
                                where=WHERE,
                            ),
                        )
                    ),
                    commands=(*again.commands, *commands),
                    verify=again.verify,
                )
            return Fix(
                text=say(
                    "Remove {entry} from LD_LIBRARY_PATH, {where}. PyTorch's wheels find their own "
                    "libraries without it.",
                    entry=entry,
                    where=WHERE,
                ),
                commands=commands,
            )
        if copy.found_via == "LD_PRELOAD":
            return Fix(
                text=say("Remove {entry} from LD_PRELOAD, {where}.", entry=entry, where=WHERE),
                commands=self._without_preload(entry),
            )
        if copy.found_via == "ld.so.preload":
            return Fix(text=say("Remove {path} from /etc/ld.so.preload.", path=copy.path))
        if project:
            return self._wheels.reinstall([project])
        return Fix(
            text=say(
                "Replace {path} with the release that this PyTorch was built with. In a conda "
                "environment, update the package that owns it. If it belongs to a toolkit or the "
                "system, remove its folder from the loader's search path.",
                path=copy.path or copy.soname,
            )
        )

    def out_of_variable(self, copy: LoadedLibrary, why: str) -> Fix:
        """Return the fix that removes from a variable the entry that leads to this copy."""
        entry, variable = copy.variable_entry or "", copy.found_via or ""
        if variable == "LD_LIBRARY_PATH":
            commands = self._around.path_without(variable, {entry})
        elif variable == "LD_PRELOAD":
            commands = self._without_preload(entry)
        else:
            words = say(
                "Remove {entry} from {variable}: {why}.", entry=entry, variable=variable, why=why
            )
            return Fix(text=words)
        return Fix(
            text=say(
                "Remove {entry} from {variable}, {where}: {why}.",
                entry=entry,
                variable=variable,
                where=WHERE,
                why=why,
            ),
            commands=commands,
        )

    def past_damaged(self, path: str) -> Fix | None:
        """Return the fix for a damaged file to which LD_LIBRARY_PATH leads; None if it does not."""
        folder, _, name = path.rpartition("/")
        commands = self._around.path_without("LD_LIBRARY_PATH", {folder} if folder else ())
        if not commands:
            return None
        return Fix(
            text=say(
                "Remove {entry} from LD_LIBRARY_PATH, {where}: {library} in it is damaged.",
                entry=folder,
                where=WHERE,
                library=name,
            ),
            commands=commands,
        )

    def newer_system(self, needed: str, have: str) -> list[Fix]:
        """Return the fixes for a C or C++ library that is too old.

        Args:
            needed: the version that is needed, such as ``GLIBC_2.28``.
            have: the newest version available, such as ``GLIBC_2.17``. The release of the C library
                decides which PyTorch runs; for libstdc++ this is unknown.
        """
        fixes = [
            Fix(
                text=say(
                    "Run PyTorch on a system, or in a container image, with {needed} or newer. Do "
                    "not replace the C library of a running system.",
                    needed=needed,
                )
            )
        ]
        if have.startswith("GLIBC_"):
            glibc = have.removeprefix("GLIBC_")
            older = self._torch.install_for(say("glibc {glibc}", glibc=glibc))
            if older is not None:
                fixes.append(or_else(older))
        return fixes

    def _without_preload(self, entry: str) -> tuple[str, ...]:
        words = (self._environment.get("LD_PRELOAD") or "").replace(":", " ").split()
        kept = [word for word in words if word != entry]
        if len(kept) == len(words):
            return ()
        if not kept:
            return ("unset LD_PRELOAD",)
        return (f"export LD_PRELOAD={shlex.quote(' '.join(kept))}",)
