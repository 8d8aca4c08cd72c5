"""The messages of NCCL and Gloo in failed self-tests, and the causes that they name."""

import importlib
from typing import TYPE_CHECKING

import msgspec

from gpucheck.findings import Claim, Confidence, Hit
from gpucheck.probes.selftests import SelfTest, SelfTests
from gpucheck.rules import Library, all_rules
from gpucheck.rules.witnesses.selftest_says import repeated
from gpucheck.views.base import View

if TYPE_CHECKING:  # imported only if a test failed: a healthy run does not need them
    from gpucheck.signatures.base import Signature, Signs

_NAMES_IT = 76
"""A signature with a lower weight fits several causes, or is something that people write."""
_MOST_LINES, _LONGEST, _MOST = 400, 2000, 1 << 16
_SHOWN = 200
_WARNINGS = "data.nccl_warnings"


class _Found(msgspec.Struct, frozen=True):
    """A line of a self-test in which a signature was found."""

    signs: "Signs"
    signature: "Signature"
    values: dict[str, str]
    path: str
    result: SelfTest
    field: str
    line: str


class SelfTestWords(View):
    """The messages of NCCL and Gloo in failed self-tests with several ranks."""

    def __init__(self, tests: SelfTests) -> None:
        self._tests = tests

    def claims(self) -> list[Claim]:
        """Return the causes that they name, each once: of each test the most telling line."""
        of_test: dict[str, _Found] = {}
        for path, result in self._tests.wrong():
            found = _most_telling(path, result)
            if found is None:
                continue
            before = of_test.get(result.name)
            if before is None or found.signature.weight > before.signature.weight:
                of_test[result.name] = found
        claims: dict[str, Claim] = {}
        for found in of_test.values():
            claims.setdefault(found.signs.slug, _claim(found))
        return list(claims.values())


def _library(result: SelfTest) -> Library | None:
    """Return whose words are looked for in a result; None where there are none to look for."""
    if result.device == "cpu":
        return "gloo" if result.world_size > 1 else None
    of_nccl = result.data.get("nccl_warnings") or "nccl_result" in result.data
    return "nccl" if result.world_size > 1 or of_nccl else None


def _most_telling(path: str, result: SelfTest) -> _Found | None:
    lines = _lines(result)
    text = "\n".join(line for _field, line in lines).lower()
    best: _Found | None = None
    library = _library(result)
    for slug in (slug for slug, rule in all_rules().items() if library in rule.named_by):
        module = importlib.import_module(f"gpucheck.signatures.{slug.replace('-', '_')}")
        signs: Signs = module.SIGNS
        for signature in signs.signatures:
            if signature.literal not in text or not _counts(signature, text):
                continue
            if best is not None and signature.weight <= best.signature.weight:
                continue
            best = _match(signs, signature, path, result, lines) or best
    return best


def _counts(signature: "Signature", text: str) -> bool:
    """Whether it names a cause by itself; conditions on other words are for a user's text."""
    if signature.weight < _NAMES_IT or signature.beside or signature.elsewhere:
        return False
    return not signature.distinct and not any(words in text for words in signature.unless)


def _lines(result: SelfTest) -> list[tuple[str, str]]:
    """Return the messages line by line, each with the field that contains it."""
    said = [("detail", result.detail)]
    warnings = result.data.get("nccl_warnings")
    warnings = warnings if isinstance(warnings, list) else []
    said.extend((_WARNINGS, f"NCCL WARN {one}") for one in warnings)  # as NCCL prints it
    for name in ("message", "printed"):
        text = result.data.get(name)
        lines = text[-_MOST:].splitlines() if isinstance(text, str) else []
        said.extend((f"data.{name}", line) for line in lines)
    return [(field, line[:_LONGEST]) for field, line in said[:_MOST_LINES]]


def _match(
    signs: "Signs",
    signature: "Signature",
    path: str,
    result: SelfTest,
    lines: list[tuple[str, str]],
) -> _Found | None:
    from gpucheck.signatures.base import compiled  # noqa: PLC0415  # see above

    pattern = compiled(signature.pattern)
    for field, line in lines:
        found = pattern.search(line) if signature.literal in line.lower() else None
        if found is None:
            continue
        values = {name: value for name, value in found.groupdict().items() if value}
        if signature.check is None or signature.check(values):
            return _Found(signs, signature, values, path, result, field, line.strip()[:_SHOWN])
    return None


def _claim(found: _Found) -> Claim:
    from gpucheck.signatures import suspicion  # noqa: PLC0415  # see above

    signature, result = found.signature, found.result
    evidence = [f"{found.path}.detail"]
    sure = suspicion.confidence(signature.weight)
    if sure is Confidence.CERTAIN and not signature.stands:
        sure = Confidence.LIKELY  # NCCL may have printed a warning and continued
    again = repeated(result)
    fixes = suspicion.fixes(found.signs, signature, found.values)
    if found.field == _WARNINGS:
        evidence.append(f"{found.path}.{_WARNINGS}")
    return Claim(
        slug=found.signs.slug,
        hit=Hit(
            headline=f"{suspicion.headline(signature, found.values)}: the self-test {result.name} "
            f"on {result.place} went wrong with “{found.line}”",
            evidence=tuple(evidence),
            fixes=tuple(msgspec.structs.replace(fix, verify=again) for fix in fixes),
            severity=signature.severity,
            confidence=sure,
        ),
    )
