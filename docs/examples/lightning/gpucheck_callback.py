"""A callback of Lightning: it refuses to train on a broken machine, and names causes of errors.

trainer = Trainer(callbacks=[GpuCheck()])
"""

import traceback
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_warn

import gpucheck


class BrokenMachineError(RuntimeError):
    """The machine is broken; the message is the report."""


class GpuCheck(Callback):  # type: ignore[misc]  # Lightning need not be installed
    """Checks the machine once for each node before training, and reads the error that ends it.

    Args:
        refuse: whether a broken machine stops the training; otherwise it is a warning.
        options: of ``gpucheck.check()``.
    """

    def __init__(self, *, refuse: bool = True, **options: Any) -> None:  # noqa: ANN401
        self._refuse = refuse
        self._options: dict[str, Any] = {"selftest": False, **options}
        self.causes: tuple[str, ...] = ()

    def setup(
        self,
        trainer: Trainer,
        pl_module: LightningModule,  # noqa: ARG002  # Lightning's signature
        stage: str,  # noqa: ARG002
    ) -> None:
        """Check the machine, before a process of this node has used its GPU."""
        if trainer.local_rank != 0:
            return
        report = gpucheck.check(**self._options)
        if report.verdict == "broken" and self._refuse:
            raise BrokenMachineError(report.text("en"))
        if report.verdict in ("broken", "warning"):
            rank_zero_warn(f"gpucheck: {', '.join(report.root_causes)}")

    def on_exception(
        self,
        trainer: Trainer,  # noqa: ARG002  # Lightning's signature
        pl_module: LightningModule,  # noqa: ARG002
        exception: BaseException,
    ) -> None:
        """Name the cause of the error that ends the training."""
        if isinstance(exception, BrokenMachineError | KeyboardInterrupt):
            return
        found = gpucheck.triage("".join(traceback.format_exception(exception)))
        self.causes = found.root_causes
        if found.first is not None:
            rank_zero_warn(f"gpucheck: {found.root_causes[0]}: {found.first.headline}")
