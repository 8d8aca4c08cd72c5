"""The PyTorch build that the user describes, with the facts that follow from its release."""

from gpucheck.advice.offers import CHANNEL
from gpucheck.describe.keys import Given, GivenError
from gpucheck.facts.base import Draft, Drafts
from gpucheck.facts.libraries import Extension, Extensions
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, Packages, TorchBuild
from gpucheck.language import in_series, say
from gpucheck.tables import Tables
from gpucheck.tables.cuda import CudaSonames
from gpucheck.tables.torch import CondaBuilds, TorchBuilds, TorchReleases
from gpucheck.tables.versions import minor

_INSTALLERS = {"conda-forge": "conda", "conda": "conda", "pytorch-channel": "conda", "source": ""}
_OF_PYTORCH = ("pypi", "pytorch-index")
# Local versions of torch's builds (+cpu); CUDA's are looked at before.
_OTHERS = ("rocm", "xpu", "cpu")

_EXTENSION_KEYS = (
    "extension.name",
    "extension.built_with_cuda",
    "extension.code",
    "extension.cubins",
)
_OF_CUDA_BUILDS = "libtorch_cuda.so"


def describe_torch(given: Given, drafts: Drafts, tables: Tables) -> None:
    """Fill the section ``torch``.

    Raises:
        GivenError: the build that ``cuda`` names is not the one that the version names.
    """
    draft = drafts.of(TorchBuild)
    if "cudnn_compiled" in given:
        cudnn = given["cudnn_compiled"]
        draft.fill("cudnn", cudnn[0] if cudnn else "", _source(given, "cudnn_compiled"))
        if cudnn:
            draft.fill("cudnn_compiled", cudnn[0], _source(given, "cudnn_compiled"))
    if given.get("nccl") == []:
        draft.fill("nccl", "", _source(given, "nccl"))
    if "torch" not in given and "cuda" not in given:
        return
    if given.get("torch") == []:
        draft.fill("installed", value=False, source=_source(given, "torch"))
        # Somebody looked, so there is an interpreter that answered.
        drafts.of(Interpreter).fill("status", "ok", _source(given, "torch"))
        return
    _Build(given, drafts, draft, tables).describe()


def _source(given: Given, key: str) -> str:
    return say("as given: {key}={given}", key=key, given=",".join(given[key]) or "none")


