"""Which launcher started this process: real environments, contradictions, hostile ones."""

from typing import Any

import msgspec
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from gpucheck.cluster.launcher import (
    TOKEN_VARIABLE,
    PlaceRequest,
    TaskPlace,
    alone,
    find,
    slurm_port,
    token,
)
from gpucheck.cluster.launcher_variables import EntranceError

TORCHRUN = {
    "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "8",
    "MASTER_ADDR": "node01", "MASTER_PORT": "29400", "RANK": "11", "WORLD_SIZE": "16",
    "ROLE_RANK": "11", "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RESTART_COUNT": "1",
    "TORCHELASTIC_RUN_ID": "7a0dbd75-6125-443d-9d5f-84faff9a36f0",
}  # fmt: skip
SRUN = {
    "SLURM_CLUSTER_NAME": "alps",
    "SLURM_JOB_ID": "123", "SLURM_STEP_ID": "4", "SLURM_PROCID": "5", "SLURM_LOCALID": "1",
    "SLURM_NODEID": "2", "SLURM_NTASKS": "6", "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_STEP_NUM_NODES": "3", "SLURM_STEP_NODELIST": "node[01-02],gpu-a",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3)", "SLURM_TASK_PID": "777", "SLURMD_NODENAME": "gpu-a",
    "SLURM_LAUNCH_NODE_IPADDR": "192.0.2.9", "SLURM_JOB_NODELIST": "node[01-09],gpu-a",
}  # fmt: skip
MPIRUN = {
    "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_COMM_WORLD_NODE_RANK": "1", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4",
    "PMIX_NAMESPACE": "2023358465", "PMIX_RANK": "3", "OMPI_MCA_ess_base_jobid": "2023358465",
}  # fmt: skip
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
POD = {"JOB_COMPLETION_INDEX": "2", "HOSTNAME": "gate-2", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def told(env: dict[str, str], **request: Any) -> TaskPlace:  # noqa: ANN401  # fields of a request
    return find(env, PlaceRequest(**request))


def what(found: TaskPlace, *fields: str) -> tuple[Any, ...]:
    return tuple(getattr(found, field) for field in fields)


def test_torchrun() -> None:
    found = told(TORCHRUN)
    assert what(found, "launcher", "task", "tasks", "local", "local_tasks", "node", "nodes") == (
        "torchrun", 11, 16, 3, 8, 1, 2,
    )  # fmt: skip
    assert what(found, "master_host", "master_port", "one_gpu", "restarts", "hosts") == (
        "node01", 29400, True, 1, (),
    )  # fmt: skip


def test_all_nodes_of_torchrun_name_the_run_alike() -> None:
    other = {**TORCHRUN, "RANK": "0", "TORCHELASTIC_RESTART_COUNT": "0", "MASTER_ADDR": "10.0.0.1"}
    assert told(other).run == told(TORCHRUN).run
    assert told({**TORCHRUN, "MASTER_PORT": "29401"}).run != told(TORCHRUN).run
    assert told({**TORCHRUN, "TORCHELASTIC_RUN_ID": "b"}).run != told(TORCHRUN).run


def test_srun_tells_all_but_an_address_and_the_port_follows_from_the_step() -> None:
    found = told(SRUN)
    assert what(found, "launcher", "task", "tasks", "local", "local_tasks", "node", "nodes") == (
        "slurm", 5, 6, 1, 2, 2, 3,
    )  # fmt: skip
    assert what(found, "master_host", "master_port", "run", "one_gpu") == (
        "node01", 20000 + 123 * 31 + 4, "slurm-alps-123.4.0-6", False,
    )  # fmt: skip
    assert found.hosts == ("node01", "node01", "node02", "node02", "gpu-a", "gpu-a")
    assert found.host == "gpu-a"
    assert told({**SRUN, "SLURMD_NODENAME": "\x1b[31m"}).host == ""


def test_a_slurm_port_is_always_a_port() -> None:
    for job in (0, 1, 10**6, 2**32 - 1):
        for step in (0, 7, 2**32 - 2):
            assert 20000 <= slurm_port(job, step) < 40000


def test_uneven_tasks_of_slurm() -> None:
    env = {**SRUN, "SLURM_STEP_TASKS_PER_NODE": "3,2,1", "SLURM_LOCALID": "0"}
    found = told(env)
    assert found.hosts == ("node01",) * 3 + ("node02",) * 2 + ("gpu-a",)
    assert found.local_tasks == 1


def test_tasks_of_slurm_that_go_round() -> None:
    env = {**SRUN, "SLURM_DISTRIBUTION": "cyclic:block"}
    assert told(env).hosts == ("node01", "node02", "gpu-a") * 2


@each(
    "change",
    [
        {"SLURM_DISTRIBUTION": "arbitrary"},
        {"SLURM_DISTRIBUTION": "plane=2"},
        {"SLURM_STEP_TASKS_PER_NODE": "2(x2)"},
        {"SLURM_STEP_TASKS_PER_NODE": ""},
        {"SLURM_STEP_TASKS_PER_NODE": "3(x3)"},
        {"SLURM_NODEID": "1"},
        {"SLURMD_NODENAME": "node02"},
        {"SLURM_STEP_NODELIST": "node[01-02],gpu-a,x"},
    ],
)
def test_no_host_is_named_that_may_be_the_wrong_one(change: dict[str, str]) -> None:
    assert told({**SRUN, **change}).hosts == ()


def test_an_exported_master_of_the_batch_script_does_not_mislead_a_step() -> None:
    assert told({**SRUN, "MASTER_ADDR": "node09", "MASTER_PORT": "1234"}).master_host == "node01"
    found = told({**SRUN, "MASTER_ADDR": "node09"}, master="node01-ib:5000")
    assert what(found, "master_host", "master_port") == ("node01-ib", 5000)


def test_a_list_of_nodes_that_is_none() -> None:
    with pytest.raises(EntranceError, match=r"SLURM_STEP_NODELIST.*--master.*MASTER_ADDR"):
        told({**SRUN, "SLURM_STEP_NODELIST": "node[1-"})
    one = {**SRUN, "SLURM_STEP_NODELIST": "[", "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}
    assert told(one).tasks == 1


def test_a_batch_script_is_one_process_alone() -> None:
    batch = {
        "SLURM_JOB_ID": "123", "SLURM_NTASKS": "6", "SLURM_PROCID": "0", "SLURM_NODEID": "0",
        "SLURM_LOCALID": "0", "SLURM_JOB_NODELIST": "node[01-03]", "SLURM_TASK_PID": "4000",
        "SLURM_NNODES": "3", "SLURM_NPROCS": "6", "SLURM_TASKS_PER_NODE": "2(x3)",
    }  # fmt: skip
    assert what(told(batch, pid=4001), "launcher", "tasks") == ("local", 1)


BATCH = {"SLURM_JOB_ID": "123", "SLURM_JOB_NUM_NODES": "4", "SLURM_JOB_NODELIST": "n[01-04]"}


def test_outside_of_srun_the_other_nodes_of_the_job_are_mentioned() -> None:
    (notice,) = told(BATCH, pid=9).notices
    assert notice.startswith("Slurm gave this job 4 nodes, and only this one was tested")
    one_node = {**TORCHRUN, "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "RANK": "3"}
    by_torchrun = told({**BATCH, **one_node, "WORLD_SIZE": "8"}, pid=9)
    assert (by_torchrun.launcher, by_torchrun.notices) == ("torchrun", (notice,))
    in_a_shell = {**BATCH, **SRUN, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0",
                  "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NODELIST": "n01", "SLURM_NODEID": "0",
                  "SLURM_STEP_TASKS_PER_NODE": "1", "SLURM_LOCALID": "0"}  # fmt: skip
    assert told(in_a_shell, pid=9).notices == (notice,)
    assert told(in_a_shell, pid=777).notices == ()  # a task of srun: somebody wanted one node


@each(
    "env",
    [
        {**BATCH, **SRUN},
        {**BATCH, "SLURM_JOB_NUM_NODES": "1"},
        {**BATCH, "SLURM_JOB_NUM_NODES": "many"},
        {**BATCH, **TORCHRUN},
        {},
    ],
)
def test_where_all_nodes_take_part_nothing_is_mentioned(env: dict[str, str]) -> None:
    assert told(env, pid=9).notices == ()


def test_one_process_alone_whatever_started_it() -> None:
    assert what(alone(SRUN), "launcher", "tasks", "host") == ("local", 1, "gpu-a")


def test_a_prolog_knows_what_slurm_calls_its_node() -> None:
    env = {
        "SLURMD_NODENAME": "node02",
        "SLURM_JOB_ID": "1",
        "SLURM_SCRIPT_CONTEXT": "prolog_slurmd",
    }
    assert what(told(env), "launcher", "host", "tasks") == ("local", "node02", 1)
    assert told({}).host == ""


def test_torchrun_started_by_srun() -> None:
    env = {**SRUN, **TORCHRUN, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}
    assert what(told(env, pid=900), "launcher", "task", "tasks") == ("torchrun", 11, 16)


def test_srun_started_from_within_a_worker_of_torchrun() -> None:
    found = told({**SRUN, **TORCHRUN}, pid=777)
    assert what(found, "launcher", "task", "tasks") == ("slurm", 5, 6)


def test_torchrun_that_contradicts_itself_gives_way_with_a_note() -> None:
    found = told({**SRUN, **TORCHRUN, "RANK": "16"})
    assert what(found, "launcher", "notes") == ("slurm", ("RANK=16, but WORLD_SIZE=16",))
    with pytest.raises(EntranceError, match="RANK=16, but WORLD_SIZE=16"):
        told({**TORCHRUN, "RANK": "16"})


def test_mpirun_on_several_hosts_needs_a_master() -> None:
    with pytest.raises(EntranceError, match=r"--master HOST.*MASTER_ADDR"):
        told(MPIRUN)
    found = told(MPIRUN, master="node01")
    assert what(found, "launcher", "task", "tasks", "local", "local_tasks", "master_host") == (
        "openmpi", 3, 4, 1, 2, "node01",
    )  # fmt: skip
    assert found.master_port == told({**MPIRUN, "MASTER_ADDR": "node01"}).master_port
    assert 20000 <= (found.master_port or 0) < 40000
    other = told({**MPIRUN, "PMIX_NAMESPACE": "2023358466"}, master="node01")
    assert (other.run, other.master_port) != (found.run, found.master_port)


def test_mpirun_on_one_host_needs_nothing() -> None:
    env = {**MPIRUN, "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "3"}
    found = told({**env, "MASTER_ADDR": "elsewhere"})
    assert what(found, "master_host", "nodes", "node") == ("127.0.0.1", 1, 0)


def test_mpirun_within_a_job_of_slurm() -> None:
    env = {**SRUN, **MPIRUN, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}
    assert told(env, master="node01", pid=900).launcher == "openmpi"
    assert told({**SRUN, **MPIRUN}, pid=777).launcher == "slurm"


def test_mpich_and_its_kin() -> None:
    found = told(MPICH, parent=4711)
    assert what(found, "launcher", "task", "tasks", "local_tasks", "master_host") == (
        "mpi", 1, 2, 2, "127.0.0.1",
    )  # fmt: skip
    assert told(MPICH, parent=4711).run == found.run != told(MPICH, parent=4712).run
    with pytest.raises(EntranceError, match="--master"):
        told({**MPICH, "PMI_SIZE": "4"})
    spread = told({**MPICH, "PMI_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "5000"})
    assert what(spread, "master_host", "master_port", "run") == ("a", 5000, "mpi-a-5000-4")
    mvapich = {
        "MV2_COMM_WORLD_RANK": "0", "MV2_COMM_WORLD_SIZE": "1",
        "MV2_COMM_WORLD_LOCAL_RANK": "0", "MV2_COMM_WORLD_LOCAL_SIZE": "1",
    }  # fmt: skip
    assert what(told(mvapich), "launcher", "tasks") == ("mpi", 1)


def test_srun_with_pmi_is_srun() -> None:
    env = {**SRUN, "PMI_RANK": "5", "PMI_SIZE": "6", "PMIX_RANK": "5"}
    assert told(env).launcher == "slurm"
    inner = {**SRUN, "PMI_RANK": "5", "PMI_SIZE": "24"}
    assert what(told(inner, master="node01"), "launcher", "tasks") == ("mpi", 24)


def test_rank_and_world_size_by_hand() -> None:
    env = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "train-master-0", "MASTER_PORT": "23456"}
    found = told(env)
    assert what(found, "launcher", "task", "tasks", "one_gpu", "master_host", "master_port") == (
        "env", 1, 4, False, "train-master-0", 23456,
    )  # fmt: skip
    assert told({**env, "LOCAL_RANK": "1"}).one_gpu
    assert told({**env}, nodes=2).nodes == 2
    with pytest.raises(EntranceError, match="--master"):
        told({"RANK": "1", "WORLD_SIZE": "4"})
    with pytest.raises(EntranceError, match="WORLD_SIZE"):
        told({"RANK": "1"})
    assert told({"RANK": "0", "WORLD_SIZE": "1"}).tasks == 1


def test_variables_that_say_no_rank_are_no_launcher() -> None:
    for stray in (
        {"WORLD_SIZE": "4"},
        {"MASTER_ADDR": "node01"},
        {"LOCAL_RANK": "0"},
        {"RANK": ""},
    ):
        found = told(stray)
        assert what(found, "launcher", "task", "tasks", "master_host", "master_port") == (
            "local", 0, 1, "127.0.0.1", None,
        )  # fmt: skip


def test_an_indexed_job() -> None:
    found = told(POD, nodes=4, master="gate-0.gate:29500")
    assert what(found, "launcher", "task", "tasks", "node", "nodes", "master_host") == (
        "kubernetes", 2, 4, 2, 4, "gate-0.gate",
    )  # fmt: skip
    assert found.hosts == ("gate-0", "gate-1", "gate-2", "gate-3")
    assert found.domain == ".gate"
    assert told(POD, nodes=4, master="gate-0").domain == ""
    assert told(POD, nodes=4, master="10.0.0.1").domain == ""
    assert found.master_port == 29500
    assert told({**POD, "HOSTNAME": "other-1"}, nodes=4, master="gate-0.gate").hosts == ()
    assert told({**POD, "MASTER_ADDR": "gate-0.gate"}, nodes=4).master_host == "gate-0.gate"
    assert told({**POD, "JOB_COMPLETION_INDEX": "0"}, nodes=1).tasks == 1


def test_what_an_indexed_job_does_not_tell_is_asked_for() -> None:
    with pytest.raises(EntranceError, match=r"JOB_COMPLETION_INDEX.*--nodes N"):
        told(POD, master="gate-0.gate")
    with pytest.raises(EntranceError, match=r"--master HOST.*MASTER_ADDR"):
        told(POD, nodes=4)
    with pytest.raises(EntranceError, match="JOB_COMPLETION_INDEX=2, but --nodes 2"):
        told(POD, nodes=2, master="gate-0.gate")


def test_nodes_that_no_launcher_knows() -> None:
    with pytest.raises(EntranceError, match=r"--nodes 2.*JOB_COMPLETION_INDEX.*RANK"):
        told({}, nodes=2)
    assert told({}, nodes=1).launcher == "local"
    with pytest.raises(EntranceError, match="--nodes 4, but slurm says 3"):
        told(SRUN, nodes=4)


@each(
    ("text", "host", "port"),
    [
        ("node01", "node01", None),
        ("node01:5000", "node01", 5000),
        ("10.0.0.1:1", "10.0.0.1", 1),
        ("fd00::2", "fd00::2", None),
        ("[fd00::2]", "fd00::2", None),
        ("[fd00::2]:5000", "fd00::2", 5000),
    ],
)
def test_a_master_in_its_forms(text: str, host: str, port: int | None) -> None:
    found = told({**MPIRUN, "MASTER_PORT": "999"}, master=text)
    assert what(found, "master_host", "master_port") == (host, port or 999)


@each(
    "text",
    ["node01:", "node01:x", "node01:0", "node01:70000", ":5000", "[fd00::2", "[fd00::2]5", "a b",
     "node\n", "x" * 300, "nöde"],
)  # fmt: skip
def test_a_master_that_is_none(text: str) -> None:
    with pytest.raises(EntranceError, match="--master"):
        told(MPIRUN, master=text)


def test_numbers_are_numbers() -> None:
    for bad in ("-1", "x", "1e3", "٣", "9" * 10, "0x10"):
        with pytest.raises(EntranceError, match=r"RANK=.* is not a number"):
            told({**TORCHRUN, "RANK": bad})
    with pytest.raises(EntranceError, match="MASTER_PORT=0 is not a port"):
        told({**TORCHRUN, "MASTER_PORT": "0"})
    with pytest.raises(EntranceError, match="more than 1000000 tasks"):
        told({**TORCHRUN, "WORLD_SIZE": "99999999"})


def test_the_name_of_a_run_is_plain_and_tells_runs_apart() -> None:
    runs = [
        told({**TORCHRUN, "TORCHELASTIC_RUN_ID": text}).run
        for text in ("a b", "a\tb", "\udcff\x1b[31m", "x" * 500, "x" * 501, "")
    ]
    assert len(set(runs)) == 6
    for run in runs:
        assert run.isascii()
        assert run.isprintable()
        assert len(run) < 200


def test_the_token() -> None:
    assert token({}) == ""
    assert token({TOKEN_VARIABLE: " s3cret\n"}) == "s3cret"
    with pytest.raises(EntranceError, match=TOKEN_VARIABLE):
        token({TOKEN_VARIABLE: "x" * 5000})


NAMES = sorted({*TORCHRUN, *SRUN, *MPIRUN, *MPICH, *POD})
VALUES = st.one_of(
    st.integers(-2, 40).map(str),
    st.sampled_from(["", "node[1-3]", "2(x3)", "a", "cyclic", "[", "2(x99999)", "n[1-99999]"]),
    st.text(max_size=8),
)


@pytest.mark.exhaustive
@given(
    st.dictionaries(st.sampled_from(NAMES), VALUES),
    st.none() | st.integers(1, 5),
    st.sampled_from(["", "node01", "a:1", "::"]),
)
def test_any_environment_gives_a_place_or_a_sentence(
    env: dict[str, str], nodes: int | None, master: str
) -> None:
    try:
        found = told(env, nodes=nodes, master=master)
    except EntranceError as error:
        sentence = str(error)
    else:
        sentence = ""
    if sentence:
        assert len(sentence) < 400
        return
    assert 0 <= found.task < found.tasks
    assert found.tasks == 1 or (found.master_host and found.master_port)
    assert found.hosts == () or len(found.hosts) == found.tasks
    msgspec.json.encode(found.run)


def test_a_host_name_of_other_characters_names_no_pods() -> None:
    """The names are sent to the other tasks, and a lone surrogate cannot be sent."""
    pod = {"JOB_COMPLETION_INDEX": "0", "HOSTNAME": "\udcff-0"}
    assert told(pod, nodes=2, master="127.0.0.1").hosts == ()
