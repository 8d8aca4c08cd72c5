"""The GPU code in the installed torch, and the visible GPUs on which it runs."""

from collections import Counter
from typing import Literal

import msgspec

from gpucheck.derived import Derived, DriverState, Gpu, Gpus
from gpucheck.derived.wheels import wheel_platform
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import System
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import Sentence, in_series, say, say_many
from gpucheck.tables.compilers import Compilers, CubinRules, Runs, ToolkitTargets
from gpucheck.tables.cudnn import CudnnSupport
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.torch import BuildRow, TorchBuilds
from gpucheck.tables.versions import at_least, capability_numbers, numbers, parse

Trouble = Literal["too-new", "too-old", "ptx-refused", "cudnn", ""]


class CodeOnGpu(msgspec.Struct, frozen=True, kw_only=True):
    """How the build's code runs on one GPU: ``trouble`` is "" if it runs, None if unknown.

    ``ptx-refused``: only PTX would fit, and the driver is older than the CUDA that made it.
    ``cudnn``: torch's own code runs, but its cuDNN has dropped this GPU.
    """

    gpu: Gpu
    trouble: Trouble | None


class TorchCode(Derived):
    """The device code in the installed CUDA build of torch."""

    def __init__(  # noqa: PLR0913, PLR0917  # torch, the machine and the tables
        self,
        torch: TorchBuild,
        system: System,
        gpus: Gpus,
        driver: DriverState,
        builds: TorchBuilds,
        rules: CubinRules,
        cudnn: CudnnSupport,
        targets: ToolkitTargets,
        architectures: GpuArchitectures,
    ) -> None:
        self._torch = torch
        self._system = system
        self._gpus = gpus
        self._driver = driver
        self._builds = builds
        self._rules = rules
        self._cudnn = cudnn
        self._compilers = Compilers(targets, rules, architectures)

    def nothing_to_judge(self) -> str:
        """Return why there is no device code to judge, "" if there is.

        Raises:
            UnknownFactError: the kind of the torch build, or whether there is a GPU, is unknown.
        """
        if self._torch.installed is False:
            return say("torch is not installed")
        if known(self._torch.built_for, "torch.built_for") != "cuda":
            return say("this torch was not built for CUDA")
        return "" if self._gpus.present() else say("there is no NVIDIA GPU")

    def codes(self) -> tuple[str, ...]:
        """Return the codes in the build: as read from it, otherwise from the table of builds.

        Raises:
            UnknownFactError: neither has them.
        """
        return tuple(self._torch.arch_list or ()) or self._from_table()

    def other_cuda_for(self, capability: str) -> str:
        """Return the newest CUDA of which this release has a build for a GPU that this lacks.

        "" if this build has code for it, if no build has, and if that is unknown.
        """
        platform = wheel_platform(self._system)
        try:
            codes = self.codes()
        except UnknownFactError:
            return ""
        if platform is None or self._rules.covers(codes, capability, None) is not Runs.NO:
            return ""
        version = self._torch.version or ""
        fitting = [
            numbers(row.cuda)
            for row in self._builds.of_release(version, platform)
            if self._builds.available(version, row.cuda, platform)
            and self._rules.covers(row.arch_list, capability, None) is Runs.CUBIN
        ]
        return ".".join(map(str, max(fitting))) if fitting else ""

    def unified_for(self, gpu: Gpu) -> tuple[str, str]:
        """Return the code in the build that runs on a Jetson's GPU only from some CUDA on, and it.

        ``("sm_80", "13.2")`` on an Orin. Two empty texts if there is no such code.
        """
        first, capability = self._rules.unified_from, gpu.compute_capability
        if first is None or capability is None:
            return "", ""
        for code in self.codes():
            whatever, unified = (self._rules.how(code, capability, cuda) for cuda in (None, first))
            if unified is Runs.CUBIN and whatever is not Runs.CUBIN:
                return code, first
        return "", ""

    def without_ptx(self) -> list[Gpu]:
        """Return the visible GPUs for which the build has no PTX that a driver could compile.

        Raises:
            UnknownFactError: the codes are unknown, or a GPU's capability beside PTX.
        """
        ptx = [code for code in self.codes() if code.startswith("compute_")]
        gpus = [judged.gpu for judged in self.on_gpus()]
        return [gpu for gpu in gpus if not ptx or not self._compiles(ptx, gpu)]

    def _compiles(self, ptx: list[str], gpu: Gpu) -> bool:
        capability = known(gpu.compute_capability, gpu.facts[0])
        return self._rules.covers(ptx, capability, None) is Runs.PTX

    def facts(self) -> tuple[str, ...]:
        """Return the paths of the facts that contain the codes."""
        if self._torch.arch_list:
            return ("torch.version", "torch.arch_list")
        return ("torch.version", "torch.cuda")

    def left_out(self, gpu: Gpu) -> bool:
        """Whether the build has code for older GPUs than this one, so it did not drop this one."""
        device = capability_numbers(gpu.compute_capability)
        built = capabilities_of(tuple(self._torch.arch_list or ()))
        return device is not None and bool(built) and min(built) < device

    def driver_facts(self) -> tuple[str, ...]:
        """Return the path of the fact that shows which CUDA the driver supports."""
        return (self._driver.cuda_fact(),)

    def on_gpus(self) -> list[CodeOnGpu]:
        """Judge each GPU that a CUDA program would see.

        If these GPUs cannot be determined, all GPUs are judged, and the result counts only if it is
        the same for every one.

        Raises:
            UnknownFactError: the GPUs or the codes are unknown, or the results differ.
        """
        try:
            gpus, unclear = self._gpus.visible(), None
        except UnknownFactError as unknown:
            gpus, unclear = self._gpus.all(), unknown
        judged = [CodeOnGpu(gpu=gpu, trouble=self._trouble(gpu)) for gpu in gpus]
        if unclear is not None and len({code_on_gpu.trouble for code_on_gpu in judged}) != 1:
            raise unclear
        return judged

    def unknown_gpu(self, judged: list[CodeOnGpu]) -> UnknownFactError | None:
        """Return the error that names the GPU without an answer, None if there is none."""
        gpu = next((code_on_gpu.gpu for code_on_gpu in judged if code_on_gpu.trouble is None), None)
        if gpu is None:
            return None
        if gpu.compute_capability is None:
            why = say("the compute capability of {label} is unknown", label=gpu.label)
            return UnknownFactError(gpu.facts[0], why)
        why = say(
            "whether this build has code for {label} ({compute_capability}) is unknown",
            label=gpu.label,
            compute_capability=gpu.compute_capability,
        )
        return UnknownFactError(self.facts()[-1], why)

    def _trouble(self, gpu: Gpu) -> Trouble | None:
        device = capability_numbers(gpu.compute_capability)
        if gpu.compute_capability is None or device is None:
            return None
        if beyond := self._beyond_compiler(gpu.compute_capability):
            return beyond
        codes = self.codes()
        runs = self._runs(codes, gpu.compute_capability)
        if runs is Runs.CUBIN:
            return "cudnn" if self._cudnn_dropped(gpu.compute_capability) else ""
        if runs is Runs.PTX:
            return self._by_ptx()
        if runs is None:
            return None
        trouble: Trouble = "too-old" if _newest(codes) > device else "too-new"
        # A table entry about a build that nobody has opened proves nothing against a GPU.
        return trouble if self._torch.arch_list or self._is_confirmed() else None

    def _runs(self, codes: tuple[str, ...], capability: str) -> Runs | None:
        """Return how the codes run; those for servers count on a Jetson from CUDA 13.2 on.

        Both the build and the board's driver have to be of that CUDA. Without the driver's it is
        unknown.
        """
        sure = self._rules.surely_covers(codes, capability, self._torch.cuda)
        if sure is not None or not self._driver.reports_cuda():
            return sure
        built, driven = self._torch.cuda, self._driver.cuda()
        older = min((built, driven), key=lambda cuda: parse(cuda) or ())
        return self._rules.covers(codes, capability, older)

    def _beyond_compiler(self, capability: str) -> Trouble | None:
        """Return the trouble if the compiler of the build's CUDA makes no code for the GPU.

        Only a build whose code was not read is judged so. A newer GPU could run PTX: the wheels of
        PyTorch have none that torch counts on (it says that it does not support the GPU), builds of
        others do.

        Raises:
            UnknownFactError: another's build on a newer GPU.
        """
        if self._torch.arch_list or not self._torch.cuda:
            return None
        beyond = self._compilers.beyond(self._torch.cuda, capability)
        if beyond == "too-new" and not self._is_official(self._torch.version or ""):
            why = say(
                "the compiler of CUDA {cuda} makes no code for compute capability {capability}; "
                "whether this build has PTX instead is unknown",
                cuda=self._torch.cuda,
                capability=capability,
            )
            raise UnknownFactError("torch.cuda", why)
        return beyond

    def _by_ptx(self) -> Trouble | None:
        if not self._torch.arch_list:
            return None  # the tables know PTX only from the build scripts, not from the wheels
        if not self._driver.reports_cuda():
            return ""
        speaks, built = parse(self._driver.cuda()), parse(self._torch.cuda)
        if speaks is None or built is None:
            return None
        return "" if at_least(speaks, built[:2]) else "ptx-refused"

    def _cudnn_dropped(self, capability: str) -> bool:
        if not self._torch.cudnn or not self._torch.cuda:
            return False
        major = self._torch.cuda.partition(".")[0]
        return self._cudnn.supports(self._torch.cudnn, major, capability) is False

    def _from_table(self) -> tuple[str, ...]:
        version = known(self._torch.version, "torch.version")
        cuda = known(self._torch.cuda, "torch.cuda")
        platform = self._platform(version)
        codes = None
        if platform is not None and self._is_official(version):
            codes = self._builds.arch_list(version, cuda, platform)
        if codes is None:
            why = self._torch.problem("arch_list") or say("not read from this build")
            raise UnknownFactError(
                "torch.arch_list",
                say("{why}, and the tables do not have torch {version}", why=why, version=version),
            )
        return codes

    def _is_official(self, version: str) -> bool:
        """Whether this can be one of PyTorch's own wheels; the tables contain no others."""
        local = version.partition("+")[2]
        return self._torch.installer not in ("conda", "") and local[:2] in ("", "cu")

    def _platform(self, version: str) -> str | None:
        """Return the platform of the tables whose wheel this can be.

        On a Jetson only PyTorch's index calls a wheel 2.11.0+cu130; those for boards have no such
        name.
        """
        if self._system.jetson and version.partition("+")[2][:2] == "cu":
            return "linux_aarch64"
        return wheel_platform(self._system)

    def build(self) -> BuildRow | None:
        """Return the row of the build that is installed, None if the tables have none."""
        platform = self._platform(self._torch.version or "")
        if platform is None or not self._torch.version or not self._torch.cuda:
            return None
        return self._builds.build(self._torch.version, self._torch.cuda, platform)

    def _is_confirmed(self) -> bool:
        row = self.build()
        return row is not None and row.confirmed


