"""Versions with further parts (.post3, rc1, .dev1, +cu117), and where such builds come from."""

from typing import Any, NamedTuple

from each import each

from gpucheck.describe.files.complaint import FileTarget
from gpucheck.describe.files.lint import lint
from gpucheck.tables import Tables

TABLES = Tables()
WHL = "https://download.pytorch.org/whl"
STABLE = f"{WHL}/torch_stable.html"
BLACKWELL: dict[str, Any] = {"gpus": ("5090",)}
PIN, COMPANION = "package-pin-conflict", "torch-companion-mismatch"
TOO_NEW, CPU = "gpu-too-new-for-torch", "torch-cpu-only"


class Case(NamedTuple):
    """A file, what the user says of the target, and the rules that it breaks."""

    text: str
    found: tuple[str, ...] = ()
    target: dict[str, Any] = {}  # noqa: RUF012  # never changed
    name: str = "requirements.txt"


CASES = {
    "never-published": Case(f"--index-url {WHL}/cu118\ntorch==2.9.1\n", ("index-conflict",)),
    "never-published-by-name": Case("torch==2.9.1+cu118\n", ("index-conflict",)),
    "published-before": Case(f"--index-url {WHL}/cu130\ntorch==2.4.0\n", ("index-conflict",)),
    "published": Case(f"--index-url {WHL}/cu118\ntorch==2.7.1\n"),
    "taken-from-pypi": Case(f"--extra-index-url {WHL}/cu118\ntorch==2.9.1\n"),
    "between-what-is-known": Case(f"--index-url {WHL}/cu128\ntorch==2.13.0\n"),
    "newer-than-the-tables": Case(f"--index-url {WHL}/cu118\ntorch==2.99.0\n"),
    # Each post-release has requirements of its own.
    "post": Case("torch==2.6.0\nxformers==0.0.28.post3\n", (PIN,)),
    "post-that-fits": Case("torch==2.5.1\nxformers==0.0.28.post3\n"),
    "post-beside-a-build": Case("torch==2.5.1+cu121\nxformers==0.0.28.post3\n"),
    "post-with-a-build": Case("torch==2.6.0\nxformers==0.0.28.post3+cu124\n", (PIN,)),
    "post-in-another-form": Case("torch==2.6.0\nxformers==0.0.28-3\n", (PIN,)),
    "post-that-no-table-has": Case("torch==2.6.0\nxformers==0.0.28.post99\n"),
    "post-of-vllm": Case("torch==2.6.0\nvllm==0.6.3.post1\n", (PIN,)),
    "post-of-torch": Case("torch==2.5.1.post1\nxformers==0.0.28.post3\n"),
    "candidate": Case("torch==2.6.0\nxformers==0.0.28rc3\n"),
    "development": Case("torch==2.6.0\nxformers==0.0.28.dev893\n"),
    "candidate-of-torch": Case("torch==2.6.0rc1\nxformers==0.0.29.post2\ntorchvision==0.20.0\n"),
    "nightly": Case(
        f"--pre\n-i {WHL}/nightly/cu126\ntorch==2.7.0.dev20250101+cu126\n"
        "torchvision==0.22.0.dev20250101+cu126\n",
        target=BLACKWELL,
    ),
    "post-for-poetry": Case(
        '[tool.poetry.dependencies]\ntorch = "2.6.0"\nxformers = "0.0.28.post3"\n', (PIN,),
        name="pyproject.toml",
    ),
    "candidate-for-poetry": Case(
        '[tool.poetry.dependencies]\ntorch = "2.6.0"\ntorchvision = "0.20.0rc1"\n',
        name="pyproject.toml",
    ),
    "without-dependencies": Case(
        "FROM ubuntu:22.04\nRUN pip install --no-deps torch==2.6.0 xformers==0.0.28.post3\n",
        name="Dockerfile",
    ),
    # A number that is left out is 0.
    "short": Case("torch==2.5\ntorchvision==0.21\n", (COMPANION,)),
    "short-that-fits": Case("torch==2.5\ntorchvision==0.20\ntorchaudio==2.5\n"),
    "short-series": Case("torch==2.5.*\ntorchvision==0.20.1\n"),
    "short-series-of-another": Case("torch==2.5.*\ntorchvision==0.21\n", (PIN,)),
    # Local versions.
    "build-of-a-companion": Case("torch==2.5.1\ntorchvision==0.20.1+cu121\n"),
    "other-release-of-a-build": Case(
        "torch==2.6.0+cu124\ntorchaudio==2.5.1+cu124\n", (COMPANION,)
    ),
    "cuda-of-pypi": Case(
        f"-i {WHL}/cu117\ntorch==2.0.1+cu117.with.pypi.cudnn\ntorchvision==0.15.2+cu117\n",
        (TOO_NEW,), BLACKWELL,
    ),
    "cuda-of-pypi-elsewhere": Case(
        f"-i {WHL}/cu118\ntorch==2.0.1+cu117.with.pypi.cudnn\n", ("index-conflict",)
    ),
    # PyTorch's page with the wheels of all builds.
    "page": Case(f"-f {STABLE}\ntorch==1.13.1+cu117\n", (TOO_NEW,), BLACKWELL),
    "page-with-a-mixture": Case(
        f"--find-links={STABLE}\ntorch==1.13.1+cu117\ntorchvision==0.14.1+cpu\n", (COMPANION,)
    ),
    "page-and-an-old-driver": Case(
        f"--find-links {STABLE}\ntorch==2.0.1+cu118\n", ("driver-too-old",), {"driver": "440"}
    ),
    "page-for-a-processor": Case(f"-f {STABLE}\ntorch==1.13.1+cpu\n", (CPU,), BLACKWELL),
    "page-for-a-processor-alone": Case(f"-f {STABLE}\ntorch==1.13.1+cpu\n"),
    "page-without-a-build": Case(f"-f {STABLE}\ntorch==1.13.1\n", target=BLACKWELL),
    "page-in-a-step": Case(
        f"FROM python:3.10\nRUN pip install torch==1.13.1+cu117 -f {STABLE}\n", (TOO_NEW,),
        BLACKWELL, "Dockerfile",
    ),
    "page-in-a-step-without-a-build": Case(
        f"FROM python:3.10\nRUN pip install torch==1.13.1 -f {STABLE}\n", (), BLACKWELL,
        "Dockerfile",
    ),
    "page-in-a-variable": Case(
        f"FROM nvidia/cuda:11.7.1-runtime-ubuntu20.04\nENV PIP_FIND_LINKS={STABLE}\n"
        "RUN pip install torch==1.13.1+cpu\n", (CPU,), {}, "Dockerfile",
    ),
    "page-beside-an-index": Case(f"-f {STABLE}\n-i {WHL}/cu118\ntorch==2.0.1+cu117\n"),
    "page-of-another-project": Case(
        "-f https://example.org/whl/torch_stable.html\ntorch==1.13.1+cu117\n", target=BLACKWELL
    ),
    "page-of-a-build": Case(
        f"-f {WHL}/cu117/torch_stable.html\ntorch==1.13.1+cu117\n", (TOO_NEW,), BLACKWELL
    ),
}  # fmt: skip


@each("case", CASES.values(), ids=CASES)
def test_every_part_of_a_version_counts(case: Case) -> None:
    done = lint(case.name, case.text.encode(), FileTarget(**case.target), TABLES)
    assert tuple(sorted(complaint.rule for complaint in done.complaints)) == case.found
