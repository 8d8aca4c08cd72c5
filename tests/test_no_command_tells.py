"""No command writes what is private, in any of the formats that are meant to be shared."""

import asyncio
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import planted_machine
import pytest
from broken_torch import break_torch
from each import each
from planted_machine import LOG, PRIVATE

from gpucheck import cli
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.machine import Host
from gpucheck.programs import examiner
from gpucheck.programs.questions import Setting

FILES = {
    "Dockerfile": (
        "FROM nvidia/cuda:11.8.0-base\nENV HF_TOKEN=hf_LkJhGfDsAqWeRtYuIoPzXcVbNm\n"
        "RUN pip install torch==2.9.1+cu130 --index-url "
        "https://ci:q1W2e3R4@pypi.velden-lab.nl/simple\n"
    ),
    "requirements.txt": (
        "--index-url https://ci:q1W2e3R4@pypi.velden-lab.nl/simple\ntorch==2.9.1\n"
        "torchvision==0.10\n"
    ),
}
ERROR = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
KEYS = ("LkJhGfDs", "ZzTy7Wm", "aB3dE5fG", "K7MDENG", "hunter22x", "Tr0ub4dor")
"""The passwords, tokens and keys in ``LOG``."""
OF_COMMANDS = re.compile(r"/home/[\w./-]+|https://pypi\.velden-lab\.nl/simple")
"""What a command that is run as it stands must name."""
Run = Callable[..., str]


def _failed(_host: Host, snapshot: Snapshot, *_more: object, **_options: object) -> Snapshot:
    """Return what a self-test finds that is killed while it prints."""
    result = SelfTest(
        name="matmul", status="crashed", device="cuda:0", stage="copy", kind="cuda-error",
        detail=f"{ERROR}; {LOG}", data={"printed": LOG, "message": LOG},
    )  # fmt: skip
    return snapshot.with_section(SelfTests(level="quick", devices=["cuda:0"], results=[result]))


@pytest.fixture(name="run")
def on_the_planted_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Run:
    host = planted_machine.host()
    for user in ("doctor.collector", "machine.target"):  # else they keep what replaces LiveHost
        importlib.import_module(f"gpucheck.{user}")
    monkeypatch.setattr("gpucheck.machine.LiveHost", lambda *_: host)
    monkeypatch.setattr("gpucheck.doctor.commands.selftest.selftests_alone", _failed)
    monkeypatch.chdir(tmp_path)
    for name, text in {**FILES, "ticket.txt": f"$ nvidia-smi\n{ERROR}\n{LOG}{ERROR}\n"}.items():
        (tmp_path / name).write_text(text)

    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as end:
            cli.main(words)
        assert end.value.code in (0, 1, 3), capsys.readouterr().err
        return capsys.readouterr().out

    return run


def private_in(text: str) -> list[str]:
    return [secret for secret in PRIVATE if secret.lower() in text.lower()]


def test_the_machine_is_planted(run: Run) -> None:
    """What is kept as it is has them all: else the other tests would find nothing."""
    assert set(PRIVATE) - {"q1W2e3R4", "hmoss", "pr0xYpw"} <= set(
        private_in(run("collect", "--no-redact"))
    )


@pytest.mark.parametrize("form", ["json", "markdown", "junit", "html"])
@pytest.mark.parametrize("command", ["check", "selftest"])
def test_a_report(run: Run, command: str, form: str) -> None:
    text = run(command, *(("--no-selftest",) if command == "check" else ()), "--format", form)
    assert "torch" in text
    assert private_in(text) == []


def test_collect(run: Run) -> None:
    text = run("collect")
    assert json.loads(text)["redacted"]
    assert private_in(text) == []


@pytest.mark.process  # a host that records is asked by children, as a live one is
def test_a_recorded_machine(run: Run, tmp_path: Path) -> None:
    run("collect", "--record", "machine")
    files = [file for file in (tmp_path / "machine").rglob("*") if file.is_file()]
    assert {"host.json", "env.json", "expect.json"} <= {file.name for file in files}
    for file in files:
        assert (
            private_in(f"{file.relative_to(tmp_path)}\n{file.read_bytes().decode('latin-1')}") == []
        )


@pytest.mark.parametrize("form", ["json", "html"])
@pytest.mark.parametrize("before", [("collect",), ("collect", "--no-redact")])
def test_diff(run: Run, before: tuple[str, ...], form: str) -> None:
    run(*before, "-o", "before.json")
    saved = json.loads(Path("before.json").read_text())
    saved["facts"]["system"]["hostname"] = "tannhauser-9"
    saved["facts"]["environment"]["variables"]["PYTHONPATH"] = "/data/heimdall/old"
    Path("before.json").write_text(json.dumps(saved))
    text = run("diff", "before.json", "--format", form)
    assert "PYTHONPATH" in text
    if "--no-redact" in before:  # what another wrote into a redacted file is not known as private
        assert private_in(text) == []


