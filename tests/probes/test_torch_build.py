"""The torch section: builds of many kinds, as their files look on disk."""

from pathlib import Path

from each import each
from support import machine

from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.probes.reading.torch_files import version_facts
from gpucheck.probes.torch_build import collect

PREFIX = "/home/user/venv"
SITE = f"{PREFIX}/lib/python3.11/site-packages"
CWD = "/home/user/project"
PYTHON = Interpreter(
    status="ok", version="3.11.7", implementation="cpython", platform="linux-x86_64",
    prefix=PREFIX, kind="venv", sys_path=[CWD, "/usr/lib/python3.11", SITE],
)  # fmt: skip


def version_py(version: str, cuda: str | None = None, hip: str | None = None) -> str:
    return (
        "from typing import Optional\n\n"
        "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']\n"
        f"__version__ = {version!r}\ndebug = False\ncuda: Optional[str] = {cuda!r}\n"
        f"git_version = '39901f229520a5256505ec24782f716ee7ddc843'\nhip: Optional[str] = {hip!r}\n"
    )


def metadata(version: str, *requires: str) -> str:
    lines = "".join(f"Requires-Dist: {line}\n" for line in requires)
    head = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
    return f"{head}{lines}\nRequires-Dist: nvidia-x\n"


def wheel(
    version: str, cuda: str | None, *requires: str, arches: str = "", hip: str | None = None
) -> dict[str, str | bytes]:
    """Return the files of torch as pip lays them down."""
    public = version.partition("+")[0]
    files: dict[str, str | bytes] = {
        f"{SITE}/torch/__init__.py": "",
        f"{SITE}/torch/version.py": version_py(version, cuda, hip),
        f"{SITE}/torch-{public}.dist-info/METADATA": metadata(public, *requires),
        f"{SITE}/torch-{public}.dist-info/INSTALLER": "pip\n",
        f"{SITE}/torch-{public}.dist-info/WHEEL": "Tag: cp311-cp311-manylinux1_x86_64\n",
        f"{SITE}/torch/lib/libtorch_python.so": f"x\0y\0{arches}\0z" if arches else "x\0y",
        f"{SITE}/torch/lib/libc10.so": "\0_ZN3c106detail14torchCheckFailEPKcS2_jRKSs\0",
    }
    if cuda:
        files[f"{SITE}/torch/lib/libtorch_cuda.so"] = ""
    return files


ON_LINUX = 'platform_system == "Linux" and platform_machine == "x86_64"'
PYPI_2_2 = wheel(
    "2.2.2+cu121", "12.1",
    "filelock",
    f"nvidia-cudnn-cu12 (==8.9.2.26) ; {ON_LINUX}",
    f"nvidia-nccl-cu12 (==2.19.3) ; {ON_LINUX}",
    f'triton (==2.2.0) ; {ON_LINUX} and python_version < "3.12"',
    'nvidia-cublas-cu12 (==12.1.3.1) ; platform_system == "Windows"',
    "opt-einsum (>=3.3) ; extra == 'opt-einsum'",
    arches="sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
)  # fmt: skip


def build(
    folder: Path,
    files: dict[str, str | bytes],
    python: Interpreter = PYTHON,
    links: dict[str, str] | None = None,
    os: str = "linux",
) -> TorchBuild:
    host = {"identity": {"os": os, "machine": "x86_64"}}
    return collect(machine(folder, files=files, links=links, host=host), python)


def test_a_wheel_with_pins(tmp_path: Path) -> None:
    torch = build(tmp_path, PYPI_2_2)
    assert torch.installed is True
    assert torch.path == f"{SITE}/torch"
    assert (torch.version, torch.metadata_version) == ("2.2.2+cu121", "2.2.2")
    assert (torch.built_for, torch.cuda, torch.hip) == ("cuda", "12.1", "")
    assert torch.git_version == "39901f229520a5256505ec24782f716ee7ddc843"
    assert torch.arch_list == ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
    assert torch.pins == {
        "nvidia-cudnn-cu12": "==8.9.2.26",
        "nvidia-nccl-cu12": "==2.19.3",
        "triton": "==2.2.0",
    }
    assert (torch.cudnn, torch.nccl) == ("8.9.2.26", "2.19.3")
    assert torch.cuda_library is True
    assert torch.cxx11_abi is False
    assert torch.installer == "pip"
    assert torch.wheel_tag == "cp311-cp311-manylinux1_x86_64"
    assert torch.leftovers == []
    assert torch.installs is not None
    assert [(install.kind, install.version) for install in torch.installs] == [
        ("package", "2.2.2+cu121")
    ]
    not_recorded = {"cudnn_compiled", "needs", "lost_libraries", "mapped_bytes"}
    assert set(torch.problems) == not_recorded
    assert torch.source("arch_list") == f"{SITE}/torch/lib/libtorch_python.so"


