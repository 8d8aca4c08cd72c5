"""The one door to a machine: live, recorded, or a host's files below a sysroot."""

from gpucheck.machine.base import Host, Identity, Limits, Ran, Space, Stat
from gpucheck.machine.live import LiveHost
from gpucheck.machine.record_folder import Recording, read_folder
from gpucheck.machine.recorded import RecordedHost
from gpucheck.machine.recording import RecordingHost

__all__ = [
    "Host",
    "Identity",
    "Limits",
    "LiveHost",
    "Ran",
    "RecordedHost",
    "Recording",
    "RecordingHost",
    "Space",
    "Stat",
    "read_folder",
]
