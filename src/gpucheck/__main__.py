"""The ``gpucheck`` command and ``python -m gpucheck``: the command line as a whole process."""

import contextlib
import gc
import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line, and end the process with its exit status."""
    # A run is short and creates few cycles: collecting them takes a tenth of its time. That begins
    # with the imports.
    gc.disable()
    # Ctrl-C during the imports ends the process at once, without the traceback of an import.
    handles_interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handles_interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gpucheck import cli  # noqa: PLC0415

    if handles_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        cli.main()
    except SystemExit as end:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        # Everything is written and cleaned up: taking each object apart would only take time.
        os._exit(end.code if isinstance(end.code, int) else 1)


if __name__ == "__main__":
    main()
