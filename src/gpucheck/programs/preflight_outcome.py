"""What ``gpucheck.preflight()`` returns in each task of a job.

It is imported with the first pre-flight: it needs all of its tasks, and the other functions none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import ExitClass, ExitStatus, StepResult
from gpucheck.cluster.pages.words import verdict_word
from gpucheck.cluster.request import PreflightRequest
from gpucheck.cluster.store.task_messages import Verdict as VerdictMessage
from gpucheck.cluster.use_case import MISCONFIGURED, PreflightListener, Task
from gpucheck.engine import Verdict
from gpucheck.facts import builtins
from gpucheck.facts.preflight import Culprit
from gpucheck.language import in_series, say, spoken
from gpucheck.programs.results import Lang, speaking_for
from gpucheck.tables import Tables


class PreflightOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a pre-flight ended for this task; all tasks that live have the same verdict."""

    exit: ExitStatus
    """0 good, 1 a culprit is named, 3 inconclusive, 4 misconfigured, 5 slow only."""
    exit_class: ExitClass
    why: str = ""
    """Why there is no better answer; "" where the culprits say it."""
    verdict: Verdict = "unknown"
    root_causes: tuple[str, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    task: int = 0
    tasks: int = 1
    notes: tuple[str, ...] = ()
    result: Result | None = None
    """The whole result, which task 0 alone has."""

    @property
    def ok(self) -> bool:
        """Whether the job can start."""
        return self.exit == 0

    def __repr__(self) -> str:
        words = ", ".join((self.exit_class, *self.root_causes))
        return f"<gpucheck preflight, task {self.task} of {self.tasks}: {words}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, lang: Lang = "auto", *, verbose: int = 0, width: int | None = None) -> str:
        """Return the result for a person; a task other than 0 has one line."""
        from gpucheck.cluster.pages import terminal as preflight_text  # noqa: PLC0415

        with speaking_for(lang):
            if self.result is not None:
                return preflight_text.render(self.result, verbose=verbose, width=width)
            return spoken(self._line()) + "\n"

    def markdown(self, lang: Lang = "auto") -> str:
        """Return the result as Markdown, with the names of your hosts."""
        from gpucheck.cluster.pages import markdown as preflight_markdown  # noqa: PLC0415
        from gpucheck.output.markdown import escaped  # noqa: PLC0415

        with speaking_for(lang):
            if self.result is not None:
                return preflight_markdown.render(self.result)
            return escaped(self._line()) + "\n"

    def as_data(self) -> dict[str, Any]:
        """Return the data of ``--format json``; of a task other than 0 what the verdict says."""
        from gpucheck.cluster.pages.bundle import as_json as preflight_as_json  # noqa: PLC0415

        if self.result is not None:
            return preflight_as_json(self.result)
        plain: dict[str, Any] = builtins(msgspec.structs.replace(self, result=None))
        return plain

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str | None:
        """Return the page, which only task 0 has; without it, a notebook shows the Markdown."""
        from gpucheck.cluster.pages import html  # noqa: PLC0415

        if self.result is None:
            return None
        with speaking_for("auto"):
            return html.notebook_of_preflight(self.result)

    def _line(self) -> str:
        causes = in_series(self.root_causes)
        return say(
            "gpucheck preflight: task {task} of {tasks}: {what}",
            task=self.task,
            tasks=self.tasks,
            what=self.why or causes or say("nothing is wrong"),
        )


class _Kept(PreflightListener):
    """What becomes of a task in a program of others: nothing is printed."""

    def __init__(self) -> None:
        self.why = ""
        self.notes: list[str] = []
        self.message: VerdictMessage | None = None
        self.whole: Result | None = None

    def result(self, result: Result, _history: Sequence[StepResult]) -> None:
        """Keep it."""
        self.whole = result

    def verdict(
        self, _own: Mapping[str, Any], _plain: Mapping[str, Any], message: VerdictMessage | None
    ) -> None:
        """Keep it."""
        self.message = message

    def no_report(
        self,
        why: str,
        *,
        err: bool = False,  # noqa: ARG002  # nothing is printed
        always: bool = False,  # noqa: ARG002
    ) -> None:
        """Keep why."""
        self.why = why

    def note(self, sentence: str) -> None:
        """Keep it."""
        if sentence:
            self.notes.append(sentence)


def outcome_of(request: PreflightRequest, tables: Tables, begun: float) -> PreflightOutcome:
    """Take part in a pre-flight, and return how it ended.

    Raises:
        UsageError, RefusedError: what is wanted, or the launcher's information, makes no sense.
    """
    kept = _Kept()
    task = Task(request, tables, begun, kept)
    status = task.run()
    verdict, result, place = kept.message, kept.whole, task.place
    if result is not None:
        ending, report = result.ending, result.report
        return PreflightOutcome(
            exit=ending.status, exit_class=ending.word, why=ending.why,
            verdict=verdict_word(result), root_causes=report.root_causes,
            culprits=tuple(result.preflight.culprits or ()), task=place.task,
            tasks=place.tasks, notes=tuple(kept.notes), result=result,
        )  # fmt: skip
    if verdict is not None:
        return PreflightOutcome(
            exit=verdict.exit, exit_class=verdict.exit_class, why=verdict.why,
            verdict=verdict.verdict, root_causes=verdict.root_causes,
            culprits=verdict.culprits, task=place.task, tasks=place.tasks,
            notes=tuple(kept.notes),
        )  # fmt: skip
    return PreflightOutcome(
        exit=4 if status == MISCONFIGURED else 3,
        exit_class="misconfiguration" if status == MISCONFIGURED else "inconclusive",
        why=kept.why, task=place.task, tasks=place.tasks, notes=tuple(kept.notes),
    )  # fmt: skip
