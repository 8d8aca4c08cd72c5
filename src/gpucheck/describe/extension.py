"""The compiled extension that the user describes, after the torch has been described."""

from gpucheck.describe.keys import Given
from gpucheck.facts.drafts import Draft, Drafts
from gpucheck.facts.extensions import Extension, Extensions
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.language import in_series, say
from gpucheck.tables import Tables
from gpucheck.tables.cuda_sonames import CudaSonames

_KEYS = ("extension.name", "extension.built_with_cuda", "extension.code", "extension.cubins")
_OF_CUDA_BUILDS = "libtorch_cuda.so"


def describe_extension(given: Given, drafts: Drafts, tables: Tables) -> None:
    """Fill the section ``extensions`` with the one extension that was given."""
    spoken_of = [key for key in _KEYS if key in given]
    if not spoken_of:
        return
    source = in_series(
        [
            say("as given: {key}={given}", key=key, given=",".join(given[key]) or "none")
            for key in spoken_of
        ]
    )
    if given.get("extension.name") == []:
        drafts.of(Extensions).fill("extensions", [], source)
        return
    draft = Draft()
    name = given["extension.name"][0] if given.get("extension.name") else "the extension"
    draft.fill("package", name.lower().replace("_", "-"), source)
    draft.fill("version", "", say("not given"))
    draft.fill("needs_torch", value=True, source=say("assumed"))
    if given.get("extension.built_with_cuda"):
        _cuda(given, draft, drafts, tables)
    codes = [*given.get("extension.code", []), *given.get("extension.cubins", [])]
    if "extension.code" in given or "extension.cubins" in given:
        draft.fill("codes", list(dict.fromkeys(codes)), source)
    drafts.of(Extensions).fill("extensions", [draft.build(Extension)], source)


def _cuda(given: Given, draft: Draft, drafts: Drafts, tables: Tables) -> None:
    """Note which CUDA it needs, and whether torch or a given package provides it."""
    version = given["extension.built_with_cuda"][0]
    key = "extension.built_with_cuda"
    source = say("as given: {key}={given}", key=key, given=version)
    major = version.partition(".")[0]
    draft.fill("cuda", major, source)
    draft.fill("built_with", version, source)
    torch = drafts.of(TorchBuild).fields
    if torch.get("built_for") == "cpu":
        draft.fill("missing_libraries", [_OF_CUDA_BUILDS], say("a CPU build has no such library"))
        return
    here = str(torch.get("cuda") or "").partition(".")[0]
    runtimes = (f"nvidia-cuda-runtime-cu{major}==", f"nvidia-cuda-runtime=={major}.")
    brought = any(
        requirement.startswith(runtimes) for requirement in given.get("nvidia_packages", [])
    )
    soname = tables.get(CudaSonames).soname("cudart", major)
    if here and (here == major or brought):
        draft.fill("missing_libraries", [], source)
    elif here and soname is not None:
        draft.fill(
            "missing_libraries",
            [soname],
            say("torch brings the libraries of CUDA {here}", here=here),
        )
