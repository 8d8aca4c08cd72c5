"""What disproves a finding that facts show: something seen to work outweighs versions and files."""

from gpucheck.derived import Derived, Gpus
from gpucheck.facts import UnknownFactError
from gpucheck.facts.container import Container
from gpucheck.facts.pasted import Pasted
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Hit, Rule
from gpucheck.language import listed, say


class Refutation(Derived):
    """Self-tests that have passed on every GPU, and a CUDA that a text shows to have started."""

    def __init__(self, tests: SelfTests, gpus: Gpus, container: Container, pasted: Pasted) -> None:
        self._tests = tests
        self._gpus = gpus
        self._container = container
        self._pasted = pasted

    def of(self, rule: Rule, hit: Hit, *, is_named: bool) -> str:
        """Return what disproves the finding of a check; "" if nothing does.

        Args:
            rule: the rule of the check.
            hit: what it has found.
            is_named: whether another witness names the cause: then a CUDA that started does not
                disprove it.
        """
        if hit.refutable and self._have_passed(rule.refuted_by):
            return say(
                "ruled out by self-tests that passed ({names}): {headline}",
                names=listed(rule.refuted_by),
                headline=hit.headline,
            )
        if self._pasted.cuda_available and rule.refuted_by_cuda == "always" and not is_named:
            return say("torch.cuda.is_available() returned True")
        return ""

    def _have_passed(self, names: tuple[str, ...]) -> bool:
        """Whether every one of these tests has passed on every GPU that is meant to be used."""
        if not names or not all(self._tests.passed_on_every_gpu(name) for name in names):
            return False
        try:
            return len(self._tests.devices or ()) >= self._expected()
        except UnknownFactError:
            return False

    def _expected(self) -> int:
        """Return how many GPUs a program should see here: one that the driver drops counts."""
        mask = self._gpus.mask()
        if mask.kind != "unset":
            return len(mask.chosen)
        found = self._gpus.all() if self._container.runtime else self._gpus.on_bus()
        return len(found)
