"""What NCCL and Gloo said in self-tests that went wrong, and which causes their words name."""

from typing import TYPE_CHECKING

import msgspec

from gpucheck.findings import Confidence, Hit, Suspect
from gpucheck.probes.selftests import SelfTest, SelfTests
from gpucheck.views.base import View
from gpucheck.views.selftest_says import repeated

if TYPE_CHECKING:  # imported where a test went wrong only: a healthy run does not pay for them
    from gpucheck.messages.form import FindingMessages, Message

_OF_NCCL = (
    "fabric-manager-down", "nccl-infiniband", "nccl-missing", "nccl-network-interface",
    "nccl-version-mismatch", "shm-too-small",
)  # fmt: skip
"""Findings whose causes a self-test over NCCL can meet."""
_OF_GLOO = ("nccl-network-interface",)
_MOST_LINES, _LONGEST, _MOST = 400, 2000, 1 << 16
_SHOWN = 200
_WARNINGS = "data.nccl_warnings"


class _Found(msgspec.Struct, frozen=True):
    """A line of a self-test in which a message was found."""

    slug: str
    finding: "FindingMessages"
    message: "Message"
    values: dict[str, str]
    path: str
    result: SelfTest
    field: str
    line: str


class SelfTestWords(View):
    """The words of NCCL and Gloo in self-tests of several ranks that went wrong."""

    def __init__(self, tests: SelfTests) -> None:
        self._tests = tests

    def suspects(self) -> dict[str, Suspect]:
        """Return the causes that they name, by slug: of each test the most telling line."""
        of_test: dict[str, _Found] = {}
        for path, result in self._tests.wrong():
            found = _most_telling(path, result)
            if found is None:
                continue
            before = of_test.get(result.name)
            if before is None or found.message.rank > before.message.rank:
                of_test[result.name] = found
        suspects: dict[str, Suspect] = {}
        for found in of_test.values():
            suspects.setdefault(found.slug, _suspect(found))
        return suspects


def _findings(result: SelfTest) -> tuple[str, ...]:
    """Return whose messages are looked for in the words of a result; () for none."""
    if result.device == "cpu":
        return _OF_GLOO if result.world_size > 1 else ()
    of_nccl = result.data.get("nccl_warnings") or "nccl_result" in result.data
    return _OF_NCCL if result.world_size > 1 or of_nccl else ()


def _most_telling(path: str, result: SelfTest) -> _Found | None:
    from gpucheck.messages import messages_of  # noqa: PLC0415  # see above

    lines = _lines(result)
    text = "\n".join(line for _field, line in lines).lower()
    best: _Found | None = None
    for slug in _findings(result):
        finding = messages_of(slug)
        for message in finding.messages:
            if message.literal not in text or not _counts(message, text):
                continue
            if best is not None and message.rank <= best.message.rank:
                continue
            match = _match(message, lines)
            if match is not None:
                values, field, line = match
                best = _Found(slug, finding, message, values, path, result, field, line)
    return best


def _counts(message: "Message", text: str) -> bool:
    """Whether it points to a cause by itself: words beside it matter in a person's text only."""
    from gpucheck.messages.form import Strength  # noqa: PLC0415  # see above

    if message.strength not in (Strength.NAMES, Strength.POINTS):
        return False
    if message.beside or message.elsewhere or message.distinct:
        return False
    return message.unless is None or not any(words in text for words in message.unless.any_of)


def _lines(result: SelfTest) -> list[tuple[str, str]]:
    """Return what was said, line by line, each with the field in which it stands."""
    said = [("detail", result.detail)]
    warnings = result.data.get("nccl_warnings")
    warnings = warnings if isinstance(warnings, list) else []
    said.extend((_WARNINGS, f"NCCL WARN {one}") for one in warnings)  # as NCCL printed it
    for name in ("message", "printed"):
        text = result.data.get(name)
        lines = text[-_MOST:].splitlines() if isinstance(text, str) else []
        said.extend((f"data.{name}", line) for line in lines)
    return [(field, line[:_LONGEST]) for field, line in said[:_MOST_LINES]]


def _match(
    message: "Message", lines: list[tuple[str, str]]
) -> tuple[dict[str, str], str, str] | None:
    """Return the named groups, the field and the line of the first match."""
    from gpucheck.messages.form import compiled  # noqa: PLC0415  # see above
    from gpucheck.messages.named_conditions import holds  # noqa: PLC0415  # see above

    pattern = compiled(message.pattern)
    for field, line in lines:
        found = pattern.search(line) if message.literal in line.lower() else None
        if found is None:
            continue
        values = {name: value for name, value in found.groupdict().items() if value}
        if message.when is None or holds(message.when, values):
            return values, field, line.strip()[:_SHOWN]
    return None


def _suspect(found: _Found) -> Suspect:
    from gpucheck.messages import wording  # noqa: PLC0415  # see above

    message, result = found.message, found.result
    evidence = [f"{found.path}.detail"]
    sure = message.strength.confidence
    if sure is Confidence.CERTAIN and not message.stands:
        sure = Confidence.LIKELY  # NCCL may have warned of it and gone on
    again = repeated(result)
    fixes = wording.fixes(found.finding, message, found.values)
    if found.field == _WARNINGS:
        evidence.append(f"{found.path}.{_WARNINGS}")
    return Suspect(
        hit=Hit(
            headline=f"{wording.headline(message, found.values)}: the self-test {result.name} "
            f"on {result.place} went wrong with “{found.line}”",
            evidence=tuple(evidence),
            fixes=tuple(msgspec.structs.replace(fix, verify=again) for fix in fixes),
            severity=message.severity,
            confidence=sure,
        ),
        stands=True,  # it was seen here and now
    )
