"""Exact commands that adapt a compiled package to the installed torch."""

from collections.abc import Sequence

from msgspec.structs import replace

from gpucheck.advice.compilers import CompilerPrograms
from gpucheck.advice.cuda_libraries import ARCHIVE
from gpucheck.advice.package_indexes import PackageIndexes
from gpucheck.advice.target_python import Python
from gpucheck.derived import Derived, Gpu, Gpus
from gpucheck.derived.extensions import BuildTools, CompiledPackage
from gpucheck.derived.wheels import wheel_platform
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Fix, or_else
from gpucheck.facts.system import System
from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.language import in_turn, listed, say
from gpucheck.tables.companions import Extensions as ExtensionTable
from gpucheck.tables.packages import Form, KnownPackages
from gpucheck.tables.torch import TorchReleases
from gpucheck.tables.versions import minor, parse


class ExtensionFixes(Derived):
    """How to replace a compiled package that does not fit torch."""

    def __init__(  # noqa: PLR0913, PLR0917  # torch, the machine and the tables
        self,
        torch: TorchBuild,
        packages: Packages,
        python: Python,
        table: ExtensionTable,
        known: KnownPackages,
        gpus: Gpus,
        tools: BuildTools,
        programs: CompilerPrograms,
        releases: TorchReleases,
        indexes: PackageIndexes,
        system: System,
    ) -> None:
        self._torch = torch
        self._packages = packages
        self._python = python
        self._table = table
        self._known = known
        self._gpus = gpus
        self._tools = tools
        self._programs = programs
        self._releases = releases
        self._indexes = indexes
        self._system = system

    def refit(self, found: CompiledPackage) -> Fix:
        """Return the fix that adapts a package to the installed torch."""
        package, version = found.name, found.version
        torch = self._torch.version or ""
        if not version:
            return self._compile_again(found, torch)
        if never := self.never_served(package, version):
            return self._without(package, never)
        own = self._with_its_own_torch(package, version)
        fix = (
            (own if self._is_application(package) else None)
            or self._made_for_torch(package, version, torch)
            or own
            or self._from_source(package, version, torch)
            or self._in_words(package, version, torch)
        )
        if fix.commands or not self._table.of_package(package):
            return fix
        both = say(
            "This command shows a release of {package} and a torch (perhaps an older one) that "
            "fit together.",
            package=package,
        )
        return replace(
            fix,
            text=in_turn((both, or_else(fix).text)),
            commands=(self._python.recommend("--with", package),),
        )

    def _is_application(self, package: str) -> bool:
        """Whether torch is installed for this package: torch is adapted to it, not vice versa."""
        row = self._known.known(package)
        return row is not None and row.application

    def _on_pypi(self, package: str) -> tuple[Form, ...]:
        """Return the forms of a package on PyPI; an unknown name may belong to someone else."""
        row = self._known.known(package)
        return () if row is None else row.pypi

    def _compile_again(self, found: CompiledPackage, torch: str) -> Fix:
        """Return the fix for an extension without metadata, which was compiled where it lies."""
        file = next(file.extension.file or "" for file in (*found.files, *found.foreign))
        tools = self._tools
        compiler, headers = tools.lacks_compiler(), tools.lacks_headers()
        lacking = (
            *((say("a C++ compiler"),) if compiler else ()),
            *((say("Python's headers"),) if headers else ()),
        )
        steps: list[str] = []
        if lacking:
            steps.append(say("First install {lacking}.", lacking=listed(lacking)))
        if tools.lacks_toolkit() and self._torch.cuda:
            toolkit = say(
                "If {package} has code for GPUs, install a toolkit of CUDA {cuda}, too ({page}).",
                package=found.name,
                cuda=self._torch.cuda,
                page=ARCHIVE,
            )
            steps.append(toolkit)
        steps.append(
            say(
                "In the folder with the setup.py of {package}, delete the folder build, and "
                "recompile it ({file}) against torch {torch}.",
                package=found.name,
                file=file,
                torch=torch,
            )
        )
        command = self._python.pip(
            "install", "--no-build-isolation", "--force-reinstall", "--no-deps", "."
        )
        programs = self._programs.install(compiler=compiler, headers=headers)
        return Fix(
            text=in_turn(steps),
            commands=(*programs, *self._what_builds(), command) if command else (),
            verify=self._python.verify(),
        )

    def _in_words(self, package: str, version: str, torch: str) -> Fix:
        verify = self._python.verify()
        release = say(
            "Install the release of {package} that was built for torch {torch}: its installation "
            "page says which one that is.",
            package=package,
            torch=torch,
        )
        if "source" not in self._on_pypi(package):
            from_source = say("Or compile it from its source against this torch.")
            return Fix(text=in_turn((release, from_source)), verify=verify)
        if lacking := self._tools.lacking_for_cuda():
            no_tools = say(
                "Compiling it against this torch needs what this machine lacks: {lacking}.",
                lacking=lacking,
            )
            return Fix(text=in_turn((release, no_tools)), verify=verify)
        compiling = say(
            "Or compile it against this torch with this command. This needs a CUDA toolkit and a "
            "C++ compiler, and can take an hour."
        )
        return Fix(
            text=in_turn((release, compiling)),
            commands=(*self._what_builds(), self._compile(package, version)),
            verify=verify,
        )

    def _what_builds(self) -> tuple[str, ...]:
        """Return what installs that of a build which a fresh environment lacks; the rest stays."""
        return (*self._python.get_pip(), self._python.pip("install", "setuptools", "wheel"))

    def _compile(self, package: str, version: str) -> str:
        """Return the command that compiles a release here, of which PyPI has wheels as well."""
        return self._python.pip(
            "install", "--force-reinstall", "--no-deps", "--no-cache-dir",
            "--no-build-isolation", "--no-binary", package,
            f"{package}=={version.partition('+')[0]}",
        )  # fmt: skip

    def for_cuda(self, package: str, version: str, platform: str) -> Fix:
        """Return the fix for a release of PyPI whose wheel is for another CUDA than torch.

        The newest release that fits torch comes first, from PyTorch's index or from PyPI.
        """
        torch, build = self._torch.version or "", self._build()
        for row in self._table.of_package(package):
            local = row.local_for(build)
            fits = platform in row.platforms and self._table.fits_torch(package, row.version, torch)
            if not fits or local is None or parse(row.version) is None:
                continue
            index = ("--index-url", self._indexes.of_build(build)) if local else ()
            command = self._python.pip(
                "install", "--force-reinstall", "--no-deps", f"{package}=={row.version}{local}",
                *index,
            )  # fmt: skip
            return Fix(
                text=say(
                    "Install {package} {version}, which was built for torch {torch}.",
                    package=package,
                    version=f"{row.version}{local}",
                    torch=torch,
                ),
                commands=(*self._python.get_pip(), command),
                verify=self._python.verify(),
            )
        return self.refit(CompiledPackage(name=package, version=version, files=()))

    def for_gpus(self, package: CompiledPackage, gpus: Sequence[Gpu]) -> tuple[Fix, ...]:
        """Return the fixes that provide code for these GPUs, or avoid the package."""
        name, version = package.name, package.version
        capabilities = sorted({gpu.compute_capability or "" for gpu in gpus})
        wanted = listed(capabilities)
        if version and any(
            self._table.serves_gpu(name, version, capability) is False
            for capability in capabilities
        ):
            older = self._for_older(name, capabilities)
            return (
                *older,
                or_else(self._without(name, wanted)) if older else self._without(name, wanted),
            )
        published = self._published(name, version, capabilities)
        if published is not None:
            return (published,)
        if self._tools.lacking_for_cuda():
            return (self._newer(name, wanted), self._compiled_or_not(wanted))
        build = Fix(
            text=say(
                "Compile {package} here for compute capability {capabilities}, with a CUDA toolkit "
                "whose nvcc knows it.", package=name, capabilities=wanted,
            ),
            commands=(
                self._python.variable("TORCH_CUDA_ARCH_LIST", ";".join(capabilities)),
                *self._what_builds(),
                self._compile(name, version),
            )
            if version and "source" in self._on_pypi(name)
            else (),
            verify=self._python.verify(),
        )  # fmt: skip
        if not version:
            return (build,)
        return self._newer(name, wanted), or_else(build)

    def _for_older(self, package: str, capabilities: Sequence[str]) -> tuple[Fix, ...]:
        """Return the fix with the newest release that supports GPUs which this one does not."""
        torch, table = self._torch.version or "", self._table
        for row in table.of_package(package):
            serves = (table.serves_gpu(package, row.version, c) for c in capabilities)
            if table.fits_torch(package, row.version, torch) and all(serves):
                return (
                    Fix(
                        text=say(
                            "Install {package} {version}, the newest in the tables that supports "
                            "compute capability {capabilities}.",
                            package=package,
                            version=row.version,
                            capabilities=listed(capabilities),
                        ),
                        commands=(
                            *self._python.get_pip(),
                            self._python.pip("install", f"{package}=={row.version}"),
                        ),
                        verify=self._python.verify(),
                    ),
                )
        return ()

    def _published(self, package: str, version: str, capabilities: Sequence[str]) -> Fix | None:
        """Return how to install the published wheel of this release, if it has the code."""
        torch, table = self._torch.version or "", self._table
        if not version or not table.fits_torch(package, version, torch):
            return None
        if not all(table.has_own_code(package, version, of_gpu) for of_gpu in capabilities):
            return None
        build = self._built_for_cuda(package, version, torch)
        command = self._python.pip(
            "install", "--force-reinstall", "--no-deps", f"{package}=={version}"
        )
        return Fix(
            text=say(
                "Install {package} {version} as it was published: that build has code for compute "
                "capability {capabilities}, and the installed one was built elsewhere.",
                package=package,
                version=version,
                capabilities=listed(capabilities),
            ),
            commands=build.commands if build is not None else (*self._python.get_pip(), command),
            verify=self._python.verify(),
        )

    def _newer(self, package: str, capabilities: str) -> Fix:
        return Fix(
            text=say(
                "Install a release of {package} with code for compute capability {capabilities}, "
                "if there is one for torch {version}.",
                package=package,
                capabilities=capabilities,
                version=self._torch.version,
            ),
            verify=self._python.verify(),
        )

    def _compiled_or_not(self, capabilities: str) -> Fix:
        return Fix(
            text=say(
                "Or compile it here for compute capability {capabilities}, which needs a "
                "CUDA toolkit and a C++ compiler, or uninstall it: PyTorch's own functions, such "
                "as torch.nn.functional.scaled_dot_product_attention, run on this GPU.",
                capabilities=capabilities,
            ),
            verify=self._python.verify(),
        )

    def never_served(self, package: str, version: str) -> str:
        """Return the compute capabilities here that a release was never made for, if it has none.

        A package that serves one of the visible GPUs is worth having.
        """
        try:
            gpus = self._gpus.visible()
        except UnknownFactError:
            return ""
        capabilities = sorted({gpu.compute_capability or "" for gpu in gpus})
        served = {
            self._table.serves_gpu(package, version, capability) for capability in capabilities
        }
        return listed(capabilities) if served == {False} else ""

    def _without(self, package: str, capabilities: str) -> Fix:
        return Fix(
            text=say(
                "Uninstall {package}, which does not support compute capability {capabilities}. "
                "PyTorch's own functions, such as "
                "torch.nn.functional.scaled_dot_product_attention, run on this GPU.",
                package=package,
                capabilities=capabilities,
            ),
            commands=(*self._python.get_pip(), self._python.pip("uninstall", "-y", package)),
            verify=self._python.verify(),
        )

    def _made_for_torch(self, package: str, version: str, torch: str) -> Fix | None:
        """Return the release, or the index of wheels, that the tables have for this torch."""
        platform = wheel_platform(self._system)
        index = self._table.wheels(package, torch, self._build(), platform)
        if index is not None:
            words = ["--no-deps", package, "--find-links", index]
            text = say(
                "Install the {package} that was built for torch {torch}.",
                package=package,
                torch=torch,
            )
        else:
            fitting = self._table.for_torch(package, torch)
            pinned = [release for release in fitting if self._is_pinned(package, release)]
            if not pinned:
                return self._built_for_cuda(package, version, torch) if version in fitting else None
            if (built := self._built_for_cuda(package, pinned[-1], torch)) is not None:
                return built
            if (of_pypi := self._other_cuda_on_pypi(torch)) is not None:
                return Fix(
                    text=say(
                        "Install {package} {version}, which was built for torch {torch}, in a "
                        "build for CUDA {cuda}. PyPI has it for {of_pypi}: the installation page "
                        "of {package} names the index of the others.",
                        package=package,
                        version=pinned[-1],
                        torch=torch.partition("+")[0],
                        cuda=self._torch.cuda,
                        of_pypi=of_pypi,
                    ),
                    verify=self._python.verify(),
                )
            words = [f"{package}=={pinned[-1]}"]
            text = say(
                "Install {package} {version}, which was built for torch {torch}.",
                package=package,
                version=pinned[-1],
                torch=torch.partition("+")[0],
            )
        return self._install(text, words, package)

    def _built_for_cuda(self, package: str, version: str, torch: str) -> Fix | None:
        """Return how to install a release of which PyTorch's index has the build for this CUDA.

        None where PyPI has it as well.
        """
        row, cuda = (
            self._table.release(package, version),
            (self._torch.cuda or "").partition(".")[0],
        )
        if row is None or not row.is_for_other_cuda_on_pypi(cuda):
            return None
        if not (build := row.build_for(cuda)):
            return None
        text = say(
            "Install the build of {package} {version} for CUDA {cuda}: the release fits torch "
            "{torch}, but PyPI has only a build for another CUDA version.",
            package=package,
            version=version,
            cuda=cuda,
            torch=torch.partition("+")[0],
        )
        command = self._python.pip(
            "install", "--force-reinstall", "--no-deps", f"{package}=={version}",
            "--index-url", self._indexes.of_build(build),
        )  # fmt: skip
        return Fix(
            text=text,
            commands=(*self._python.get_pip(), command),
            verify=self._python.verify(),
        )

    def _other_cuda_on_pypi(self, torch: str) -> str | None:
        """Return for which CUDA PyPI's wheel for this torch was compiled, if it is another one.

        A project compiles for the torch of PyPI; that of Linux, since PyPI has no CUDA build of
        torch for Windows.
        """
        default = self._releases.default_build(torch, "linux_x86_64") or ""
        theirs, ours = default[:-1].removeprefix("cu"), (self._torch.cuda or "").partition(".")[0]
        return None if not theirs.isdecimal() or not ours or theirs == ours else f"CUDA {theirs}"

    def _is_pinned(self, package: str, version: str) -> bool:
        """Whether a release requires exactly one torch: a range proves nothing about its code."""
        row = self._table.release(package, version)
        return row is not None and (row.torch or "").startswith("==")

    def _with_its_own_torch(self, package: str, version: str) -> Fix | None:
        """Return the fix for a package whose own metadata requires another torch."""
        found = self._packages.find(package)
        wanted = found.torch_requirement if found is not None else None
        plain = (self._torch.version or "").partition("+")[0]
        if not wanted or not wanted.startswith("==") or wanted[2:].partition("+")[0] == plain:
            return None
        return Fix(
            text=say(
                "{package} {version} requires torch {wanted}: let pip install that torch with it. "
                "If something else here needs the present torch, use a separate environment.",
                package=package,
                version=version,
                wanted=wanted[2:],
            ),
            commands=(
                *self._python.get_pip(),
                self._python.pip("install", f"{package}=={version}", f"torch{wanted}"),
            ),
            verify=self._python.verify(),
        )

    def _from_source(self, package: str, version: str, torch: str) -> Fix | None:
        """Return the fix for a package of which PyPI has only the source.

        Its setup script compiles it for the installed torch, or downloads the wheel made for it.
        """
        if self._on_pypi(package) != ("source",):
            return None
        if lacking := self._tools.lacking_for_cuda():
            row = self._known.known(package)
            return Fix(
                text=say(
                    "Install a wheel of {package} for torch {torch}, its CUDA ({cuda}) and this "
                    "Python, if there is one at {page}, with pip's --force-reinstall --no-deps. "
                    "Compiling its source needs what this machine lacks: {lacking}.",
                    package=package,
                    torch=torch,
                    cuda=self._torch.cuda or say("unknown"),
                    page=f"https://github.com/{row.repository if row else package}/releases",
                    lacking=lacking,
                ),
                verify=self._python.verify(),
            )
        release = f"{package}=={version.partition('+')[0]}" if version else package
        # pip removes the old one itself, once the new one is built.
        return Fix(
            text=say(
                "Rebuild {package} for torch {torch}. This needs a CUDA toolkit and a C++ "
                "compiler.", package=package, torch=torch,
            ),
            commands=(
                *self._what_builds(),
                self._python.pip(
                    "install", "--force-reinstall", "--no-deps", "--no-cache-dir",
                    "--no-build-isolation", release,
                ),
            ),
            verify=self._python.verify(),
        )  # fmt: skip

    def _install(self, text: str, words: list[str], package: str) -> Fix:
        return Fix(
            text=text,
            commands=(
                *self._python.get_pip(),
                self._python.pip("uninstall", "-y", package),
                self._python.pip("install", *words),
            ),
            verify=self._python.verify(),
        )

    def _build(self) -> str:
        """Return the name of the build in wheel indexes: ``cu128`` or ``cpu``."""
        if self._torch.built_for != "cuda":
            return self._torch.built_for or ""
        return "cu" + (minor(self._torch.cuda) or "").replace(".", "")
