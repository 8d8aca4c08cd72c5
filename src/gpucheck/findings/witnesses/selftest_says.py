"""What the self-tests said: which cause their errors, or messages of NCCL and Gloo, stand for."""

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from gpucheck.facts.base import Derived
from gpucheck.facts.claims import Confidence, Fix
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings import all_rules
from gpucheck.findings.form import Claim, Fine, Hit, Judgement, Library, NotApplicable
from gpucheck.language import Sentence, and_more, in_series, listed, phrase, say, say_many
from gpucheck.tables.error_codes import CudaErrorRow, CudaErrors, LibraryErrorRow, LibraryErrors

if TYPE_CHECKING:  # imported only if a test failed: a healthy run does not need them
    from gpucheck.log_patterns.form import FindingMessages, Message


OTHER_RUNTIMES = ("onnx-export", "tensorrt")
"""Tests in which another library than torch computes."""
_MOST_PLACES = 4  # chosen: a headline; the lines of the self-tests name all

# Chosen: NCCL's warnings and the last words of a worker have some dozens of lines. Every pattern of
# the messages runs over them, and a worker's output is untrusted.
_MOST_LINES, _LONGEST, _MOST = 400, 2000, 1 << 16
_SHOWN = 200  # chosen: as a quoted line of a ticket (output/ticket_text.py)
_WARNINGS = "data.nccl_warnings"


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

    def devices_at(self, slug: str) -> list[str]:
        """Return the devices of the tests of one GPU that failed with such a code."""
        return [
            result.device
            for _path, result in self._tests.wrong()
            if self.stands_for(result) == (slug,) and "," not in result.device
        ]

    def unlike_peers(self, failed: list[tuple[str, SelfTest]]) -> list[str]:
        """Return the devices on which a test failed that another GPU of that model passed.

        What fails everywhere may be the fault of a library, and a test of several devices names
        none of them.
        """
        models = self._tests.device_names()
        passed = {
            (result.name, models.get(result.device))
            for _path, result in self._tests.of()
            if result.status == "passed"
        }
        return [
            result.device
            for _path, result in failed
            if result.device in models and (result.name, models[result.device]) in passed
        ]

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
        row = self._error(result)
        return row.slugs if row is not None else ()

    def row(self, path: str) -> CudaErrorRow | LibraryErrorRow | None:
        """Return the row of the error of a failed test by its path (``selftests.results.0``)."""
        failed = dict(self._tests.wrong())
        return self._error(failed[path]) if path in failed else None

    def _error(self, result: SelfTest) -> CudaErrorRow | LibraryErrorRow | None:
        code = self.code(result)
        return self._library_error(result) if code is None else self._cuda_errors.error(code)

    def code(self, result: SelfTest) -> int | None:
        """Return the CUDA error code of a result; None if it has none."""
        code = result.data.get("cuda_code")
        if isinstance(code, int):
            return code
        name = result.data.get("cuda_name")
        row = self._cuda_errors.named(name) if isinstance(name, str) else None
        return row.code if row is not None else None

    def meaning(self, result: SelfTest) -> str:
        """Return the tables' explanation of the error of a result.

        "" if there is none, and if the name of the status says the same.
        """
        code = self.code(result)
        row = self._cuda_errors.error(code) if code is not None else None
        if row is not None:
            return phrase(row.meaning or "")
        named = self._library_error(result)
        if named is None or named.meaning.replace(" ", "_").upper() in named.error:
            return ""
        return phrase(named.meaning)

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


class _Match(msgspec.Struct, frozen=True):
    """The field and the line in which a message was found, with the named groups of its pattern."""

    field: str
    line: str
    values: dict[str, str]


class _Found(msgspec.Struct, frozen=True):
    """A line of a self-test in which a message was found."""

    slug: str
    finding: "FindingMessages"
    message: "Message"
    path: str
    result: SelfTest
    match: _Match


class SelfTestWords(Derived):
    """The messages of NCCL and Gloo in failed self-tests with several ranks."""

    def __init__(self, tests: SelfTests) -> None:
        self._tests = tests

    def claims(self) -> list[Claim]:
        """Return the causes that they name, each once: the most informative line of each test."""
        of_test: dict[str, _Found] = {}
        for path, result in self._tests.wrong():
            found = _most_telling(path, result)
            if found is None:
                continue
            before = of_test.get(result.name)
            if before is None or found.message.rank > before.message.rank:
                of_test[result.name] = found
        claims: dict[str, Claim] = {}
        for found in of_test.values():
            claims.setdefault(found.slug, _claim(found))
        return list(claims.values())