def test_extras_are_followed_into_cuda_toolkit(tmp_path: Path) -> None:
    here = "(sys_platform == 'linux' and platform_machine == 'x86_64')"
    inner = metadata(
        "13.0.3",
        f"nvidia-cublas==13.1.1.3.*; {here} and extra == 'all'",
        f"nvidia-cublas==13.1.1.3.*; {here} and extra == 'cublas'",
        f"nvidia-cuda-runtime==13.0.96.*; {here} and extra == 'cudart'",
        f"nvidia-nvjitlink<14,>=13.0.88; {here} and extra == 'cufft'",
        f"nvidia-nvjitlink<14,>=13.0.88; {here} and extra == 'cublas'",
        "nvidia-cudla==13.0.39.*; (platform_machine == 'aarch64') and extra == 'cublas'",
    )
    files = wheel(
        "2.12.0+cu130", "13.0",
        'cuda-toolkit[cublas,cudart,cufft]==13.0.3; platform_system == "Linux"',
        'nvidia-cudnn-cu13==9.20.0.48; platform_system == "Linux"',
        arches="sm_75 sm_80 sm_86 sm_90 sm_100 sm_120",
    )  # fmt: skip
    files[f"{SITE}/cuda_toolkit-13.0.3.dist-info/METADATA"] = inner
    torch = build(tmp_path, files)
    assert torch.pins == {
        "cuda-toolkit": "==13.0.3",
        "nvidia-cublas": "==13.1.1.3.*",
        "nvidia-nvjitlink": "<14,>=13.0.88",
        "nvidia-cuda-runtime": "==13.0.96.*",
        "nvidia-cudnn-cu13": "==9.20.0.48",
    }
    assert torch.cudnn == "9.20.0.48"
    assert torch.nccl is None
    assert "compiled into" in torch.problem("nccl")


@each(
    ("version", "cuda", "hip", "built_for"),
    [
        ("2.13.0+cpu", None, None, "cpu"),
        ("2.4.0+rocm6.1", None, "6.1.40091-a8dbc0c19", "rocm"),
        ("2.6.0a0+ecf3bae40a.nv25.01", "12.8", None, "cuda"),
        ("2.1.0a0+41361538.nv23.06", "11.4", None, "cuda"),
        ("2.5.1", None, None, "cpu"),
        ("2.9.0.dev20250801+cu129", "12.9", None, "cuda"),
    ],
)
def test_kinds_of_builds(
    tmp_path: Path, version: str, cuda: str | None, hip: str | None, built_for: str
) -> None:
    torch = build(tmp_path, wheel(version, cuda, arches="sm_87", hip=hip))
    assert torch.version == version
    assert torch.built_for == built_for
    assert torch.cuda == (cuda or "")
    assert torch.hip == (hip or "")
    assert torch.arch_list == (["sm_87"] if cuda else [])
    assert torch.cuda_library is bool(cuda)


def test_an_xpu_build(tmp_path: Path) -> None:
    files = wheel("2.8.0+xpu", None)
    files[f"{SITE}/torch/version.py"] = (
        version_py("2.8.0+xpu") + "xpu: Optional[str] = '20250101'\n"
    )
    torch = build(tmp_path, files)
    assert (torch.built_for, torch.cudnn, torch.nccl) == ("xpu", "", "")


def test_the_version_file_of_torch_1(tmp_path: Path) -> None:
    text = "__version__ = '1.13.1+cu117'\ndebug = False\ncuda = '11.7'\nhip = None\n"
    torch = build(tmp_path, {f"{SITE}/torch/__init__.py": "", f"{SITE}/torch/version.py": text})
    assert (torch.version, torch.cuda, torch.built_for) == ("1.13.1+cu117", "11.7", "cuda")
    assert torch.installed is True
    assert torch.metadata_version is None
    assert torch.pins is None
    assert torch.cuda_library is None
    assert torch.arch_list is None
    assert torch.problem("arch_list") == f"{SITE}/torch/lib: there is no libtorch_python"


