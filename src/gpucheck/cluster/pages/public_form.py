"""A pre-flight for publication: names, paths, addresses and UUIDs are pseudonyms."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gpucheck.cluster.judgement import Result
from gpucheck.engine import Report
from gpucheck.facts import builtins
from gpucheck.facts.claims import Fix
from gpucheck.facts.preflight import Preflight, RankOutcome, culprit_data
from gpucheck.findings.form import Evidence, Finding
from gpucheck.language import Sentence
from gpucheck.output.public import public
from gpucheck.output.redact import redact, redact_command, redact_text
from gpucheck.output.redact.places import whole_words
from gpucheck.output.redact.public_names import ORDINARY

_replace = msgspec.structs.replace


class Public:
    """The pseudonyms of one pre-flight, for itself and for every text about it.

    The redaction of a machine keeps a host name in a sentence if it could be any other word, and an
    address that could be a version. The nodes of a cluster are often called n1 and n2, and a text
    about a pre-flight is full of them, so here they are always replaced.
    """

    def __init__(self, result: Result) -> None:
        self._result = result
        self._private = result.report.snapshot
        self._shown = redact(self._private).get(Preflight)
        known = self._private.get(Preflight)
        hosts = dict(zip(_hosts(known), _hosts(self._shown), strict=True))
        self._left = _Names({old: new for old, new in hosts.items() if self._says(old)})
        named = {old: new for old, new in hosts.items() if old and old not in ORDINARY}
        self._of_commands = _Names(named)

    def text(self, words: str) -> str:
        """Return a text with pseudonyms."""
        return self._left.replaced(redact_text(words, self._private))

    def command(self, command: str) -> str:
        """Return a command with pseudonyms; a host that is called install is no word of it."""
        return self._of_commands.replaced(redact_command(command, self._private))

    def data(self, value: Any) -> Any:  # noqa: ANN401  # JSON-like data
        """Return JSON-like data with every text in it replaced."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (list, tuple)):
            return [self.data(item) for item in value]
        if isinstance(value, dict):
            return {self.text(str(key)): self.data(item) for key, item in value.items()}
        return value

    def result(self) -> Result:
        """Return the pre-flight with pseudonyms."""
        result = self._result
        preflight = self._preflight()
        report = self._report(public(result.report), preflight)
        return _replace(
            result,
            report=report,
            preflight=preflight,
            ending=_replace(result.ending, why=self.text(result.ending.why)),
            drill=self.text(result.drill),
            requirements=[self.text(requirement) for requirement in result.requirements],
        )

    def _says(self, host: str) -> bool:
        return bool(host) and host == redact_text(host, self._private)

    def _preflight(self) -> Preflight:
        shown = self._shown
        culprits = [
            _replace(
                culprit,
                evidence=self.text(culprit.evidence),
                data=culprit_data(self.data(builtins(culprit.data))),
            )
            for culprit in shown.culprits or ()
        ]
        ranks = [self._rank(rank) for rank in shown.ranks or ()]
        return _replace(
            shown,
            culprits=None if shown.culprits is None else culprits,
            ranks=None if shown.ranks is None else ranks,
            inconclusive=self.text(shown.inconclusive),
            stopped_because=self.text(shown.stopped_because),
            notices=list(map(self.text, shown.notices)),
            step_notes=list(map(self.text, shown.step_notes)),
        )

    def _rank(self, outcome: RankOutcome) -> RankOutcome:
        look = outcome.look
        if look is not None and (look.python or look.error):
            look = _replace(
                look, python=tuple(map(self.text, look.python)), error=self.text(look.error)
            )
        detail = self.text(outcome.detail) if outcome.detail else ""
        return (
            _replace(outcome, detail=detail, look=look) if detail or look is not None else outcome
        )

    def _report(self, shown: Report, preflight: Preflight) -> Report:
        """Return the report, redacted from the original: a pseudonym may be another's name."""
        own = self._result.report
        return _replace(
            shown,
            snapshot=shown.snapshot.with_section(preflight),
            findings=tuple(map(self._finding, own.findings, shown.findings)),
            checks=tuple(_replace(check, reason=self.text(check.reason)) for check in own.checks),
            open_questions=tuple(
                _replace(open_question, reason=self.text(open_question.reason))
                for open_question in own.open_questions
            ),
        )

    def _finding(self, own: Finding, shown: Finding) -> Finding:
        return _replace(
            shown,
            headline=self.text(own.headline),
            evidence=tuple(map(self._evidence, own.evidence, shown.evidence)),
            fixes=tuple(map(self._fix, own.fixes)),
        )

    def _evidence(self, own: Evidence, shown: Evidence) -> Evidence:
        """Return evidence; facts of the machine have already lost their private fields."""
        evidence = own if own.fact.startswith("preflight.") else shown
        return _replace(shown, value=self.data(evidence.value))

    def _fix(self, fix: Fix) -> Fix:
        commands = tuple(map(self.command, fix.commands))
        return _replace(
            fix,
            text=self.text(fix.text),
            commands=commands,
            verify=self.command(fix.verify),
            cautions=tuple(self.text(caution) for caution in fix.cautions),
        )


class _Names:
    """Names, each with its pseudonym."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._finder = whole_words(names)

    def replaced(self, words: str) -> str:
        """Return a text with the pseudonyms; of a sentence only the parameters change."""
        if isinstance(words, Sentence):
            return words.mapped(self.replaced)
        return self._finder.sub(lambda found: self._names[found[0]], words)


def _hosts(preflight: Preflight) -> Iterator[str]:
    """Return the name and the address of every host, in a fixed order."""
    for rank in preflight.ranks or ():
        yield rank.host or ""
        yield rank.address or ""
    for culprit in preflight.culprits or ():
        yield culprit.host or ""
        yield from culprit.hosts
        yield from culprit.addresses