def test_baseline(run: Run, tmp_path: Path) -> None:
    run("baseline", "save", "--anyway", "--no-selftest", "--fleet", ".")
    (file,) = tmp_path.glob("sparrowhawk*.json")
    state = json.loads(file.read_text())
    assert state.pop("known_good")["host"].startswith("sparrowhawk")  # whose state it is
    assert private_in(json.dumps(state)) == []
    run("collect", "--no-redact", "-o", "before.json")
    text = run("baseline", "compare", "before.json", "--no-selftest", "--format", "json")
    assert private_in(text) == []


@pytest.mark.parametrize("form", ["terminal", "json"])
def test_recommend(run: Run, form: str) -> None:
    """Its commands are run as they stand, so it names this machine's paths and its index."""
    text = run("recommend", "--format", form)
    assert "torch" in text
    assert private_in(OF_COMMANDS.sub("", text)) == []


@pytest.mark.parametrize("form", ["terminal", "json", "github"])
def test_lint(run: Run, form: str) -> None:
    text = run("lint", *FILES, "--gpu", "RTX 5090", "--format", form)
    assert "torch" in text
    assert private_in(text) == []


@pytest.mark.parametrize(
    "options",
    [(), ("--lines",), ("--reply",), ("--reply", "--lang", "zh"), ("--format", "json"),
     ("--format", "markdown"), ("--format", "html"), ("-v",)],
)  # fmt: skip
def test_triage(run: Run, options: tuple[str, ...]) -> None:
    text = run("triage", "ticket.txt", *options)
    assert len(text) > len(ERROR)
    assert private_in(text) == []


@pytest.mark.parametrize("options", [(), ("--summary",), ("--summary", "--format", "html")])
def test_triage_of_a_batch(run: Run, options: tuple[str, ...]) -> None:
    assert private_in(run("triage", "--batch", ".", *options)) == []


@pytest.mark.parametrize("form", ["json", "markdown", "html"])
def test_triage_of_a_saved_machine(run: Run, form: str) -> None:
    run("collect", "--no-redact", "-o", "machine.json")
    assert private_in(run("triage", "machine.json", "--format", form)) == []


@pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="needs mcp")
@each(
    ("tool", "arguments"),
    [
        ("check", {}),
        ("check", {"gpus": 9, "purpose": "build"}),
        ("compat", {"facts": {"gpu": "RTX 5090", "driver": "535.104.05", "torch": "2.5.1"}}),
        ("triage", {"text": f"{LOG}{ERROR}\n{LOG}"}),
        ("recommend", {}),
    ],
)
def test_an_assistant(
    monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any]
) -> None:
    """Of ``recommend`` as above: its command is run as it stands."""
    mcp = importlib.import_module("mcp")
    host = planted_machine.host()
    monkeypatch.setattr("gpucheck.programs.examiner.LiveHost", lambda *_: host)
    monkeypatch.setattr(  # here, not in a process that asks the machine of the test
        "gpucheck.programs.examination.examined",
        lambda order, _seconds: examiner._examined(order),  # noqa: SLF001
    )
    mcp_server = importlib.import_module("gpucheck.programs.mcp_server")

    async def asked() -> Any:  # noqa: ANN401  # of the SDK
        async with mcp.Client(mcp_server.server(Setting())) as client:
            return await client.call_tool(tool, arguments)

    answer = asyncio.run(asyncio.wait_for(asked(), 90))
    assert not answer.is_error
    text = answer.content[0].text + json.dumps(answer.structured_content)
    assert "torch" in text.lower()
    assert private_in(OF_COMMANDS.sub("", text) if tool == "recommend" else text) == []


@pytest.mark.gate
@pytest.mark.parametrize("form", ["terminal", "json", "junit"])
@pytest.mark.parametrize("end", ["raise RuntimeError(said)", "__import__('os')._exit(9)"])
def test_what_a_rank_says_in_a_preflight(tmp_path: Path, form: str, end: str) -> None:
    """Its operators need the names of hosts; nobody needs a password or a key."""
    pytest.importorskip("torch")
    fault = f"said = {LOG!r}; print(said, file=sys.stderr, flush=True); {end}"
    site = break_torch(tmp_path / "site", "HOME", str(tmp_path), fault)
    command = [
        sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu", "--ranks", "2", "-v",
        "--format", form, "--each", "each", "--metrics", "metrics", "--record", "record",
        "--bundle", "bundle.zip", "--timeout", "60",
    ]  # fmt: skip
    environ = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(site)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=90, check=False
    )
    each = sorted((tmp_path / "each").iterdir())
    assert len(each) == 2, done
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        packed = [bundle.read(name).decode() for name in bundle.namelist()]
    files = [*each, tmp_path / "metrics", tmp_path / "record"]
    shown = "\n".join((done.stdout, done.stderr, *packed, *(file.read_text() for file in files)))
    assert "(hidden)" in shown
    assert [key for key in KEYS if key in shown] == []


def test_msgspec_reads_what_was_told(run: Run) -> None:
    """A redacted report is still one: replacing breaks no form."""
    assert msgspec.json.decode(run("check", "--no-selftest", "--format", "json"))["snapshot"]
