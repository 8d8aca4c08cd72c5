"""What users, sites and launchers write: keys of compat, variables, host lists, requirements."""

import contextlib
import json
from pathlib import Path

import msgspec
from fuzz_target import Target, none_crashed
from rules_support import TABLES

from gpucheck.cluster import launcher, launcher_variables
from gpucheck.cluster.figures.baseline import Baseline, _sound
from gpucheck.cluster.launcher_variables import EntranceError
from gpucheck.cluster.model import unpack
from gpucheck.derived.torch_code import capabilities_of
from gpucheck.describe.judge import judge_described
from gpucheck.describe.keys import GivenError, read_object, read_words
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.secrets import public_address
from gpucheck.facts.system import HIDDEN
from gpucheck.facts.torch import Interpreter
from gpucheck.interface.requirements import RequirementError, parse_file
from gpucheck.machine import RecordedHost, Recording
from gpucheck.machine.base import Identity
from gpucheck.machine.worker_pool.process import MessageStream
from gpucheck.output import json_text, markdown, terminal
from gpucheck.probes import package_sources
from gpucheck.tables import versions

_CASES = Path(__file__).parents[1] / "describe" / "compat_cases.jsonl"
_MOST_RANKS = 2000


def _compat(data: bytes) -> None:
    """A line of ``compat --batch``; refused by GivenError, or by whatever json refuses."""
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        report = judge_described(read_object(facts), TABLES).report
    except (GivenError, RecursionError):  # both become the line's error
        return
    none_crashed(report.checks)
    json.dumps(report.as_line("x"))
    for face in (json_text, terminal, markdown):
        face.render(report).encode("utf-8", "surrogatepass")


def _words(data: bytes) -> None:
    """The words of ``compat``, one a line; refused by GivenError."""
    words = data.decode("utf-8", "surrogateescape").split("\n")
    with contextlib.suppress(GivenError):
        judge_described(read_words(words), TABLES)


def _launcher(data: bytes) -> None:
    """An environment and the options beside it; refused by EntranceError."""
    try:
        decoded = msgspec.json.decode(data, type=tuple[dict[str, str], str, int | None])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    variables, master, nodes = decoded
    with contextlib.suppress(EntranceError):
        launcher.find(variables, launcher.PlaceRequest(master=master, nodes=nodes, pid=777))
    with contextlib.suppress(EntranceError):
        launcher.token(variables)


def _hosts(data: bytes) -> None:
    """Lists of hosts, counts and ranks; refused by ValueError with a sentence of ours."""
    text = data.decode("utf-8", "surrogateescape")
    for read in (launcher_variables.hosts, launcher_variables.counts):
        with contextlib.suppress(ValueError):
            read(text)
    if len(text) < _MOST_RANKS:
        with contextlib.suppress(ValueError):
            unpack(text)


def _requirements(data: bytes) -> None:
    """A file of ``--require``; refused by RequirementError."""
    with contextlib.suppress(RequirementError):
        parse_file(data.decode("utf-8", "replace"))


def _baseline(data: bytes) -> None:
    """A saved baseline; refused as ``load`` refuses it."""
    try:
        read = _sound(msgspec.json.decode(data, type=Baseline))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    read.of_gpu("GPU-1", "H")
    read.of_group(["GPU-1", "GPU-2"], 1024)
    msgspec.json.encode(read)


def _numbers(data: bytes) -> None:
    """Numbers and versions: what is none is None."""
    for text in data.decode("utf-8", "surrogateescape").split("\n"):
        whole_number(text)
        capabilities_of((text,))
        for read in (
            versions.parse,
            versions.released,
            versions.minor,
            versions.capability_numbers,
        ):
            read(text)


def _worker(data: bytes) -> None:
    """What a worker prints: whatever is no message becomes ``bad-answer``."""
    stream = MessageStream("#mark#")
    half = len(data) // 2
    for part in (data[:half], data[half:]):
        for message in stream.messages(part):
            assert isinstance(message, dict)


def _package_settings(data: bytes) -> None:
    """The files of pip, uv and conda: each is read, or its facts are unknown."""
    files = dict.fromkeys(("/h/.config/pip/pip.conf", "/h/.config/uv/uv.toml", "/h/.condarc"), data)
    host = RecordedHost(Recording(identity=Identity(os="linux", home="/h"), files=files))
    found = package_sources.collect(host, Interpreter())
    assert found.pip_index is not None or found.problem("pip_index")
    for address in (found.pip_index, found.uv_index, *(found.pip_extra_indexes or ())):
        assert not address or public_address(address.replace(HIDDEN, "x")), address


