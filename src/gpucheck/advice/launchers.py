"""Commands that start a script on every GPU, in the form of the launcher that the user has."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

TORCHRUN: Final = "torchrun"
LAUNCH: Final = "torch.distributed.launch"


class _Form(Struct, frozen=True, kw_only=True):
    """How a launcher starts a script.

    ``port`` and ``logs`` are its options for another port and for a file of each rank, "" where it
    has none. ``each`` precedes a variable that it has to pass on.
    """

    starts: str
    script: str = "SCRIPT"
    port: str = ""
    logs: str = ""
    each: str = ""


_PORT = "MASTER_PORT=29511"
_FORMS: Mapping[str, _Form] = {
    # accelerate and deepspeed take all GPUs by themselves. The options are those of their --help.
    "accelerate": _Form(starts="accelerate launch", port="--main_process_port 29511"),
    "deepspeed": _Form(
        starts="deepspeed", port="--master_port 29511", logs="--enable_each_rank_log logs"
    ),
    LAUNCH: _Form(
        starts="python -m torch.distributed.launch --nproc_per_node=N", port="--master_port=29511"
    ),
    # Open MPI passes a variable on with -x.
    "mpirun": _Form(starts="mpirun -n N", script="PROGRAM", port=_PORT, each="-x "),
    # man srun: %t is the task, so that each has a file.
    "srun": _Form(
        starts="srun --ntasks-per-node=N", script="PROGRAM", port=_PORT,
        logs="--output=rank-%t.log",
    ),
    "vllm": _Form(starts="vllm serve", script="MODEL"),
    "sglang": _Form(starts="python -m sglang.launch_server", script="--model-path MODEL"),
    "mindspore": _Form(starts=""),
}  # fmt: skip
_SIGNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # The outer one first: accelerate starts deepspeed, and both call torch's own code.
    ("mindspore", ("import mindspore", "mindspore.communication", "site-packages/mindspore")),
    ("accelerate", ("accelerate launch", "accelerate-launch", "accelerate/commands/launch.py")),
    (
        "deepspeed",
        ("deepspeed --num", "deepspeed --include", "deepspeed --hostfile", "deepspeed --master",
         "deepspeed/launcher/", "deepspeed.launcher"),
    ),
    (LAUNCH, ("torch.distributed.launch", "torch/distributed/launch.py")),
    (TORCHRUN, ("torchrun", "torch.distributed.run", "torch/distributed/run.py")),
    ("vllm", ("vllm serve", "vllm.entrypoints", "vllm/engine", "vllm/worker", "vllm/v1/")),
    ("sglang", ("sglang.launch_server",)),
    ("mpirun", ("mpirun ", "mpiexec ")),
    ("srun", ("srun ",)),
    # torch 1.10 is the first with torchrun, and the last for Python 3.6 (PyPI's wheels of torch).
    (
        LAUNCH,
        ("python2.7/", "python3.5/", "python3.6/", "\\python36\\", "\\python35\\", "python 2.7",
         "python 3.5", "python 3.6", "python3.6", "cp36-cp36m", "cpython-36m"),
    ),
)  # fmt: skip
OF_PREFLIGHT: Mapping[str, str] = {
    "torchrun": TORCHRUN, "slurm": "srun", "openmpi": "mpirun", "mpi": "mpirun",
}  # fmt: skip
"""The launchers that a pre-flight recognises."""


def launcher_in(lower: str) -> str | None:
    """Return the launcher that a text, in lower case, shows at work; None if it shows none.

    Where none is at work, an old Python shows which one there can be.
    """
    return next((name for name, signs in _SIGNS if any(sign in lower for sign in signs)), None)


def in_form(command: str, launcher: str) -> str:
    """Return a command of torchrun as another launcher has it; "" if it has no such thing.

    Any other command comes back as it is.
    """
    form = _FORMS.get(launcher)
    before, found, after = command.partition("torchrun ")
    if not found or form is None:
        return command
    variables = before.split()
    options: list[str] = []
    for option, own in (("--master_port", form.port), ("--redirects", form.logs)):
        if option in after:
            (variables if own == _PORT else options).append(own)
    if not all(options):
        return ""
    if not form.starts:  # its scripts are started by programs of their own
        return f"export {' '.join(variables)}" if variables else ""
    if form.script.endswith("MODEL") and not variables:  # it starts its ranks itself
        return ""
    inside = [f"{form.each}{variable}" for variable in variables if form.each]
    outside = [] if form.each else variables
    return " ".join([*outside, form.starts, *inside, *options, form.script])
