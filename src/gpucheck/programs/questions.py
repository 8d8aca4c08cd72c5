"""Questions that an assistant may ask: each is typed, only reads, and starts no program by name.

Nothing here knows how the questions arrive. An answer is a text and data, both in English.
"""

import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpucheck.describe.recommend_options import (
    Arch,
    Driver,
    DriverCuda,
    Glibc,
    JetPack,
    OperatingSystem,
    PythonVersion,
    Tool,
    Torch,
)
from gpucheck.doctor.checking import CheckRequest, Gpus, Purpose
from gpucheck.engine import OpenQuestion, Verdict
from gpucheck.facts import builtins
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.findings import RETIRED, all_rules
from gpucheck.interface.errors import UsageError, meant, printable, with_hint
from gpucheck.language import say
from gpucheck.output import pages
from gpucheck.output.words import printable as printable_line
from gpucheck.programs import functions
from gpucheck.programs.examiner import Order
from gpucheck.programs.results import CheckReport
from gpucheck.tables.meant_products import same_name

# Chosen, and promised in docs/programs/mcp.md: what an assistant sends comes from a conversation,
# and stays in memory as a whole, unlike a file of triage.
_LONGEST_TEXT = 16 << 20
_LONGEST_FACTS = 1 << 20
_Short = Annotated[str, Meta(max_length=200)]
_Names = Annotated[list[_Short], Meta(max_length=200)]
# Half of the command's limit, and promised in docs/programs/mcp.md: somebody waits for the
# assistant, and its client may have a limit of its own.
_CHECK_SECONDS = 60.0


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever starts the server has decided; no question can change it."""

    python: str | None = None
    tables: str | None = None
    wheel_mirror: str = ""
    redacted: bool = True


class Evidence(msgspec.Struct):
    """A fact, its value, and where it was read."""

    fact: str
    value: Any
    source: str


class FindingSaid(msgspec.Struct):
    """What was found: what it is based on, and what fixes it."""

    slug: str
    severity: Severity
    confidence: Confidence
    headline: str
    evidence: list[Evidence]
    fixes: list[Fix]


class Diagnosis(msgspec.Struct):
    """A verdict, the findings that stand, and what is unknown."""

    verdict: Verdict
    root_causes: list[str]
    findings: list[FindingSaid]
    open_questions: list[OpenQuestion]
    text: str


class Page(msgspec.Struct):
    """The page of a finding."""

    slug: str
    text: str


class Answer(msgspec.Struct, frozen=True):
    """What to show, and the same as data; nothing in either is hidden from a person."""

    text: str
    data: dict[str, Any]

    def __post_init__(self) -> None:
        """Make visible what an assistant would read, and a person not see."""
        msgspec.structs.force_setattr(self, "text", _visible(self.text))
        msgspec.structs.force_setattr(self, "data", _visible(self.data))


class Check(msgspec.Struct, forbid_unknown_fields=True):
    """Diagnose this machine: its NVIDIA GPUs, driver, and the PyTorch of one Python.

    Nothing is computed on a GPU, and nothing is changed. The answer has the root cause first, then
    its evidence and the commands that fix it.
    """

    gpus: Gpus = None
    purpose: Purpose = "run"
    only: Annotated[_Names, Meta(description="Only these findings.")] = []
    skip: Annotated[_Names, Meta(description="Not these findings.")] = []

    def answer(self, setting: Setting) -> Answer:
        """Examine this machine."""
        wish = CheckRequest(
            gpus=self.gpus, purpose=self.purpose, only=tuple(self.only), skip=tuple(self.skip),
            selftest=False, by_program=True, timeout=_CHECK_SECONDS,
            wheel_mirror=setting.wheel_mirror,
        )  # fmt: skip
        order = Order(what="check", python=setting.python, tables=setting.tables, wish=wish)
        return _diagnosis(functions.checked(wish, order), setting)


class Compat(msgspec.Struct, forbid_unknown_fields=True):
    """Judge a machine that you describe: do this GPU, driver, PyTorch and Python fit together?"""

    facts: Annotated[
        dict[str, Any],
        Meta(
            min_length=1,
            max_length=200,
            description='Keys such as {"gpu": "RTX 4090", "driver": "535.104.05", "torch": '
            '"2.9.1"}; null means that it does not exist. A wrong key is answered with the list '
            "of keys.",
        ),
    ]

    def answer(self, setting: Setting) -> Answer:
        """Judge it."""
        try:
            length = len(json.dumps(self.facts))
        except (TypeError, ValueError, RecursionError) as error:  # from a program, or very deep
            raise UsageError(
                say("facts is not JSON: {error}.", error=printable(str(error)))
            ) from error
        if length > _LONGEST_FACTS:
            raise UsageError(say("facts has more than {size} MiB.", size=_LONGEST_FACTS >> 20))
        return _diagnosis(functions.compat(self.facts, tables=setting.tables), setting)


class Recommend(msgspec.Struct, forbid_unknown_fields=True):
    """Return the exact command that installs a PyTorch that works.

    With gpu, os, arch, glibc or jetpack you describe a machine. Otherwise it is this one.
    """

    torch: Torch = ""
    gpu: Annotated[
        _Names, Meta(description='Each GPU, by product ("RTX 4090") or compute capability ("8.9").')
    ] = []
    driver: Driver = None
    driver_cuda: DriverCuda = None
    python_version: PythonVersion = None
    os: OperatingSystem = None
    arch: Arch = None
    glibc: Glibc = None
    jetpack: JetPack = None
    companions: Annotated[
        list[Literal["torchvision", "torchaudio"]], Meta(description="Also install these.")
    ] = []
    tool: Tool = "pip"

    def answer(self, setting: Setting) -> Answer:
        """Find the command."""
        asked = msgspec.structs.asdict(self)
        found = functions.recommend(
            **asked,
            python=setting.python,
            tables=setting.tables,
            wheel_mirror=setting.wheel_mirror,
            timeout=_CHECK_SECONDS,
        )
        return Answer(found.text("en"), found.as_data())


class Triage(msgspec.Struct, forbid_unknown_fields=True):
    """Name the cause from a pasted text: program output, logs, a ticket. Nothing in it is run."""

    text: Annotated[str, Meta(description="The text, as complete as possible.")]

    def answer(self, setting: Setting) -> Answer:
        """Read the text."""
        if len(self.text) > _LONGEST_TEXT:
            raise UsageError(say("text has more than {size} MiB.", size=_LONGEST_TEXT >> 20))
        return _diagnosis(functions.triage(self.text), setting)


class Explain(msgspec.Struct, forbid_unknown_fields=True):
    """Return the page of a finding: what it means, its symptoms, its causes and the fix."""

    slug: Annotated[_Short, Meta(description='The name of the finding, such as "driver-too-old".')]

    def answer(self, _setting: Setting) -> Answer:
        """Find the page."""
        slug = same_name(self.slug, (*all_rules(), *RETIRED.names)) or self.slug
        text = pages.explain(slug)
        if text is None:
            refused = say("there is no finding called {slug}.", slug=repr(printable(slug)))
            raise UsageError(with_hint(refused, meant(slug, all_rules())))
        return Answer(text, {"slug": slug, "text": text})


class List(msgspec.Struct, forbid_unknown_fields=True):
    """List every finding that gpucheck can name, every probe and every self-test."""

    def answer(self, _setting: Setting) -> Answer:
        """List them."""
        return Answer(pages.listing(), pages.listing_json())


Question = Check | Compat | Recommend | Triage | Explain | List
QUESTIONS: dict[str, type[Question]] = {
    kind.__name__.lower(): kind for kind in (Check, Compat, Recommend, Triage, Explain, List)
}
"""The questions by name."""
_ANSWERS: dict[str, Any] = {
    "check": Diagnosis, "compat": Diagnosis, "triage": Diagnosis, "explain": Page,
}  # fmt: skip
"""The types of their data; the others have a schema of ``gpucheck schema``."""
_DOCUMENTS = {"recommend": "recommendation", "list": "list"}


def asked(name: str, arguments: dict[str, Any]) -> Question:
    """Return a question with its arguments.

    Raises:
        UsageError: there is no such question, or an argument makes no sense.
    """
    kind = QUESTIONS.get(name)
    if kind is None:
        refused = say("There is no question called {name}.", name=repr(printable(name)))
        raise UsageError(with_hint(refused, meant(name, QUESTIONS)))
    try:
        question: Question = msgspec.convert(arguments, kind)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            say("{name}: {problem}.", name=name, problem=printable(str(error)))
        ) from error
    return question


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a question's arguments."""
    return _whole(QUESTIONS[name])


