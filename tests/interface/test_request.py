"""A field of a request is declared once: the options and the checks of a program follow from it."""

import inspect
from typing import Annotated, Any, Literal

import click
import msgspec
import pytest
from click.testing import CliRunner
from each import each

import gpucheck
from gpucheck.cli import gpucheck as group
from gpucheck.cluster.request import PreflightRequest
from gpucheck.describe.recommend_options import RecommendRequest
from gpucheck.doctor.checking import CheckRequest
from gpucheck.doctor.selftests import SelftestRequest
from gpucheck.interface.errors import UsageError
from gpucheck.interface.options import options_of
from gpucheck.interface.request import Field, Option, fields, request

REQUESTS: dict[str, type[msgspec.Struct]] = {
    "check": CheckRequest, "recommend": RecommendRequest, "selftest": SelftestRequest,
    "preflight": PreflightRequest,
}  # fmt: skip


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One field of each kind."""

    count: Annotated[int, msgspec.Meta(ge=1, le=4), Option("How many.", "N")] | None = None
    kind: Annotated[Literal["a", "b"], Option("Which.", also=(("x", "b"),))] = "a"
    really: Annotated[bool | None, Option("Whether.")] = None
    also: Annotated[bool, Option("Also.")] = False
    name: Annotated[tuple[str, ...], Option("Names.", flag="--of")] = ()
    text_of: Annotated[str, Option("Text.")] = ""
    inner: float = 1.0


def test_the_fields_of_a_request() -> None:
    found = {field.name: field for field in fields(Sample)}
    assert list(found) == ["count", "kind", "really", "also", "name", "text_of", "inner"]
    assert found["count"] == Field(
        name="count", kind=int, default=None, least=1, most=4, is_optional=True,
        option=Option("How many.", "N"),
    )  # fmt: skip
    assert (found["kind"].choices, found["kind"].is_optional) == (("a", "b"), False)
    assert (found["name"].kind, found["inner"].option) == (tuple, None)


def test_the_options_of_a_request() -> None:
    given: dict[str, Any] = {}

    @click.command()
    @options_of(Sample)
    def command(**options: object) -> None:
        given.update(options)

    words = [
        "--count", "4", "--kind", "X", "--no-really", "--also",
        "--of", "p", "--of", "q", "--text-of", "z",
    ]  # fmt: skip
    assert CliRunner().invoke(command, words).exit_code == 0
    assert request(Sample, **given) == Sample(
        count=4, kind="b", really=False, also=True, name=("p", "q"), text_of="z"
    )
    assert CliRunner().invoke(command, []).exit_code == 0
    assert request(Sample, **given) == Sample()
    for wrong in (["--count", "5"], ["--count", "0"], ["--kind", "c"], ["--inner", "2"]):
        assert CliRunner().invoke(command, wrong).exit_code == 2
    page = CliRunner().invoke(command, ["--help"]).output
    assert "[default: a]" in page
    assert page.index("--count N") < page.index("--kind") < page.index("--text-of")


@each(
    ("values", "words"),
    [
        ({"count": 5}, "count must be a whole number from 1 to 4, not 5."),
        ({"count": True}, "count must be a whole number from 1 to 4, not True."),
        ({"kind": "c"}, "kind must be a or b, not 'c'."),
        ({"kind": None}, "kind must be a or b, not None."),
        ({"really": 1}, "really must be None, True or False, not 1."),
        ({"name": [1]}, "name must be a text or a list of texts."),
        ({"text_of": 1}, "text_of must be a text, not 1."),
    ],
)
def test_values_of_a_program_are_checked(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as error:
        request(Sample, **values)
    assert str(error.value) == words


def test_signatures_for_programs_have_the_defaults_of_the_requests() -> None:
    for name, kind in REQUESTS.items():
        defaults = {field.name: field.default for field in fields(kind) if field.option}
        signature = inspect.signature(getattr(gpucheck, name)).parameters
        shared = defaults.keys() & signature.keys()
        assert len(shared) > 4, name
        # names may be given as a list there, and () is the empty list
        wrong = [
            option
            for option in shared
            if (signature[option].default or "") != (defaults[option] or "")
        ]
        assert [option for option in wrong if signature[option].default != ()] == [], name


def test_commands_have_an_option_for_each_field() -> None:
    for name, kind in REQUESTS.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        options = {parameter.name for parameter in command.params}
        assert {field.name for field in fields(kind) if field.option} <= options, name
