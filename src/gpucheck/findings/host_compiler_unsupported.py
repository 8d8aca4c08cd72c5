"""The C++ compiler of this machine is too new or too old for nvcc or for PyTorch's headers."""

from gpucheck.derived.extensions import BuildTools, TakenCompiler
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.compilers import NOTHING, Compiling, Reason
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import say
from gpucheck.tables.base import Row
from gpucheck.tables.compilers import HostCompilers
from gpucheck.tables.versions import at_least, parse

RULE = Rule(
    "host-compiler-unsupported",
    page="""\
The C++ compiler of this machine is too new or too old for nvcc or for PyTorch's headers.

nvcc passes the host part of CUDA code to gcc, clang or Visual C++, and refuses compiler releases
that are newer than itself. PyTorch's extension builder refuses some more. PyTorch's headers reject
an old gcc: from PyTorch 2.2 on any release before 9, and from 2.12 on any before 10, which does not
support C++20.

Symptoms: "#error -- unsupported GNU version! gcc versions later than 13 are not supported!", "The
current installed version of g++ (15.1.0) is greater than the maximum required version by CUDA
12.8", "unsupported Microsoft Visual Studio version!", or "unrecognized command line option
'-std=c++20'".

When it is reported: PyTorch itself runs without such a compiler. So this is judged only when
something is to be compiled (``--for build``, or an installed package that compiles at run time).
The compiler is the one that NVCC_CCBIN, CC or CXX names, otherwise gcc on PATH.
``-allow-unsupported-compiler`` in NVCC_PREPEND_FLAGS turns off the limit of nvcc,
TORCH_DONT_CHECK_COMPILER_ABI=1 that of PyTorch.

Fix: install a compiler that both accept next to the existing one, and set CC and CXX to it.
""",
    title=say("the C++ compiler does not fit nvcc or PyTorch"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing", "toolkit-torch-mismatch", "compiler-missing"),
    compat_keys=("action", "gcc", "clang", "msc_ver"),
)

_FOR_STANDARD, _FOR_HEADERS = "oldest-gcc-for-standard", "oldest-gcc-for-headers"


@RULE.check
def check(
    compiling: Compiling,
    toolkits: Toolkits,
    torch: TorchBuild,
    tools: BuildTools,
    table: HostCompilers,
    around: Surroundings,
) -> Judgement:
    """Compare the compiler with the bounds of nvcc and of torch."""
    why = compiling.cuda_code()
    if why is None:
        return NotApplicable(NOTHING)
    cuda = toolkits.selected_version or ""
    if (visual := tools.visual_c()) is not None:
        return _visual_c(*visual, cuda, table, tools, why)
    taken = tools.host_compiler()
    if taken is None:
        return NotApplicable(say("no host compiler was found: see compiler-missing"))
    if torch.built_for not in (None, "cuda"):
        cuda = ""  # without CUDA in torch, nvcc is not used
    fault, row = _fault(taken, cuda, torch.version or "", table, tools)
    if fault:
        return Hit(
            headline=say("{fault}; {why}", fault=fault, why=why.words),
            evidence=(
                *(("toolkits.selected_version",) if cuda else ()),
                *taken.facts,
                *(("torch.version",) if torch.version else ()),
            ),
            fixes=(_fix(taken, cuda, torch.version or "", table, around, why),),
            severity=why.severity,
            confidence=why.confidence,
            rows=((taken.facts[0], row),) if row is not None else (),
        )
    if not cuda and torch.built_for != "cpu":
        known(toolkits.selected_version, "toolkits.selected_version")
    return Fine(
        say("no problem with {kind} {version} is known", kind=taken.kind, version=taken.version)
    )


def _fault(
    taken: TakenCompiler, cuda: str, torch: str, table: HostCompilers, tools: BuildTools
) -> tuple[str, Row | None]:
    """Return a sentence about what is wrong with the compiler, and the row that says so.

    "" if nothing is known to be wrong.
    """
    compiler = f"{taken.kind} {taken.version}"
    row = table.nvcc(cuda) if cuda else None
    limit = getattr(row, taken.kind) if row is not None else None
    if (
        limit
        and not tools.takes_any()
        and table.nvcc_takes(cuda, taken.kind, taken.version) is False
    ):
        too_new = say(
            "{compiler} is too new for nvcc of CUDA {cuda}, which supports {kind} up to {limit}",
            compiler=compiler,
            cuda=cuda,
            kind=taken.kind,
            limit=limit,
        )
        return too_new, row
    first, have = _oldest_gcc(torch, table), parse(taken.version)
    if taken.kind == "gcc" and have is not None and not at_least(have, (first,)):
        standard = table.rule(_FOR_STANDARD, torch)
        return (
            _too_old(compiler, torch, first, cxx20=standard is not None),
            standard or table.rule(_FOR_HEADERS, torch),
        )
    if not cuda or tools.torch_does_not_look():
        return "", None
    if table.torch_takes(torch, cuda, taken.kind, taken.version) is False:
        refused = say(
            "The extension builder of torch {torch} for CUDA {cuda} refuses {compiler}",
            torch=torch,
            cuda=cuda,
            compiler=compiler,
        )
        return _with_bounds(refused, taken, cuda, torch, table), table.torch_bounds(torch, cuda)
    return "", None


def _too_old(compiler: str, torch: str, oldest: int, *, cxx20: bool) -> str:
    if cxx20:
        return say(
            "{compiler} is too old for torch {torch}, which needs C++20: gcc {oldest} or newer",
            compiler=compiler,
            torch=torch,
            oldest=oldest,
        )
    return say(
        "{compiler} is too old for torch {torch}, whose headers require gcc {oldest} or newer",
        compiler=compiler,
        torch=torch,
        oldest=oldest,
    )


def _with_bounds(
    refused: str, taken: TakenCompiler, cuda: str, torch: str, table: HostCompilers
) -> str:
    """Add the releases that the extension builder takes, if the table has them."""
    row = table.torch_bounds(torch, cuda)
    if row is None:
        return refused
    gcc = taken.kind == "gcc"
    below = row.gcc_below if gcc else row.clang_below
    newest = row.gcc_to if gcc else row.clang_to
    oldest = row.gcc_from if gcc else ""
    if below and oldest:
        return say(
            "{refused} (it supports {kind} from {oldest} on, below {below})",
            refused=refused,
            kind=taken.kind,
            oldest=oldest,
            below=below,
        )
    if below:
        return say(
            "{refused} (it supports {kind} below {below})",
            refused=refused,
            kind=taken.kind,
            below=below,
        )
    if newest and oldest:
        return say(
            "{refused} (it supports {kind} from {oldest} to {newest})",
            refused=refused,
            kind=taken.kind,
            oldest=oldest,
            newest=newest,
        )
    if newest:
        return say(
            "{refused} (it supports {kind} up to {newest})",
            refused=refused,
            kind=taken.kind,
            newest=newest,
        )
    return refused


def _visual_c(
    version: int, fact: str, cuda: str, table: HostCompilers, tools: BuildTools, why: Reason
) -> Judgement:
    if not cuda:
        return NotApplicable(say("a build would find no CUDA toolkit"))
    takes = table.nvcc_takes_msvc(cuda, version)
    row = table.nvcc(cuda)
    if takes is None or row is None:
        return NotApplicable(
            say("the tables do not say which Visual C++ nvcc of CUDA {cuda} supports", cuda=cuda)
        )
    if takes or tools.takes_any():
        return Fine(
            say(
                "nvcc of CUDA {cuda} supports Visual C++ with _MSC_VER {version}",
                cuda=cuda,
                version=version,
            )
        )
    fault = say(
        "nvcc of CUDA {cuda} does not support Visual C++ with _MSC_VER {version}: it supports "
        "{oldest} to below {below}",
        cuda=cuda,
        version=version,
        oldest=row.msc_ver_from,
        below=row.msc_ver_below,
    )
    tools_text = say(
        "Install C++ tools of such a release beside the ones that are there, and build in their "
        "command prompt; or build with a newer CUDA toolkit."
    )
    if row.msvc_years:
        fault = say("{fault} (Visual Studio {years})", fault=fault, years=row.msvc_years)
        tools_text = say(
            "Install the C++ tools of Visual Studio {years} beside the ones that are there, and "
            "build in their command prompt; or build with a newer CUDA toolkit.",
            years=row.msvc_years,
        )
    return Hit(
        headline=say("{fault}; {why}", fault=fault, why=why.words),
        evidence=("toolkits.selected_version", fact),
        fixes=(Fix(text=tools_text, verify="gpucheck --for build"),),
        severity=why.severity,
        confidence=why.confidence,
        rows=((fact, row),),
    )


def _fix(
    taken: TakenCompiler,
    cuda: str,
    torch: str,
    table: HostCompilers,
    around: Surroundings,
    why: Reason,
) -> Fix:
    verify = "gpucheck --for build" if why.asked else "gpucheck"
    best = _newest_gcc(cuda, torch, table)
    if best is None:
        return Fix(
            text=say(
                "Install another release of {kind} beside it, and set CC and CXX to that release.",
                kind=taken.kind,
            ),
            verify=verify,
        )
    return Fix(
        text=say(
            "Install gcc {best} and g++ {best} beside it, and set CC and CXX to them for the "
            "build.",
            best=best,
        ),
        commands=(
            *around.install_gcc(best),
            *around.set("CC", f"gcc-{best}"),
            *around.set("CXX", f"g++-{best}"),
        ),
        verify=verify,
    )


def _oldest_gcc(torch: str, table: HostCompilers) -> int:
    """Return the oldest major of gcc that compiles torch's headers; 0 if no table has it.

    A gcc without -std=c++20 refuses this option; the headers refuse other old releases.
    """
    rows = (table.rule(name, torch) for name in (_FOR_STANDARD, _FOR_HEADERS))
    return max(((parse(row.value) or (0,))[0] for row in rows if row is not None), default=0)


def _newest_gcc(cuda: str, torch: str, table: HostCompilers) -> int | None:
    """Return the newest major of gcc that all bounds admit; None if the tables do not say."""
    row = table.nvcc(cuda) if cuda else None
    newest = parse(row.gcc) if row is not None else None
    first = _oldest_gcc(torch, table)
    for major in range(newest[0], max(first, 6) - 1, -1) if newest is not None else ():
        # Stands for the last minor release: bounds such as "below 15" are about major releases.
        if table.torch_takes(torch, cuda, "gcc", f"{major}.1") is not False:
            return major
    return None
