"""What nvidia-smi reports if NVML did not answer."""

from typing import ClassVar

from gpucheck.facts import Section
from gpucheck.language import say


class NvidiaSmi(Section, frozen=True, kw_only=True):
    """The facts and messages that nvidia-smi prints."""

    name: ClassVar[str] = "nvidia_smi"
    subject = say("What nvidia-smi reports if NVML did not answer.")

    found: bool | None = None
    asked: bool | None = None
    """False if NVML had already answered."""
    exit_status: int | None = None
    message: str | None = None
    """Its error message, from either stream, first lines; "" if it had none."""
    driver_release: str | None = None
    cuda: str | None = None
    gpu_names: list[str] | None = None
