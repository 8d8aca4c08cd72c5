"""Each rule about project files: a file where it fires, and one close by where it does not."""

from typing import Any, NamedTuple

from each import each

from gpucheck.describe.files.complaint import FileTarget
from gpucheck.describe.files.lint import lint
from gpucheck.tables import Tables

TABLES = Tables()
INDEX = "https://download.pytorch.org/whl"
CUDA_IMAGE = "nvidia/cuda:12.4.1-runtime-ubuntu22.04"
TORCH_IMAGE = "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"


class Case(NamedTuple):
    """A file, what the user says of the target, and ``line severity rule`` of each fault."""

    name: str
    text: str
    found: tuple[str, ...] = ()
    target: dict[str, Any] = {}  # noqa: RUF012  # never changed


def docker(*lines: str, base: str = CUDA_IMAGE) -> str:
    return "\n".join((f"FROM {base}", *lines, ""))


def service(*lines: str, image: str = TORCH_IMAGE) -> str:
    return "\n".join(("services:", "  a:", f"    image: {image}", *(f"    {x}" for x in lines), ""))


def pod(*lines: str, spec: str = "", image: str = TORCH_IMAGE) -> str:
    body = "".join(f"      {line}\n" for line in lines)
    head = "kind: Pod\nspec:\n" + (f"  {spec}\n" if spec else "")
    return f"{head}  containers:\n    - name: a\n      image: {image}\n{body}"


def devices(what: str) -> str:
    return f"deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, {what}}}]}}}}}}"


def batch(directive: str, *lines: str) -> str:
    return "\n".join(("#!/bin/bash", f"#SBATCH {directive}", *lines, ""))