@each(
    "text",
    [
        "",
        "__version__ = (",
        "\0\0\0",
        "__version__ = get_version()\ncuda = '12.1'\n",
        "__version__ = ''\n",
        "(" * 60_000,
        "x = " + "-" * 60_000 + "1",
        "__version__ = 3\n",
    ],
)
def test_broken_version_files_leave_the_build_unknown(tmp_path: Path, text: str) -> None:
    torch = build(tmp_path, {f"{SITE}/torch/__init__.py": "", f"{SITE}/torch/version.py": text})
    assert torch.installed is True
    assert torch.version is None
    assert torch.built_for is None
    assert torch.problem("built_for")
    assert torch.arch_list is None
    assert torch.cudnn is None


def test_nothing_in_the_version_file_is_executed(tmp_path: Path) -> None:
    host = machine(tmp_path, files={"/v.py": "import os\n__version__ = '1'\nos._exit(3)\n"})
    facts = version_facts(host, "/v.py").value
    assert facts is not None
    assert (facts.version, facts.cuda) == ("1", None)


@each(
    ("constants", "expected"),
    [
        ("\0sm_80 sm_90 compute_90\0", ["sm_80", "sm_90", "compute_90"]),
        ("\0sm_90a sm_100f sm_120\0", ["sm_90a", "sm_100f", "sm_120"]),
        ("\0compute_80\0", ["compute_80"]),
        ("\0sm_72\0", ["sm_72"]),
        ("\0sm_80\0 and \0sm_75 sm_80\0", ["sm_75", "sm_80"]),
        ("\0sm_75 sm_80\0\0sm_75 sm_80\0", ["sm_75", "sm_80"]),
        ("\0sm_80 sm_86\0\0sm_75 sm_80\0", None),
        ("\0sm_80_bit\0\0sm_count\0", None),
        ("\0sm_80 sm_86", None),
        ("\0sm_80 ssm_86\0", None),
        ("\0ipc_hsm_70 sm_75 sm_80\0", ["sm_70", "sm_75", "sm_80"]),
        ("words sm_75 sm_80 sm_90a more\0", None),
        ("xsm_75 sm_80\0", None),
        ("xsm_75 sm_80 sm_86\0ysm_70 sm_75 sm_90\0", None),
        ("", None),
    ],
)
def test_the_list_of_architectures(
    tmp_path: Path, constants: str, expected: list[str] | None
) -> None:
    files = wheel("2.6.0+cu124", "12.4")
    files[f"{SITE}/torch/lib/libtorch_python.so"] = f"start {constants}"
    torch = build(tmp_path, files)
    assert torch.arch_list == expected
    assert bool(torch.problem("arch_list")) == (expected is None)


@each(
    ("symbol", "expected"),
    [
        ("jRKSs\0", False),
        ("jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE\0", True),
        ("jS2_\0", None),
    ],
)
def test_cxx11_abi(tmp_path: Path, symbol: str, *, expected: bool | None) -> None:
    files = wheel("2.6.0+cu124", "12.4")
    files[f"{SITE}/torch/lib/libc10.so"] = f"\0_ZN3c106detail14torchCheckFailEPKcS2_{symbol}"
    assert build(tmp_path, files).cxx11_abi is expected


def test_a_wheel_that_carries_its_libraries(tmp_path: Path) -> None:
    files = wheel("2.0.1+cu118", "11.8", arches="sm_37 sm_90")
    for name in ("libcudnn.so.8", "libcudnn_ops_infer.so.8", "libcudart-d0da41ae.so.11.0"):
        files[f"{SITE}/torch/lib/{name}"] = ""
    torch = build(tmp_path, files)
    assert torch.pins == {}
    assert torch.cudnn == "8"


def test_a_build_that_neither_pins_nor_carries_cudnn(tmp_path: Path) -> None:
    assert build(tmp_path, wheel("2.6.0a0+ecf3bae40a.nv25.01", "12.8")).cudnn == ""


CONDA = "/opt/conda/envs/ml"
CONDA_SITE = f"{CONDA}/lib/python3.11/site-packages"
CONDA_PYTHON = Interpreter(
    status="ok", version="3.11.9", platform="linux-x86_64", prefix=CONDA, kind="conda",
    sys_path=[CWD, CONDA_SITE],
)  # fmt: skip


