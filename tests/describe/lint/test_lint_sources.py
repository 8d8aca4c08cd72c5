"""Where a package comes from and whether it is installed: wheels, markers, sources of projects."""

from typing import Any, NamedTuple

from each import each

from gpucheck.describe.files.complaint import FileTarget
from gpucheck.describe.files.lint import lint
from gpucheck.describe.files.model import Wheel, holds_on_linux, wheel_of
from gpucheck.tables import Tables

TABLES = Tables()
WHL = "https://download.pytorch.org/whl"
BLACKWELL: dict[str, Any] = {"gpus": ("5090",)}
PIN, COMPANION = "package-pin-conflict", "torch-companion-mismatch"
TOO_NEW, CPU, PYTHON = "gpu-too-new-for-torch", "torch-cpu-only", "torch-python-unsupported"
PROJECT = "pyproject.toml"
ON_LINUX, ELSEWHERE = "sys_platform == 'linux'", "sys_platform != 'linux'"


def wheel(build: str, python: str = "cp310", torch: str = "2.1.0") -> str:
    return f"{WHL}/{build}/torch-{torch}%2B{build}-{python}-{python}-linux_x86_64.whl"


def step(*words: str, image: str = "python:3.10") -> str:
    return f"FROM {image}\nRUN pip install {' '.join(words)}\n"


def project(*dependencies: str, more: str = "") -> str:
    return f"[project]\nname = 'a'\ndependencies = {list(dependencies)}\n{more}"


def uv(first: str, second: str, more: str = "") -> str:
    """Return a project with torch from two indexes, cpu and cu126."""
    return project(
        "torch==2.7.0",
        more=f'{more}[tool.uv.sources]\ntorch = [\n  {{index = "c", marker = "{first}"}},\n'
        f'  {{index = "g", marker = "{second}"}},\n]\n'
        f'[[tool.uv.index]]\nname = "c"\nurl = "{WHL}/cpu"\nexplicit = true\n'
        f'[[tool.uv.index]]\nname = "g"\nurl = "{WHL}/cu126"\nexplicit = true\n',
    )


def poetry(more: str, dependency: str = 'torch = "2.6.0"') -> str:
    return f"[tool.poetry.dependencies]\npython = '^3.10'\n{dependency}\n{more}"


def poetry_source(address: str, priority: str) -> str:
    return f'[[tool.poetry.source]]\nname = "s"\nurl = "{address}"\npriority = "{priority}"\n'


def pdm(address: str, *more: str) -> str:
    return "\n".join(("[[tool.pdm.source]]", "name = 's'", f"url = '{address}'", *more, ""))


class Case(NamedTuple):
    """A file, what the user says of the target, and the rules that it breaks."""

    name: str
    text: str
    found: tuple[str, ...] = ()
    target: dict[str, Any] = {}  # noqa: RUF012  # never changed