def schema_of_answer(name: str) -> dict[str, Any]:
    """Return the JSON Schema of the data of an answer."""
    if name in _DOCUMENTS:
        from gpucheck.programs.schema import schema  # noqa: PLC0415

        return schema(_DOCUMENTS[name])
    return _whole(_ANSWERS[name])


def _whole(kind: type[Any]) -> dict[str, Any]:
    (reference,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    own = parts.pop(reference["$ref"].rpartition("/")[2])
    own.pop("description", None)  # of a question: the tool has it
    return {**own, **({"$defs": parts} if parts else {})}


def _diagnosis(report: CheckReport, setting: Setting) -> Answer:
    """Return what an assistant needs of a report; by default without your names and paths."""
    public = report.public() if setting.redacted else report
    text = public.markdown("en") if setting.redacted else public.text("en", verbose=0)
    diagnosis = Diagnosis(
        verdict=public.verdict,
        root_causes=list(public.root_causes),
        findings=[
            FindingSaid(
                finding.slug, finding.severity, finding.confidence, finding.headline,
                [Evidence(each.fact, each.value, each.source) for each in finding.evidence],
                list(finding.fixes),
            )
            for finding in public.standing
        ],
        open_questions=list(public.open_questions) if public.verdict == "unknown" else [],
        text=text,
    )  # fmt: skip
    data: dict[str, Any] = builtins(diagnosis)
    return Answer(text, data)


def _visible(value: Any) -> Any:  # noqa: ANN401  # JSON-like data
    if isinstance(value, str):
        return "\n".join(map(printable_line, value.split("\n")))
    if isinstance(value, dict):
        return {_visible(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list | tuple) else value