def build_name(torch: TorchBuild) -> Sentence:
    """Return ``PyTorch 2.9.1+cu130 (CUDA 13.0)``, as far as it is known."""
    if not torch.version:
        return say("this build of PyTorch")
    if not torch.cuda:
        return say("PyTorch {version}", version=torch.version)
    return say("PyTorch {version} (CUDA {cuda})", version=torch.version, cuda=torch.cuda)


def has_code(gpus: list[Gpu]) -> Sentence:
    """Return why to install another build: what runs on these GPUs."""
    if len(gpus) > 1:
        return say("it has code for these GPUs")
    return say("it has code for this GPU")


def some_of(gpus: list[Gpu], judged: list[CodeOnGpu]) -> str:
    """Return the names of these GPUs with their capabilities, and which others work.

    If they are all of the visible GPUs, the models and their numbers say it. A sentence ends with
    it.
    """
    if len(judged) > 1 and len(gpus) == len(judged) and all(gpu.product for gpu in gpus):
        return _models(gpus)
    names = in_series(
        [
            say(
                "{gpu}, compute capability {capability}",
                gpu=gpu.label,
                capability=gpu.compute_capability,
            )
            for gpu in gpus
        ]
    )
    if len(judged) == 1:
        return names
    working = [code_on_gpu.gpu.label for code_on_gpu in judged if code_on_gpu.trouble == ""]
    if not working:
        return say(
            "{count} of {all} visible GPUs ({gpus})", count=len(gpus), all=len(judged), gpus=names
        )
    return say_many(
        len(working),
        "{gpus}; {working} still works",
        "{gpus}; {working} still work",
        gpus=names,
        working=in_series(working),
    )


def _models(gpus: list[Gpu]) -> str:
    """Return how many of each model there are: ``2 x Tesla V100, compute capability 7.0``."""
    kinds = Counter((gpu.product, gpu.compute_capability) for gpu in gpus)
    return in_series(
        [
            say(
                "{count} x {gpu}, compute capability {capability}",
                count=count,
                gpu=product,
                capability=capability,
            )
            for (product, capability), count in kinds.items()
        ]
    )


def _newest(codes: tuple[str, ...]) -> tuple[int, int]:
    """Return the highest capability that any of the codes was compiled for."""
    return max(capabilities_of(codes), default=(0, 0))


def capabilities_of(codes: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the capabilities that codes such as ``sm_90a`` were compiled for."""
    digits = [code.rpartition("_")[2].rstrip("af") for code in codes]
    numbers = [
        (whole_number(digits_of_code[:-1]), whole_number(digits_of_code[-1:]))
        for digits_of_code in digits
    ]
    return [(major, minor) for major, minor in numbers if major is not None and minor is not None]
