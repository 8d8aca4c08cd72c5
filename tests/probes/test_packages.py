"""The packages section: what lies beside torch."""

from collections.abc import Iterator
from pathlib import Path

from each import each
from support import machine

from gpucheck.facts.torch import Interpreter, Packages
from gpucheck.probes.packages import collect
from gpucheck.probes.reading.dist_info import normalise
from gpucheck.tables import Tables
from gpucheck.tables.packages import KnownPackages

SITE = "/home/user/venv/lib/python3.11/site-packages"
USER = "/home/user/.local/lib/python3.11/site-packages"
PYTHON = Interpreter(status="ok", prefix="/home/user/venv", sys_path=["/home/user", USER, SITE])


def packages(folder: Path, files: dict[str, str | bytes], python: Interpreter = PYTHON) -> Packages:
    return collect(machine(folder, files=files), python, Tables().get(KnownPackages))


def info(
    name: str, *requires: str, site: str = SITE, installer: str = "pip"
) -> dict[str, str | bytes]:
    project, version = name.split("-", 1)
    lines = "".join(f"Requires-Dist: {line}\n" for line in requires)
    head = f"Name: {project}\nVersion: {version}\n"
    return {
        f"{site}/{name}.dist-info/METADATA": f"{head}{lines}\nText\n",
        f"{site}/{name}.dist-info/INSTALLER": f"{installer}\n",
    }


def test_companions_and_their_torch(tmp_path: Path) -> None:
    files = {
        **info("torchvision-0.21.0+cu124", "numpy", "torch==2.6.0", 'torch==1; extra == "old"'),
        **info("torchaudio-2.6.0", "torch (==2.6.0)", installer="uv"),
        **info("torchtext-0.18.0", "tqdm", "torch>=2.3.0"),
        **info("torchdata-0.11.0", "requests"),
    }
    section = packages(tmp_path, files)
    vision = section.find("torchvision")
    assert vision is not None
    assert (vision.version, vision.torch_requirement) == ("0.21.0+cu124", "==2.6.0")
    assert (vision.installer, vision.location) == ("pip", SITE)
    audio = section.find("torchaudio")
    assert audio is not None
    assert (audio.torch_requirement, audio.installer) == ("==2.6.0", "uv")
    assert [d.torch_requirement for d in section.distributions or ()] == [
        "==2.6.0", "", ">=2.3.0", "==2.6.0",
    ]  # fmt: skip


def test_names_are_normalised_and_others_left_out(tmp_path: Path) -> None:
    files = {
        **info("nvidia_cudnn_cu12-9.1.0.70"),
        **info("flash_attn-2.7.4.post1"),
        **info("requests-2.32.0"),
        **info("numpy-1.26.4"),
        f"{SITE}/apex-0.1-py3.11.egg-info/PKG-INFO": "Name: apex\nVersion: 0.1\n",
        f"{SITE}/~umpy-1.26.0.dist-info/METADATA": "",
        f"{SITE}/README.txt-info": "",
    }
    section = packages(tmp_path, files)
    assert [(d.project, d.version) for d in section.distributions or ()] == [
        ("apex", "0.1"),
        ("flash-attn", "2.7.4.post1"),
        ("numpy", "1.26.4"),
        ("nvidia-cudnn-cu12", "9.1.0.70"),
    ]


def test_the_first_on_sys_path_is_the_one_that_counts(tmp_path: Path) -> None:
    files = {**info("numpy-2.2.0", site=USER), **info("numpy-1.26.4")}
    section = packages(tmp_path, files)
    assert [d.version for d in section.distributions or ()] == ["2.2.0", "1.26.4"]
    numpy = section.find("numpy")
    assert numpy is not None
    assert numpy.location == USER


def test_an_egg_info_without_version_in_its_name(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{SITE}/apex.egg-info/PKG-INFO": "Name: apex\nVersion: 0.1\n\n"
    }
    apex = packages(tmp_path, files).find("apex")
    assert apex is not None
    assert apex.version == "0.1"


@each("content", [b"", b"\xff\xfe\x00", b"Requires-Dist: torch\x00==\n"])
def test_broken_metadata(tmp_path: Path, content: bytes) -> None:
    files: dict[str, str | bytes] = {f"{SITE}/torchvision-0.21.0.dist-info/METADATA": content}
    vision = packages(tmp_path, files).find("torchvision")
    assert vision is not None
    assert vision.version == "0.21.0"
    assert vision.installer == ""


def test_metadata_that_is_gone(tmp_path: Path) -> None:
    vision = packages(tmp_path, {f"{SITE}/torchvision-0.21.0.dist-info/RECORD": ""}).find(
        "torchvision"
    )
    assert vision is not None
    assert vision.torch_requirement is None
    assert vision.problem("torch_requirement").endswith("not found")


def test_a_folder_with_pattern_characters_in_its_name(tmp_path: Path) -> None:
    site = "/home/user/my [old] venv*/lib/python3.11/site-packages"
    python = Interpreter(status="ok", sys_path=[site])
    assert packages(tmp_path, info("numpy-2.0.0", site=site), python).find("numpy")


