"""A Jetson in a text: its board and its JetPack say what its GPU is, and where its PyTorch is."""

from each import each
from rules_support import TABLES

from gpucheck.engine import Report
from gpucheck.ticket.judge import triage

ORIN = "Jetson Orin Nano, JetPack 6.2, Python 3.10\n"
CPU = ">>> torch.__version__\n'2.9.1+cpu'\n>>> torch.cuda.is_available()\nFalse\n"
TEGRA = "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n"


def causes(text: str) -> tuple[Report, list[str]]:
    report = triage(text, TABLES)
    return report, list(report.root_causes)


@each("board", [ORIN, TEGRA + "NVIDIA Jetson AGX Orin Developer Kit\n"])
def test_the_wheel_of_its_jetpack_is_named(board: str) -> None:
    report, found = causes(board + CPU)
    assert found == ["torch-cpu-only"]
    commands = [command for fix in report.causes[0].fixes for command in fix.commands]
    assert any("torch==2.8.0 --index-url https://pypi.jetson-ai-lab.io" in c for c in commands)


@each(
    "text",
    [
        "It should also work on a Jetson Orin.\n" + CPU,  # no JetPack: nobody says that it is one
        "JetPack 6.2 or JetPack 5.1.2 on Orin?\n" + CPU,
        "JetPack 6.2 on Orin and on Xavier\n" + CPU,
        "JetPack 99.9 on an Orin\n" + CPU,
    ],
)
def test_a_board_is_assumed_only_where_one_jetpack_and_one_board_are_named(text: str) -> None:
    assert causes(text)[1] == []


def test_the_cuda_of_its_jetpack_is_that_of_its_driver() -> None:
    build = ">>> torch.__version__\n'2.15.0+cu132'\n>>> torch.cuda.is_available()\nFalse\n"
    assert causes(ORIN + build)[1] == ["torch-rocm-or-other-build"]
    assert causes(ORIN.replace("6.2", "7.2.1") + build)[1] == []
