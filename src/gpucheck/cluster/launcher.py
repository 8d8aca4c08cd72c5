"""Which launcher started this process, and what it tells: pure functions of the environment.

Launchers are looked for from the inside out, since each leaves its variables to what it starts:

1. ``srun``, when ``SLURM_TASK_PID`` is this very process: nothing stands between.
2. ``torchrun`` (``TORCHELASTIC_RUN_ID``): often started by srun or mpirun itself.
3. ``mpirun``: of Open MPI (``OMPI_COMM_WORLD_*``), of MVAPICH (``MV2_COMM_WORLD_*``) or of
   MPICH and its derivatives (``PMI_*``); it starts its daemons by srun, whose variables then count
   daemons. Where ``PMI_*`` say the same as ``SLURM_*``, it was srun with PMI.
4. ``srun`` (``SLURM_STEP_NUM_TASKS``). A batch script outside of srun is one process alone.
5. ``RANK``, ``WORLD_SIZE`` and ``MASTER_ADDR`` set by hand or by an operator.
6. A pod of an indexed Job (``JOB_COMPLETION_INDEX``).
7. None: this process is alone, on this machine.

A launcher whose variables contradict each other is passed over for the next, with a note; when
there is no next one, that is the usage error.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from gpucheck.cluster import launcher_variables
from gpucheck.cluster.launcher_variables import (
    EntranceError,
    Env,
    address,
    is_host,
    master,
    number,
    run_name,
    spread,
)
from gpucheck.language import say

TOKEN_VARIABLE = "GPUCHECK_PREFLIGHT_TOKEN"  # noqa: S105  # the name of the variable
Launcher = Literal["torchrun", "slurm", "openmpi", "mpi", "env", "kubernetes", "local"]

_DEFAULT_PORT = 29500
"""The port that torch uses when there is no MASTER_PORT."""
_TASKS = 1_000_000
"""As many as a list of ranks may have (``model.MOST``): a variable with more is an error or
hostile."""


class PlaceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the user says, and which processes these are."""

    master: str = ""
    """``--master HOST[:PORT]``: where task 0 runs."""
    nodes: int | None = None
    """``--nodes``."""
    pid: int = 0
    """The process id of this process; 0 when it does not matter."""
    parent: int = 0


class TaskPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What this task knows of itself and the others before any of them has spoken."""

    launcher: Launcher
    task: int
    """From 0; task 0 holds the store."""
    tasks: int
    local: int = 0
    """Its place among the tasks of this node."""
    local_tasks: int | None = None
    """The number of tasks on this node."""
    node: int | None = None
    nodes: int | None = None
    host: str = ""
    """The launcher's name of this node, "" if it gives none."""
    one_gpu: bool = False
    """Whether the launcher starts one task for each GPU, as torchrun does."""
    master_host: str = "127.0.0.1"
    master_port: int | None = None
    """The store is on one of the ports behind this one. None: on any port, since only this process
    needs it."""
    run: str = "local"
    """A name of this run: the same for all its tasks, another in other runs."""
    hosts: tuple[str, ...] = ()
    """The host of each task, or () where the launcher does not say."""
    domain: str = ""
    """What follows those names where they are looked up, with its dot."""
    restarts: int = 0
    notes: tuple[str, ...] = ()
    """Variables that contradict others and were ignored."""
    notices: tuple[str, ...] = ()
    """What the report should say about where this runs."""
    counters: tuple[str, ...] = ()
    """The files of the error counters of this node's RDMA ports, for its first task."""
    deputy_port: int = 0
    """On which it would hold the store if task 0 were lost; 0 if it would not."""
    mark: str = ""
    """What others may know of the mark of its process."""

    @property
    def stays_here(self) -> bool:
        """Whether all tasks are on one machine and look for the store by a loopback address.

        Task 0 alone may have such an address: some operators set it there only.
        """
        is_loopback = self.master_host == "localhost" or self.master_host.startswith("127.")
        return is_loopback and self.local_tasks == self.tasks


