"""Runs gpucheck on a machine of files as if it were the live one: its journal and rpm are asked."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # as gpucheck does while it imports

from gpucheck.__main__ import main  # noqa: E402
from gpucheck.doctor import run  # noqa: E402
from gpucheck.machine import Host, LiveHost  # noqa: E402


def _open_host(sysroot: str | None) -> Host:
    host = LiveHost(sysroot or "")
    host.origin = "live"
    return host


run.open_host = _open_host
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