CASES = {
    # The name of a wheel says its build.
    "wheel": Case("Dockerfile", step(wheel("cu118")), (TOO_NEW,), BLACKWELL),
    "wheel-of-a-requirement": Case(
        "requirements.txt", f"torch @ {wheel('cpu')}\n", (CPU,), BLACKWELL
    ),
    "wheel-of-a-project": Case(
        PROJECT, project(f"torch @ {wheel('cu118')}", "torchvision==0.17.0"), (COMPANION,)
    ),
    "wheel-that-fits": Case(
        "requirements.txt", f"torch @ {wheel('cu128', torch='2.7.0')}\ntorchvision==0.22.0\n",
        target=BLACKWELL,
    ),
    "wheel-for-an-old-python": Case(
        "Dockerfile", step(wheel("cu118"), image="python:3.12"), (PYTHON,)
    ),
    "wheel-of-others": Case(
        "Dockerfile", step(wheel("cu118").replace(WHL, "https://example.org")), (), BLACKWELL
    ),
    "wheel-for-windows": Case(
        "Dockerfile", step(wheel("cpu").replace("linux_x86_64", "win_amd64")), (), BLACKWELL
    ),
    "wheel-beside-a-private-index": Case(
        "requirements.txt", f"-i https://example.org/simple\ntorch @ {wheel('cpu')}\n", (CPU,),
        BLACKWELL,
    ),
    # Markers that hold on every Linux.
    "marker-of-linux": Case(
        "requirements.txt", f"torch==2.7.1; {ON_LINUX}\ntorchvision==0.21.0; {ON_LINUX}\n",
        (COMPANION,),
    ),
    "marker-of-others": Case(
        "requirements.txt",
        f"torch==2.7.1; {ELSEWHERE}\ntorch==2.6.0; {ON_LINUX}\ntorchvision==0.21.0\n",
    ),
    "marker-of-a-python": Case(
        "requirements.txt", "torch==2.7.1; python_version > '3.9'\ntorchvision==0.21.0\n"
    ),
    "marker-of-an-extra": Case(
        PROJECT, project("torch==2.7.1; extra == 'a'", "torchvision==0.21.0")
    ),
    "sources-by-markers": Case(PROJECT, uv(ELSEWHERE, ON_LINUX), (TOO_NEW,), BLACKWELL),
    "sources-by-other-markers": Case(PROJECT, uv(ON_LINUX, ELSEWHERE), (CPU,), BLACKWELL),
    "sources-by-pythons": Case(
        PROJECT, uv("python_version > '3.11'", "python_version <= '3.11'"), (), BLACKWELL
    ),
    "sources-that-overlap": Case(PROJECT, uv(ON_LINUX, "os_name == 'posix'"), (), BLACKWELL),
    "explicit-source-beside-a-private-index": Case(
        PROJECT,
        uv(ELSEWHERE, ON_LINUX, '[[tool.uv.index]]\nurl = "https://example.org/simple"\n'),
        (TOO_NEW,), BLACKWELL,
    ),
    # Other places of uv, PDM and Poetry.
    "pypi-of-a-project": Case(PROJECT, project("torch==2.6.0"), (TOO_NEW,), BLACKWELL),
    "wheels-of-uv": Case(
        PROJECT,
        project("torch==2.6.0", more="[tool.uv]\nfind-links = ['https://example.org']\n"),
        (), BLACKWELL,
    ),
    "uv-without-index": Case(
        PROJECT, project("torch==2.6.0", more="[tool.uv]\nno-index = true\n"), (), BLACKWELL
    ),
    "source-of-pdm": Case(
        PROJECT, project("torch==2.6.0+cpu", more=pdm(f"{WHL}/cpu")), (CPU,), BLACKWELL
    ),
    "private-source-of-pdm": Case(
        PROJECT, project("torch==2.6.0", more=pdm("https://example.org/simple")), (), BLACKWELL
    ),
    "pattern-of-pdm": Case(
        PROJECT,
        project("torch==2.6.0", more=pdm(f"{WHL}/cpu", "include_packages = ['nvidia-*']")),
        (), BLACKWELL,
    ),
    "pdm-for-other-packages": Case(
        PROJECT,
        project("torch==2.6.0", more=pdm("https://example.org", "include_packages = ['b']")),
        (TOO_NEW,), BLACKWELL,
    ),
    "private-source-of-poetry": Case(
        PROJECT, poetry(poetry_source("https://example.org", "primary")), (), BLACKWELL
    ),
    "supplemental-source-of-poetry": Case(
        PROJECT, poetry(poetry_source(f"{WHL}/cpu", "supplemental")), (TOO_NEW,), BLACKWELL
    ),
    "named-source-of-poetry": Case(
        PROJECT,
        poetry(
            poetry_source(f"{WHL}/cpu", "explicit"), 'torch = {version = "2.6.0", source = "s"}'
        ),
        (CPU,), BLACKWELL,
    ),
    "named-source-beside-a-project": Case(
        PROJECT,
        project(
            "torch (==2.7.1)",
            more='[tool.poetry.dependencies]\ntorch = {source = "s"}\n'
            + poetry_source(f"{WHL}/cpu", "explicit"),
        ),
        (CPU,), BLACKWELL,
    ),
    # What torch itself requires.
    "triton": Case("requirements.txt", "torch==2.6.0\ntriton==3.1.0\n", (PIN,)),
    "triton-that-fits": Case("requirements.txt", "torch==2.6.0\ntriton==3.2.0\n"),
    "triton-of-a-cpu-build": Case(
        "requirements.txt", f"-i {WHL}/cpu\ntorch==2.6.0\ntriton==3.1.0\n"
    ),
    "triton-of-another-index": Case(
        "requirements.txt", "-i https://example.org\ntorch==2.6.0\ntriton==3.1.0\n"
    ),
    "triton-for-others": Case("requirements-rocm.txt", "torch==2.6.0\ntriton==3.1.0\n"),
    "triton-of-a-python": Case("requirements.txt", "torch==2.5.1\ntriton==3.2.0\n"),
    "triton-of-this-python": Case(
        "requirements.txt", "torch==2.5.1\ntriton==3.2.0\n", (PIN,), {"python": "3.12"}
    ),
    "triton-of-a-later-python": Case(
        "requirements.txt", "torch==2.5.1\ntriton==3.2.0\n", (), {"python": "3.13"}
    ),
    "triton-on-arm": Case(
        "Dockerfile",
        step("torch==2.6.0", "triton==3.1.0", image="--platform=linux/arm64 python:3.11"),
    ),
    "triton-on-either": Case(
        "Dockerfile",
        step("torch==2.6.0", "triton==3.1.0", image="--platform=$TARGETPLATFORM python:3.11"),
    ),
    "triton-that-uv-overrides": Case(
        PROJECT,
        project("torch==2.6.0", "triton==3.1.0",
                more="[tool.uv]\noverride-dependencies = ['triton==3.1.0']\n"),
    ),
    "cudnn": Case("Dockerfile", step("torch==2.6.0", "nvidia-cudnn-cu12==8.9.7.29"), (PIN,)),
    "cudnn-that-fits": Case("Dockerfile", step("torch==2.6.0", "nvidia-cudnn-cu12==9.1.0.70")),
    "cudnn-of-another-build": Case(
        "Dockerfile", step("torch==2.6.0", "nvidia-cudnn-cu12==9.5.1.17", f"-i {WHL}/cu126")
    ),
    "cudnn-of-a-file": Case("requirements.txt", "torch==2.6.0\nnvidia-cudnn-cu12==9.5.1.17\n"),
    "cudnn-without-dependencies": Case(
        "Dockerfile", step("--no-deps", "torch==2.6.0", "nvidia-cudnn-cu12==8.9.7.29")
    ),
    "numpy": Case("requirements.txt", "torch==2.1.0\nnumpy==2.0.1\n", ("numpy-abi-mismatch",)),
    "numpy-that-fits": Case("requirements.txt", "torch==2.1.0\nnumpy==1.26.4\n"),
    "numpy-of-conda": Case(
        "environment.yml", "dependencies:\n- pytorch=2.1.0\n- numpy=2.0.1\n"
    ),
    # A later step replaces torch.
    "later": Case(
        "Dockerfile", step("torch==2.6.0") + "RUN pip install xformers==0.0.28.post3\n", (PIN,)
    ),
    "later-in-a-step": Case(
        "Dockerfile", step("torch==2.6.0", "&& pip install vllm==0.6.3.post1"), (PIN,)
    ),
    "later-companion": Case(
        "Dockerfile", step("torch==2.6.0") + "RUN pip install torchvision==0.20.1\n", (PIN,)
    ),
    "later-that-fits": Case(
        "Dockerfile",
        step("torch==2.6.0") + "RUN pip install torchvision==0.21.0 xformers==0.0.29.post3\n",
    ),
    "later-without-dependencies": Case(
        "Dockerfile",
        step("torch==2.6.0") + "RUN pip install --no-deps xformers==0.0.28.post3\n",
    ),
    "later-with-another-torch": Case(
        "Dockerfile",
        step("torch==2.6.0") + "RUN pip install torch==2.5.1 xformers==0.0.28.post3\n",
    ),
    "later-after-a-file": Case(
        "Dockerfile",
        step("torch==2.6.0", "&& pip install -r a.txt && pip install xformers==0.0.28.post3"),
    ),
    "later-in-another-environment": Case(
        "Dockerfile",
        step("torch==2.6.0", "&& python -m venv /b && /b/bin/pip install xformers==0.0.28.post3"),
    ),
    "later-in-a-folder": Case(
        "Dockerfile",
        step("torch==2.6.0") + "RUN pip install --target /b xformers==0.0.28.post3\n",
    ),
    "later-in-a-folder-by-equals": Case(
        "Dockerfile",
        step("torch==2.6.0") + "RUN pip install --target=/b xformers==0.0.28.post3\n",
    ),
    "later-in-a-folder-by-letter": Case(
        "Dockerfile",
        step("torch==2.6.0") + "RUN pip install -t /b xformers==0.0.28.post3\n",
    ),
    "later-after-a-folder": Case(
        "Dockerfile",
        step("torch==2.6.0", "&& pip install --target /b torch==2.5.1",
             "&& pip install xformers==0.0.28.post3"),
        (PIN,),
    ),
    "build-beside-a-folder": Case(
        "Dockerfile",
        step("torch==2.7.0") + "RUN pip install --target /b torch==2.5.1\n", (TOO_NEW,), BLACKWELL,
    ),
    # Documentation is built without GPUs.
    "documentation": Case(
        "docs/requirements.txt", f"-i {WHL}/cpu\ntorch==2.6.0\n", (), BLACKWELL
    ),
    "guide": Case("guide/requirements.txt", f"-i {WHL}/cpu\ntorch==2.6.0\n", (CPU,), BLACKWELL),
}  # fmt: skip


