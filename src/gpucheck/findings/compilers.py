"""What must be compiled here, and what is missing or too old for it."""

from collections.abc import Sequence

import msgspec

from gpucheck.advice import Python
from gpucheck.advice.compilers import CompilerPrograms
from gpucheck.derived import Derived, Gpus
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import SelfTest
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Interpreter, Packages, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, repeated
from gpucheck.language import Sentence, listed, say
from gpucheck.tables.base import Row
from gpucheck.tables.packages import Code, KnownPackages


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why something is compiled: ``words`` is a complete clause, ``facts`` prove it."""

    words: Sentence
    facts: tuple[str, ...]
    asked: bool
    rows: tuple[tuple[str, Row], ...] = ()
    """What the table says of the package that compiles."""
    """Whether the user said so; otherwise an installed package compiles when it is used."""

    @property
    def severity(self) -> Severity:
        """How severe it is if compiling fails: it is unknown whether the package is used."""
        return Severity.ERROR if self.asked else Severity.WARNING

    @property
    def confidence(self) -> Confidence:
        """How certain it is that something will be compiled."""
        return Confidence.CERTAIN if self.asked else Confidence.LIKELY


class Compiling(Derived):
    """What must be compiled here: requested by the user, or done by an installed package."""

    def __init__(
        self,
        request: Request,
        packages: Packages,
        torch: TorchBuild,
        system: System,
        gpus: Gpus,
        table: KnownPackages,
    ) -> None:
        self._request = request
        self._packages = packages
        self._torch = torch
        self._system = system
        self._gpus = gpus
        self._table = table

    def cuda_code(self) -> Reason | None:
        """Return why CUDA code is compiled with nvcc; None if it is not."""
        if self._request.purpose == "build":
            return self._asked(say("CUDA code has to be compiled here"))
        return self._by_package("cuda")

    def c_code(self) -> Reason | None:
        """Return why C or C++ code is compiled; None if it is not."""
        if self._request.purpose == "build":
            return self._asked(say("An extension has to be compiled here"))
        return self._by_package("triton", "c++")

    @staticmethod
    def _asked(words: Sentence) -> Reason:
        return Reason(words=words, facts=("request.purpose",), asked=True)

    def _by_package(self, *codes: Code) -> Reason | None:
        if not self._is_linux_with_gpu():
            return None
        for row in self._table.compiling(*codes):
            found = self._packages.find(row.package)
            if found is None or any(self._packages.find(other) for other in row.unless):
                continue
            at = (self._packages.distributions or []).index(found)
            fact = f"packages.distributions.{at}"
            words = _compiles(row.package, {*codes} & {*row.compiles})
            return Reason(words=words, facts=(fact,), asked=False, rows=((fact, row),))
        return None

    def _is_linux_with_gpu(self) -> bool:
        """Whether such packages compile here: on other systems they bring what they need."""
        if self._system.os != "linux" or self._torch.built_for != "cuda":
            return False
        try:
            return self._gpus.present()
        except UnknownFactError:
            return False


def _compiles(package: str, codes: set[Code]) -> Sentence:
    if "cuda" in codes:
        return say("{package} compiles CUDA code when it is used", package=package)
    if "c++" in codes:
        return say("{package} compiles C++ code when it is used", package=package)
    return say("{package} runs kernels of Triton, which compiles C code", package=package)


NOTHING = say("no compilation is planned here (use --for build if you want to compile)")


COMPILER_MISSING = Rule(
    "compiler-missing",
    page="""\
Something must be compiled here, but a C or C++ compiler or Python's header files are missing.

An extension is compiled with a C++ compiler and needs Python.h. Triton, and with it
``torch.compile`` on a GPU, compiles a small C file for each kernel that it generates: without a
compiler the first compiled function fails. Slim container images have neither a compiler nor the
headers.

Symptoms: "Failed to find C compiler. Please specify via CC environment variable or set
triton.knobs.build.impl", "error: command 'gcc' failed: No such file or directory", "fatal error:
Python.h: No such file or directory", "Compiler: cl is not found".

When it is reported: plain PyTorch compiles nothing. So gpucheck reports this as an error only when
you say that something is to be compiled (``--for build``). It is a warning on a machine with a GPU
where a package is installed that always uses Triton (vllm, sglang, unsloth, deepspeed). If CC or
CXX names a program that is not there, that is the fault, whatever else is on PATH. A target without
setuptools, with which PyTorch compiles extensions, is a warning.

The self-test ``jit`` compiles for real; it runs only when you name it (``gpucheck selftest --tests
jit``). Whatever it finds missing is an error, no matter what the files show.