def test_a_build_of_the_pytorch_channel(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{CONDA_SITE}/torch/__init__.py": "",
        f"{CONDA_SITE}/torch/version.py": version_py("2.5.1", "12.4"),
        f"{CONDA_SITE}/torch/lib/libtorch_python.so": "\0sm_50 sm_90 compute_90\0",
        f"{CONDA_SITE}/torch-2.5.1-py3.11.egg-info/PKG-INFO": metadata("2.5.1", "filelock"),
        f"{CONDA}/conda-meta/pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0.json": "{}",
        f"{CONDA}/conda-meta/pytorch-cuda-12.4-hc786d27_7.json": "{}",
    }
    torch = build(tmp_path, files, CONDA_PYTHON)
    assert (torch.version, torch.metadata_version) == ("2.5.1", "2.5.1")
    assert (torch.cudnn, torch.installer, torch.wheel_tag) == ("9.1.0", "conda", "")
    assert torch.pins == {}
    assert torch.arch_list == ["sm_50", "sm_90", "compute_90"]


def test_a_build_of_conda_forge(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{CONDA_SITE}/torch/__init__.py": "",
        f"{CONDA_SITE}/torch/version.py": version_py("2.6.0", "12.6"),
        f"{CONDA}/lib/libtorch_python.so": "\0sm_80 sm_90\0",
        f"{CONDA}/lib/libtorch_cuda.so": "",
        f"{CONDA_SITE}/torch-2.6.0.dist-info/METADATA": metadata("2.6.0"),
        f"{CONDA_SITE}/torch-2.6.0.dist-info/INSTALLER": "conda",
        f"{CONDA}/conda-meta/pytorch-2.6.0-cuda126_py311h7a8f5a2_201.json": "{}",
        f"{CONDA}/conda-meta/cudnn-9.8.0.87-h81d5506_1.json": "{}",
        f"{CONDA}/conda-meta/nccl-2.26.2.1-ha44e49d_1.json": "{}",
    }
    torch = build(tmp_path, files, CONDA_PYTHON)
    assert torch.cuda_library is True
    assert torch.arch_list == ["sm_80", "sm_90"]
    assert (torch.cudnn, torch.nccl) == ("9.8.0.87", "2.26.2.1")


def test_windows(tmp_path: Path) -> None:
    site = r"C:\Users\me\venv\Lib\site-packages"
    python = Interpreter(
        status="ok", version="3.11.7", platform="win-amd64", prefix=r"C:\Users\me\venv",
        sys_path=[r"C:\Users\me", r"C:\Python311\python311.zip", site],
    )  # fmt: skip
    files: dict[str, str | bytes] = {
        rf"{site}\torch\__init__.py": "",
        rf"{site}\torch\version.py": version_py("2.6.0+cu124", "12.4"),
        rf"{site}\torch\lib\torch_python.dll": "MZ\0sm_50 sm_90\0",
        rf"{site}\torch\lib\torch_cuda.dll": "MZ",
        rf"{site}\torch\lib\cudnn64_9.dll": "MZ",
        rf"{site}\torch-2.6.0+cu124.dist-info\METADATA": metadata(
            "2.6.0+cu124", 'nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux"'
        ).replace("\n", "\r\n"),
    }
    torch = build(tmp_path, files, python, os="windows")
    assert torch.path == rf"{site}\torch"
    assert torch.metadata_version == "2.6.0+cu124"
    assert torch.arch_list == ["sm_50", "sm_90"]
    assert (torch.cudnn, torch.nccl, torch.pins) == ("9", "", {})
    assert torch.cuda_library is True
    assert torch.cxx11_abi is None


def test_nothing_installed(tmp_path: Path) -> None:
    torch = build(tmp_path, {f"{SITE}/numpy/__init__.py": ""})
    assert torch.installed is False
    assert torch.installs == []
    assert torch.version is None
    assert "not installed" in torch.problem("version")


def test_an_unknown_target_is_no_missing_torch(tmp_path: Path) -> None:
    python = Interpreter(status="timed-out", problems={"*": "gave no answer within 8 s"})
    torch = build(tmp_path, {}, python)
    assert torch.installed is None
    assert torch.problem("installed") == "gave no answer within 8 s"


