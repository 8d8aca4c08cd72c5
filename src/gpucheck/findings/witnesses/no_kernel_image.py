"""A self-test of torch that found no code for a GPU, although the known build should have it."""

import msgspec

from gpucheck.advice import TorchFixes
from gpucheck.derived.torch_code import CodeOnGpu, TorchCode, capabilities_of
from gpucheck.facts import UnknownFactError
from gpucheck.facts.base import Derived
from gpucheck.facts.claims import Confidence, Fix, or_else
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Fine, Hit
from gpucheck.findings.witnesses.selftest_says import OTHER_RUNTIMES, SelfTestSays, repeated
from gpucheck.language import say
from gpucheck.tables.versions import capability_numbers

_TOO_NEW, _TOO_OLD = "gpu-too-new-for-torch", "gpu-too-old-for-torch"
_BUILDS_ITS_OWN = ("jit", *OTHER_RUNTIMES)
"""Tests whose code is not torch's: if code is missing there, torch is not the cause."""
_CPU = "cpu"


class _Refused(msgspec.Struct, frozen=True):
    """A self-test that ended with "no kernel image", and the GPU as torch sees it."""

    path: str
    result: SelfTest
    device_name: str
    compute_capability: str


class NoKernelImage(Derived):
    """The first self-test on a GPU that ended with "no kernel image is available"."""

    def __init__(self, tests: SelfTests, says: SelfTestSays, code: TorchCode) -> None:
        self._tests = tests
        self._says = says
        self._code = code

    def hit(self, slug: str, advice: TorchFixes) -> Hit | None:
        """Return the finding for one of the two rules; None when the other one fits, or neither.

        If the GPU is within the range of the build, both are possible: the code of one library or
        operator was left out.
        """
        refused = self._refused()
        if refused is None or self._explained():
            return None
        fits = self._fits(refused.compute_capability)
        if fits not in (slug, ""):
            return None
        again = repeated(refused.result)
        fix = advice.install(say("it has code for this GPU"))
        other = _TOO_OLD if slug == _TOO_NEW else _TOO_NEW
        codes = self._codes()
        look = Fix(
            text=say(
                "Find out which operator fails, and whether another PyTorch was built for this GPU."
            ),
            commands=(f"{again} --format json", "gpucheck recommend"),
            verify=again,
        )
        return Hit(
            headline=_headline(refused, fits, codes, f"{slug}, {other}"),
            evidence=(f"{refused.path}.detail", *(self._code.facts() if codes else ())),
            fixes=(look,) if fix is None else (fix, look) if fits else (look, or_else(fix)),
            confidence=Confidence.LIKELY if fits else Confidence.POSSIBLE,
            refutable=False,
        )

    def or_the_code(self, slug: str, advice: TorchFixes) -> tuple[Hit | None, list[CodeOnGpu]]:
        """Return what a self-test says, and what torch's code does; [] if only the test knows.

        Raises:
            UnknownFactError: neither is known.
        """
        seen = self.hit(slug, advice)
        try:
            return seen, self._code.on_gpus()
        except UnknownFactError:
            if seen is None:
                raise
            return seen, []

    def unless_unknown(self, judged: list[CodeOnGpu], fine: Fine) -> Fine:
        """Return that all is fine.

        Raises:
            UnknownFactError: it is not known of some GPU.
        """
        unknown = self._code.unknown_gpu(judged)
        if unknown is not None:
            raise unknown
        return fine

    def _refused(self) -> _Refused | None:
        for path, result in self._tests.wrong():
            if result.name in _BUILDS_ITS_OWN or result.device == _CPU:
                continue
            is_of_cuda = self._says.code(result) is not None
            if is_of_cuda and _TOO_NEW in self._says.stands_for(result):
                name, capability = self._seen(result.device)
                return _Refused(path, result, name, capability)
        return None

    def _seen(self, device: str) -> tuple[str, str]:
        """Return torch's name of a device, and its compute capability; "" if not reported."""
        for _path, first in self._tests.of("import-torch"):
            seen = first.data.get("devices")
            for device_data in seen if isinstance(seen, list) else ():
                if isinstance(device_data, dict) and device_data.get("device") == device:
                    return str(device_data.get("name") or ""), str(
                        device_data.get("compute_capability") or ""
                    )
        return "", ""

    def _fits(self, capability: str) -> str:
        """Return the slug that the list of the build's codes suggests, "" for neither."""
        device, built = capability_numbers(capability), capabilities_of(self._codes())
        if device is None or not built:
            return ""
        if any(built_for[0] == device[0] and built_for <= device for built_for in built):
            return ""  # code of a lower minor version runs as well
        if device > max(built):
            return _TOO_NEW
        return _TOO_OLD if device < min(built) else ""

    def _explained(self) -> bool:
        """Whether the known facts of the build already show for which GPU it has no code."""
        try:
            return any(judged_gpu.trouble for judged_gpu in self._code.on_gpus())
        except UnknownFactError:
            return False

    def _codes(self) -> tuple[str, ...]:
        try:
            return self._code.codes()
        except UnknownFactError:
            return ()


def _headline(refused: _Refused, fits: str, codes: tuple[str, ...], slugs: str) -> str:
    gpu, name, built = _named(refused), refused.result.name, " ".join(codes)
    if fits == _TOO_OLD:
        return say(
            "CUDA finds no code for {gpu} in the self-test {name}: the GPU is older than this "
            "build, which has code for {codes}",
            gpu=gpu,
            name=name,
            codes=built,
        )
    if fits == _TOO_NEW:
        return say(
            "CUDA finds no code for {gpu} in the self-test {name}: the GPU is newer than this "
            "build, which has code for {codes}",
            gpu=gpu,
            name=name,
            codes=built,
        )
    if codes:
        return say(
            "CUDA finds no code for {gpu} in the self-test {name}: this build has code for "
            "{codes}, but a part of PyTorch has none for this GPU (see {slugs})",
            gpu=gpu,
            name=name,
            codes=built,
            slugs=slugs,
        )
    return say(
        "CUDA finds no code for {gpu} in the self-test {name}: a part of PyTorch has none for this "
        "GPU (see {slugs})",
        gpu=gpu,
        name=name,
        slugs=slugs,
    )


def _named(refused: _Refused) -> str:
    device, name = refused.result.device, refused.device_name
    capability = refused.compute_capability
    if name and capability:
        return say(
            "{device} ({name}, compute capability {capability})",
            device=device,
            name=name,
            capability=capability,
        )
    known = name or capability
    return say("{device} ({name})", device=device, name=known) if known else device