def _library(result: SelfTest) -> Library | None:
    """Return whose messages to look for in a result; None if it has none to look for."""
    if result.device == "cpu":
        return "gloo" if result.world_size > 1 else None
    of_nccl = result.data.get("nccl_warnings") or "nccl_result" in result.data
    return "nccl" if result.world_size > 1 or of_nccl else None


def _most_telling(path: str, result: SelfTest) -> _Found | None:
    from gpucheck.log_patterns.loading import messages_of  # noqa: PLC0415  # see above

    lines = _lines(result)
    text = "\n".join(line for _field, line in lines).lower()
    best: _Found | None = None
    library = _library(result)
    for slug in (slug for slug, rule in all_rules().items() if library in rule.named_by):
        finding = messages_of(slug)
        for message in finding.messages:
            if message.literal not in text or not _counts(message, text):
                continue
            if best is not None and message.rank <= best.message.rank:
                continue
            match = _match(message, lines)
            if match is not None:
                best = _Found(slug, finding, message, path, result, match)
    return best


def _counts(message: "Message", text: str) -> bool:
    """Whether it points to a cause by itself; conditions on other words are for a user's text."""
    if not message.points or message.beside or message.elsewhere or message.distinct:
        return False
    return message.unless is None or not any(words in text for words in message.unless.any_of)


def _lines(result: SelfTest) -> list[tuple[str, str]]:
    """Return the messages line by line, each with the field that contains it."""
    texts = [("detail", result.detail)]
    warnings = result.data.get("nccl_warnings")
    warnings = warnings if isinstance(warnings, list) else []
    texts.extend((_WARNINGS, f"NCCL WARN {warning}") for warning in warnings)  # as NCCL prints it
    for name in ("message", "printed"):
        text = result.data.get(name)
        lines = text[-_MOST:].splitlines() if isinstance(text, str) else []
        texts.extend((f"data.{name}", line) for line in lines)
    return [(field, line[:_LONGEST]) for field, line in texts[:_MOST_LINES]]


def _match(message: "Message", lines: list[tuple[str, str]]) -> _Match | None:
    """Return the first line that it matches."""
    from gpucheck.log_patterns.form import compiled  # noqa: PLC0415  # see above
    from gpucheck.log_patterns.matcher import holds  # noqa: PLC0415  # see above

    pattern = compiled(message.pattern)
    for field, line in lines:
        found = pattern.search(line) if message.literal in line.lower() else None
        if found is None:
            continue
        values = {name: value for name, value in found.groupdict().items() if value}
        if message.when is None or holds(message.when, values):
            return _Match(field, line.strip()[:_SHOWN], values)
    return None


def _claim(found: _Found) -> Claim:
    from gpucheck.log_patterns.form import fixes, headline  # noqa: PLC0415  # see above

    message, result, match = found.message, found.result, found.match
    evidence = [f"{found.path}.detail"]
    sure = message.strength.confidence
    if sure is Confidence.CERTAIN and not message.stands:
        sure = Confidence.LIKELY  # NCCL may have printed a warning and continued
    again = repeated(result)
    possible = fixes(found.finding, message, match.values)
    if match.field == _WARNINGS:
        evidence.append(f"{found.path}.{_WARNINGS}")
    return Claim(
        slug=found.slug,
        hit=Hit(
            headline=say(
                "{headline}: the self-test {name} on {place} failed with “{line}”",
                headline=headline(message, match.values),
                name=result.name,
                place=result.place,
                line=match.line,
            ),
            evidence=tuple(evidence),
            fixes=tuple(msgspec.structs.replace(fix, verify=again) for fix in possible),
            severity=message.severity,
            confidence=sure,
        ),
    )


# The rank of a self-test that is to blame: it never arrived, it hangs, or it died.

_SelftestRanksFound = list[tuple[str, SelfTest]]

_DIED = ("signal", "exit-status", "no-answer")
_HUNG = ("timed-out", "collective-timeout")
MEETING = "the ranks come together"
"""The stage in which the ranks wait for one that never arrives (worker/groups.py)."""
_CPU = "cpu"
_MOST_FACTS = 6  # chosen: ranks that fail alike; the headline counts the rest


