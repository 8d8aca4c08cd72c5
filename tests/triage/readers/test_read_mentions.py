"""What people and installers mention in passing."""

from each import each
from readers_support import Read

from gpucheck.facts.request import Pasted
from gpucheck.facts.torch import TorchBuild

NOT_FOUND = "ERROR: No matching distribution found for torch==1.7.1"
NO_VERSION = (
    "ERROR: Could not find a version that satisfies the requirement torch==1.7.1+cu110 "
    "(from versions: 2.0.0, 2.0.1)"
)


def version(text: str) -> str | None:
    return Read(text, "free text").get(TorchBuild).version


@each(
    "text",
    [
        NOT_FOUND,
        NO_VERSION,
        f"$ pip install torch==1.7.1\n{NOT_FOUND}",
        f"I run `pip install torch==1.7.1+cu110` and get\n{NO_VERSION}",
    ],
)
def test_a_release_that_was_not_found_is_not_installed(text: str) -> None:
    assert version(text) is None


def test_another_release_beside_it_is() -> None:
    assert version(f"{NOT_FOUND}\nso I stay with torch 2.0.1") == "2.0.1"


@each(
    "text",
    ["torch==2.0.1", "torch.__version__: 2.0.1", "pytorch 2.0.1", "torch version 2.0.1",
     "torch v2.0.1", "torch: 2.0.1", "Torch `2.0.1`"],
)  # fmt: skip
def test_a_release_in_a_sentence(text: str) -> None:
    assert version(f"Here it is {text}, on a server.") == "2.0.1"


@each("line", ["- 2.7.1+cu128", "2.7.1+cu128", "`2.7.1+cu128`"])
def test_a_line_that_is_only_a_release_with_its_cuda(line: str) -> None:
    assert version(f"RTX 2060\n{line}\n") == "2.7.1+cu128"
    assert version(f"{line}\n2.6.0+cu124\n") is None  # which of them runs is open


@each("line", ["0.22.1+cu128", "flash_attn 2.7.1+cu128", "2.7.1+cu128.whl"])
def test_a_release_of_something_else(line: str) -> None:
    assert version(f"RTX 2060\n{line}\n") is None


@each(
    ("command", "installer"),
    [
        ("pip install torch torchvision", "pip"),
        ("pip3 install torch==1.4.0", "pip"),
        ("```pip3 install --user torch```", "pip"),
        ("pip install torch -f https://download.pytorch.org/whl/torch_stable.html", None),
        ("pip install torch --index-url https://download.pytorch.org/whl/cu118", None),
        ("conda install pytorch -c pytorch\npip install torch", None),
        ("pip install torchvision", None),
        ("pip install pytorch-lightning torchmetrics", None),
        ("install torch with pip", None),
    ],
)
def test_pip_s_plain_command_says_who_installed_torch(command: str, installer: str | None) -> None:
    assert (
        Read(f"{command}\ntorch 1.4.0 is there", "free text").get(TorchBuild).installer == installer
    )


@each(
    ("line", "answer"),
    [
        ("torch.cuda.is_available() is False", False),
        ("print(torch.cuda.is_available())  # False", False),
        ("assert torch.cuda.is_available() == True", None),
        ("if torch.cuda.is_available() is False:", None),
        ('if not ok:\n    raise RuntimeError("CUDA is not available")', None),
        ("it says that CUDA is not available", False),
    ],
)
def test_a_script_that_asks_gives_no_answer(line: str, answer: object) -> None:
    assert Read(line, "free text").get(Pasted).cuda_available is answer


@each(
    ("text", "release", "cuda"),
    [
        ("pytorch 0.4.1_cuda9.2_cudnn7.1.4", "0.4.1", "9.2"),
        ("pytorch=1.6.0=py3.8_cuda10.2.89_cudnn7.6.5_0", "1.6.0", "10.2"),
        ("it shows pytorch 1.12.1 py3.9_cpu_0 here", "1.12.1", ""),
    ],
)
def test_a_build_as_conda_names_it_says_its_cuda(text: str, release: str, cuda: str) -> None:
    build = Read(text, "free text").get(TorchBuild)
    assert (build.version, build.cuda) == (release, cuda)


def test_what_conda_did_not_find_is_not_installed() -> None:
    missing = "PackagesNotFoundError: not available from current channels:\n\n  - pytorch==1.0.0"
    assert version(missing) is None
    assert version("dependencies:\n  - pytorch==1.0.0") == "1.0.0"