def test_an_unreadable_folder_is_no_missing_torch(tmp_path: Path) -> None:
    problems = {f"{SITE}/torch/__init__.py": "EACCES: Permission denied"}
    torch = collect(machine(tmp_path, host={"problems": problems}), PYTHON)
    assert torch.installed is None
    assert "EACCES" in torch.problem("installed")


def test_an_editable_install_is_no_missing_torch(tmp_path: Path) -> None:
    info = f"{SITE}/torch-2.9.0a0+gitabc1234.dist-info"
    files: dict[str, str | bytes] = {
        f"{info}/METADATA": metadata("2.9.0a0+gitabc1234"),
        f"{info}/direct_url.json": '{"dir_info": {"editable": true}, "url": "file:///src/pytorch"}',
    }
    torch = build(tmp_path, files)
    assert torch.installed is None
    assert torch.leftovers == []
    assert "editable" in torch.problem("version")


def test_a_stray_file_hides_the_package(tmp_path: Path) -> None:
    torch = build(tmp_path, {**PYPI_2_2, f"{CWD}/torch.py": "import os"})
    assert torch.installed is False
    assert torch.path == f"{CWD}/torch.py"
    assert torch.installs is not None
    assert [install.kind for install in torch.installs] == ["module", "package"]
    assert torch.installs[1].version == "2.2.2+cu121"
    assert "not PyTorch" in torch.problem("version")


def test_a_source_checkout_hides_the_package(tmp_path: Path) -> None:
    torch = build(tmp_path, {**PYPI_2_2, f"{CWD}/torch/__init__.py": ""})
    assert torch.path == f"{CWD}/torch"
    assert torch.installs is not None
    assert [install.kind for install in torch.installs] == ["folder", "package"]


def test_a_damaged_package_is_no_folder_of_the_user(tmp_path: Path) -> None:
    extension = f"{SITE}/torch/_C.cpython-311-x86_64-linux-gnu.so"
    torch = build(tmp_path, {f"{SITE}/torch/__init__.py": "", extension: ""})
    assert torch.installed is True
    assert torch.version is None
    assert torch.problem("version").endswith("version.py: not found")


def test_an_unreadable_version_file(tmp_path: Path) -> None:
    problems = {f"{SITE}/torch/version.py": "EACCES: Permission denied"}
    files = {f"{SITE}/torch/__init__.py": ""}
    torch = collect(machine(tmp_path, files=files, host={"problems": problems}), PYTHON)
    assert torch.installed is True
    assert "EACCES" in torch.problem("built_for")


def test_a_plain_folder_hides_nothing(tmp_path: Path) -> None:
    torch = build(tmp_path, {**PYPI_2_2, f"{CWD}/torch/data.csv": ""})
    assert torch.installed is True
    assert torch.path == f"{SITE}/torch"
    assert torch.installs is not None
    assert len(torch.installs) == 1


def test_a_plain_folder_alone_is_no_torch(tmp_path: Path) -> None:
    torch = build(tmp_path, {f"{CWD}/torch/data.csv": ""})
    assert (torch.installed, torch.installs) == (False, [])


def test_one_folder_under_two_names_is_one_install(tmp_path: Path) -> None:
    links = {f"{PREFIX}/lib64": f"{PREFIX}/lib"}
    lib64 = SITE.replace("/lib/", "/lib64/")
    python = Interpreter(status="ok", prefix=PREFIX, sys_path=[lib64, SITE, SITE])
    torch = build(tmp_path, PYPI_2_2, python, links)
    assert torch.installs is not None
    assert [install.path for install in torch.installs] == [f"{lib64}/torch"]
    assert torch.leftovers == []


def test_two_installs_in_the_order_of_import(tmp_path: Path) -> None:
    user = "/home/user/.local/lib/python3.11/site-packages"
    python = Interpreter(status="ok", prefix=PREFIX, sys_path=[user, SITE])
    files = {
        **PYPI_2_2,
        f"{user}/torch/__init__.py": "",
        f"{user}/torch/version.py": version_py("2.6.0+cpu"),
    }
    torch = build(tmp_path, files, python)
    assert (torch.version, torch.built_for) == ("2.6.0+cpu", "cpu")
    assert torch.installs is not None
    assert [install.version for install in torch.installs] == ["2.6.0+cpu", "2.2.2+cu121"]


