"""Files in which nothing is certainly wrong, and files that differ from them by one word."""

import time
from typing import Any, NamedTuple

import pytest
from each import each

from gpucheck.describe.files.complaint import FileTarget
from gpucheck.describe.files.lint import lint
from gpucheck.describe.files.text import UnreadableError
from gpucheck.tables import Tables

TABLES = Tables()
LONGEST = 15
"""Seconds of the processor: what grows with the square of the lines takes minutes."""
INDEX = "https://download.pytorch.org/whl"
RUNTIME = "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"
TORCH_IMAGE = "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"
TORCH = "pip install torch==2.7.0"
"""PyPI's build of it has no code for an RTX 5090, another build has."""
SLURM = "#!/bin/bash\n#SBATCH -N 1\n"
GPUS = "{devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}"


class Case(NamedTuple):
    """A file and the rules that it breaks."""

    name: str
    text: str
    found: tuple[str, ...] = ()


def slim(*steps: str) -> str:
    return "\n".join(("FROM python:3.11-slim", *steps, ""))


CASES = {
    # pip and uv may be told of an index in many ways.
    "no-index": Case("Dockerfile", slim(f"RUN {TORCH}"), ("gpu-too-new-for-torch",)),
    "backend-of-uv": Case("Dockerfile", slim("ENV UV_TORCH_BACKEND=cu128", f"RUN uv {TORCH}")),
    "backend-of-one-command": Case("Dockerfile", slim(f"RUN UV_TORCH_BACKEND=cu128 uv {TORCH}")),
    "index-of-one-command": Case("Dockerfile", slim(f"RUN PIP_INDEX_URL={INDEX}/cu128 {TORCH}")),
    "old-index-of-one-command": Case(
        "Dockerfile", slim(f"RUN PIP_INDEX_URL={INDEX}/cu126 {TORCH}"), ("gpu-too-new-for-torch",)
    ),
    "exported": Case(
        "Dockerfile", slim(f"RUN export PIP_EXTRA_INDEX_URL={INDEX}/cu128 && {TORCH}")
    ),
    "exported-in-a-condition": Case(
        "Dockerfile",
        slim(f"RUN if [ $A ]; then export V=2.7.0; else export V=2.6.0; fi; {TORCH[:-5]}$V"),
    ),
    "exported-version": Case(
        "Dockerfile", slim(f"RUN export V=2.6.0; {TORCH[:-5]}$V"), ("gpu-too-new-for-torch",)
    ),
    "exported-for-another-step": Case(
        "Dockerfile", slim("RUN export PIP_INDEX_URL=https://example.org", f"RUN {TORCH}"),
        ("gpu-too-new-for-torch",),
    ),
    "exported-secret": Case(
        "Dockerfile", slim(f'RUN export PIP_INDEX_URL="$(cat /run/secrets/a)" && {TORCH}')
    ),
    "secret": Case("Dockerfile", slim(f"RUN PIP_INDEX_URL=$(cat /run/secrets/a) {TORCH}")),
    "configured": Case(
        "Dockerfile", slim(f"RUN pip config set global.index-url {INDEX}/cu128", f"RUN {TORCH}")
    ),
    "configured-otherwise": Case(
        "Dockerfile", slim("RUN pip config set global.timeout 60", f"RUN {TORCH}"),
        ("gpu-too-new-for-torch",),
    ),
    "copied-settings": Case(
        "Dockerfile", slim("COPY pip.conf /etc/pip.conf", f"RUN {TORCH}")
    ),
    "settings-of-an-earlier-stage": Case(
        "Dockerfile",
        f"FROM python:3.11-slim AS a\nCOPY pip.conf /etc/pip.conf\nFROM a\nRUN {TORCH}\n",
    ),
    "cache-of-pip": Case(
        "Dockerfile", slim(f"RUN --mount=type=cache,target=/root/.cache/pip {TORCH}"),
        ("gpu-too-new-for-torch",),
    ),
    "wheels-of-a-folder": Case("Dockerfile", slim(f"RUN {TORCH} --no-index")),
    "file-of-uv": Case(
        "pyproject.toml",
        '[project]\ndependencies = ["torch==2.6.0"]\n[tool.uv.sources]\n'
        'torch = {url = "https://example.org/torch-2.6.0+cu130-cp312.whl"}\n'
        f'[[tool.uv.index]]\nurl = "{INDEX}/cpu"\n',
    ),
    # Indexes of other projects look like those of PyTorch.
    "cpu-index-of-another-project": Case(
        "Dockerfile",
        RUNTIME + "RUN pip install torch llama-cpp-python "
        "--extra-index-url https://abetlen.github.io/llama-cpp-python/whl/cpu\n",
    ),
    "cuda-index-of-another-project": Case(
        "requirements.txt",
        f"--extra-index-url {INDEX}/cu118\n"
        "--extra-index-url https://huggingface.github.io/autogptq-index/whl/cu121/\n"
        "torch==2.1.0\nauto-gptq\n",
    ),
    "mirror-of-pytorch": Case(
        "Dockerfile", RUNTIME + "RUN pip install torch -i https://example.org/pytorch/whl/cpu\n",
        ("torch-cpu-only",),
    ),
    # Lists, as Docker has them.
    "list": Case(
        "Dockerfile", slim(f'RUN ["pip", "install", "torch==2.6.0", "-i", "{INDEX}/cu124"]'),
        ("gpu-too-new-for-torch",),
    ),
    "list-with-a-shell": Case(
        "Dockerfile",
        slim('RUN ["/bin/bash", "-c", "pip install torch==2.6.0 torchvision==0.20.0"]'),
        ("gpu-too-new-for-torch", "torch-companion-mismatch"),
    ),
    "test-in-a-list": Case("Dockerfile", RUNTIME + "RUN [ -f /a ] && nvcc a.cu\n"),
    # A command that may fail.
    "nvcc-that-may-fail": Case("Dockerfile", RUNTIME + "RUN nvcc --version || true\n"),
    "nvcc-in-brackets": Case("Dockerfile", RUNTIME + "RUN (nvcc -V 2>/dev/null) || echo none\n"),
    "nvcc-that-must-not-fail": Case(
        "Dockerfile", RUNTIME + "RUN nvcc --version || exit 1\n", ("toolkit-missing",)
    ),
    "list-that-may-fail": Case("Dockerfile", RUNTIME + "RUN nvcc a.cu && ./a || true\n"),
    "step-before-one-that-may-fail": Case(
        "Dockerfile", RUNTIME + "RUN nvcc a.cu; rm a.cu || true\n", ("toolkit-missing",)
    ),
    "whole-toolkit": Case("Dockerfile", RUNTIME + "RUN apt install -y cuda-12-4 && nvcc a.cu\n"),
    "library-of-cuda": Case(
        "Dockerfile", RUNTIME + "RUN apt install -y libcudnn9-cuda-12 && nvcc a.cu\n",
        ("toolkit-missing",),
    ),
    "smi-that-may-fail": Case("a.sbatch", SLURM + "nvidia-smi || echo none\n"),
    "smi-if-there-is-one": Case("a.sbatch", SLURM + "which nvidia-smi && nvidia-smi\n"),
    "smi-in-a-function": Case("a.sbatch", SLURM + "look() {\n  nvidia-smi\n}\npython a.py\n"),
    "smi-after-a-function": Case(
        "a.sbatch", SLURM + "look() { echo ${A}; }\nnvidia-smi\n", ("gpu-not-requested",)
    ),
    "smi-in-a-file": Case("a.sbatch", SLURM + "cat > b.sh <<'END'\nnvidia-smi\nEND\nbash b.sh\n"),
    "smi-after-a-file": Case(
        "a.sbatch", SLURM + "cat > b.sh <<END\na\nEND\nnvidia-smi\n", ("gpu-not-requested",)
    ),
    "shift-is-no-file": Case(
        "a.sbatch", SLURM + "echo $((1 << N))\nnvidia-smi\n", ("gpu-not-requested",)
    ),
    # Nodes of a partition may come with all of their GPUs.
    "partition": Case("a.sbatch", SLURM + "#SBATCH -p gh\nnvidia-smi\n"),
    "long-partition": Case("a.sbatch", SLURM + "#SBATCH --partition booster\nnvidia-smi\n"),
    "quality-of-service": Case("a.sbatch", SLURM + "#SBATCH --qos=gpu_short\nnvidia-smi\n"),
    "project": Case("a.sbatch", SLURM + "#SBATCH -A abc\nnvidia-smi\n", ("gpu-not-requested",)),
    "processes-of-a-cpu": Case(
        "a.sbatch", SLURM + "torchrun --nproc-per-node=4 a.py --backend gloo\n"
    ),
    # Anchors.
    "merged-resources": Case(
        "compose.yaml",
        f"x-a: &a\n  reservations: {GPUS}\nservices:\n  a:\n    image: {TORCH_IMAGE}\n"
        "    deploy:\n      resources:\n        <<: *a\n",
    ),
    "merged-list": Case(
        "compose.yaml",
        f"x-a: &a {{x: 1}}\nx-b: &b {GPUS}\nservices:\n  a:\n    image: {TORCH_IMAGE}\n"
        "    deploy:\n      resources:\n        reservations:\n          <<: [*a, *b]\n",
    ),
    "merged-without-gpus": Case(
        "compose.yaml",
        f"x-a: &a {{limits: {{cpus: 1}}}}\nservices:\n  a:\n    image: {TORCH_IMAGE}\n"
        "    deploy:\n      resources:\n        <<: *a\n",
        ("container-no-gpu",),
    ),
    "merged-limits": Case(
        "pod.yaml",
        "kind: Pod\nx: &a {nvidia.com/gpu: 1}\nspec:\n  containers:\n  - name: a\n"
        f"    image: {TORCH_IMAGE}\n    resources:\n      limits:\n        <<: *a\n",
    ),
    "service-for-a-processor": Case(
        "compose.yaml", f"services:\n  train-cpu:\n    image: {TORCH_IMAGE}\n"
    ),
}  # fmt: skip


