"""The CUDA toolkit on this machine is of another release than the one PyTorch was built with.

PyTorch brings its own CUDA libraries. When it runs, it does not matter which toolkit is in
/usr/local/cuda or what ``nvcc --version`` says. When an extension is compiled, it does: code
compiled by a toolkit of another *major* release does not fit the PyTorch that loads it, and
PyTorch's builder refuses. For another minor release PyTorch only warns, and this usually works.

Symptoms when building: "The detected CUDA version (13.0) mismatches the version that was used to
compile PyTorch (12.8)".

When it is reported: it is an error if something is to be compiled here (``--for build``), and a
warning if a package is installed that compiles CUDA code at run time (such as deepspeed). Otherwise
it is for information, and you need not do anything.

Fix, if you compile: set CUDA_HOME to a toolkit of PyTorch's own CUDA release.
"""

from gpucheck.advice.cuda_libraries import ToolkitFixes
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.compiling import Compiling, Reason
from gpucheck.language import say
from gpucheck.tables.versions import parse

RULE = Rule(
    __name__,
    title=say("the toolkit is of another CUDA release than PyTorch"),
    severity=Severity.INFO,
    family="libraries",
    suppressed_by=(
        "torch-missing",
        "gpu-too-old-for-torch",
        "gpu-too-new-for-torch",
        "driver-too-old",
    ),
    compat_keys=("action", "nvcc"),
)


@RULE.check
def check(
    compiling: Compiling,
    toolkits: Toolkits,
    torch: TorchBuild,
    around: Surroundings,
    install: ToolkitFixes,
) -> Judgement:
    """Compare the CUDA major version of the toolkit that a build would use with torch's."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if known(torch.built_for, "torch.built_for") != "cuda":
        return NotApplicable(say("this torch was not built for CUDA"))
    if not known(toolkits.selected, "toolkits.selected"):
        return NotApplicable(say("a build would find no CUDA toolkit"))
    version = known(toolkits.selected_version, "toolkits.selected_version")
    toolkit, built = parse(version), parse(known(torch.cuda, "torch.cuda"))
    if toolkit is None or built is None or toolkit[0] == built[0]:
        return Fine(
            say(
                "the toolkit is CUDA {version}, and torch was built with {cuda}",
                version=version,
                cuda=torch.cuda,
            )
        )
    why = compiling.cuda_code()
    return Hit(
        headline=_headline(toolkits.selected or "", version, torch.cuda or "", why),
        evidence=("toolkits.selected", "toolkits.selected_version", "torch.cuda"),
        fixes=_fixes(toolkits, torch, around, install) if why else (_nothing(),),
        severity=why.severity if why else None,
    )


def _headline(selected: str, version: str, cuda: str, why: Reason | None) -> str:
    if why is None:
        return say(
            "The toolkit at {selected} is CUDA {version}, but this PyTorch was built with CUDA "
            "{cuda}; this matters only if you compile something",
            selected=selected,
            version=version,
            cuda=cuda,
        )
    return say(
        "The toolkit at {selected} is CUDA {version}, but this PyTorch was built with CUDA {cuda}, "
        "and {reason}",
        selected=selected,
        version=version,
        cuda=cuda,
        reason=why.words.within(),
    )


def _nothing() -> Fix:
    return Fix(text=say("Nothing needs to be done unless you compile CUDA extensions here."))


def _fixes(
    toolkits: Toolkits, torch: TorchBuild, around: Surroundings, install: ToolkitFixes
) -> tuple[Fix, ...]:
    wanted = parse(torch.cuda) or (0,)
    fitting = [
        toolkit
        for toolkit in toolkits.toolkits or ()
        if toolkit.has_nvcc and toolkit.path and (parse(toolkit.version) or (0,))[0] == wanted[0]
    ]
    verify = "gpucheck --for build"
    point = tuple(
        Fix(
            text=say(
                "Build with the toolkit of CUDA {version} that is installed here.",
                version=toolkit.version,
            ),
            commands=around.set("CUDA_HOME", toolkit.path or ""),
            verify=verify,
        )
        for toolkit in fitting
    )
    return point or (install.of_torch(verify),)