def test_leftovers_of_an_interrupted_upgrade(tmp_path: Path) -> None:
    files = {
        **PYPI_2_2,
        f"{SITE}/~orch/lib/x": "",
        f"{SITE}/~-rch/lib/x": "",
        f"{SITE}/~orch-2.1.0.dist-info/METADATA": "",
        f"{SITE}/~orchvision/x": "",
        f"{SITE}/~earch/x": "",
    }
    assert build(tmp_path, files).leftovers == [
        f"{SITE}/~-rch",
        f"{SITE}/~orch",
        f"{SITE}/~orch-2.1.0.dist-info",
    ]


def test_metadata_without_a_package_is_left_over(tmp_path: Path) -> None:
    torch = build(tmp_path, {f"{SITE}/torch-2.1.0.dist-info/METADATA": metadata("2.1.0")})
    assert torch.installed is False
    assert torch.leftovers == [f"{SITE}/torch-2.1.0.dist-info"]


def test_of_two_metadata_the_fitting_one_counts(tmp_path: Path) -> None:
    old = {
        f"{SITE}/torch-1.13.1.dist-info/METADATA": metadata("1.13.1", "nvidia-cudnn-cu11==8.5.0.96")
    }
    torch = build(tmp_path, {**PYPI_2_2, **old})
    assert torch.metadata_version == "2.2.2"
    assert torch.pins is not None
    assert "nvidia-cudnn-cu11" not in torch.pins
    assert torch.leftovers is not None
    assert len(torch.leftovers) == 2


def test_files_and_metadata_of_two_installs(tmp_path: Path) -> None:
    files = {**PYPI_2_2, f"{SITE}/torch/version.py": version_py("2.6.0", "12.4")}
    torch = build(tmp_path, files)
    assert (torch.version, torch.metadata_version) == ("2.6.0", "2.2.2")


@each("marker", ["platform_release >= '5'", "python_version <", "(" * 500])
def test_a_marker_that_is_not_understood_is_no_pin(tmp_path: Path, marker: str) -> None:
    torch = build(tmp_path, wheel("2.6.0", "12.4", f"nvidia-nccl-cu12==2.21.5; {marker}"))
    assert torch.pins == {}


NEEDS = ("typing-extensions>=4.10.0", "sympy>=1.13.3; python_version >= '3.8'", "jinja2",
         "optree>=0.13.0; extra == 'optree'", "setuptools; python_version >= '3.12'")  # fmt: skip


def test_what_torch_requires_besides_libraries(tmp_path: Path) -> None:
    files = wheel("2.9.1+cpu", None, *NEEDS)
    files[f"{SITE}/typing_extensions-4.5.0.dist-info/METADATA"] = "Name: typing-extensions\n"
    files[f"{SITE}/typing_extensions.py"] = ""
    files[f"{CWD}/jinja2/__init__.py"] = ""
    files[f"{SITE}/sympy-1.14.0.dist-info/METADATA"] = "Name: sympy\n"
    needs = collect(machine(tmp_path, files=files), PYTHON).needs
    assert [
        (
            needed_package.project,
            needed_package.specifier,
            needed_package.version,
            needed_package.found,
        )
        for needed_package in needs or ()
    ] == [
        ("typing-extensions", ">=4.10.0", "4.5.0", True),
        ("sympy", ">=1.13.3", "1.14.0", False),
        ("jinja2", "", "", True),
    ]


def test_where_nothing_that_torch_requires_is_there_it_was_not_recorded(tmp_path: Path) -> None:
    found = collect(machine(tmp_path, files=wheel("2.9.1+cpu", None, *NEEDS)), PYTHON)
    assert found.needs is None
    assert "none of the packages" in found.problem("needs")


def test_libraries_that_the_record_lists(tmp_path: Path) -> None:
    names = ("libc10.so", "libshm.so", "libjitbackend_test.so")
    record = "".join(f"torch/lib/{name},sha256=x,5\n" for name in names)
    files = wheel("2.6.0+cpu", None)
    info = next(path.rpartition("/")[0] for path in files if path.endswith("/METADATA"))
    files |= {f"{info}/RECORD": record, f"{SITE}/torch/lib/libc10.so": "12345"}
    assert build(tmp_path, files).lost_libraries == ["libshm.so"]
