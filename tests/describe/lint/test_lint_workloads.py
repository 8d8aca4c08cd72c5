"""Services, pods and jobs that need no GPU although their image is for GPUs, and other forms."""

from typing import NamedTuple

from each import each

from gpucheck.describe.files.complaint import FileTarget
from gpucheck.describe.files.lint import lint
from gpucheck.tables import Tables

TABLES = Tables()
IMAGE = "pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime"
NO_GPU = "container-no-gpu"


class Case(NamedTuple):
    """A file and the rules that it breaks."""

    name: str
    text: str
    found: tuple[str, ...] = ()


def service(line: str) -> Case:
    return Case("compose.yaml", f"services:\n  a:\n    image: {IMAGE}\n    {line}\n")


def pod(line: str) -> Case:
    return Case(
        "pod.yaml",
        f"kind: Pod\nspec:\n  containers:\n  - name: a\n    image: {IMAGE}\n    {line}\n",
    )


def faulty(case: Case, rule: str = NO_GPU) -> Case:
    return case._replace(found=(rule,))


def batch(*lines: str) -> Case:
    return Case("a.sbatch", "\n".join(("#!/bin/bash", "#SBATCH -N 1", *lines, "")))


CASES = {
    # Whoever hides the GPUs wants none.
    "hidden": service("environment: {CUDA_VISIBLE_DEVICES: ''}"),
    "hidden-in-a-list": service("environment: [CUDA_VISIBLE_DEVICES=-1]"),
    "hidden-from-the-runtime": service("environment: [NVIDIA_VISIBLE_DEVICES=void]"),
    "chosen": faulty(service("environment: {CUDA_VISIBLE_DEVICES: '0'}")),
    "passed-on": faulty(service("environment: [CUDA_VISIBLE_DEVICES]")),
    "profile": service("profiles: [cpu]"),
    "other-profile": faulty(service("profiles: [dev]")),
    "hidden-in-a-pod": pod('env: [{name: CUDA_VISIBLE_DEVICES, value: ""}]'),
    "chosen-in-a-pod": faulty(pod('env: [{name: CUDA_VISIBLE_DEVICES, value: "0"}]')),
    "given-to-a-pod": faulty(
        pod("env: [{name: CUDA_VISIBLE_DEVICES, valueFrom: {configMapKeyRef: {name: a, key: b}}}]")
    ),
    # A list of manifests.
    "list": faulty(
        Case(
            "all.yaml",
            "kind: List\nitems:\n- kind: Pod\n  spec:\n    containers:\n    - name: a\n"
            f"      image: {IMAGE}\n",
        )
    ),
    # Other ways to start several processes.
    "module": faulty(
        batch("python -m torch.distributed.run --nproc-per-node=4 a.py"), "gpu-not-requested"
    ),
    "launch": faulty(
        batch("srun python -m torch.distributed.launch --nproc_per_node 2 a.py"),
        "gpu-not-requested",
    ),
    "something-else": batch("python launch.py --nproc-per-node=4"),
    "module-on-a-processor": batch(
        "python -m torch.distributed.run --nproc-per-node=4 a.py --backend gloo"
    ),
    "module-with-one-process": batch(
        "python -m torch.distributed.run --nproc-per-node=1 a.py"
    ),
}  # fmt: skip


@each("case", CASES.values(), ids=CASES)
def test_only_what_needs_a_gpu_is_reported(case: Case) -> None:
    done = lint(case.name, case.text.encode(), FileTarget(), TABLES)
    assert tuple(complaint.rule for complaint in done.complaints) == case.found
