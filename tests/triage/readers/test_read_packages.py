"""Lists of packages, and what installers print."""

from each import each
from readers_support import Read

from gpucheck.facts.torch import Packages, TorchBuild

FORMATS = ("package list", "installer output")


def projects(text: str) -> dict[str, str]:
    found = Read(text, *FORMATS).get(Packages).distributions or ()
    return {distribution.project or "": distribution.version or "" for distribution in found}


def build(text: str) -> tuple[str | None, str | None, str | None, str | None]:
    torch = Read(text, *FORMATS).get(TorchBuild)
    return torch.version, torch.built_for, torch.cuda, torch.installer


def test_pips_list() -> None:
    text = (
        "Package                  Version\n"
        "------------------------ -----------\n"
        "numpy                    1.26.4\n"
        "nvidia_cudnn_cu12        9.1.0.70\n"
        "torch                    2.5.1+cpu\n"
        "Werkzeug                 3.0.1\n"
        "\n"
        "not-a-package            1.2.3\n"
    )
    assert projects(text) == {
        "numpy": "1.26.4",
        "nvidia-cudnn-cu12": "9.1.0.70",
        "torch": "2.5.1+cpu",
        "werkzeug": "3.0.1",
    }
    assert build(text)[3] == "pip"


def test_lines_that_grep_left_over() -> None:
    text = "torch                              2.1.0+cu118\ntorchvision   0.16.0+cu118\n"
    assert projects(text) == {"torch": "2.1.0+cu118", "torchvision": "0.16.0+cu118"}


def test_frozen_requirements_are_taken_when_they_are_a_list() -> None:
    pinned = "numpy==1.26.4\ntorch==2.5.1\ntorchvision==0.20.1\n"
    assert build(pinned)[0] == "2.5.1"
    assert build("torch==2.5.1\n")[0] is None


@each(
    "complaint",
    [
        "ERROR: No matching distribution found for torch==1.7.1",
        "ERROR: Could not find a version that satisfies the requirement torch==1.7.1",
    ],
)
def test_what_could_not_be_installed_is_not_there(complaint: str) -> None:
    assert build(f"numpy==1.26.4\ntorch==1.7.1\ntorchvision==0.8.2\n{complaint}\n")[0] is None


def test_a_torch_that_cannot_be_imported_is_anothers() -> None:
    text = (
        "Requirement already satisfied: torch in /usr/lib/python3/dist-packages (2.1.0)\n"
        "ModuleNotFoundError: No module named 'torch'\n"
    )
    assert Read(text, *FORMATS).get(TorchBuild).installed is None


def test_condas_list() -> None:
    text = (
        "# packages in environment at /opt/conda:\n"
        "#\n"
        "# Name                    Version                   Build  Channel\n"
        "_libgcc_mutex             0.1                        main\n"
        "numpy                     1.21.5           py39he7a7128_1\n"
        "pytorch                   1.10.0          py3.9_cpu_0    pytorch\n"
        "transformers              4.30.0                   pypi_0    pypi\n"
    )
    assert build(text) == ("1.10.0", "cpu", "", "conda")
    assert projects(text)["transformers"] == "4.30.0"
    assert "pytorch 1.10.0 py3.9_cpu_0 pytorch" in (Read(text).get(Packages).conda_packages or ())


@each(
    ("cells", "built_for", "cuda"),
    [
        ("2.0.1 py3.10_cuda11.7_cudnn8.5.0_0 pytorch", "cuda", "11.7"),
        ("2.1.0 cuda118py310h1234567_300 conda-forge", "cuda", "11.8"),
        ("2.1.0 gpu_cuda113py39h19ae3d8_0 defaults", "cuda", "11.3"),
        ("2.1.0 cpu_generic_py310h1234567_0 conda-forge", "cpu", ""),
        ("2.1.0 py3.10_0 pytorch", None, None),
    ],
)
def test_the_build_of_conda_says_what_torch_is_for(
    cells: str, built_for: str | None, cuda: str | None
) -> None:
    found = build(f"pytorch                   {cells.replace(' ', '     ')}\n")
    assert found[1:3] == (built_for, cuda)


def test_what_conda_is_about_to_link() -> None:
    text = (
        "  pytorch            pytorch/linux-64::pytorch-2.0.1-py3.10_cuda11.7_cudnn8.5.0_0 None\n"
        "  pytorch-mutex      pytorch/noarch::pytorch-mutex-1.0-cuda None\n"
    )
    assert build(text) == ("2.0.1", "cuda", "11.7", "conda")


def test_pips_summary() -> None:
    text = "Successfully installed nvidia-cudnn-cu12-8.9.2.26 torch-2.1.0 typing-extensions-4.9.0\n"
    assert projects(text) == {
        "nvidia-cudnn-cu12": "8.9.2.26",
        "torch": "2.1.0",
        "typing-extensions": "4.9.0",
    }
    assert build(text)[3] == "pip"


def test_what_pip_only_looks_at_is_not_installed() -> None:
    text = "Collecting torch==2.0.1\n  Downloading torch-2.0.1-cp311-cp311-win_amd64.whl (172 MB)\n"
    assert projects(text) == {}


def test_pips_complaint_about_what_does_not_fit() -> None:
    text = (
        "torchvision 0.15.1+cu118 requires torch==2.0.0, but you have torch 2.1.0 which is "
        "incompatible.\n"
    )
    assert projects(text) == {"torchvision": "0.15.1+cu118", "torch": "2.1.0"}
    found = Read(text).get(Packages).find("torchvision")
    assert found is not None
    assert found.torch_requirement == "==2.0.0"


def test_uv_and_poetry() -> None:
    uv = "Installed 2 packages in 90ms\n - torch==2.5.0\n + numpy==2.2.0\n + torch==2.6.0+cu124\n"
    assert build(uv)[0] == "2.6.0+cu124"
    assert build("  - Installing torch (2.0.1)\n")[0] == "2.0.1"
    assert build("  - Installing torch (2.0.1): Failed\n")[0] is None


def test_pip_show() -> None:
    assert build("Name: torch\nVersion: 2.7.0+cu128\nSummary: Tensors\n")[0] == "2.7.0+cu128"
    assert build("Name: torch\nSummary: Tensors\nVersion: 2.7.0\n")[0] is None


@each(
    "text",
    [
        "torch 2.1.0 or newer is needed\n",
        "torch 2.1.0, as I said\n",
        "pytorch 2.1.0 with cuda does not work\n",
    ],
)
def test_a_sentence_is_no_list(text: str) -> None:
    assert Read(text, *FORMATS).get(TorchBuild).version is None
