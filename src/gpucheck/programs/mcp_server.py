"""The questions of an assistant as tools of the Model Context Protocol.

The SDK (``mcp``) is an extra, which only this module imports.
"""

import inspect
import io
import os
import re
import signal
from types import FrameType
from typing import NoReturn

import anyio
import anyio.to_thread
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from gpucheck._about import VERSION
from gpucheck.interface.errors import BY_SIGNAL, ENDING, AskError, words_of
from gpucheck.language import say, speaking
from gpucheck.programs import questions
from gpucheck.programs.questions import QUESTIONS, Setting
from gpucheck.ticket.given import IntakeError

_INSTRUCTIONS = (
    "gpucheck finds out why PyTorch does not use the NVIDIA GPUs of a machine properly, and names "
    "the exact fix. Use check for this machine, triage for an error message or log, compat and "
    "recommend for a machine that is described. A verdict of unknown is an answer: do not guess."
)
# Chosen: the list of all keys of compat fits, which the answer to a wrong key has.
_LONGEST_REFUSAL = 4000
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<alone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""An escape of JSON; ``alone`` is half of a pair of surrogates, which stands for no character."""


def serve(setting: Setting) -> None:
    """Answer on stdin and stdout until stdin ends, or a signal ends the process.

    The event loop's own handler of Ctrl-C would wait for the thread that reads stdin.
    """
    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    anyio.run(_serve, server(setting))


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """End at once: an exception in a task is told as a group of them, or waits for stdin."""
    os._exit(BY_SIGNAL + number)


def server(setting: Setting) -> "Server[dict[str, object]]":
    """Return the server."""

    async def list_tools(
        _context: ServerRequestContext[dict[str, object]],
        _params: types.PaginatedRequestParams | None,
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(name) for name in QUESTIONS])

    async def call_tool(
        _context: ServerRequestContext[dict[str, object]], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(_answered, params, setting)

    return Server(
        "gpucheck",
        version=VERSION,
        title="gpucheck",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


class _Asked(io.TextIOWrapper):
    """The lines of stdin, so that the SDK can read each.

    It answers no message that it cannot parse, and half of a pair of surrogates is such a message
    for it: whoever asked would wait for ever.
    """

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as its base has it
        """Return the next line, with the replacement character for each half."""
        return _ESCAPE.sub(
            lambda found: "\\ufffd" if found["alone"] else found[0], super().readline(size)
        )


def _stdin() -> "anyio.AsyncFile[str] | None":
    """Return stdin, and leave to whoever else reads it an empty one; None if it is closed."""
    try:
        own = os.dup(0)
    except OSError:
        return None
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123  # a device
        os.dup2(nothing.fileno(), 0)
    return anyio.wrap_file(_Asked(os.fdopen(own, "rb"), encoding="utf-8", errors="replace"))


async def _serve(answering: "Server[dict[str, object]]") -> None:
    async with stdio_server(stdin=_stdin()) as (asked, answers):
        await answering.run(asked, answers, answering.create_initialization_options())


def _tool(name: str) -> types.Tool:
    return types.Tool(
        name=name,
        description=inspect.getdoc(QUESTIONS[name]),
        input_schema=questions.schema_of(name),
        output_schema=questions.schema_of_answer(name),
        annotations=types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def _answered(params: types.CallToolRequestParams, setting: Setting) -> types.CallToolResult:
    """Answer a question in a thread; what is wrong with it is said in one sentence."""
    with speaking("en"):
        try:
            answer = questions.asked(params.name, params.arguments or {}).answer(setting)
        except (AskError, IntakeError) as error:
            return _refused(str(words_of(error, limit=_LONGEST_REFUSAL)))
        except Exception as error:  # noqa: BLE001  # an assistant gets one sentence, no traceback
            fault = words_of(RuntimeError(f"{type(error).__name__}: {error}"))
            refusal = say("a fault of gpucheck itself, please report it: {error}", error=fault)
            return _refused(str(refusal))
    return types.CallToolResult(content=[_text(answer.text)], structured_content=answer.data)


def _refused(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(sentence)], is_error=True)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)