@each("case", CASES.values(), ids=CASES)
def test_only_what_is_certain_is_reported(case: Case) -> None:
    target: dict[str, Any] = {"gpus": ("5090",)} if case.name == "Dockerfile" else {}
    if RUNTIME in case.text:
        target = {}
    done = lint(case.name, case.text.encode(), FileTarget(**target), TABLES)
    assert done.kind
    assert tuple(sorted(complaint.rule for complaint in done.complaints)) == case.found


def test_aliases_that_merge_themselves_are_refused() -> None:
    text = "services:\n  a: &a\n    image: x\n    deploy: {<<: *a}\n"
    with pytest.raises(UnreadableError):
        lint("compose.yaml", text.encode(), FileTarget(), TABLES)


def test_many_handlers_take_no_time() -> None:
    begun = time.process_time()
    lint("Dockerfile", ("FROM a\nRUN " + "a || \\\n" * 50_000).encode(), FileTarget(), TABLES)
    assert time.process_time() - begun < LONGEST


def test_open_here_documents_take_no_time() -> None:
    text = SLURM + "cat <<A\n" * 50_000
    assert lint("a.sbatch", text.encode(), FileTarget(), TABLES).kind == "sbatch"


class LineCase(NamedTuple):
    """A file and the lines of its faults."""

    name: str
    text: str
    lines: list[int]


