"""The messages of NCCL and Gloo in failed self-tests, and the causes that they name."""

from typing import TYPE_CHECKING

import msgspec

from gpucheck.derived.base import Derived
from gpucheck.facts.claims import Confidence
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings import all_rules
from gpucheck.findings.form import Claim, Hit, Library
from gpucheck.findings.witnesses.selftest_says import repeated
from gpucheck.language import say

if TYPE_CHECKING:  # imported only if a test failed: a healthy run does not need them
    from gpucheck.log_patterns.form import FindingMessages, Message

_MOST_LINES, _LONGEST, _MOST = 400, 2000, 1 << 16
_SHOWN = 200
_WARNINGS = "data.nccl_warnings"


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
    from gpucheck.log_patterns.named_conditions import holds  # noqa: PLC0415  # see above

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
    from gpucheck.log_patterns import wording  # noqa: PLC0415  # see above

    message, result, match = found.message, found.result, found.match
    evidence = [f"{found.path}.detail"]
    sure = message.strength.confidence
    if sure is Confidence.CERTAIN and not message.stands:
        sure = Confidence.LIKELY  # NCCL may have printed a warning and continued
    again = repeated(result)
    fixes = wording.fixes(found.finding, message, match.values)
    if match.field == _WARNINGS:
        evidence.append(f"{found.path}.{_WARNINGS}")
    return Claim(
        slug=found.slug,
        hit=Hit(
            headline=say(
                "{headline}: the self-test {name} on {place} failed with “{line}”",
                headline=wording.headline(message, match.values),
                name=result.name,
                place=result.place,
                line=match.line,
            ),
            evidence=tuple(evidence),
            fixes=tuple(msgspec.structs.replace(fix, verify=again) for fix in fixes),
            severity=message.severity,
            confidence=sure,
        ),
    )