class SelfTestRanks(Derived):
    """The tests with several ranks in which some ranks failed and others did not.

    If all of them failed, no rank can be named.
    """

    def __init__(self, tests: SelfTests) -> None:
        self._tests = tests

    def missing(self) -> Hit | None:
        """Return the finding about a rank that never came to the rendezvous of the ranks."""
        return self._hit(
            _is_missing,
            lambda first: say(
                "A rank never arrived in the self-test {name}: {place}: {detail}", **_of(first)
            ),
        )

    def hanging(self) -> Hit | None:
        """Return the finding about a rank for which the others waited in a collective."""
        return self._hit(
            lambda result: _has_hung(result) and not _is_missing(result),
            lambda first: say(
                "A rank is stuck in the self-test {name}: {place}: {detail}", **_of(first)
            ),
        )

    def died(self) -> Hit | None:
        """Return the finding about a rank whose process ended during a test."""
        return self._hit(
            lambda result: result.kind in _DIED,
            lambda first: say(
                "A rank died in the self-test {name}: {place}: {detail}", **_of(first)
            ),
        )

    def timeout(self) -> Hit | None:
        """Return the finding about an NCCL collective that no rank finished."""
        found = [
            (path, result)
            for path, result in self._tests.wrong()
            if result.kind == "collective-timeout" and result.device != _CPU
        ]
        if not found or _names_some(found[0][1], self._of_its_test(found[0][1])):
            return None
        first = found[0][1]
        again = repeated(first)
        return Hit(
            headline=say(
                "A collective over NCCL did not end in the self-test {name}: {detail}",
                name=first.name,
                detail=first.detail,
            ),
            evidence=tuple(f"{path}.detail" for path, _result in found[:_MOST_FACTS]),
            fixes=(
                Fix(
                    text=say(
                        "Read what NCCL does before it stops: its messages are in data.printed of "
                        "each rank."
                    ),
                    commands=(f"NCCL_DEBUG=INFO {again} --format json",),
                    verify=again,
                ),
                Fix(
                    text=say(
                        "If it is unclear which GPU is at fault, test two of them alone, then two "
                        "others."
                    ),
                    commands=(run_tests(first.name, "--device", "cuda:0,cuda:1"),),
                    verify=again,
                ),
            ),
        )

    def _hit(
        self, is_one: Callable[[SelfTest], bool], headline: Callable[[SelfTest], Sentence]
    ) -> Hit | None:
        found = [
            (path, result)
            for path, result in self._tests.wrong()
            if is_one(result) and _names_some(result, self._of_its_test(result))
        ]
        if not found:
            return None
        first = found[0][1]
        return Hit(
            headline=and_more(headline(first), len(found) - 1),
            evidence=tuple(f"{path}.detail" for path, _result in found[:_MOST_FACTS]),
            fixes=_fixes(first),
        )

    def _of_its_test(self, result: SelfTest) -> _SelftestRanksFound:
        return [
            numbered_result
            for numbered_result in self._tests.of(result.name)
            if numbered_result[1].world_size == result.world_size
        ]


def _of(first: SelfTest) -> dict[str, str]:
    return {"name": first.name, "place": first.place, "detail": first.detail}


def _is_missing(result: SelfTest) -> bool:
    return _has_hung(result) and result.data.get("waited_in") == MEETING


def _has_hung(result: SelfTest) -> bool:
    return result.kind in _HUNG


def _names_some(result: SelfTest, of_its_test: _SelftestRanksFound) -> bool:
    """Whether some ranks of a test are to blame and others are not."""
    wrong = sum(rank_result.went_wrong for _path, rank_result in of_its_test)
    return 0 < wrong < len(of_its_test) and result.world_size > 1


def _fixes(first: SelfTest) -> tuple[Fix, ...]:
    again = repeated(first)
    report = Fix(
        text=say("Repeat it: the data of that rank have its last output and its stack."),
        commands=(f"{again} --format json",),
        verify=again,
    )
    if first.device == _CPU:
        return (report,)
    alone = Fix(
        text=say("Test that GPU alone, and look in the kernel log for messages about it."),
        commands=(
            f"gpucheck selftest --device {shlex.quote(first.device)}",
            "sudo dmesg | grep -i -e NVRM -e Xid",
        ),
        verify=again,
    )
    return (alone, report)
