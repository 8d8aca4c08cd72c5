"""The rank of a self-test that is to blame: it never arrived, it hangs, or it died."""

import shlex
from collections.abc import Callable

from gpucheck.facts.base import Derived
from gpucheck.facts.claims import Fix
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Hit
from gpucheck.findings.witnesses.selftest_says import repeated, run_tests
from gpucheck.language import Sentence, and_more, say

_Found = list[tuple[str, SelfTest]]

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

    def _of_its_test(self, result: SelfTest) -> _Found:
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


def _names_some(result: SelfTest, of_its_test: _Found) -> bool:
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