LINES = {
    "project": LineCase(
        "pyproject.toml",
        '[project]\nname = "torch==2.6.0-tool"\ndescription = "for torch==2.6.0"\n'
        'dependencies = [\n  "torchvision==0.20.0",\n  "torch==2.6.0",\n]\n',
        [5],
    ),
    "poetry": LineCase(
        "pyproject.toml",
        '[tool.poetry.dependencies]\npython = "^3.12"\ntorchvision = "*"\ntorch = "1.13.1"\n',
        [4],
    ),
    "pixi": LineCase(
        "pixi.toml",
        '[dependencies]\npython = "3.12.*"\n[pypi-dependencies]\nmy-torch = "*"\n'
        'torch = "==1.13.1"\n',
        [5],
    ),
}


@each("case", LINES.values(), ids=LINES)
def test_a_fault_stands_at_the_line_of_its_package(case: LineCase) -> None:
    found = lint(case.name, case.text.encode(), FileTarget(), TABLES).complaints
    assert [complaint.line for complaint in found] == case.lines


@each("name", ["pyproject.toml", "pixi.toml"])
def test_many_requirements_take_no_time(name: str) -> None:
    many = 40_000
    text = "[project]\ndependencies = [\n" + "".join(f'"p{at}",\n' for at in range(many)) + "]\n"
    if name == "pixi.toml":
        text = "[pypi-dependencies]\n" + "".join(f'p{at} = "*"\n' for at in range(many))
    else:
        text += "".join(f'[[tool.uv.index]]\nurl = "https://e.org/{at}"\n' for at in range(9000))
    begun = time.process_time()
    assert lint(name, text.encode(), FileTarget(), TABLES).complaints == ()
    assert time.process_time() - begun < LONGEST