class _Build:
    """One build: its source, its release and its platform."""

    def __init__(self, given: Given, drafts: Drafts, draft: Draft, tables: Tables) -> None:
        self._given = given
        self._drafts = drafts
        self._draft = draft
        self._tables = tables
        self._version = given["torch"][0] if given.get("torch") else ""
        self._where = given["torch_source"][0] if given.get("torch_source") else "pypi"
        self._platform = self._wheel_platform()

    def describe(self) -> None:
        draft = self._draft
        key = "torch" if self._version else "cuda"
        draft.fill("installed", value=True, source=_source(self._given, key))
        if self._version:
            draft.fill("version", self._version, _source(self._given, "torch"))
            draft.fill("metadata_version", self._version, _source(self._given, "torch"))
        source_given = self._given.get("torch_source")
        installer = _source(self._given, "torch_source") if source_given else say("assumed: PyPI")
        draft.fill("installer", _INSTALLERS.get(self._where, "pip"), installer)
        if self._where == CHANNEL:
            line = f"pytorch {self._version} {CHANNEL}"
            self._drafts.of(Packages).fill("conda_packages", [line], installer)
        self._built_for()
        if draft.fields.get("built_for") == "cuda" and draft.fields.get("cuda"):
            self._content()
        if self._version and self._where == "pypi":
            self._wheel_tag()

    def _wheel_platform(self) -> str:
        system = self._drafts.of(System).fields
        on_arm = system["os"] == "windows" and system.get("machine") in ("aarch64", "arm64")
        if system["os"] == "linux" or on_arm:  # PyPI has no wheel for Windows on Arm
            return f"{system['os']}_{system['machine']}"
        return str(system["os"])

    def _built_for(self) -> None:
        local = self._version.partition("+")[2]
        by_local = self._by_local(local)
        if "cuda" in self._given:
            cuda = self._given["cuda"]
            by_key = ("cuda", cuda[0]) if cuda else ("cpu", "")
            if by_local is not None and by_local != by_key:
                raise GivenError(
                    say(
                        "torch={version} and cuda={by_key} name different builds.",
                        version=self._version,
                        by_key=by_key[1] or "none",
                    )
                )
            self._build(*by_key, _source(self._given, "cuda"))
        elif by_local is not None:
            self._build(*by_local, _source(self._given, "torch"))
        elif self._platform == "macos":
            self._build("cpu", "", say("macOS has no CUDA"))
        elif self._where == "pypi" and not local:
            self._default()

    def _by_local(self, local: str) -> tuple[str, str] | None:
        """Return the meaning of the local part of the version: ``cu124``, ``cpu``, ``rocm6.2``."""
        word = local.partition(".")[0]
        if (cuda := minor(word)) is not None and word.startswith("cu"):
            return "cuda", cuda
        return next(((platform, "") for platform in _OTHERS if local.startswith(platform)), None)

    def _default(self) -> None:
        build = self._tables.get(TorchReleases).default_build(self._version, self._platform)
        if build is None:
            why = say(
                "the tables do not have torch {version} of PyPI for {platform}",
                version=self._version,
                platform=self._platform,
            )
            for field in ("built_for", "cuda", "arch_list"):
                self._draft.unknown(field, why)
            self._drafts.miss("torch.built_for", why)
            return
        source = say(
            "the tables: PyPI's build of torch {version} for {platform}",
            version=self._version,
            platform=self._platform,
        )
        cuda = minor(build)
        self._build("cuda" if cuda else "cpu", cuda or "", source)

    def _build(self, kind: str, cuda: str, source: str) -> None:
        self._draft.fill("built_for", kind, source)
        self._draft.fill("cuda", cuda, source)
        if kind != "cuda":
            self._draft.fill("arch_list", [], source)

    def _content(self) -> None:
        """Note what the tables have about an official PyTorch wheel, or a build of conda-forge."""
        if self._where == CHANNEL and self._version:
            self._content_of_conda()
        if self._where not in _OF_PYTORCH or not self._version:
            return
        draft, cuda = self._draft, self._draft.fields["cuda"]
        row = self._tables.get(TorchBuilds).build(self._version, cuda, self._platform)
        name = say(
            "torch {version} built for CUDA {cuda} on {platform}",
            version=self._version,
            cuda=cuda,
            platform=self._platform,
        )
        jetson = bool(self._drafts.of(System).fields.get("jetson"))
        if row is None or not row.arch_list:
            draft.unknown(
                "arch_list",
                say("the code of its build for {platform} was not given", platform=self._platform),
            )
        if jetson and cuda and (row is None or not row.confirmed):
            why = say("the tables have no confirmed list of the code in {build}", build=name)
            draft.unknown("arch_list", why)
            self._drafts.miss("torch.arch_list", why)
        if row is None:
            return
        source = say("the tables: {name}", name=name)
        if row.cudnn:
            draft.fill("cudnn", row.cudnn, source)
        if row.nccl:
            draft.fill("nccl", row.nccl, source)
        if jetson and row.confirmed:
            # On a Jetson board, server wheels are judged by their content.
            draft.fill("arch_list", list(row.arch_list), source)

    def _content_of_conda(self) -> None:
        draft = self._draft
        row = self._tables.get(CondaBuilds).build(
            self._version, draft.fields["cuda"], self._platform
        )
        if row is not None:
            source = say(
                "the tables: conda-forge's build of torch {version} for CUDA {cuda} on {platform}",
                version=self._version,
                cuda=row.cuda,
                platform=self._platform,
            )
            draft.fill("arch_list", [*row.arch_list, *row.ptx], source)

    def _wheel_tag(self) -> None:
        if self._platform != "linux_x86_64":
            return
        release = self._tables.get(TorchReleases).release(self._version)
        if release is not None and release.platform_tag and not self._version.partition("+")[2]:
            tag = f"cp3-cp3-{release.platform_tag}"
            self._draft.fill(
                "wheel_tag",
                tag,
                say("the tables: PyPI's wheel of torch {torch}", torch=release.torch),
            )


def describe_extension(given: Given, drafts: Drafts, tables: Tables) -> None:
    """Fill the section ``extensions`` with the one extension that was given."""
    spoken_of = [key for key in _EXTENSION_KEYS if key in given]
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
        _cuda_of_extension(given, draft, drafts, tables)
    codes = [*given.get("extension.code", []), *given.get("extension.cubins", [])]
    if "extension.code" in given or "extension.cubins" in given:
        draft.fill("codes", list(dict.fromkeys(codes)), source)
    drafts.of(Extensions).fill("extensions", [draft.build(Extension)], source)


def _cuda_of_extension(given: Given, draft: Draft, drafts: Drafts, tables: Tables) -> None:
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
