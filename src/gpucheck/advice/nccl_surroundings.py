"""Lifts the limits that NCCL runs into, and looks at links that are down.

``runtime`` is the container's ("" for none), or None if it is unknown what starts the ranks: then
the text names every way.
"""

from gpucheck.facts.claims import Fix
from gpucheck.language import Sentence, in_turn, say

_LIFT_MEMLOCK = (
    "printf '* - memlock unlimited\\nroot - memlock unlimited\\n' | "
    "sudo tee /etc/security/limits.d/90-memlock.conf"
)
"""For logins; pam_limits does not apply ``*`` to root."""
_THEN_UNLIMITED = say("Then {command} prints unlimited.", command="ulimit -l")
_SEES_MEMLOCK, _SEES_SHM = "ulimit -l", "df -h /dev/shm"
_BY_COMMAND = ("docker", "podman")
_OF_THE_JOB = ("apptainer", "enroot")
"""Without a daemon: a container has the limits of the job that starts it."""


def new_container(runtime: str = "docker") -> Sentence:
    """Return what is lost where a container is started anew."""
    return say(
        "{runtime} run makes a new container, without what you installed only in this one.",
        runtime=runtime,
    )


def lift_memlock(runtime: str | None, *, under_slurm: bool | None) -> Fix:
    """Return how to let a process lock more memory."""
    if runtime is None:
        return Fix(
            text=say(
                "Raise the limit on locked memory for whatever starts the ranks: "
                "LimitMEMLOCK=infinity in the unit of slurmd and "
                "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf, --ulimit memlock=-1 for a "
                "container."
            ),
            verify=_SEES_MEMLOCK,
        )
    if runtime in _BY_COMMAND:
        text = say("Start the container with --ulimit memlock=-1 ({runtime} run).", runtime=runtime)
        return Fix(
            text=in_turn([text, _THEN_UNLIMITED, new_container(runtime)]), verify=_SEES_MEMLOCK
        )
    if runtime and not (under_slurm and runtime in _OF_THE_JOB):
        text = say(
            "Raise the memlock limit of the container runtime: set LimitMEMLOCK=infinity in the "
            "unit of its daemon, then restart the daemon."
        )
        return Fix(text=in_turn([text, _THEN_UNLIMITED]), verify=_SEES_MEMLOCK, restart="service")
    if under_slurm:
        text = say(
            "Set LimitMEMLOCK=infinity in the unit of slurmd on every node and restart it, and set "
            "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf: otherwise a job gets the limit "
            "of the shell that submits it."
        )
        return Fix(
            text=in_turn([text, _THEN_UNLIMITED]),
            commands=(
                "sudo systemctl edit slurmd",
                "sudo systemctl restart slurmd",
                "sudo scontrol reconfigure",
            ),
            verify=f"srun bash -c '{_SEES_MEMLOCK}'",
        )
    text = say(
        "Raise the limit for login sessions, then log in again. A service needs "
        "LimitMEMLOCK=infinity, a container --ulimit memlock=-1."
    )
    return Fix(
        text=in_turn([text, _THEN_UNLIMITED]),
        commands=(_LIFT_MEMLOCK,),
        verify=_SEES_MEMLOCK,
        restart="session",
    )


def enlarge_shared_memory(runtime: str | None) -> Fix:
    """Return how to make /dev/shm larger."""
    if runtime is None:
        text = say(
            "Start the container with more shared memory: --shm-size=8g or --ipc=host, in "
            "Kubernetes an emptyDir volume with medium: Memory at /dev/shm."
        )
    elif runtime in _BY_COMMAND:
        larger = say(
            "Start the container with more shared memory: add --shm-size=8g, or --ipc=host, to "
            "{runtime} run (in a compose file: shm_size: 8gb).",
            runtime=runtime,
        )
        return Fix(text=in_turn([larger, new_container(runtime)]), verify=_SEES_SHM)
    elif runtime == "kubernetes":
        text = say("Mount an emptyDir volume with medium: Memory at /dev/shm in the pod.")
    elif runtime:
        text = say("Give the container more shared memory when it starts.")
    else:
        return Fix(
            text=say(
                "Enlarge it. The command lasts until the next boot; an entry in /etc/fstab makes "
                "the change permanent."
            ),
            commands=("sudo mount -o remount,size=8G /dev/shm",),
            verify=_SEES_SHM,
        )
    return Fix(text=text, verify=_SEES_SHM)


def look_at_nvlinks() -> Fix:
    """Return how to look at an NVLink that is down."""
    return Fix(
        text=say(
            "Find out which links are down and read their error counters, then reboot. If one "
            "stays down, the bridge, the baseboard or the GPU needs service."
        ),
        commands=("nvidia-smi nvlink --status", "nvidia-smi nvlink -e"),
        restart="machine",
        verify="nvidia-smi nvlink --status",
    )
