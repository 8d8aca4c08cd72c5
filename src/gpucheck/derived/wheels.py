"""The platforms for which PyTorch has wheels."""

from gpucheck.facts.system import System


def wheel_platform(system: System) -> str | None:
    """Return the platform as in the table of builds; None if torch has no CUDA there.

    "windows" is Windows on x86_64: nobody publishes CUDA builds for Windows on ARM.
    """
    if system.os == "windows" and system.machine in ("x86_64", "AMD64", None):
        return "windows"
    if system.os == "linux" and system.machine in ("x86_64", "aarch64") and not system.jetson:
        return f"linux_{system.machine}"
    return None
