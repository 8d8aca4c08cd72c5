import re

import msgspec
import report_samples as samples
from each import each
from markdown_support import outside_code

from gpucheck.facts.claims import CommandClass, Confidence, Fix, Severity
from gpucheck.findings.form import Evidence, Finding
from gpucheck.language import say
from gpucheck.output import markdown
from gpucheck.output.html import elements
from gpucheck.output.html.elements import el, rendered
from gpucheck.output.markdown import block, code, escaped, written
from gpucheck.output.report_blocks import fixes


@each(
    ("text", "safe"),
    [
        ("CUDA 12.8 (cu128), built-in", "CUDA 12.8 (cu128), built-in"),
        ("a|b", "a\\|b"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("&lt;", "&amp;lt;"),
        ("@torvalds", "@&#8203;torvalds"),
        ("pytorch#12", "pytorch#&#8203;12"),
        ("GH-12", "GH-&#8203;12"),
        ("https://evil.example", "https&#58;//evil.example"),
        ("www.evil.example", "www&#46;evil.example"),
        ("https://nvidia.com.evil.example/x", "https&#58;//nvidia.com.evil.example/x"),
        ("https://nvidia.com@evil.example", "https&#58;//nvidia.com@&#8203;evil.example"),
        ("https://nvidia.com:80@evil.example", "https&#58;//nvidia.com:80@&#8203;evil.example"),
        ("[a](b)", "\\[a\\](b)"),
        ("`x` *y* _z_ ~w~ $q$", "\\`x\\` \\*y\\* \\_z\\_ \\~w\\~ \\$q\\$"),
        ("a\n\n# b", "a # b"),
        ("back\\`tick", "back\\\\\\`tick"),
    ],
)
def test_untrusted_text_is_no_markup(text: str, safe: str) -> None:
    assert escaped(text) == safe


def test_code_and_pages_in_sentences_of_ours_are_not_escaped() -> None:
    ours = say("Run `wsl --shutdown` for {what}. See https://docs.nvidia.com/x_y/.", what="`x` *y*")
    assert escaped(ours) == (
        "Run `wsl --shutdown` for \\`x\\` \\*y\\*. See <https://docs.nvidia.com/x_y/>."
    )
    assert escaped(say("{all}", all=ours)) == escaped(ours)
    assert escaped(say("Look at `@all [x](y)`.")) == "Look at \\`@&#8203;all \\[x\\](y)\\`."
    assert escaped("见 https://pytorch.org/get-started/locally/。") == (
        "见 <https://pytorch.org/get-started/locally/>。"
    )


def test_code_cannot_be_left() -> None:
    assert code("a`b\nc") == "`` a`b c ``"
    assert code("``` # x") == "```` ``` # x ````"
    assert code("") == "(nothing)"
    assert block(("echo 1",)) == "```sh\necho 1\n```"
    assert block(("echo ````\n# x", "b")) == "`````sh\necho ```` # x\nb\n`````"


@each("name", samples.ALL)
def test_nothing_private_is_in_it(name: str) -> None:
    text = markdown.render(samples.ALL[name]())
    for value in ("alice", "h100-node-3", *samples.UUIDS):
        assert value not in text


def test_it_has_verdict_findings_fixes_and_facts() -> None:
    text = markdown.render(samples.old_driver())
    assert text.startswith("**BROKEN**: Driver 515.105.01 (CUDA 11.7) is older than")
    assert "### error: driver-too-old" in text
    assert "- `nvml.driver_release = 515.105.01` from `NVML`" in text
    assert "```sh\nsudo apt-get update\n" in text
    assert re.search(
        r"^\| Driver \| error \| 515\.105\.01, .* \| driver-too-old \|$", text, re.MULTILINE
    )
    assert re.search(r"^gpucheck [0-9.]+, tables ", text, re.MULTILINE)


def test_open_questions_are_listed() -> None:
    assert (
        "- Is there an NVIDIA GPU? Does a working driver serve the GPU? Does the PyTorch build run"
        in (markdown.render(samples.unknown()))
    )


def test_a_hostile_finding_stays_in_its_place() -> None:
    evil = "``` </details> @everyone | x \n## fake\n\x1b[2J"
    finding = Finding(
        slug="torch-missing",
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        headline=evil,
        evidence=(Evidence(fact="torch.version", value=evil, source=evil),),
        fixes=(Fix(text=evil, commands=(evil,), verify=evil),),
    )
    report = samples.report(samples.torch(evil))
    report = msgspec.structs.replace(
        report, verdict="broken", root_causes=("torch-missing",), findings=(finding,)
    )
    text = markdown.render(report)
    assert "\x1b" not in text
    outside = outside_code(text)
    assert "@everyone" not in outside
    assert "</details>" not in outside
    assert "\n## fake" not in text


@each(
    ("commands", "classes"),
    [
        (("ps -o user,pid -p 7", "kill 7"), ("reads", "interrupts")),
        (("sudo apt-get install -y nvidia-open", "sudo reboot"), ("interrupts", "interrupts")),
    ],
)
def test_what_must_not_be_pasted_together_is_in_two_blocks(
    commands: tuple[str, str], classes: tuple[CommandClass, ...]
) -> None:
    blocks = fixes([Fix(text="Do it.", commands=commands, classes=classes)])
    _text, first, then, second, _verify = written(blocks)
    assert (first, second) == (block(commands[:1]), block(commands[1:]))
    assert then == "Then, when it disturbs nobody:"
    page = rendered(el("div", *elements.written(blocks)))
    assert page.index(commands[0].split()[-1]) < page.index(then) < page.index(commands[1])
