"""``gpucheck mcp`` as an assistant meets it: through the client of the reference SDK."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from left_behind import heed_signals

from gpucheck.language.visible import is_visible

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "gpucheck", "mcp"]
NO_CUDA_CODE = "CUDA error: no kernel image is available for execution on the device"


def ask(*questions: tuple[str, dict[str, Any]], options: tuple[str, ...] = ()) -> list[Any]:
    """Ask a server these questions; the first item is its tools."""
    mcp = pytest.importorskip("mcp")

    async def asked() -> list[Any]:
        server = mcp.StdioServerParameters(
            command=COMMAND[0], args=[*COMMAND[1:], *options], env=dict(os.environ)
        )
        async with mcp.Client(server) as client:
            tools = (await client.list_tools()).tools
            calls = [client.call_tool(name, arguments) for name, arguments in questions]
            return [tools, *await asyncio.gather(*calls)]

    return asyncio.run(asyncio.wait_for(asked(), 90))


def test_the_tools_only_read() -> None:
    (tools,) = ask()
    assert [tool.name for tool in tools] == [
        "check", "compat", "recommend", "triage", "explain", "list",
    ]  # fmt: skip
    for tool in tools:
        assert tool.annotations.read_only_hint
        assert not tool.annotations.destructive_hint
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False


def test_questions_at_the_same_time() -> None:
    _tools, here, what_if, cause, page = ask(
        ("check", {"skip": ["kernel_log"]}),  # what happened on this machine is no matter here
        ("compat", {"facts": {"gpu": "RTX 5090", "driver": "535.104.05", "torch": "2.5.1"}}),
        ("triage", {"text": f"RuntimeError: {NO_CUDA_CODE}"}),
        ("explain", {"slug": "driver-too-old"}),
    )
    assert here.structured_content["verdict"] == "healthy"
    assert str(Path.home()) not in here.content[0].text
    assert what_if.structured_content["root_causes"][0] == "driver-too-old"
    fixes = what_if.structured_content["findings"][0]["fixes"]
    assert fixes
    assert cause.structured_content["root_causes"] == ["gpu-too-new-for-torch"]
    assert page.content[0].text.startswith("driver-too-old: ")
    assert not any(answer.is_error for answer in (here, what_if, cause, page))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("triage", r'{"text": "\ud800 CUDA error: out of memory \udc00\ud83d\ude00 \\\\ud800"}'),
        ("compat", r'{"facts": {"gpu\ud800": "\udfff"}}'),
        ("explain", r'{"slug": "a\uD800"}'),
        (r"\ud8ff", "{}"),
    ],
)
def test_half_of_a_character_is_answered(name: str, arguments: str) -> None:
    pytest.importorskip("mcp")
    call = f'"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}'
    begin = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05",'
        '"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
        '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin
        assert server.stdout
        watch = threading.Timer(60, server.kill)
        watch.start()
        server.stdin.write(f'{begin}{{"jsonrpc":"2.0","id":2,{call}}}\n'.encode())
        server.stdin.flush()
        assert server.stdout.readline()
        answer = json.loads(server.stdout.readline())
        watch.cancel()
        server.kill()
    assert answer["id"] == 2
    assert "result" in answer


def test_nothing_in_an_answer_is_hidden() -> None:
    text = "RuntimeError: CUDA error: out of memory \U000e0041\U000e0042\ufe0f\u3164\u202e"
    _tools, answer = ask(("triage", {"text": text}))
    printed = answer.content[0].text + json.dumps(answer.structured_content, ensure_ascii=False)
    assert "out of memory" in printed
    assert [char for char in printed if not is_visible(char) and char != "\n"] == []


def test_a_refusal_is_one_sentence() -> None:
    _tools, *refused = ask(
        ("check", {"python": "/bin/sh"}),
        ("check", {"only": ["driver-to-old"]}),
        ("triage", {"text": ""}),
        ("nonsense", {}),
        options=("--lang", "zh"),
    )
    words = ["unknown field `python`", "Did you mean driver-too-old?", "empty", "no question"]
    for answer, expected in zip(refused, words, strict=True):
        assert answer.is_error
        assert expected in answer.content[0].text
        assert "\n" not in answer.content[0].text


def test_it_ends_with_its_stdin() -> None:
    pytest.importorskip("mcp")
    done = subprocess.run(COMMAND, input=b"", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_its_stdin_is_open(number: signal.Signals) -> None:
    pytest.importorskip("mcp")
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=heed_signals,  # noqa: PLW1509
    ) as server:  # fmt: skip
        assert server.stdin
        assert server.stdout
        assert server.stderr
        server.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        server.stdin.flush()
        assert server.stdout.readline()  # it listens
        server.send_signal(number)
        try:
            assert server.wait(20) == 128 + number
            assert server.stderr.read() == b""
        finally:
            server.kill()


def test_without_the_sdk_it_says_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text(
        "raise ModuleNotFoundError('No module named mcp', name='mcp')\n"
    )
    done = subprocess.run(
        COMMAND, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: The Python of gpucheck has no MCP SDK of version 2.")
    assert "pip install '.[mcp]'" in done.stderr
    assert "pip install gpucheck" not in done.stderr
    assert done.stderr.count("\n") == 1
