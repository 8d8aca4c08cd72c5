"""What the self-tests said: which cause their errors stand for."""

import shlex

from gpucheck.derived.base import Derived
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Fine, Judgement, NotApplicable
from gpucheck.language import in_series, listed, phrase, say, say_many
from gpucheck.tables.cuda_errors import CudaErrors
from gpucheck.tables.library_errors import LibraryErrorRow, LibraryErrors

OTHER_RUNTIMES = ("onnx-export", "tensorrt")
"""Tests in which another library than torch computes."""
_MOST_PLACES = 4


class SelfTestSays(Derived):
    """The self-tests that failed, by the meaning of their error codes."""

    def __init__(
        self, tests: SelfTests, cuda_errors: CudaErrors, library_errors: LibraryErrors
    ) -> None:
        self._tests = tests
        self._cuda_errors = cuda_errors
        self._library_errors = library_errors

    def points_at(self, slug: str) -> tuple[str, ...]:
        """Return the facts of tests that failed with a code that indicates only this finding."""
        return tuple(
            f"{path}.detail"
            for path, result in self._tests.wrong()
            if self.stands_for(result) == (slug,)
        )

    def failed_with(self, *kinds: str) -> list[tuple[str, SelfTest]]:
        """Return the tests that failed in one of these ways, each with its path."""
        return [(path, result) for path, result in self._tests.wrong() if result.kind in kinds]

    def import_failure(self) -> tuple[str, SelfTest] | None:
        """Return the result that shows that ``import torch`` itself failed, with its path."""
        return next(
            (
                numbered_result
                for numbered_result in self._tests.wrong()
                if numbered_result[1].is_import
            ),
            None,
        )

    def fine(self, *names: str) -> Judgement:
        """Return the judgement of a rule if none of its tests failed."""
        results = [result for _path, result in self._tests.of(*names)]
        passed = sorted({result.name for result in results if result.status == "passed"})
        if passed:
            return Fine(
                say_many(
                    len(passed),
                    "the self-test {names} passed",
                    "the self-tests {names} passed",
                    names=listed(passed),
                )
            )
        if any(result.went_wrong for result in results):
            return NotApplicable(say("the self-tests failed for another reason"))
        if self._tests.problem("results"):
            return self.not_run()
        return NotApplicable(say("the self-tests that would show it were left out"))

    def not_run(self) -> Judgement:
        """Return the judgement of a rule if there are no results at all."""
        why = self._tests.problem("results")
        if not why:
            return NotApplicable(say("no self-test was run"))
        return NotApplicable(say("no self-test was run: {problem}", problem=why))

    def stands_for(self, result: SelfTest) -> tuple[str, ...]:
        """Return the findings that the error of a result usually indicates; () if none."""
        code = self.code(result)
        if code is not None:
            row = self._cuda_errors.error(code)
            return row.slugs if row is not None else ()
        named = self._library_error(result)
        return named.slugs if named is not None else ()

    def code(self, result: SelfTest) -> int | None:
        """Return the CUDA error code of a result; None if it has none."""
        code = result.data.get("cuda_code")
        if isinstance(code, int):
            return code
        name = result.data.get("cuda_name")
        row = self._cuda_errors.named(name) if isinstance(name, str) else None
        return row.code if row is not None else None

    def meaning(self, result: SelfTest) -> str:
        """Return the tables' explanation of the error of a result, "" if there is none."""
        code = self.code(result)
        row = self._cuda_errors.error(code) if code is not None else None
        if row is not None:
            return phrase(row.meaning or "")
        named = self._library_error(result)
        return phrase(named.meaning) if named is not None else ""

    def _library_error(self, result: SelfTest) -> LibraryErrorRow | None:
        """Return the row of the cuDNN, cuBLAS or NCCL status of a result."""
        name = result.data.get("status") or result.data.get("nccl_result")
        return self._library_errors.named(name) if isinstance(name, str) else None


def where(results: list[tuple[str, SelfTest]]) -> str:
    """Return the places of results, each once, in words."""
    places = list(dict.fromkeys(result.place for _path, result in results))
    more = len(places) - _MOST_PLACES
    named = in_series(places[:_MOST_PLACES])
    return say("{those} and {count} more", those=named, count=more) if more > 0 else named


def repeated(result: SelfTest) -> str:
    """Return the command that repeats a self-test on the same device."""
    if result.device == "cpu":
        ranks = ["--ranks", str(result.world_size)] if result.world_size > 1 else []
        return run_tests(result.name, "--device", "cpu", *ranks)
    return run_tests(result.name, *([] if result.world_size > 1 else ["--device", result.device]))


def run_tests(names: str, *options: str) -> str:
    """Return the command that runs the named self-tests; names and devices are of any report."""
    return shlex.join(["gpucheck", "selftest", "--tests", names, *options])
