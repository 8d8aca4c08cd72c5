"""The Chinese reply beside the English one."""

from collections.abc import Iterator
from itertools import zip_longest

import msgspec

from gpucheck.engine import Report
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.messages.loading import all_messages
from gpucheck.output.markdown import escaped
from gpucheck.output.ticket_reply import reply

_DO = {"What to do: ", "解决办法： "}  # noqa: RUF001  # as replies in Chinese write it


def untranslated(report: Report) -> list[tuple[str, str]]:
    """Return the instructions whose Chinese is no translation of the English beside it.

    Every finding has its turn as the cause that is answered.
    """
    # Nothing is redacted here, which takes long: a reply shows no fact beyond its findings.
    nothing = Snapshot({}, ProbeRuns(), tables="", origin="recorded", redacted=True)
    shown = msgspec.structs.replace(report, snapshot=nothing)
    return [
        pair
        for finding in shown.standing
        for pair in _beside(msgspec.structs.replace(shown, root_causes=(finding.slug,)))
        if pair[0] != pair[1] and pair not in _TRANSLATIONS
    ]


def _beside(report: Report) -> Iterator[tuple[str, str]]:
    english, chinese = _instructions(reply(report)), _instructions(reply(report, "zh"))
    return zip_longest(english, chinese, fillvalue="")


def _instructions(text: str) -> list[str]:
    """Return the sentences of the fixes: from "What to do" up to what to send otherwise."""
    paragraphs = text.rstrip("\n").split("\n\n")
    first = next((at for at, one in enumerate(paragraphs) if one.startswith(tuple(_DO))), None)
    if first is None:
        return []
    lead = next(one for one in _DO if paragraphs[first].startswith(one))
    paragraphs[first] = paragraphs[first].removeprefix(lead)
    end = next(at for at, one in enumerate(paragraphs) if one.startswith(_OTHERWISE))
    return [one for one in paragraphs[first:end] if not one.startswith(_BESIDE)]


_BESIDE = ("```", "**Caution.**", "**注意：")  # noqa: RUF001  # commands, and their cautions
_OTHERWISE = (
    "If that does not help",
    "如果没有解决",
    "It may also be",
    "也可能是",
    "`gpucheck-report/",
)
_TRANSLATIONS = {
    (escaped(fix.text), escaped(fix.zh))
    for finding in all_messages().values()
    for fix in (
        *finding.fixes,
        *finding.named_fixes,
        *(one for message in finding.messages for one in message.fixes),
    )
}