def _cases() -> list[bytes]:
    lines = _CASES.read_text(encoding="utf-8").splitlines()[::7]
    return [json.dumps(json.loads(line)["facts"]).encode() for line in lines]


def _as_words() -> list[bytes]:
    found = []
    for case in _cases():
        items = json.loads(case).items()
        words = [f"{key}={value}" for key, value in items if isinstance(value, str)]
        found.append("\n".join(words).encode())
    return found


def _environments() -> list[bytes]:
    srun = {
        "SLURM_JOB_ID": "123", "SLURM_STEP_ID": "4", "SLURM_PROCID": "5", "SLURM_LOCALID": "1",
        "SLURM_NODEID": "2", "SLURM_NTASKS": "6", "SLURM_STEP_NUM_TASKS": "6",
        "SLURM_STEP_NUM_NODES": "3", "SLURM_STEP_NODELIST": "node[01-02],gpu-a",
        "SLURM_STEP_TASKS_PER_NODE": "2(x3)", "SLURM_TASK_PID": "777", "SLURMD_NODENAME": "gpu-a",
    }  # fmt: skip
    torchrun = {
        "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "8",
        "MASTER_ADDR": "node01", "MASTER_PORT": "29400", "RANK": "11", "WORLD_SIZE": "16",
        "TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_RUN_ID": "7a0dbd75",
        "GPUCHECK_PREFLIGHT_TOKEN": "secret",
    }  # fmt: skip
    open_mpi = {
        "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_NAMESPACE": "2023358465",
    }  # fmt: skip
    mpich = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
    pod = {"JOB_COMPLETION_INDEX": "2", "HOSTNAME": "gate-2", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    each: list[dict[str, str]] = [srun, torchrun, open_mpi, mpich, pod, {}, {**srun, **mpich},
                                  {**torchrun, **srun}, {**srun, **open_mpi}]  # fmt: skip
    requests: tuple[tuple[str, int | None], ...] = (("", None), ("n1:29500", 2), ("[::1]:80", 1))
    return [json.dumps([document, *request]).encode() for document in each for request in requests]


_LISTS = [
    b"node[01-03,7],gpu-a", b"n[1-2]x[3-4],m", b"2(x3),1", b"0-3,8,10-11", b"a", b"n[001-100]",
    b"rack1-[1-4]-n[1-8].example.org",
]  # fmt: skip
_REQUIRED = [
    b"gpus-per-node = 8\ngpu-model=H100 # all\nmin_driver=570.86\n",
    b"within-peers=5\nmin-busbw=1e2",
    b'{"gpus-per-node": 8, "gpu-model": "H100", "min-torch": "2.6", "within-baseline": 5.5}',
]  # fmt: skip
_SAVED = [
    (
        b'{"gpus": {"GPU-1": {"model": "H", "rates": {"fp16": 1.5}, "saved": "2026-01-01"}},\n'
        b' "groups": {"GPU-1,GPU-2": {"size": 1024, "busbw": 3.5}}}'
    )
]
_NUMBERED = [
    b"535.104.05\n12.4\ncu128\n2.9.1+cu128\n8.9\nsm_90a\ncompute_120\n007\n2.6.0a0+git",
]
_PRINTED = [b'noise#mark#{"event": "done", "value": [1, 2.5]}#mark#more#mark#{"event": "x"}#mark#']

_SETTINGS = [
    b"[global]\nindex-url = https://u:p@m.example/simple/\nextra-index-url =\n  https://n.example/x\n",
    b"[[index]]\nurl = 'https://m.example/simple'\ndefault = true\n[pip]\nindex-url = 'https://n/simple'",
    b"channels:\n  - conda-forge\n  - defaults\ndefault_channels: [https://m.example/main]\n",
    b"channels:\n- r\ncustom_channels:\n  r: https://m.example/t/abc/cloud\n",
]

TARGETS = (
    Target("compat", _compat, _cases, "json"),
    Target("compat-words", _words, _as_words, "text"),
    Target("launchers", _launcher, _environments, "json"),
    Target("host-lists", _hosts, lambda: _LISTS, "text"),
    Target("requirements", _requirements, lambda: _REQUIRED, "text"),
    Target("baseline", _baseline, lambda: _SAVED, "json"),
    Target("numbers", _numbers, lambda: _NUMBERED, "text"),
    Target("package-settings", _package_settings, lambda: _SETTINGS, "text"),
    Target("worker-messages", _worker, lambda: _PRINTED, "bytes", (b"#mark#",)),
)
