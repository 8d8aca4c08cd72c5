"""The commands of fixes have the form of the launcher that the reporter uses."""

from each import each
from test_machines import TABLES

from gpucheck.advice.command_class import class_of
from gpucheck.advice.launchers import in_form, launcher_in
from gpucheck.ticket.judge import triage

P2P = "NCCL_P2P_DISABLE=1 torchrun --nproc_per_node=gpu SCRIPT"
PORT = "torchrun --nproc_per_node=gpu --master_port 29511 SCRIPT"
LOGS = "torchrun --nproc_per_node=gpu --redirects 3 --log_dir logs SCRIPT"
RANKS = "torchrun --nproc_per_node=gpu SCRIPT"
LAUNCH = "python -m torch.distributed.launch --nproc_per_node=N"

FORMS = {
    "torchrun": (P2P, PORT, LOGS, RANKS),
    "accelerate": (
        "NCCL_P2P_DISABLE=1 accelerate launch SCRIPT",
        "accelerate launch --main_process_port 29511 SCRIPT",
        "",
        "accelerate launch SCRIPT",
    ),
    "deepspeed": (
        "NCCL_P2P_DISABLE=1 deepspeed SCRIPT",
        "deepspeed --master_port 29511 SCRIPT",
        "deepspeed --enable_each_rank_log logs SCRIPT",
        "deepspeed SCRIPT",
    ),
    "torch.distributed.launch": (
        f"NCCL_P2P_DISABLE=1 {LAUNCH} SCRIPT",
        f"{LAUNCH} --master_port=29511 SCRIPT",
        "",
        f"{LAUNCH} SCRIPT",
    ),
    "mpirun": (
        "mpirun -n N -x NCCL_P2P_DISABLE=1 PROGRAM",
        "mpirun -n N -x MASTER_PORT=29511 PROGRAM",
        "",
        "mpirun -n N PROGRAM",
    ),
    "srun": (
        "NCCL_P2P_DISABLE=1 srun --ntasks-per-node=N PROGRAM",
        "MASTER_PORT=29511 srun --ntasks-per-node=N PROGRAM",
        "srun --ntasks-per-node=N --output=rank-%t.log PROGRAM",
        "srun --ntasks-per-node=N PROGRAM",
    ),
    "vllm": ("NCCL_P2P_DISABLE=1 vllm serve MODEL", "", "", ""),
    "sglang": (
        "NCCL_P2P_DISABLE=1 python -m sglang.launch_server --model-path MODEL", "", "", "",
    ),
    "mindspore": ("export NCCL_P2P_DISABLE=1", "", "", ""),
}  # fmt: skip


@each("launcher", list(FORMS))
def test_each_launcher_has_its_form(launcher: str) -> None:
    got = tuple(in_form(command, launcher) for command in (P2P, PORT, LOGS, RANKS))
    assert got == FORMS[launcher]
    assert all(class_of(command) == "environment" for command in got if command)
    assert in_form("nvidia-smi topo -m", launcher) == "nvidia-smi topo -m"


@each(
    ("text", "launcher"),
    [
        ("$ accelerate launch --use_deepspeed train.py", "accelerate"),
        ('File "/x/accelerate/commands/launch.py", line 7', "accelerate"),
        ("deepspeed --num_gpus 4 train.py", "deepspeed"),
        ("pip install deepspeed --no-cache-dir", None),
        ("python -m torch.distributed.launch --nproc_per_node 2 a.py", "torch.distributed.launch"),
        ("srun torchrun --nnodes 2 a.py", "torchrun"),
        ("srun python a.py", "srun"),
        ("mpirun -np 4 python a.py", "mpirun"),
        ("import mindspore as ms", "mindspore"),
        ("vllm serve some/model", "vllm"),
        ("python train.py", None),
        ('File "/env/lib/python3.6/site-packages/torch/rendezvous.py"', "torch.distributed.launch"),
        ('torchrun a.py\nFile "/env/lib/python3.6/a.py"', "torchrun"),
    ],
)
def test_what_a_text_shows(text: str, launcher: str | None) -> None:
    assert launcher_in(text) == launcher


def commands(text: str) -> list[str]:
    found = triage(text, TABLES)
    return [
        command for finding in found.causes for fix in finding.fixes for command in fix.commands
    ]


DUPLICATE = "NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000"


@each(
    ("says", "command"),
    [
        ("I start it by accelerate launch train.py", "accelerate launch SCRIPT"),
        ("srun -n 2 python train.py", "srun --ntasks-per-node=N PROGRAM"),
        ("torch 1.8.1+cu111", f"{LAUNCH} SCRIPT"),
        ("torch 1.13.1+cu117", RANKS),
        ("", RANKS),
    ],
)
def test_a_reply_has_the_form_of_the_reporter(says: str, command: str) -> None:
    assert command in commands(f"{says}\n{DUPLICATE}\n")
