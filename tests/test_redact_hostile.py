"""Whatever redaction meets, it hides it; it never raises."""

import re
import time
import typing
from typing import Any

import msgspec
import pytest
from each import each
from rules_support import snapshot

from gpucheck.facts import Section
from gpucheck.facts.driver import CudaDevice, CudaDriver, MigDevice, Nvml, NvmlGpu
from gpucheck.facts.request import Pasted
from gpucheck.facts.snapshot import all_sections
from gpucheck.facts.system import HIDDEN, Environment, System
from gpucheck.facts.torch import Interpreter
from gpucheck.output.redact import Redaction, redact, redact_text
from gpucheck.output.redact.pseudonyms import Pseudonyms

ODD = [
    "", " ", "GPU-", "MIG-", "MIG-GPU-", "MIG-GPU-/1/2", "GPU-/3", "gpu-", "GPU-x", "GPU--", ",",
    ",,", "GPU-,GPU-", "MIG-GPU-,0", "GPU-8f2c1c55", "GPU-(", "GPU-\\", "GPU-\u0130", "²", "/",
    "//", "\\\\", "C:\\", "/home/", "/home//x", "./", "..", "\n", "\x00", "[", "(?P<uuid>", "$",
    "\udcff",
]  # fmt: skip
"""What a broken driver, an empty variable or somebody hostile may put into any field."""


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a fault in our own code be seen, which else only hides a value."""
    monkeypatch.setattr("gpucheck.output.redact._or_hidden", lambda replace, value: replace(value))


@pytest.mark.usefixtures("unguarded")
@each("uuid", ODD, shards=2)
@each("mask", ODD)
def test_lists_of_devices_with_odd_uuids(uuid: str, mask: str) -> None:
    nvml_facts = Nvml(gpus=[NvmlGpu(index=0, uuid=uuid, mig_devices=[MigDevice(uuid=mask)])])
    two = CudaDriver(devices=[CudaDevice(uuid=mask)])
    variables = Environment(variables={"CUDA_VISIBLE_DEVICES": mask})
    found = redact(snapshot(nvml_facts, two, variables))
    assert "8f2c1c55" not in repr(found.as_json())


@pytest.mark.usefixtures("unguarded")
@each("text", ["a b", "", "GPU- is gone", "/home/alice/x", "(GPU-)", "x\ny z"])
def test_a_text_after_an_odd_uuid(text: str) -> None:
    machine = snapshot(
        System(os="linux", user="alice"),
        Environment(variables={"CUDA_VISIBLE_DEVICES": "GPU-,MIG-"}),
    )
    assert redact_text(text, machine) == text.replace("alice", "user1")


@pytest.mark.usefixtures("unguarded")
@each(
    ("name", "pseudonym"),
    [("node7.", "host1."), (".", "host1."), ("node7.example.", "host1.domain1"), ("..", None)],
)
def test_a_machine_name_with_a_final_dot(name: str, pseudonym: str | None) -> None:
    """The root of the domain name system is a dot: ``hostname`` may print it."""
    found = redact(snapshot(System(os="linux", hostname=name))).get(System).hostname or ""
    assert "node7" not in found
    assert pseudonym is None or found == pseudonym


def test_what_cannot_be_replaced_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours in one way of replacing must not lose the report, nor let the value out."""

    def broken(_self: Pseudonyms, _value: str) -> str:
        raise KeyError("")

    monkeypatch.setattr(Pseudonyms, "path", broken)
    machine = snapshot(System(os="linux", user="alice"), Interpreter(executable="/home/alice/x"))
    redaction = Redaction(machine)
    assert redaction.snapshot().get(Interpreter).executable == HIDDEN
    assert "alice" not in redaction.text("it is /home/alice/x")


def _strings(kind: type[Section], word: str) -> Section:
    """Return a section in which every field that takes one has this word."""
    fields: dict[str, Any] = {}
    for field, hint in typing.get_type_hints(kind).items():
        for value in (word, [word], (word,), {word: word}):
            if field in kind.__struct_fields__ and field not in ("sources", "problems"):
                try:
                    fields[field] = msgspec.convert(value, type=hint)
                except (msgspec.ValidationError, UnicodeEncodeError):
                    continue
                break
    return kind(**fields, sources={"*": word}, problems={"*": word})


@pytest.mark.hostile
@pytest.mark.usefixtures("unguarded")
@each("word", ODD)
def test_every_field_of_every_section_may_be_odd(word: str) -> None:
    sections = [_strings(kind, word) for kind in all_sections().values()]
    machine = snapshot(*sections)
    assert redact(machine).redacted
    for text in ODD:
        redact_text(text, machine)


@pytest.mark.hostile
@pytest.mark.usefixtures("unguarded")
def test_arbitrary_machines() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    some = pytest.importorskip("hypothesis.strategies")
    words = some.one_of(some.sampled_from(ODD), some.text(max_size=12)).map(str)
    lists = some.lists(words, max_size=4).map(",".join)

    @hypothesis.settings(max_examples=300, deadline=None, database=None)  # type: ignore[untyped-decorator]
    @hypothesis.given(words, words, lists, lists, words)  # type: ignore[untyped-decorator]
    def ask(user: str, host: str, mask: str, paths: str, text: str) -> None:
        machine = snapshot(
            System(os="linux", user=user, hostname=host, home=f"/home/{user}"),
            Environment(variables={"CUDA_VISIBLE_DEVICES": mask, "LD_LIBRARY_PATH": paths}),
            Nvml(gpus=[NvmlGpu(uuid=word) for word in mask.split(",")]),
        )
        redact(machine)
        redact_text(f"{text} {mask} {paths}", machine)
        redact_text(text, machine)

    ask()


SECRET = re.compile(r"s3cr3t")


def test_sixty_secrets_planted_everywhere_are_gone() -> None:
    names = [f"SOME_{word}_{at}" for at in range(20) for word in ("TOKEN", "PATH", "DIR")]
    home = "/home/s3cr3tuser"
    variables = {name: f"{home}/s3cr3t{at}" for at, name in enumerate(names)}
    machine = snapshot(
        System(os="linux", user="s3cr3tuser", home=home, hostname="s3cr3thost.s3cr3t.example"),
        Environment(variables=variables),
        Interpreter(executable=f"{home}/bin/python", sys_path=[*variables.values()]),
    )
    assert not SECRET.search(repr(redact(machine).as_json()))
    for value in variables.values():
        assert not SECRET.search(redact_text(f"cannot open {value}: by s3cr3tuser", machine))


@pytest.mark.hostile
@each(
    "part",
    ["a@b:", "a-", "a.", "Aa Bb <a@", "curl -", "kubectl ", "C:\\a b ", "10.0.0.1 a1 b2\n", "...a/",
     "x-1:/a /b ", "NODELIST=a[1,", "://a/", "--user ", "a-bcdfghjklm-bcdfg"],
)  # fmt: skip
def test_no_form_takes_the_square_of_a_text(part: str) -> None:
    text = (part * (1 << 15))[: 1 << 15]
    begun = time.process_time()
    redact(snapshot(Pasted(readers=[text])))
    assert time.process_time() - begun < 5


@pytest.mark.hostile
def test_endless_texts_are_hidden_and_not_searched_for_ever() -> None:
    texts = [
        f"host n{at} key= user u{at} by to ://a@b]: 1.2.3.4 error:" * 4 for at in range(15_000)
    ]
    begun = time.process_time()
    found = redact(snapshot(Pasted(readers=texts))).get(Pasted).readers or []
    assert time.process_time() - begun < 60
    assert found[-1] == HIDDEN
    assert found[0] != HIDDEN