Fix: install a compiler and the header files of this Python. On Windows, install the Build Tools for
Visual Studio and work in their command prompt.
""",
    title=say("a C or C++ compiler or Python's headers are missing"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing",),
    compat_keys=("action", "gcc", "clang", "msc_ver"),
)

_FOR_CPP = frozenset(("g++", "c++", "clang++"))


@COMPILER_MISSING.check
def check_compiler_missing(  # noqa: PLR0913, PLR0917  # what a self-test met, else all that the files say
    says: SelfTestSays,
    compiling: Compiling,
    toolkits: Toolkits,
    environment: Environment,
    interpreter: Interpreter,
    system: System,
    around: Surroundings,
    programs: CompilerPrograms,
    python: Python,
) -> Judgement:
    """Report what a self-test lacked; else look for a compiler and Python.h where needed."""
    met = says.failed_with("compiler-missing")
    if met:
        return _met(*met[0], programs)
    why = compiling.c_code()
    if why is None:
        return NotApplicable(NOTHING)
    if system.os == "windows":
        return NotApplicable(say("Visual C++ is found through its own command prompt, not on PATH"))
    if toolkits.named_in_vain:
        return _named_in_vain(toolkits.named_in_vain, environment, why, around)
    compilers = known(toolkits.compilers, "toolkits.compilers")
    if environment.get("CC") or environment.get("CXX"):
        return Fine(say("CC or CXX names the compiler"))
    if not compilers:
        words = say("{why}, but there is no C compiler on PATH", why=why.words)
        return _hit(words, "toolkits.compilers", why, programs.compiler())
    # A described machine names compilers without their paths: gcc stands for both languages.
    is_here = any(compiler.path for compiler in compilers)
    if why.asked and is_here and not any(compiler.command in _FOR_CPP for compiler in compilers):
        words = say("{why}, and PATH has a C compiler, but no C++ compiler", why=why.words)
        return _hit(words, "toolkits.compilers", why, programs.compiler())
    if toolkits.python_headers is False:
        words = say(
            "{why}, but Python.h of Python {version} is missing",
            why=why.words,
            version=interpreter.version,
        )
        return _hit(words, "toolkits.python_headers", why, programs.headers())
    if why.asked and toolkits.setuptools is False:
        return _without_setuptools(python)
    return Fine(say("a compiler is available"))


def _hit(words: Sentence, fact: str, why: Reason, fix: Fix) -> Hit:
    verify = "gpucheck --for build" if why.asked else "gpucheck"
    return Hit(
        headline=words,
        evidence=(fact, *why.facts),
        fixes=(msgspec.structs.replace(fix, verify=verify),),
        severity=why.severity,
        confidence=why.confidence,
        rows=why.rows,
    )


def _named_in_vain(
    names: Sequence[str], environment: Environment, why: Reason, around: Surroundings
) -> Hit:
    """Judge variables that name a compiler which is not there, whatever else is on PATH."""
    values = [f"{name}={environment.get(name)}" for name in names]
    fix = Fix(
        text=say(
            "Unset what names no compiler: the one on PATH is then used. Also remove the line that "
            "sets it: in the file with which your shell starts, or in your job script."
        ),
        commands=tuple(line for name in names for line in around.unset(name)),
    )
    words = say(
        "{why}, but {variables}: there is no such program", why=why.words, variables=listed(values)
    )
    facts = [f"environment.variables.{name}" for name in names]
    hit = _hit(words, facts[0], why, fix)
    return msgspec.structs.replace(hit, evidence=(*facts, *why.facts))


def _without_setuptools(python: Python) -> Hit:
    """Judge a target that cannot build by itself; pip may bring setuptools where it isolates."""
    fix = python.install(say("Install setuptools."), ["install", "setuptools"], remove=False)
    return Hit(
        headline=say(
            "An extension has to be compiled here, but setuptools is missing, with which PyTorch "
            "compiles extensions"
        ),
        evidence=("toolkits.setuptools", "request.purpose"),
        fixes=(msgspec.structs.replace(fix, verify=f"{fix.verify} --for build"),),
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
    )


def _met(path: str, test: SelfTest, programs: CompilerPrograms) -> Hit:
    wanted = test.data.get("wanted")
    lacks_headers = wanted == "Python.h"
    fix = programs.headers() if lacks_headers else programs.compiler()
    return Hit(
        headline=say(
            "The self-test {name} could not compile on {place}: {wanted} is missing",
            name=test.name,
            place=test.place,
            wanted=wanted or say("a compiler"),
        ),
        evidence=(f"{path}.detail", f"{path}.data"),
        fixes=(msgspec.structs.replace(fix, verify=repeated(test)),),
    )


EXTENSION_SOURCE_TOO_OLD = Rule(
    "extension-source-too-old",
    page="""\
The source of an extension was written for an older torch and no longer compiles.

PyTorch removed the THC headers in 1.11, AT_CHECK in 1.5, torch.utils.ffi in 1.0 and torch._six in
2.0. Code that uses them cannot be built, whatever compiler and toolkit are installed.

Symptoms: "fatal error: THC/THC.h: No such file or directory", "'AT_CHECK' was not declared in this
scope", "torch.utils.ffi is deprecated", "No module named 'torch._six'".

When it is reported: only if the source of the extension is to blame. A compiler that fails on
PyTorch's own headers is reported as host-compiler-unsupported.

Fix: use a newer release or a maintained fork of the extension. Otherwise replace what was removed
(THC/THC.h by ATen/cuda/CUDAContext.h, AT_CHECK by TORCH_CHECK), or install a torch release of the
same age as the extension.
""",
    title=say("the source of the extension needs an older torch"),
    severity=Severity.ERROR,
    family="libraries",
    seen_in=("text",),
)
