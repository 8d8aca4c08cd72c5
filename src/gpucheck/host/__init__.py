"""The one door to a machine: live, recorded, or a host's files below a sysroot."""

from gpucheck.host.base import (
    Host,
    Identity,
    Limits,
    OpenResult,
    OsFamily,
    Ran,
    Space,
    Stat,
)
from gpucheck.host.live import LiveHost
from gpucheck.host.record_folder import Recording, read_folder
from gpucheck.host.recorded import RecordedHost
from gpucheck.host.recording import RecordingHost

__all__ = [
    "Host",
    "Identity",
    "Limits",
    "LiveHost",
    "OpenResult",
    "OsFamily",
    "Ran",
    "RecordedHost",
    "Recording",
    "RecordingHost",
    "Space",
    "Stat",
    "read_folder",
]
