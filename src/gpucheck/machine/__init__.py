"""The one door to a machine: live, recorded, or a host's files below a sysroot.

Each name is imported when it is first used: the guard of a pre-flight (:mod:`.waker`) must stand
before the rest is imported.
"""

TYPE_CHECKING = False  # that of typing takes longer to import than the guard
if TYPE_CHECKING:
    from typing import Any

    from gpucheck.machine.base import Host as Host
    from gpucheck.machine.base import Identity as Identity
    from gpucheck.machine.base import Limits as Limits
    from gpucheck.machine.base import Ran as Ran
    from gpucheck.machine.base import Space as Space
    from gpucheck.machine.base import Stat as Stat
    from gpucheck.machine.live import LiveHost as LiveHost
    from gpucheck.machine.record_folder import Recording as Recording
    from gpucheck.machine.record_folder import read_machine as read_machine
    from gpucheck.machine.recorded import RecordedHost as RecordedHost
    from gpucheck.machine.recording import RecordingHost as RecordingHost

_MODULES = {
    "Host": "base", "Identity": "base", "Limits": "base", "Ran": "base", "Space": "base",
    "Stat": "base", "LiveHost": "live", "Recording": "record_folder",
    "read_machine": "record_folder", "RecordedHost": "recorded", "RecordingHost": "recording",
}  # fmt: skip


def __getattr__(name: str) -> "Any":  # noqa: ANN401  # one of these
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