class _Names(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the variables in which a launcher gives a task its place."""

    launcher: Launcher
    rank: str
    size: str
    local: str
    local_size: str
    node: str = ""
    nodes: str = ""


_TORCHRUN = _Names(
    launcher="torchrun", rank="RANK", size="WORLD_SIZE", local="LOCAL_RANK",
    local_size="LOCAL_WORLD_SIZE", node="GROUP_RANK", nodes="GROUP_WORLD_SIZE",
)  # fmt: skip
_BY_HAND = _Names(
    launcher="env", rank="RANK", size="WORLD_SIZE", local="LOCAL_RANK",
    local_size="LOCAL_WORLD_SIZE",
)  # fmt: skip
_OPEN_MPI = _Names(
    launcher="openmpi", rank="OMPI_COMM_WORLD_RANK", size="OMPI_COMM_WORLD_SIZE",
    local="OMPI_COMM_WORLD_LOCAL_RANK", local_size="OMPI_COMM_WORLD_LOCAL_SIZE",
)  # fmt: skip
_MVAPICH = _Names(
    launcher="mpi", rank="MV2_COMM_WORLD_RANK", size="MV2_COMM_WORLD_SIZE",
    local="MV2_COMM_WORLD_LOCAL_RANK", local_size="MV2_COMM_WORLD_LOCAL_SIZE",
)  # fmt: skip
_HYDRA = _Names(
    launcher="mpi", rank="PMI_RANK", size="PMI_SIZE", local="MPI_LOCALRANKID",
    local_size="MPI_LOCALNRANKS",
)  # fmt: skip


def find(env: Env, request: PlaceRequest) -> TaskPlace:
    """Return which launcher started this process and what it tells.

    Raises:
        EntranceError: a necessary value is missing, or values contradict each other.
    """
    readers: list[Callable[[Env, PlaceRequest], TaskPlace | None]] = [
        _torchrun, _open_mpi, _mvapich, _hydra, _slurm, _by_hand, _indexed_job,
    ]  # fmt: skip
    if request.pid and env.get("SLURM_TASK_PID") == str(request.pid):
        readers.insert(0, _slurm)
    failures: list[EntranceError] = []
    for read in readers:
        try:
            found = read(env, request)
        except EntranceError as error:
            failures.append(error)
            continue
        if found:
            notes = tuple(error.sentence for error in failures)
            # Two jobs with one MASTER_PORT on one machine differ in their size at least.
            place = _completed(
                found, notes=notes, notices=_other_nodes(found, env, request),
                run=run_name(found.run, str(found.tasks)),
            )  # fmt: skip
            return _checked(place, request)
    if failures:
        raise failures[0]
    here = alone(env)
    return _checked(_completed(here, notices=_other_nodes(here, env, request)), request)


def alone(env: Env) -> TaskPlace:
    """Return one process alone on its node, whatever launcher started it."""
    return TaskPlace(launcher="local", host=_own(env), task=0, tasks=1, local_tasks=1, nodes=1)


def token(env: Env) -> str:
    """Return the token of this run's store, "" if there is none.

    Raises:
        EntranceError: it is too long.
    """
    text = env.get(TOKEN_VARIABLE, "").strip()
    if len(text) > 4096:  # noqa: PLR2004  # far beyond any secret
        raise EntranceError(
            say("{variable} has more than 4096 characters", variable=TOKEN_VARIABLE)
        )
    return text


def slurm_port(job: int, step: int) -> int:
    """Return the port from which the tasks of a step look for their store."""
    return 20000 + (job * 31 + step) % 20000


def _torchrun(env: Env, request: PlaceRequest) -> TaskPlace | None:
    if "TORCHELASTIC_RUN_ID" not in env:
        return None
    place = _placed(env, _TORCHRUN)
    host, port = master(env, request.master)
    if not host or port is None:
        raise EntranceError(say("torchrun did not set MASTER_ADDR and MASTER_PORT"))
    # Each node counts its own restarts: they are no part of what all nodes call this run.
    return _completed(
        place, master_host=host, master_port=port, one_gpu=True,
        run=run_name("torchrun", env["TORCHELASTIC_RUN_ID"], str(port)),
        restarts=number(env, "TORCHELASTIC_RESTART_COUNT") or 0,
    )  # fmt: skip


def _open_mpi(env: Env, request: PlaceRequest) -> TaskPlace | None:
    if _OPEN_MPI.rank not in env:
        return None
    job = env.get("PMIX_NAMESPACE") or env.get("OMPI_MCA_ess_base_jobid") or ""
    return _mpi(_placed(env, _OPEN_MPI), env, request, job)


def _mvapich(env: Env, request: PlaceRequest) -> TaskPlace | None:
    if _MVAPICH.rank not in env:
        return None
    return _mpi(_placed(env, _MVAPICH), env, request, "")


def _hydra(env: Env, request: PlaceRequest) -> TaskPlace | None:
    if _HYDRA.rank not in env or _HYDRA.size not in env:
        return None
    place = _placed(env, _HYDRA)
    by_srun = (env.get("SLURM_PROCID"), env.get("SLURM_STEP_NUM_TASKS"))
    if by_srun == (str(place.task), str(place.tasks)):
        return None
    return _mpi(place, env, request, env.get("I_MPI_HYDRA_UUID", ""))


def _mpi(place: TaskPlace, env: Env, request: PlaceRequest, job: str) -> TaskPlace:
    host, port = master(env, request.master)
    here = place.local_tasks == place.tasks
    if not host and not here:
        raise EntranceError(
            say(
                "mpirun does not say where rank 0 runs: give --master HOST[:PORT], the host of "
                "task 0, or set MASTER_ADDR (and MASTER_PORT)"
            )
        )
    if not request.master and here:
        host = "127.0.0.1"
    if not job and port is None and request.parent and here:
        job = f"parent-{request.parent}"
    return _completed(
        place, master_host=host, nodes=1 if here else None, node=0 if here else None,
        master_port=port or (spread(job) if job else _DEFAULT_PORT),
        run=run_name(place.launcher, job or f"{host}-{port or _DEFAULT_PORT}"),
    )  # fmt: skip


def _slurm(env: Env, request: PlaceRequest) -> TaskPlace | None:
    if "SLURM_STEP_NUM_TASKS" not in env or "SLURM_PROCID" not in env:
        return None
    task, tasks = _task(env, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
    job, step = number(env, "SLURM_JOB_ID") or 0, number(env, "SLURM_STEP_ID") or 0
    node, local = number(env, "SLURM_NODEID") or 0, number(env, "SLURM_LOCALID") or 0
    names, counts = _step_nodes(env)
    host, port = address(request.master) if request.master else (names[0] if names else "", None)
    if not host and tasks > 1:
        raise EntranceError(
            say(
                "SLURM_STEP_NODELIST does not say where task 0 runs: give --master HOST[:PORT], "
                "the host of task 0, or set MASTER_ADDR (and MASTER_PORT)"
            )
        )
    places = _slurm_places(env, names, counts)
    own = _own(env)
    right = len(places) == tasks and places[task] == (node, local) and own in ("", names[node])
    restarts = number(env, "SLURM_RESTART_COUNT") or 0
    return TaskPlace(
        launcher="slurm", host=own,
        task=task, tasks=tasks, local=local, node=node,
        local_tasks=counts[node] if node < len(counts) else None,
        nodes=number(env, "SLURM_STEP_NUM_NODES") or len(names) or None,
        master_host=host or "127.0.0.1", master_port=port or slurm_port(job, step),
        run=run_name("slurm", env.get("SLURM_CLUSTER_NAME", ""), f"{job}.{step}.{restarts}"),
        hosts=tuple(names[where] for where, _ in places) if right else (),
        restarts=restarts,
    )  # fmt: skip


def _other_nodes(found: TaskPlace, env: Env, request: PlaceRequest) -> tuple[str, ...]:
    """Return that Slurm has given the job more nodes than take part here.

    A task of srun takes part where the user wanted it. What a batch script, or a shell within a
    step, starts without srun stays on one node, and its user may not know.
    """
    try:
        count = number(env, "SLURM_JOB_NUM_NODES") or number(env, "SLURM_NNODES") or 1
    except EntranceError:
        return ()
    by_srun = request.pid and env.get("SLURM_TASK_PID") == str(request.pid)
    if count == 1 or found.nodes != 1 or by_srun:
        return ()
    return (
        say(
            "Slurm gave this job {count} nodes, and only this one was tested: run gpucheck with "
            "srun to test them all.",
            count=count,
        ),
    )


def _own(env: Env) -> str:
    """Return Slurm's name of this node, also in a Prolog."""
    name = env.get("SLURMD_NODENAME", "")
    return name if is_host(name) else ""


def _step_nodes(env: Env) -> tuple[list[str], list[int]]:
    """Return the nodes of the step with their numbers of tasks; [] where they are unknown."""
    try:
        names = launcher_variables.hosts(env["SLURM_STEP_NODELIST"])
    except (KeyError, ValueError):
        return [], []
    try:
        counts = launcher_variables.counts(env["SLURM_STEP_TASKS_PER_NODE"])
    except (KeyError, ValueError):
        return names, []
    return names, counts if len(counts) == len(names) else []


def _slurm_places(env: Env, names: list[str], counts: list[int]) -> list[tuple[int, int]]:
    """Return the node of each task and its place there; [] for other distributions."""
    if not counts or sum(counts) > _TASKS:
        return []
    places = [(node, local) for node in range(len(names)) for local in range(counts[node])]
    distribution = env.get("SLURM_DISTRIBUTION", "block").split(":")[0].split(",")[0]
    if max(counts) == 1 or distribution == "block":
        return places
    if distribution == "cyclic":
        return sorted(places, key=lambda place: (place[1], place[0]))
    return []


def _by_hand(env: Env, request: PlaceRequest) -> TaskPlace | None:
    if not env.get(_BY_HAND.rank):
        return None
    if not env.get(_BY_HAND.size):
        if request.nodes is None and "JOB_COMPLETION_INDEX" not in env:
            raise EntranceError(
                say("RANK is set, but not the number of ranks: set WORLD_SIZE, or unset RANK")
            )
        return None
    place = _placed(env, _BY_HAND)
    host, port = master(env, request.master)
    if not host and place.tasks > 1:
        raise EntranceError(
            say(
                "RANK and WORLD_SIZE are set, but not where rank 0 runs: give --master "
                "HOST[:PORT], the host of task 0, or set MASTER_ADDR (and MASTER_PORT)"
            )
        )
    return _completed(
        place, one_gpu=_BY_HAND.local in env, master_host=host or "127.0.0.1",
        master_port=port or _DEFAULT_PORT, run=run_name("env", f"{host}-{port or _DEFAULT_PORT}"),
    )  # fmt: skip


def _indexed_job(env: Env, request: PlaceRequest) -> TaskPlace | None:
    index = number(env, "JOB_COMPLETION_INDEX")
    if index is None:
        return None
    if request.nodes is None:
        raise EntranceError(
            say(
                "JOB_COMPLETION_INDEX says that this is pod {pod} of an indexed Job, but not how "
                "many pods there are: give --nodes N, the Job's completions",
                pod=index,
            )
        )
    if index >= request.nodes:
        raise EntranceError(
            _contradiction(f"JOB_COMPLETION_INDEX={index}", f"--nodes {request.nodes}")
        )
    host, port = master(env, request.master)
    if not host and request.nodes > 1:
        raise EntranceError(
            say(
                "an indexed Job does not say where its pod 0 is: give --master HOST[:PORT], the "
                "host of task 0, or set MASTER_ADDR (and MASTER_PORT); in a Job with a headless "
                "service it is JOB-0.SERVICE"
            )
        )
    pods = _pods(env.get("HOSTNAME", ""), index, request.nodes)
    first, dot, service = host.partition(".")
    return TaskPlace(
        launcher="kubernetes", task=index, tasks=request.nodes, local_tasks=1, node=index,
        nodes=request.nodes, master_host=host or "127.0.0.1", master_port=port or _DEFAULT_PORT,
        run=run_name("kubernetes", f"{host}-{port or _DEFAULT_PORT}"),
        hosts=pods, domain=dot + service if pods and pods[0] == first else "",
    )  # fmt: skip


def _pods(hostname: str, index: int, count: int) -> tuple[str, ...]:
    """Return the host names of an indexed Job's pods: the Job's name and the index."""
    job, _, end = hostname.rpartition("-")
    if not job or not is_host(hostname) or end != str(index) or count > _TASKS:
        return ()
    return tuple(f"{job}-{pod}" for pod in range(count))


def _placed(env: Env, names: _Names) -> TaskPlace:
    """Read where this task stands from the variables of those names.

    Raises:
        EntranceError: a variable is missing, no number, or contradicts another.
    """
    task, tasks = _task(env, names.rank, names.size)
    local, local_size = number(env, names.local), number(env, names.local_size)
    if local is not None and local_size is not None and local >= local_size:
        raise EntranceError(
            _contradiction(f"{names.local}={local}", f"{names.local_size}={local_size}")
        )
    if local_size is not None and local_size > tasks:
        raise EntranceError(
            _contradiction(f"{names.local_size}={local_size}", f"{names.size}={tasks}")
        )
    node = number(env, names.node) if names.node else None
    nodes = number(env, names.nodes) if names.nodes else None
    if node is not None and nodes is not None and node >= nodes:
        raise EntranceError(_contradiction(f"{names.node}={node}", f"{names.nodes}={nodes}"))
    return TaskPlace(
        launcher=names.launcher, task=task, tasks=tasks, local=local or 0,
        local_tasks=local_size, node=node, nodes=nodes,
    )  # fmt: skip


def _task(env: Env, rank: str, size: str) -> tuple[int, int]:
    task, tasks = number(env, rank), number(env, size)
    if task is None or tasks is None:
        raise EntranceError(say("{variable} is not set", variable=rank if task is None else size))
    if task >= tasks:
        raise EntranceError(_contradiction(f"{rank}={task}", f"{size}={tasks}"))
    if tasks > _TASKS:
        raise EntranceError(
            say("{variable}: more than {most} tasks", variable=f"{size}={tasks}", most=_TASKS)
        )
    return task, tasks


def _contradiction(name: str, other: str) -> str:
    return say("{one}, but {other}", one=name, other=other)


def _completed(place: TaskPlace, **more: object) -> TaskPlace:
    """Return the place with what else is known about it."""
    return msgspec.structs.replace(place, **more)


def _checked(found: TaskPlace, request: PlaceRequest) -> TaskPlace:
    """Check what was found against the options.

    Raises:
        EntranceError: the user counts other nodes than the launcher.
    """
    if request.nodes is None or request.nodes == found.nodes:
        return found
    if found.launcher == "local":
        raise EntranceError(
            say(
                "--nodes {nodes}, but no launcher says which of them this is: start it by "
                "torchrun, srun or mpirun, in an indexed Job (JOB_COMPLETION_INDEX), or set RANK, "
                "WORLD_SIZE and MASTER_ADDR",
                nodes=request.nodes,
            )
        )
    if found.nodes is not None:
        raise EntranceError(
            say(
                "--nodes {nodes}, but {launcher} says {found}",
                nodes=request.nodes,
                launcher=found.launcher,
                found=found.nodes,
            )
        )
    return _completed(found, nodes=request.nodes)
