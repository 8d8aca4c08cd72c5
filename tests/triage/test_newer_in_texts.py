"""What is newer than the tables is said of a text, too, with the way to newer ones."""

from rules_support import TABLES

from gpucheck.output.ticket_text import render
from gpucheck.ticket.judge import triage

TABLE = """\
| NVIDIA-SMI {driver}                 Driver Version: {driver}         CUDA Version: {cuda}     |
|   0  NVIDIA GeForce {gpu}        Off |   00000000:01:00.0  On |                  N/A |
|  0%   38C    P8             22W /  600W |     512MiB /  49140MiB |      2%      Default |
"""


def page(driver: str, cuda: str, gpu: str) -> str:
    text = TABLE.format(driver=driver, cuda=cuda, gpu=gpu)
    return " ".join(render(triage(text, TABLES)).split())


def test_a_driver_and_a_gpu_newer_than_the_tables() -> None:
    shown = page("640.12", "14.0", "RTX 6090")
    assert "have no facts yet about driver 640.12, CUDA 14.0 of the driver, GPU 0 (" in shown
    assert "gpucheck tables update" in shown


def test_nothing_is_said_where_the_tables_know_all() -> None:
    assert "tables update" not in page("580.95.05", "13.0", "RTX 5090")
