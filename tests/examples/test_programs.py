"""The examples that call gpucheck from a notebook, Ray and Lightning, for real."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from html_support import framed_page, is_sound

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NO_CUDA_CODE = "CUDA error: no kernel image is available for execution on the device"


def test_a_notebook_shows_the_report() -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("torch")
    text = (EXAMPLES / "jupyter" / "why_no_gpu.py").read_text(encoding="utf-8")
    cells = [cell.partition("\n")[2] for cell in text.split("# %%")[1:]]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    shown, fix, cause = (cell.outputs for cell in book.cells)
    assert shown[-1].data["text/markdown"].startswith("**HEALTHY**")
    page = is_sound(framed_page(shown[-1].data["text/html"]))
    assert page.text().startswith("HEALTHY")
    assert shown[-1].data["text/plain"] == "<gpucheck report: healthy>"
    assert fix[0].text == "healthy\n"
    assert cause[0].text == "The cause: torch-cpu-only\n"


def test_ray_asks_every_node() -> None:
    pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "ray" / "ray_check.py"), "--gpus", "0", "--address",
         "local", "--timeout", "100"],
        env={**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert ": healthy" in line


@pytest.fixture(name="fit")
def fits(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401  # takes a callback
    """Return what trains a tiny model on the CPU with a callback."""
    lightning = pytest.importorskip("lightning.pytorch")
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(EXAMPLES / "lightning"))

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self, error: str) -> None:
            super().__init__()
            self.layer, self.error = torch.nn.Linear(1, 1), error

        def training_step(self, batch: Any, _at: int) -> Any:  # noqa: ANN401  # tensors
            if self.error:
                raise RuntimeError(self.error)
            return self.layer(batch).sum()

        def configure_optimizers(self) -> Any:  # noqa: ANN401
            return torch.optim.SGD(self.parameters(), 0.1)

    def fit(callback: Any, error: str = "") -> int:  # noqa: ANN401
        trainer = lightning.Trainer(
            accelerator="cpu", max_steps=1, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, callbacks=[callback],
        )  # fmt: skip
        trainer.fit(Model(error), torch.utils.data.DataLoader(torch.ones(2, 1)))
        return int(trainer.global_step)

    return fit


@pytest.mark.filterwarnings("ignore")
def test_lightning_trains_on_a_good_machine_and_not_on_a_broken_one(
    fit: Any,  # noqa: ANN401
) -> None:
    example = importlib.import_module("gpucheck_callback")
    assert fit(example.GpuCheck()) == 1
    with pytest.raises(example.BrokenMachineError, match="2 NVIDIA GPUs are required"):
        fit(example.GpuCheck(gpus=2))


@pytest.mark.filterwarnings("ignore")
def test_lightning_names_the_cause_of_an_error(fit: Any) -> None:  # noqa: ANN401
    callback = importlib.import_module("gpucheck_callback").GpuCheck()
    with pytest.raises(RuntimeError, match="no kernel image"):
        fit(callback, NO_CUDA_CODE)
    assert callback.causes == ("gpu-too-new-for-torch",)
