"""Whether gpucheck runs in a job of a batch scheduler, which decides whose GPUs are whose."""

from gpucheck.facts.system import Environment

_JOB_VARIABLES = {"SLURM_JOB_ID": "Slurm", "PBS_JOBID": "PBS", "LSB_JOBID": "LSF"}
"""What each scheduler sets in every job, and in no login shell."""
_SLURM_INDICES = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
_SLURM_COUNT = "SLURM_GPUS_ON_NODE"


def scheduler_of(environment: Environment) -> str:
    """Return the scheduler in whose job this is; "" if no variable shows one."""
    return next((name for key, name in _JOB_VARIABLES.items() if environment.get(key)), "")


def slurm_gave_none(environment: Environment) -> bool:
    """Whether this is a Slurm job, and none of its variables names a GPU."""
    if not environment.get("SLURM_JOB_ID"):
        return False
    named = any(environment.get(name) for name in _SLURM_INDICES)
    return not named and environment.get(_SLURM_COUNT) in (None, "", "0")