@each("case", CASES.values(), ids=CASES)
def test_what_is_installed_from_where(case: Case) -> None:
    done = lint(case.name, case.text.encode(), FileTarget(**case.target), TABLES)
    assert tuple(sorted(complaint.rule for complaint in done.complaints)) == case.found


@each(
    ("marker", "holds"),
    [
        (ON_LINUX, True),
        ("platform_system != 'Darwin' or sys_platform == 'win32'", True),
        ("sys_platform == 'linux' and platform_machine == 'x86_64'", None),
        ("sys_platform == 'win32' and platform_machine == 'x86_64'", False),
        ("python_full_version < '3.9'", None),
        ("'linux' in sys_platform", True),
        ("no marker", None),
        ("(" * 150, None),
        ("sys_platform == 'linux'" + " or sys_platform == 'linux'" * 100, None),
    ],
)
def test_a_marker_holds_only_if_every_linux_has_it(marker: str, holds: bool | None) -> None:  # noqa: FBT001  # a value of the table
    assert holds_on_linux(marker) is holds


def test_a_wheel_is_read_from_its_address() -> None:
    assert wheel_of(wheel("cu118")) == Wheel("torch", "2.1.0+cu118", f"{WHL}/cu118")
    assert wheel_of("https://a.example/x/../torch-2.1.0-cp39-cp39-linux_x86_64.whl") is None
    assert wheel_of("https://a.example/torch-2.1.0.tar.gz") is None
    assert wheel_of("https://a.example/" + "a-" * 200 + "linux_x86_64.whl") is None