def test_conda(tmp_path: Path) -> None:
    meta = "/opt/conda/conda-meta"
    start = '{\n "build": "py3.11_cuda12.4_cudnn9.1.0_0",\n "channel": "%s",\n "files": ["x'
    files: dict[str, str | bytes] = {
        f"{meta}/pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0.json": start
        % "https://conda.example/pytorch/linux-64",
        f"{meta}/cuda-cudart-12.4.127-he02047a_2.json": start % "conda-forge",
        f"{meta}/nccl-2.23.4.1-h2b5d15b_3.json": "not json",
        f"{meta}/requests-2.32.3-pyhd8ed1ab_0.json": "{}",
        f"{meta}/history": "",
        f"{meta}/odd.json": "{}",
    }
    section = packages(tmp_path, files, Interpreter(status="ok", prefix="/opt/conda", sys_path=[]))
    assert section.conda_packages == [
        "cuda-cudart 12.4.127 he02047a_2 conda-forge",
        "nccl 2.23.4.1 h2b5d15b_3",
        "pytorch 2.5.1 py3.11_cuda12.4_cudnn9.1.0_0 pytorch",
    ]
    assert section.distributions == []


def test_without_conda_there_are_no_conda_packages(tmp_path: Path) -> None:
    assert packages(tmp_path, {}).conda_packages == []


def test_an_unknown_target(tmp_path: Path) -> None:
    section = packages(tmp_path, {}, Interpreter(problems={"*": "no interpreter was found"}))
    assert section.distributions is None
    assert section.problem("distributions") == "no interpreter was found"


@each(
    ("written", "normal"),
    [("Flash_Attn", "flash-attn"), ("nvidia.cudnn__cu12", "nvidia-cudnn-cu12"), ("numpy", "numpy")],
)
def test_normal_names(written: str, normal: str) -> None:
    assert normalise(written) == normal


def test_the_packages_of_the_table_are_listed_with_the_torch_that_they_require(
    tmp_path: Path,
) -> None:
    """Those that compile when they are used among them: a rule asks for each of these."""
    files = {
        **info("unsloth-2026.1", "torch>=2.4"),
        **info("torch_tensorrt-2.9.0", "torch<2.10.0,>=2.9.0"),
        **info("nvidia_nccl_cu12-2.27.5", "torch"),
        **info("numpy-2.2.0", "torch"),
        **info("acme_tools-1.0", "torch==2.6.0"),
    }
    section = packages(tmp_path, files)
    assert {d.project: d.torch_requirement for d in section.distributions or ()} == {
        "unsloth": ">=2.4",
        "torch-tensorrt": "<2.10.0,>=2.9.0",
        "nvidia-nccl-cu12": None,
        "numpy": None,
    }
    compiling = {row.package for row in Tables().get(KnownPackages).compiling("triton", "cuda")}
    listed = packages(tmp_path / "all", dict(_of_all(compiling)))
    assert {d.project for d in listed.distributions or ()} == compiling


def _of_all(projects: set[str]) -> Iterator[tuple[str, str | bytes]]:
    for project in projects:
        yield from info(f"{project.replace('-', '_')}-1.0").items()


def test_requirements_that_this_target_has(tmp_path: Path) -> None:
    python = Interpreter(
        status="ok", prefix="/home/user/venv", sys_path=[SITE], version="3.11.7",
        implementation="cpython", platform="linux-x86_64",
    )  # fmt: skip
    files = {
        **info(
            "vllm-0.8.5",
            "torch==2.6.0",
            "numpy (>=1.24)",
            "numpy<2; python_version < '3.9'",
            "Numpy!=2.0.1",
            "triton==3.2.0; platform_machine == 'x86_64' and sys_platform == 'linux'",
            "transformers",
            "requests>=2",
            "xformers==0.0.29; platform_system == 'Windows'",
            "torch==1.0; extra == 'old'",
            "torch>=2; unheard_of == '1'",
        ),
        **info(
            "jax_cuda12_plugin-0.10.2",
            "nvidia-cudnn-cu12<10.0,>=9.8; sys_platform == 'linux' and extra == 'with-cuda'",
            "jaxlib==1; extra == 'test'",
        ),
        **info("nvidia_cudnn_cu12-9.1.0.70", "nvidia-cublas-cu12>=12"),
    }
    section = packages(tmp_path, files, python)
    assert {d.project: d.requirements for d in section.distributions or ()} == {
        "vllm": {"torch": "==2.6.0", "numpy": ">=1.24,!=2.0.1", "triton": "==3.2.0"},
        "jax-cuda12-plugin": {"nvidia-cudnn-cu12": "<10.0,>=9.8"},
        "nvidia-cudnn-cu12": None,
    }
    cudnn = section.find("nvidia-cudnn-cu12")
    assert cudnn is not None
    assert cudnn.problems["requirements"] == "gpucheck does not read its metadata"


def test_requirements_that_depend_on_an_unknown_target_are_left_out(tmp_path: Path) -> None:
    files = info("vllm-0.8.5", "torch==2.6.0", "numpy<2; python_version < '3.9'")
    vllm = packages(tmp_path, files).find("vllm")
    assert vllm is not None
    assert vllm.requirements == {"torch": "==2.6.0"}
