"""The ``gpucheck`` command and ``python -m gpucheck``: the command line as a whole process."""

# ruff: noqa: E402  # the order is the point
# Built in: signal itself imports others, and may be interrupted there.
import _signal  # type: ignore[import-not-found]

_handles_interrupt = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
"""Whether Python makes an exception of Ctrl-C. During the imports it ends the process at once,
without a traceback. Those of Python itself and of the script that pip writes come before this."""
if _handles_interrupt:
    try:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    except ValueError:  # somebody imports this in a thread
        _handles_interrupt = False

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def _begins_ahead() -> bool:
    from gpucheck.machine import ahead  # noqa: PLC0415

    return ahead.ask(sys.argv[1:], as_module=__name__ == "__main__")


def _nothing() -> None:
    """Do nothing: nothing has begun."""


def main() -> "NoReturn":
    """Run the command line, and end the process with its exit status."""
    # A run is short and creates few cycles: collecting them takes a tenth of its time. That begins
    # with the imports.
    gc.disable()
    if "preflight" in sys.argv:  # before the other imports, which take a quarter of a second
        from gpucheck.machine import waker  # noqa: PLC0415

        waker.guard(sys.argv[1:])
    # A check that asks nothing else begins before the command line is read, which takes click.
    plain = sys.argv[1:2] in ([], ["check"]) or sys.argv[1].startswith("-")
    if plain and _begins_ahead():
        from gpucheck.doctor.beginning import begin, stop  # noqa: PLC0415
        from gpucheck.facts.streams import let_through  # noqa: PLC0415

        begin()
    else:
        let_through = stop = _nothing
    import contextlib  # noqa: PLC0415

    from gpucheck import cli  # noqa: PLC0415

    if _handles_interrupt:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    try:
        cli.main(ready=let_through)
    except SystemExit as end:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        stop()
        # Everything is written and cleaned up: taking each object apart would only take time.
        os._exit(end.code if isinstance(end.code, int) else 1)


if __name__ == "__main__":
    main()