BLACKWELL: dict[str, Any] = {"gpus": ("5090",)}
CPU = f"RUN pip install torch --index-url {INDEX}/cpu"
NO_GPU = "container-no-gpu"
CASES = {
    # A CPU build by accident.
    "cpu-index": Case("Dockerfile", docker(CPU), ("2 warning torch-cpu-only",)),
    "cpu-index-without-gpus": Case("Dockerfile", docker(CPU, base="python:3.12-slim")),
    "cpu-index-in-a-condition": Case(
        "Dockerfile", docker(f'RUN if [ "$D" = cpu ]; then {CPU[4:]}; else pip install torch; fi')
    ),
    "cpu-index-of-a-cpu-file": Case("Dockerfile.cpu", docker(CPU), target=BLACKWELL),
    "cpu-pin-for-a-gpu": Case(
        "requirements.txt", f"--extra-index-url {INDEX}/cpu\ntorch==2.6.0+cpu\n",
        ("2 error torch-cpu-only",), BLACKWELL,
    ),
    "cpu-pin-without-a-gpu": Case(
        "requirements.txt", f"--extra-index-url {INDEX}/cpu\ntorch==2.6.0+cpu\n"
    ),
    "cpuonly": Case(
        "environment.yml", "dependencies:\n  - pytorch=2.1.0\n  - cpuonly\n",
        ("3 error torch-cpu-only",), BLACKWELL,
    ),
    "conda-for-cuda": Case(
        "environment.yml", "dependencies:\n  - pytorch=2.7.0\n  - pytorch-cuda=12.8\n",
        target=BLACKWELL,
    ),
    "cpu-index-of-uv": Case(
        "pyproject.toml",
        '[project]\ndependencies = ["torch"]\n[tool.uv.sources]\ntorch = {index = "p"}\n'
        f'[[tool.uv.index]]\nname = "p"\nurl = "{INDEX}/cpu"\nexplicit = true\n',
        ("7 error torch-cpu-only",), BLACKWELL,
    ),
    "cpu-index-of-an-extra": Case(
        "pyproject.toml",
        '[project]\ndependencies = ["torch"]\n[tool.uv.sources]\n'
        'torch = [{index = "p", extra = "cpu"}, {index = "g", extra = "gpu"}]\n'
        f'[[tool.uv.index]]\nname = "p"\nurl = "{INDEX}/cpu"\nexplicit = true\n',
        target=BLACKWELL,
    ),
    "cpu-source-of-poetry": Case(
        "pyproject.toml",
        '[tool.poetry.dependencies]\ntorch = {version = "2.6.0", source = "p"}\n'
        f'[[tool.poetry.source]]\nname = "p"\nurl = "{INDEX}/cpu"\n',
        ("2 error torch-cpu-only",), BLACKWELL,
    ),
    "cpu-version-in-a-lock": Case(
        "uv.lock",
        '[[package]]\nname = "torch"\nversion = "2.6.0+cpu"\nsource = {registry = '
        f'"{INDEX}/cpu"}}\n',
        ("2 error torch-cpu-only",), BLACKWELL,
    ),
    "forks-in-a-lock": Case(
        "uv.lock",
        '[[package]]\nname = "torch"\nversion = "2.6.0+cpu"\n'
        '[[package]]\nname = "torch"\nversion = "2.6.0"\n',
        target=BLACKWELL,
    ),
    # Drivers.
    "driver-too-old-for-an-image": Case(
        "Dockerfile", docker("RUN nvidia-smi"), ("1 error driver-too-old",),
        {"driver": "470.57", "gpus": ("4090",)},
    ),
    "driver-with-cuda-compat": Case(
        "Dockerfile", docker("RUN true"), ("1 warning driver-too-old",),
        {"driver": "470.57", "gpus": ("A100",)},
    ),
    "driver-for-no-build-of-the-release": Case(
        "requirements.txt", "torch==2.15.0\n", ("1 error driver-too-old",), {"driver": "570"},
    ),
    "driver-for-another-build-of-the-release": Case(
        "requirements.txt", "torch==2.9.1\n", target={"driver": "570"}
    ),
    "driver-that-is-new-enough": Case(
        "requirements.txt", "torch==2.15.0\n", target={"driver": "580"}
    ),
    "driver-of-an-older-minor": Case("Dockerfile", docker("RUN true"), target={"driver": "535.54"}),
    "driver-of-a-branch-that-may-do": Case("Dockerfile", docker("RUN true"),
                                           target={"driver": "525"}),
    "image-from-an-argument": Case(
        "Dockerfile",
        "ARG V=12.4.1\nFROM nvidia/cuda:${V}-base-ubuntu22.04\n",
        ("2 error driver-too-old",), {"driver": "470", "gpus": ("4090",)},
    ),
    "image-from-an-unknown-argument": Case(
        "Dockerfile", "ARG V\nFROM nvidia/cuda:${V}-base-ubuntu22.04\n", target={"driver": "470"}
    ),
    "driver-too-old-for-a-wheel": Case(
        "requirements.txt", f"-i {INDEX}/cu130\ntorch==2.10.0\n", ("1 error driver-too-old",),
        {"driver": "550.54.14"},
    ),
    "driver-for-a-wheel": Case(
        "requirements.txt", f"-i {INDEX}/cu128\ntorch==2.10.0\n", target={"driver": "550.54.14"}
    ),
    # Releases that do not belong together.
    "companion": Case(
        "requirements.txt", "torch==2.6.0\n\ntorchvision==0.20.0 # x\n",
        ("3 error torch-companion-mismatch",),
    ),
    "companion-that-fits": Case("requirements.txt", "torch==2.6.0\ntorchvision==0.21.0\n"),
    "companion-elsewhere": Case(
        "requirements.txt", 'torch==2.6.0; python_version < "3.9"\ntorchvision==0.20.0\n'
    ),
    "companion-that-a-range-leaves-out": Case(
        "requirements.txt", "torch==2.6.*\ntorchvision==0.20.0\n",
        ("2 error package-pin-conflict",),
    ),
    "companion-in-a-range": Case("requirements.txt", "torch>=2.5,<2.7\ntorchvision==0.20.0\n"),
    "companion-of-a-later-torch": Case(
        "requirements.txt", "torch (~=2.6.0)\ntorchaudio==2.7.0\n",
        ("2 error package-pin-conflict",),
    ),
    "companion-beside-another-torch": Case(
        "requirements.txt", "torch!=2.6.0\ntorchvision==0.21.0\n",
        ("2 error package-pin-conflict",),
    ),
    "package-that-a-range-leaves-out": Case(
        "pyproject.toml",
        '[project]\ndependencies = [\n"torch[opt] >= 2.6 , < 3",\n"xformers==0.0.23.post1",\n]\n',
        ("4 error package-pin-conflict",),
    ),
    "companion-of-many-torches": Case(
        "requirements.txt", "torch~=2.2.0\ntorchtext==0.18.0\ntorchaudio==2.11.0\n"
    ),
    "companion-beside-no-range": Case(
        "requirements.txt", "torch>=x\ntorchvision==0.20.0\n"
    ),
    "companion-without-its-requirements": Case(
        "Dockerfile",
        docker("RUN pip install --no-deps 'torch~=2.6.0' torchvision==0.20.0", base="python:3.12"),
    ),
    "torchtext": Case(
        "Dockerfile", docker("RUN pip install torch==2.1.0 \\", "  torchtext==0.15.1",
                             base="ubuntu:22.04"),
        ("2 error package-pin-conflict",),
    ),
    "xformers": Case(
        "requirements.txt", "torch==2.6.0\nxformers==0.0.23\n", ("2 error package-pin-conflict",)
    ),
    "xformers-that-fits": Case("requirements.txt", "torch==2.1.1\nxformers==0.0.23\n"),
    "python-of-an-image": Case(
        "Dockerfile", docker("RUN pip install torch==1.13.1", base="python:3.12-slim"),
        ("2 error torch-python-unsupported",),
    ),
    "python-of-conda-in-an-image": Case(
        "Dockerfile",
        docker("RUN conda create -n a python=3.10", "RUN pip install torch==1.13.1",
               base="python:3.12-slim"),
    ),
    "python-required": Case(
        "pyproject.toml",
        '[project]\nrequires-python = ">=3.12"\ndependencies = ["torch==1.13.1"]\n',
        ("3 error torch-python-unsupported",),
    ),
    "python-required-but-old": Case(
        "pyproject.toml",
        '[project]\nrequires-python = ">=3.8"\ndependencies = ["torch==1.13.1"]\n',
    ),
    "python-option": Case(
        "requirements.txt", "torch==1.13.1\n", ("1 error torch-python-unsupported",),
        {"python": "3.12"},
    ),
    "python-of-conda": Case(
        "environment.yaml", "dependencies:\n- python=3.12\n- pip:\n  - torch==1.13.1\n",
        ("4 error torch-python-unsupported",),
    ),
    # Indexes.
    "replaced-index": Case(
        "requirements.txt", f"-i {INDEX}/cu118\n--index-url {INDEX}/cu121\ntorch\n",
        ("2 warning index-conflict",),
    ),
    "extra-index": Case("requirements.txt", f"--extra-index-url {INDEX}/cu121\ntorch\n"),
    "two-builds": Case(
        "Dockerfile",
        docker(f"RUN pip install torch -i {INDEX}/cu118 --extra-index-url={INDEX}/cu121"),
        ("2 warning index-conflict",),
    ),
    "absent-build": Case(
        "requirements.txt", f"--extra-index-url {INDEX}/cu121\ntorch==2.1.0+cu118\n",
        ("2 error index-conflict",),
    ),
    "build-of-another-index": Case(
        "requirements.txt",
        f"--extra-index-url {INDEX}/cu121\n-f https://example.org/x\ntorch==2.1.0+cu118\n",
    ),
    "mixed-builds": Case(
        "requirements.txt",
        f"-f {INDEX}/torch_stable.html\ntorch==2.4.0+cu124\ntorchvision==0.19.0+cu121\n",
        ("3 warning mixed-cuda-builds",),
    ),
    "one-build": Case(
        "requirements.txt",
        f"-f {INDEX}/torch_stable.html\ntorch==2.4.0+cu121\ntorchvision==0.19.0+cu121\n",
    ),
    # Code for the GPU.
    "no-code": Case(
        "requirements.txt", f"-i {INDEX}/cu124\ntorch==2.6.0\n",
        ("1 error gpu-too-new-for-torch",), BLACKWELL,
    ),
    "no-code-unpinned": Case(
        "Dockerfile", docker(f"RUN pip install torch --index-url {INDEX}/cu124"),
        ("2 error gpu-too-new-for-torch",), BLACKWELL,
    ),
    "beside-pypi-unpinned": Case(
        "Dockerfile", docker(f"RUN pip install torch --extra-index-url {INDEX}/cu124"),
        target=BLACKWELL,
    ),
    "no-code-in-any-build": Case(
        "requirements.txt", "torch==2.6.0\n", ("1 error gpu-too-new-for-torch",), BLACKWELL
    ),
    "code-in-another-build": Case("requirements.txt", "torch==2.7.0\n", target=BLACKWELL),
    "code": Case(
        "requirements.txt", f"-i {INDEX}/cu128\ntorch==2.7.0\n", target=BLACKWELL
    ),
    "no-code-in-an-image": Case(
        "Dockerfile", docker(base=TORCH_IMAGE), ("1 error gpu-too-new-for-torch",), BLACKWELL
    ),
    "another-torch-in-an-image": Case(
        "Dockerfile", docker("RUN pip install -U torch==2.8.0 -r x.txt", base=TORCH_IMAGE),
        target=BLACKWELL,
    ),
    "no-code-in-a-lock": Case(
        "uv.lock",
        '[[package]]\nname = "torch"\nversion = "2.6.0"\n'
        'source = {registry = "https://pypi.python.org/simple"}\n',
        ("2 error gpu-too-new-for-torch",), BLACKWELL,
    ),
    "no-code-in-pixi": Case(
        "pixi.toml", '[dependencies]\npython = "3.11.*"\n[pypi-dependencies]\ntorch = "==2.6.0"\n',
        ("4 error gpu-too-new-for-torch",), BLACKWELL,
    ),
    "pixi": Case("pixi.toml", '[pypi-dependencies]\ntorch = ">=2.6.0"\n', target=BLACKWELL),
    # Compilers.
    "nvcc-in-a-runtime-image": Case(
        "Dockerfile", docker("RUN nvcc x.cu"), ("2 error toolkit-missing",)
    ),
    "nvcc-installed": Case("Dockerfile", docker("RUN apt install -y cuda-nvcc-12-4 && nvcc x.cu")),
    "nvcc-copied": Case(
        "Dockerfile", docker("COPY --from=a /usr/local/cuda /usr/local/cuda", "RUN nvcc x.cu")
    ),
    "nvcc-in-a-devel-image": Case(
        "Dockerfile", docker("RUN nvcc x.cu", base="nvidia/cuda:12.4.1-devel-ubuntu22.04")
    ),
    "flash-attn": Case(
        "Dockerfile", docker("RUN pip install flash-attn"), ("2 warning toolkit-missing",)
    ),
    "flash-attn-from-a-wheel": Case(
        "Dockerfile", docker("RUN pip install https://example.org/flash_attn-2-cp311.whl")
    ),
    "devel-image-left": Case(
        "Dockerfile",
        "FROM python:3.12 AS b\nRUN make\nFROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n"
        "RUN apt-get install -y curl\n",
        ("3 info devel-image",),
    ),
    "devel-image-that-compiles": Case(
        "Dockerfile",
        "FROM python:3.12 AS b\nRUN make\nFROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n"
        "RUN apt-get install -y ninja-build\n",
    ),
    # Services, pods, jobs.
    "service": Case("docker-compose.yml", service(), (f"2 warning {NO_GPU}",)),
    "service-with-a-gpu": Case("compose.yaml", service(devices("count: 1, capabilities: [gpu]"))),
    "service-with-gpus": Case("compose.yaml", service("gpus: all")),
    "service-with-a-runtime": Case("compose.yaml", service("runtime: nvidia")),
    "service-of-an-anchor": Case("compose.yaml", "x: &x {gpus: all}\n" + service("<<: *x")),
    "service-of-another-image": Case("compose.yaml", service(image="postgres:16")),
    "service-with-a-driver": Case(
        "compose.yaml", service("gpus: all"), ("3 error driver-too-old",),
        {"driver": "470", "gpus": ("4090",)},
    ),
    "little-memory": Case(
        "compose.yaml", service(devices("count: 4, capabilities: [gpu]")),
        ("2 warning shm-too-small",),
    ),
    "shm-size": Case(
        "compose.yaml", service(devices("count: 4, capabilities: [gpu]"), "shm_size: 8gb")
    ),
    "ipc": Case("compose.yaml", service(devices('device_ids: ["0", "1"]'), "ipc: host")),
    "pod": Case("pod.yaml", pod(), (f"4 warning {NO_GPU}",)),
    "second-document": Case("k.yaml", "kind: Service\n---\n" + pod(), (f"6 warning {NO_GPU}",)),
    "pod-with-a-gpu": Case("pod.yaml", pod("resources: {limits: {nvidia.com/gpu: 1}}")),
    "pod-with-another-gpu": Case(
        "pod.yaml", pod("resources: {limits: {nvidia.com/mig-1g.5gb: 1}}")
    ),
    "pod-with-a-runtime-class": Case(
        "pod.yaml", pod(spec="runtimeClassName: nvidia"), (f"3 info {NO_GPU}",)
    ),
    "pod-with-little-memory": Case(
        "pod.yaml", pod("resources: {limits: {nvidia.com/gpu: 8}}"), ("4 warning shm-too-small",)
    ),
    "pod-with-memory": Case(
        "pod.yaml",
        pod("resources: {limits: {nvidia.com/gpu: 8}}",
            "volumeMounts: [{name: s, mountPath: /dev/shm}]"),
    ),
    "daemon-set": Case("pod.yaml", pod().replace("Pod", "DaemonSet")),
    "template": Case("pod.yaml", pod("resources: {{ .Values.resources }}")),
    "batch": Case(
        "a.sbatch", batch("-N 2", "srun torchrun --nproc_per_node=8 a.py"),
        ("3 warning gpu-not-requested",),
    ),
    "batch-with-gres": Case("a.sbatch", batch("--gres=gpu:8", "torchrun --nproc_per_node=8 a.py")),
    "batch-of-steps": Case(
        "a.sbatch", batch("-N 2", "srun --gpus-per-node=8 torchrun --nproc_per_node=8 a.py")
    ),
    "batch-with-a-partition": Case("a.sbatch", batch("--partition=gpu_a100", "nvidia-smi")),
    "batch-on-a-processor": Case("a.sbatch", batch("-n 1", "python a.py")),
    "batch-that-looks": Case("a.sh", batch("-n 1", "nvidia-smi"), ("3 warning gpu-not-requested",)),
    "batch-that-may-look": Case("a.sh", batch("-n 1", "if true; then", "nvidia-smi", "fi")),
}  # fmt: skip


@each("case", CASES.values(), ids=CASES)
def test_a_rule_fires_only_where_it_is_certain(case: Case) -> None:
    done = lint(case.name, case.text.encode(), FileTarget(**case.target), TABLES)
    found = [
        f"{complaint.line} {complaint.severity.value} {complaint.rule}"
        for complaint in done.complaints
    ]
    assert done.kind or case.name == "pod.yaml"
    assert tuple(found) == case.found


def test_every_fault_has_a_sentence_and_a_fix() -> None:
    for case in CASES.values():
        for complaint in lint(
            case.name, case.text.encode(), FileTarget(**case.target), TABLES
        ).complaints:
            assert complaint.sentence.endswith(".")
            assert complaint.fix
