"""Old projects: the build of the same release first, and nothing that the Python cannot install."""

from each import each
from test_machines import TABLES

from gpucheck.advice.recommender import Card, Recommender, Situation
from gpucheck.facts.claims import Fix
from gpucheck.tables.torch import TorchBuilds
from gpucheck.ticket.judge import triage

ROOT = "https://download.pytorch.org/whl/torch_stable.html"
CU113 = "https://download.pytorch.org/whl/cu113"
PIP = "python -m pip install"
COLLECTED = """PyTorch version: {torch}
Is debug build: False
CUDA used to build PyTorch: {cuda}
OS: {os}
Python version: {python}
Is CUDA available: True
GPU models and configuration: GPU 0: {gpu}
Nvidia driver version: {driver}

Versions of relevant libraries:
[pip3] torch=={torch}
{more}
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""
WARNING = """{says}
NVIDIA {gpu} with CUDA capability {code} is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_37 sm_50 sm_60 sm_70.
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""


def collected(  # what people paste
    torch: str, cuda: str, python: str, gpu: str = "GeForce RTX 3090", driver: str = "460.39",
    os: str = "Ubuntu 18.04.5 LTS", more: str = "",
) -> tuple[Fix, ...]:  # fmt: skip
    text = COLLECTED.format(
        torch=torch, cuda=cuda, python=python, gpu=gpu, driver=driver, os=os, more=more
    )
    return triage(text, TABLES).causes[0].fixes


def pasted(says: str, gpu: str = "GeForce RTX 3090", code: str = "sm_86") -> tuple[Fix, ...]:
    return triage(WARNING.format(says=says, gpu=gpu, code=code), TABLES).causes[0].fixes


@each(
    ("torch", "cuda", "python", "more", "install"),
    [
        ("1.7.1", "10.2", "3.7", "", f"torch==1.7.1+cu110 --find-links {ROOT}"),
        (
            "1.8.1", "10.2", "3.6", "[pip3] torchvision==0.9.1\n[pip3] torchaudio==0.8.1",
            f"torch==1.8.1+cu111 torchvision==0.9.1+cu111 torchaudio==0.8.1 --find-links {ROOT}",
        ),
        (
            "1.10.2", "10.2", "3.9", "",
            f"torch==1.10.2+cu113 --find-links {CU113}/torch_stable.html",
        ),
        (
            "1.12.1", "10.2", "3.10", "[pip3] torchvision==0.13.1",
            f"torch==1.12.1+cu113 torchvision==0.13.1+cu113 --extra-index-url {CU113}",
        ),
        ("1.4.0", "10.1", "3.6", "", f"torch==1.7.1+cu110 --find-links {ROOT}"),
    ],
)  # fmt: skip
def test_the_build_of_the_same_release(
    torch: str, cuda: str, python: str, more: str, install: str
) -> None:
    first = collected(torch, cuda, python, more=more)[0]
    assert first.commands[-1] == f"{PIP} {install}"


def test_on_windows_too() -> None:
    first = collected("1.9.0", "10.2", "3.8", os="Microsoft Windows 10 Pro", driver="461.40")[0]
    assert first.commands[-1] == f"{PIP} torch==1.9.0+cu111 --find-links {ROOT}"


def test_the_newest_is_offered_beside_it() -> None:
    first, second = collected("1.8.1", "10.2", "3.8")
    assert first.commands[-1].startswith(f"{PIP} torch==1.8.1+cu111")
    assert second.text.startswith("If nothing needs PyTorch 1.8: install PyTorch 2.4.1")
    first, second = pasted("torch 1.8.1")
    assert first.commands[-1].startswith(f"{PIP} torch==1.8.1+cu111")
    assert second.commands[0].startswith("uv venv --python 3.")


def test_a_card_that_no_release_of_that_time_knows_needs_another_python() -> None:
    known = collected("1.13.1+cu117", "11.7", "3.8", gpu="GeForce RTX 5080", driver="572.16")
    unknown = pasted("torch 1.10.1+cu102", gpu="GeForce RTX 5090", code="sm_120")
    for fixes in (known, unknown):
        (fix,) = fixes
        make, install = fix.commands
        assert make == "uv venv --python 3.10 gpu-env"
        assert "torch==2.11.0 --index-url https://download.pytorch.org/whl/cu128" in install


def test_its_companions_go_with_it_into_a_new_environment() -> None:
    (fix,) = collected(
        "1.13.1+cu117", "11.7", "3.8", gpu="GeForce RTX 5080", driver="572.16",
        more="[pip3] torchvision==0.14.1+cu117",
    )  # fmt: skip
    assert "torch==2.11.0 torchvision==0.26.0 " in fix.commands[1]


def test_no_uninstall_where_the_python_may_be_too_old() -> None:
    for says, words in (
        ("torch 2.0.1", "torch==2.15.0"),
        ("my new card", "torch==2.15.0+cu132"),  # the same release may be there, in another build
    ):
        first = pasted(says, gpu="GeForce RTX 5090", code="sm_120")[0]
        assert first.commands == (
            f"{PIP} {words} --index-url https://download.pytorch.org/whl/cu132",
        )


def test_an_unnamed_build_of_that_time_is_told_which_releases_have_code() -> None:
    *_, last = pasted("my new card")
    assert "torch 1.13.1 (cu117), torch 1.12.1 (cu113)" in last.text
    for row in TABLES.get(TorchBuilds).rows:  # none since 2.0 is taken for an old one
        codes = [int(code[3:].rstrip("af")) for code in row.arch_list if code[:3] == "sm_"]
        assert not codes or max(codes) >= 80 or row.torch.startswith("1."), row


@each(("capability", "cuda"), [("8.6", "11.0"), ("9.0", "11.8"), ("12.0", "12.8")])
def test_the_oldest_cuda_that_makes_code_for_a_card(capability: str, cuda: str) -> None:
    gpu = {"8.6": "GeForce RTX 3090", "9.0": "H100 PCIe", "12.0": "GeForce RTX 5090"}[capability]
    code = f"sm_{capability.replace('.', '')}"
    text = WARNING.format(says="torch 1.10.1+cu102", gpu=gpu, code=code)
    headline = triage(text, TABLES).causes[0].headline
    assert f"code for {capability} needs a build of CUDA {cuda} or newer" in headline


def test_who_asks_for_the_newest_is_offered_none_of_1x() -> None:
    found = Recommender(TABLES).recommend(
        Situation(platform="linux_x86_64", cards=(Card("GTX 1070", "6.1"),))
    )
    assert found.by_driver
    assert not [step for step in found.by_driver if step.offer.torch.startswith("1.")]
