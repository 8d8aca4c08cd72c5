"""A pre-flight as JSON, and as one file for a ticket: redacted, with all that belongs to it."""

import io
import json
import tarfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from gpucheck.cluster.files import json_text
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import StepResult
from gpucheck.cluster.pages import tables
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.cluster.pages import words as preflight_words
from gpucheck.cluster.pages.words import drill_words, notices, verdict_word
from gpucheck.engine import Report
from gpucheck.facts import Facts, builtins
from gpucheck.facts.claims import Fix
from gpucheck.facts.preflight import Preflight, RankOutcome, culprit_data
from gpucheck.findings.form import Evidence, Finding
from gpucheck.language import Sentence, in_series, in_turn, say, spoken
from gpucheck.output.json_text import with_said
from gpucheck.output.public import public
from gpucheck.output.redact import redact, redact_command, redact_text
from gpucheck.output.redact.patterns import whole_words
from gpucheck.output.redact.public_names import ORDINARY

# A pre-flight as JSON: the report schema, its culprits, every rank, the exit status.
#
# Nothing is redacted, because the operators of a cluster need the names of hosts and the UUIDs of
# GPUs. The report in a bundle (``--bundle``) is redacted.

_AFTER_CAUSES = "root_causes"


def render(result: Result) -> str:
    """Return the pre-flight as JSON in ASCII, its keys in the order of the schema."""
    return json_text(with_said(as_json(result)))


def as_json(result: Result) -> dict[str, Any]:
    """Return the pre-flight as JSON-like data (schema ``gpucheck.report/1``)."""
    report = {
        **result.report.as_json(),
        "verdict": verdict_word(result),
        "gpus": builtins(tables.verdicts_of_gpus(result)),
    }
    preflight = result.preflight
    own = {
        "exit": result.ending.status,
        "class": result.ending.word,
        "why": result.ending.why,
        "drill": result.drill or preflight.drill,
        "notice": drill_words(result),
        "notices": notices(result),
        "launcher": result.launcher or preflight.launcher or "",
        "seconds": result.seconds,
        "culprits": [_plain(culprit) for culprit in preflight.culprits or ()],
    }
    head = list(report).index(_AFTER_CAUSES) + 1
    items = list(report.items())
    ranks = {"ranks": [_plain(rank) for rank in preflight.ranks or ()]}
    return {**dict(items[:head]), **own, **dict(items[head:]), **ranks}


def _plain(facts: Facts) -> dict[str, Any]:
    """Return facts without their sources; outside the snapshot their origin is obvious."""
    plain: dict[str, Any] = builtins(facts)
    return {key: value for key, value in plain.items() if key not in ("sources", "problems")}


# A pre-flight as one file for a ticket: redacted, with everything that other people need.
#
# Names, paths, addresses and UUIDs are replaced by pseudonyms, the same ones in every file of the
# bundle.

# A pre-flight for publication: names, paths, addresses and UUIDs are pseudonyms.

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


_FOLDER = "gpucheck-preflight"
_TAR_ENDS = (".tar.gz", ".tgz")
_WIDTH = 100
"""Columns of the report in the archive, where no terminal says any."""
_STEPS = "steps.jsonl"


def bundle(path: str, result: Result, history: Sequence[StepResult] = ()) -> tuple[bytes, str]:
    """Return the archive, and its content in a sentence.

    Args:
        path: where it will be written; a name that ends in .tar.gz or .tgz makes it a tar archive,
            any other a zip archive.
        result: the pre-flight.
        history: the steps, for the result of each rank in each of them.
    """
    files = {
        name: text.encode("utf-8", "backslashreplace") for name, text in _files(result, history)
    }
    packed = _tar(files) if path.lower().endswith(_TAR_ENDS) else _zip(files)
    sentence = say(
        "{archive} has {files}, all of it redacted",
        archive=PurePath(path).name,
        files=in_series(list(files)),
    )
    return packed, sentence


def _files(result: Result, history: Sequence[StepResult]) -> Iterator[tuple[str, str]]:
    names = Public(result)
    shown = names.result()
    drill = preflight_words.drill_words(shown)
    text = preflight_text.render(shown, verbose=1, width=_WIDTH)
    about = (
        in_turn(
            [
                say("Made by gpucheck preflight --bundle."),
                say("Names, paths, addresses and UUIDs are pseudonyms."),
            ]
        ),
        say("gpucheck triage report.json diagnoses it again."),
    )
    loud = f"{spoken(drill)}\n\n" if drill else ""
    yield "README.txt", loud + "".join(f"{spoken(line)}\n" for line in about)
    yield "report.txt", text
    yield "report.json", render(shown)
    ranks = (json.dumps(builtins(rank)) for rank in shown.preflight.ranks or ())
    yield "ranks.jsonl", "".join(f"{line}\n" for line in ranks)
    if history:
        yield _STEPS, "".join(f"{json.dumps(step)}\n" for step in _steps(names, history))


def _steps(names: Public, history: Sequence[StepResult]) -> Iterator[dict[str, Any]]:
    """Return each rank of each step; its output is redacted like any other text."""
    for done in history:
        numbered = {"step": done.step.kind, "number": done.step.number}
        env = {"env": names.data(done.step.env)} if done.step.env else {}
        for rank in sorted(done.results):
            yield {**numbered, **env, **names.data(builtins(done.results[rank]))}


def _zip(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"{_FOLDER}/{name}", data)
    return packed.getvalue()


def _tar(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{_FOLDER}/{name}")
            entry.size, entry.mtime = len(data), int(time.time())
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()
