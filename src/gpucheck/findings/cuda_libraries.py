"""The CUDA libraries that PyTorch would load."""

from gpucheck.advice.cuda_libraries import CopyFixes, WheelFixes
from gpucheck.derived.loaded import keeps_out, needs_permission
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.libraries import LoadedLibrary, Loading, MissingLibrary, MissingVersion
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, say, say_many
from gpucheck.tables.packages import wheel_of_file

CUDA_LIBRARY_CONFLICT = Rule(
    "cuda-library-conflict",
    page="""\
A CUDA library that does not fit is loaded in place of the one that PyTorch was built with.

CUDA's libraries call functions of each other. When the loader takes an older copy of one of them,
``import torch`` fails: "undefined symbol: __nvJitLinkCreate_12_8, version libnvJitLink.so.12",
"undefined symbol: cudaGetDriverEntryPointByVersion, version libcudart.so.12".

Causes:
- LD_PRELOAD names another copy.
- The folder of a toolkit is in LD_LIBRARY_PATH, and the library that needs the copy has no search
  path of its own that takes priority.
- The wheel of one library was downgraded.
- A conda environment mixes CUDA releases.

When it is reported: a copy from elsewhere is not a fault by itself. PyTorch's wheels load most
libraries by their paths or have DT_RPATH, which takes priority over LD_LIBRARY_PATH, so a toolkit
there is mostly ignored. A copy of the same major release also works if it has every function that
is needed. gpucheck follows the loader's rules. For every library that would be loaded, it compares
the functions and versions that the library needs with those that the copies provide. Only a missing
one is an error. A CUDA runtime of another release that LD_PRELOAD puts before PyTorch's own is a
warning even if nothing is missing: every CUDA library of the process then calls a runtime that it
was not tested with. A missing version of the C or C++ library is reported as
system-library-too-old, mixed cuDNN files as cudnn-version-mismatch.

Fix: remove the foreign copy from the loader's search path, or install the release that PyTorch
pins.
""",
    title=say("a CUDA library of another release is loaded"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install", "cudnn-version-mismatch"),
)

_CUDNN = "nvidia-cudnn"

_WAYS = {
    "LD_PRELOAD": say("LD_PRELOAD loads this copy first"),
    "ld.so.preload": say("/etc/ld.so.preload loads this copy first"),
    "LD_LIBRARY_PATH": say("LD_LIBRARY_PATH puts this copy first"),
    "ld.so.cache": say("the system's loader configuration names this copy"),
    "default": say("this copy is in a folder of the system"),
}


@CUDA_LIBRARY_CONFLICT.check
def check_cuda_library_conflict(
    torch: TorchBuild, loading: Loading, advice: CopyFixes, wheels: WheelFixes
) -> Judgement:
    """Report copies of libraries that lack what other libraries need of them."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    libraries = known(loading.libraries, "loading.libraries")
    lacking = known(loading.symbol_versions_missing, "loading.symbol_versions_missing")
    found = [
        (at, library)
        for at, library in enumerate(lacking)
        if (wheel := wheel_of_file(library.library)) and (library.fatal or wheel != _CUDNN)
    ]
    found.sort(key=lambda numbered_library: numbered_library[1].fatal is False)
    if not found:
        return _other_runtime(libraries, torch, advice) or Fine(
            say("every library that would be loaded has the functions that the others need")
        )
    at, first = found[0]
    copies = [("libraries", libraries), ("runtime_opened", loading.runtime_opened or [])]
    copy, fact = next(
        (
            (other_copy, f"loading.{field}.{number}")
            for field, several in copies
            for number, other_copy in enumerate(several)
            if other_copy.path == first.path
        ),
        (None, ""),
    )
    evidence = [f"loading.symbol_versions_missing.{at}"]
    if copy is None:
        fix = Fix(
            text=say(
                "Replace {path} with the release that this PyTorch was built with.", path=first.path
            )
        )
        return Hit(headline=_headline(first, None, wheels), evidence=tuple(evidence), fixes=(fix,))
    return Hit(
        headline=_headline(first, copy, wheels),
        evidence=(*evidence, fact),
        fixes=(advice.instead_of(copy),),
    )


def _other_runtime(
    libraries: list[LoadedLibrary], torch: TorchBuild, advice: CopyFixes
) -> Hit | None:
    """Report a CUDA runtime of another release that is loaded first because somebody said so.

    Raises:
        UnknownFactError: the release of either is unknown.
    """
    for at, library in enumerate(libraries):
        forced = library.found_via in ("LD_PRELOAD", "ld.so.preload")
        if library.library != "cudart" or not forced or library.owner in ("wheel", "torch"):
            continue
        fact = f"loading.libraries.{at}.version"
        version, cuda = known(library.version, fact), known(torch.cuda, "torch.cuda")
        if "." not in version:
            raise UnknownFactError(fact, say("only its major version is known"))
        major, other = cuda.split(".")[0], version.split(".")[0]
        if major != other or version.split(".")[:2] == cuda.split(".")[:2]:
            continue  # a runtime of another major has another SONAME, and takes nobody's place
        way = _WAYS[library.found_via or ""]
        return Hit(
            headline=say(
                "{soname} {version} ({path}) takes the place of the runtime of PyTorch's own CUDA "
                "{cuda}: {way}. It has every function that is needed, but PyTorch was not tested "
                "with it",
                soname=library.soname,
                version=version,
                path=library.path,
                way=way,
                cuda=cuda,
            ),
            evidence=(f"loading.libraries.{at}", "torch.cuda"),
            fixes=(advice.instead_of(library),),
            severity=Severity.WARNING,
        )
    return None


def _way(copy: LoadedLibrary, wheels: WheelFixes) -> Sentence | None:
    """Return in words why this copy is loaded; None if it is the expected one."""
    if copy.found_via == "LD_LIBRARY_PATH" and copy.passed_over == []:
        wheel = wheels.pinned(wheel_of_file(copy.soname) or " ")
        if wheel and wheels.is_absent(wheel):
            return say(
                "{wheel} is not installed, and LD_LIBRARY_PATH leads to this copy", wheel=wheel
            )
        return say("LD_LIBRARY_PATH leads to this copy, and the loader finds no other")
    return _WAYS.get(copy.found_via or "")


def _headline(lack: MissingVersion, copy: LoadedLibrary | None, wheels: WheelFixes) -> Sentence:
    version = copy.version if copy is not None else None
    # "12" of libcudart.so.12 is no release: the name has said it already
    library = f"{lack.library} {version}" if version and "." in version else lack.library
    lacking = say(
        "{library} ({path}) lacks {version}, which {needed_by} needs",
        library=library,
        path=lack.path,
        version=lack.version,
        needed_by=lack.needed_by,
    )
    way = _way(copy, wheels) if copy is not None else None
    if way is not None:
        lacking = say("{lacking}; {way}", lacking=lacking, way=way)
    if lack.fatal:
        return say("import torch fails: {lacking}", lacking=lacking)
    return say(
        "{needed_by} fails when it is used: {lacking}", needed_by=lack.needed_by, lacking=lacking
    )


CUDA_LIBRARY_MISSING = Rule(
    "cuda-library-missing",
    page="""\
PyTorch needs a CUDA library that the dynamic loader does not find.

Symptoms: "ImportError: libcusparse.so.12: cannot open shared object file: No such file or
directory", "OSError: libcublas.so.12: cannot open shared object file" or "ValueError:
libcudart.so.*[0-9] not found in the system path" from ``import torch``.

Causes:
- An nvidia-* wheel was removed, or pip removed its files along with another wheel that owned them.
- An installation was interrupted.
- PyTorch was built against a toolkit that has since been removed or is not in the loader's search
  path.

When it is reported: only what the loader would do counts. It does not matter whether a library
comes from a wheel, conda, a toolkit or the system. A missing library that only a profiler opens is
not a fault. cuDNN and NCCL have findings of their own, and libcuda belongs to the driver.

Fix: reinstall the wheel that this PyTorch pins; the command names it. If the library exists but its
permissions keep this user out, the command changes them.
""",
    title=say("a CUDA library cannot be found"),
    severity=Severity.ERROR,
    family="libraries",
    suppressed_by=("torch-missing", "torch-mixed-install"),
)

_OF_OTHERS = ("nvidia-cudnn", "nvidia-nccl")


@CUDA_LIBRARY_MISSING.check
def check_cuda_library_missing(
    torch: TorchBuild, loading: Loading, advice: WheelFixes
) -> Judgement:
    """Report CUDA libraries that the loader does not find, the fatal ones first."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    missing = known(loading.missing, "loading.missing")
    found = [
        (at, library, wheel)
        for at, library in enumerate(missing)
        if (library.why == "not found" or keeps_out(library))
        and (wheel := wheel_of_file(library.soname)) is not None
        and wheel not in _OF_OTHERS
    ]
    if not found:
        return Fine(say("the loader finds every CUDA library that this torch needs"))
    found.sort(key=lambda lack: lack[1].fatal is False)
    if keeps_out(found[0][1]):
        return _unreadable(
            [(at, library) for at, library, _ in found if keeps_out(library)], advice
        )
    names = list(dict.fromkeys(library.soname for _, library, _ in found))
    wheels = dict.fromkeys(wheel for _, _, wheel in found)
    pinned = [project for wheel in wheels if (project := advice.pinned(wheel))]
    return Hit(
        headline=_cuda_library_missing_headline(found[0][1], names),
        evidence=tuple(f"loading.missing.{at}" for at, _, _ in found),
        fixes=(advice.reinstall(pinned) if pinned else _elsewhere(names[0], torch),),
    )


def _unreadable(found: list[tuple[int, MissingLibrary]], advice: WheelFixes) -> Hit:
    first = found[0][1]
    fixes = {
        library.path: advice.readable(library.path or "", library.soname) for _, library in found
    }
    commands = dict.fromkeys(command for fix in fixes.values() for command in fix.commands)
    fix = fixes[first.path]
    return Hit(
        headline=needs_permission(first.needed_by, first),
        evidence=tuple(f"loading.missing.{at}" for at, _ in found),
        fixes=(Fix(text=fix.text, commands=tuple(commands), verify=fix.verify),),
    )


def _cuda_library_missing_headline(first: MissingLibrary, names: list[str]) -> Sentence:
    words = {"soname": names[0], "needed_by": first.needed_by}
    more = len(names) - 1
    if first.fatal and not more:
        return say(
            "import torch fails: the loader does not find {soname}, which {needed_by} needs",
            **words,
        )
    if first.fatal:
        return say_many(
            more,
            "import torch fails: the loader does not find {soname}, which {needed_by} needs, nor "
            "{count} more library",
            "import torch fails: the loader does not find {soname}, which {needed_by} needs, nor "
            "{count} more libraries",
            **words,
        )
    if not more:
        return say(
            "The loader does not find {soname}: {needed_by} needs it and fails when it is used",
            **words,
        )
    return say_many(
        more,
        "The loader does not find {soname}, nor {count} more library: {needed_by} needs it and "
        "fails when it is used",
        "The loader does not find {soname}, nor {count} more libraries: {needed_by} needs it and "
        "fails when it is used",
        **words,
    )


def _elsewhere(soname: str, torch: TorchBuild) -> Fix:
    if torch.installer == "conda":
        return Fix(
            text=say(
                "Reinstall the conda package that has {soname} in this environment.", soname=soname
            )
        )
    if not torch.cuda:
        return Fix(
            text=say(
                "This PyTorch pins no wheels: it needs {soname} of the CUDA that it was built "
                "with, from a toolkit on the loader's path. Install that toolkit, or a PyTorch "
                "from its wheels.",
                soname=soname,
            )
        )
    return Fix(
        text=say(
            "This PyTorch pins no wheels: it needs {soname} of CUDA {cuda}, which it was built "
            "with, from a toolkit on the loader's path. Install that toolkit, or a PyTorch from "
            "its wheels.",
            soname=soname,
            cuda=torch.cuda,
        )
    )
