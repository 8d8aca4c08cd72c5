"""What the functions for programs return: it shows itself in a terminal and a notebook."""

import contextlib
from collections.abc import Mapping
from typing import Any, Literal

from gpucheck.describe.recommendation import Shown
from gpucheck.engine import Report
from gpucheck.interface.text import language_named
from gpucheck.language import speaking
from gpucheck.output.public import public

# What the functions for programs return: it shows itself in a terminal and in a notebook.
#
# Each result has the same methods. ``text()`` is what the command prints, ``markdown()`` a text for
# a tracker, ``as_data()`` the data of ``--format json``. Texts are in the language of
# the user unless ``lang`` names another; data is always English.

Lang = Literal["auto", "en", "zh"]


def speaking_for(lang: Lang) -> "contextlib.AbstractContextManager[None]":
    """Show sentences in a language, or in that of the user, within the block."""
    return speaking(language_named("" if lang == "auto" else lang))


class CheckReport(Report, frozen=True, kw_only=True):
    """The report of a machine, of a described machine or of a text."""

    not_judged: Mapping[str, str] = {}
    """Of a described machine: the keys that this version does not judge, each with the reason."""

    def __repr__(self) -> str:
        return f"<gpucheck report: {', '.join((self.verdict, *self.root_causes))}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, lang: Lang = "auto", *, verbose: int = 0, width: int | None = None) -> str:
        """Return the report for a person; ``verbose`` as many times as ``-v`` would be given."""
        from gpucheck.output import terminal, ticket_text  # noqa: PLC0415

        with speaking_for(lang):
            if self.snapshot.origin == "pasted":
                shown = ticket_text.render(self, lines=bool(verbose), width=width)
            else:
                shown = terminal.render(self, verbose=verbose, width=width)
            return self._with_what_is_not_judged(shown)

    def markdown(self, lang: Lang = "auto") -> str:
        """Return the report as Markdown, without your names, paths and addresses."""
        from gpucheck.output import markdown  # noqa: PLC0415

        with speaking_for(lang):
            return self._with_what_is_not_judged(markdown.render(self))

    def public(self) -> "CheckReport":
        """Return the report without your names, paths and addresses."""
        return check_report(public(self), self.not_judged)

    def as_data(self) -> dict[str, Any]:
        """Return the data of ``--format json``, without your names, paths and addresses."""
        from gpucheck.output.json_text import with_said  # noqa: PLC0415

        data: dict[str, Any] = with_said(public(self).as_json())
        if self.snapshot.origin == "described":
            data["not_judged"] = sorted(self.not_judged)
        return data

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str:
        from gpucheck.cluster.pages import html  # noqa: PLC0415
        from gpucheck.output import words  # noqa: PLC0415

        with speaking_for("auto"):
            return html.of_report(self, words.sentence(dict(self.not_judged)))

    def _with_what_is_not_judged(self, text: str) -> str:
        from gpucheck.output import words  # noqa: PLC0415

        return words.before_the_trailer(text, words.sentence(dict(self.not_judged)))


def check_report(report: Report, not_judged: Mapping[str, str] | None = None) -> CheckReport:
    """Return a report that shows itself."""
    fields = {name: getattr(report, name) for name in Report.__struct_fields__}
    return CheckReport(**fields, not_judged=not_judged or {})


class Recommended(Shown, frozen=True, kw_only=True):
    """What to install; ``commands`` is empty if nothing fits or if too little is known."""

    def __repr__(self) -> str:
        return f"<gpucheck recommendation: {' && '.join(self.commands) or self.outcome}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, lang: Lang = "auto", *, width: int | None = None) -> str:
        """Return the recommendation for a person."""
        from gpucheck.describe import recommendation  # noqa: PLC0415

        with speaking_for(lang):
            return recommendation.text(self, width=width)

    def markdown(self, lang: Lang = "auto") -> str:
        """Return the recommendation as a block of Markdown."""
        from gpucheck.output.markdown import block  # noqa: PLC0415

        return block(tuple(self.text(lang).rstrip().splitlines())) + "\n"

    def as_data(self) -> dict[str, Any]:
        """Return the data of ``--format json``."""
        from gpucheck.describe.recommendation import as_json  # noqa: PLC0415
        from gpucheck.output.json_text import with_said  # noqa: PLC0415

        data: dict[str, Any] = with_said(as_json(self))
        return data

    def _repr_markdown_(self) -> str:
        return self.markdown()


def recommended(shown: Shown) -> Recommended:
    """Return a recommendation that shows itself."""
    return Recommended(**{name: getattr(shown, name) for name in shown.__struct_fields__})


# What ``gpucheck.preflight()`` returns in each task of a job.
