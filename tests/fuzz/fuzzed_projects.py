"""Project files as `gpucheck lint` reads them: the first line is the name, the rest the content."""

import contextlib

from fuzz_target import Target
from rules_support import TABLES

from gpucheck.describe import lint_text
from gpucheck.describe.files.complaint import FileTarget as Wanted
from gpucheck.describe.files.lint import Beside, lint
from gpucheck.describe.files.text import UnreadableError
from gpucheck.describe.lint_text import LintedFile

_WANTED = Wanted(gpus=("RTX 5090",), driver="550.54.14", python="3.12")
_SAMPLES = (
    b"""Dockerfile
ARG CUDA=13.0.1
FROM nvidia/cuda:${CUDA}-devel-ubuntu22.04 AS build
ENV PIP_INDEX_URL=https://m.example/simple TORCH_CUDA_ARCH_LIST="8.0 12.0+PTX"
RUN --mount=type=cache,target=/root/.cache pip install torch==2.6.0 \\
    torchvision==0.20.0 --extra-index-url https://download.pytorch.org/whl/cu124
RUN ["pip", "install", "flash-attn"]
RUN <<EOF
nvcc --version || true
EOF
FROM --platform=linux/arm64 python:3.12-slim
COPY --from=build /opt /opt
RUN nvcc --version && conda install -y pytorch=2.4 pytorch-cuda=12.1 -c pytorch -c nvidia
""",
    b"""requirements.txt
--index-url https://download.pytorch.org/whl/cpu
torch==2.6.0+cpu ; python_version >= "3.9"  # a comment
torchvision @ https://download.pytorch.org/whl/cu126/torchvision-0.21.0%2Bcu126-cp312-cp312-linux_x86_64.whl
-r more.txt
nvidia-cudnn-cu12==8.9.2.26 --hash=sha256:00
""",
    b"""pyproject.toml
[project]
name = "a"
dependencies = ["torch==2.6.0", "torchvision>=0.20,<0.21"]
[tool.uv.sources]
torch = [{ index = "cu118", marker = "sys_platform == 'linux'" }]
[[tool.uv.index]]
name = "cu118"
url = "https://download.pytorch.org/whl/cu118"
explicit = true
[tool.poetry.dependencies]
torch = { version = "^2.4", source = "cpu" }
""",
    b"""environment.yml
name: a
channels: [pytorch, nvidia, conda-forge]
dependencies:
  - python=3.12
  - pytorch=2.4.0=py3.12_cpu_0
  - pytorch-cuda=12.1
  - pip:
      - torchaudio==2.3.0
""",
    b"""uv.lock
version = 1
[[package]]
name = "torch"
version = "2.6.0+cpu"
source = { registry = "https://download.pytorch.org/whl/cpu" }
[[package]]
name = "torchvision"
version = "0.20.0"
""",
    b"""pixi.toml
[workspace]
channels = ["conda-forge"]
[dependencies]
python = "3.12.*"
pytorch = { version = "==2.4.0", build = "cpu*" }
[pypi-dependencies]
torchvision = { version = "==0.20.0", index = "https://download.pytorch.org/whl/cu124" }
""",
    b"""compose.yaml
x-gpu: &gpu
  shm_size: 64m
services:
  train:
    <<: *gpu
    image: pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime
    command: python -c "import torch"
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all}]}}}
""",
    b"""pod.yaml
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  runtimeClassName: nvidia
  containers:
    - name: a
      image: nvcr.io/nvidia/pytorch:25.01-py3
      command: [torchrun, train.py]
      resources: {limits: {cpu: "4"}}
  nodeSelector: {kubernetes.io/arch: arm64}
  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 64Mi}}]
---
kind: List
""",
    b"""job.sbatch
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --gpus-per-node=8
module load cuda/12.4
pip install torch --index-url https://download.pytorch.org/whl/cu118
srun torchrun --nproc-per-node=8 train.py --backend nccl
""",
)


def _project(data: bytes) -> None:
    """A project file; refused by UnreadableError."""
    first, _line, content = data.partition(b"\n")
    name = first.decode("utf-8", "surrogateescape")
    with contextlib.suppress(UnreadableError):
        beside = Beside(files=((name, content),), maybe=name)
        linted = lint(name, content, _WANTED, TABLES, beside)
        file = LintedFile(
            file=name, kind=linted.kind, complaints=linted.complaints, unjudged=linted.unjudged
        )
        for text in (
            lint_text.terminal([file]), lint_text.github([file]), *lint_text.reasons(file),
            lint_text.as_json([file], tables=TABLES.version),
        ):  # fmt: skip
            text.encode("utf-8", "surrogatepass")


TARGETS = (Target("projects", _project, lambda: _SAMPLES, "text"),)
