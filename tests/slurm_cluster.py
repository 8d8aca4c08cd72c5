"""A real Slurm cluster on one machine: munged, slurmctld and several ``slurmd -N``.

Everything lies in one folder, but for the names of the nodes in /etc/hosts, which are taken out
again. It needs root and Debian's ``slurm-wlm`` and ``munge``. For work by hand, a cluster until
Ctrl-C::

    python tests/slurm_cluster.py

prints the SLURM_CONF to export.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

NODES = tuple(f"gate0{number}" for number in range(1, 5))
TOOLS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "scontrol")
_HOSTS = Path("/etc/hosts")
_MARK = f"# a test cluster of gpucheck, process {os.getpid()}"
_READY = 60.0
_END = 10.0
_CONF = """\
ClusterName={cluster}
SlurmctldHost={machine}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000
ReturnToService=2
KillWait=5
SlurmdTimeout=60
SlurmdParameters=config_overrides
MailProg=/bin/true
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
{more}
"""


def missing() -> str:
    """Return why no cluster can be started here; "" when one can."""
    without = [tool for tool in TOOLS if not shutil.which(tool, path=_path())]
    if without:
        return f"Slurm is not installed: {', '.join(without)} (apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "a Slurm cluster of one's own needs root"


class Cluster:
    """A cluster that runs."""

    def __init__(self, folder: Path, nodes: Sequence[str] = NODES) -> None:
        self.folder = folder
        self.nodes = nodes
        self.env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": _path()}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def run(
        self, *command: str, seconds: float = 120, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the cluster's user, such as ``srun``."""
        return subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False,
            env={**self.env, **(env or {})}, cwd=self.folder,
        )  # fmt: skip

    def states(self) -> dict[str, str]:
        """Return the state of each node as sinfo says it."""
        done = self.run("sinfo", "-h", "-N", "-o", "%N %T", seconds=20)
        return dict(line.split() for line in done.stdout.splitlines())

    def resume(self) -> None:
        """Bring all nodes back into service."""
        for node, state in self.states().items():
            if state.rstrip("*") not in ("idle", "allocated", "mixed"):
                self.run("scontrol", "update", f"NodeName={node}", "State=RESUME", seconds=20)
        self.until("idle")

    def until(self, state: str, nodes: Sequence[str] = (), seconds: float = _READY) -> None:
        """Wait until the nodes, else all, are in that state."""
        end = time.monotonic() + seconds
        wanted = nodes or self.nodes
        while not all(self.states().get(node, "").startswith(state) for node in wanted):
            if time.monotonic() > end:
                raise TimeoutError(f"{self.states()} is not all {state}: {self.logs()}")
            time.sleep(0.2)

    def job(self, script: Path, *options: str, seconds: float = 120) -> tuple[str, str]:
        """Submit a batch script and wait for its end; return its state and output."""
        out = script.with_suffix(".out")
        done = self.run("sbatch", "--parsable", "-o", str(out), *options, str(script))
        number = done.stdout.strip()
        if not number.isdigit():
            raise RuntimeError(done.stderr)
        state = self.state(number, seconds)
        return state, out.read_text() if out.exists() else ""

    def state(self, number: str, seconds: float = 120) -> str:
        """Wait for the end of a job; return its state."""
        end = time.monotonic() + seconds
        while True:
            words = self.run("scontrol", "show", "job", "-o", number).stdout.split()
            fields = dict(word.partition("=")[::2] for word in words)
            state = fields.get("JobState", "")
            if state in ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL"):
                return state
            if time.monotonic() > end:
                self.run("scancel", number)
                raise TimeoutError(f"job {number} is {state}: {self.logs()}")
            time.sleep(0.3)

    def logs(self) -> str:
        """Return the ends of the daemons' logs, without the plugins that nobody asked for."""
        logs = (self.folder / "slurmctld.log", *sorted(self.folder.glob("gate*.log")))
        texts = {log.name: log.read_text(errors="replace") for log in logs if log.exists()}
        kept = {
            name: "\n".join(line for line in text.splitlines() if "mpi" not in line.lower())
            for name, text in texts.items()
        }
        return "\n".join(f"{name}: {text[-800:]}" for name, text in kept.items())

    def start_daemon(self, name: str, *command: str) -> None:
        """Start a daemon that stays in the foreground."""
        with (self.folder / f"{name}.out").open("wb") as out:
            self._daemons[name] = subprocess.Popen(
                command, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip

    def stop(self) -> None:
        """End all jobs and daemons."""
        if "slurmctld" in self._daemons:
            with suppress(subprocess.TimeoutExpired):
                self.run("scancel", "-u", "root", seconds=20)
        for daemon in reversed(self._daemons.values()):
            daemon.send_signal(signal.SIGCONT)
            daemon.terminate()
            try:
                daemon.wait(_END)
            except subprocess.TimeoutExpired:
                os.killpg(daemon.pid, signal.SIGKILL)
                daemon.wait(_END)


@contextmanager
def cluster(
    settings: str = "", nodes: Sequence[str] = NODES, *, named: bool = True
) -> Iterator[Cluster]:
    """Start a cluster of nodes with 8 CPUs each and, on paper, 8 GPUs.

    ``settings`` are further lines of its slurm.conf. ``{folder}`` in them is the cluster's folder.
    Unless ``named``, this machine does not know the names of the nodes: only Slurm has their
    addresses.
    """
    known = nodes if named else ()
    with tempfile.TemporaryDirectory(prefix="gate-", dir="/tmp") as name, names_of(known):
        folder = Path(name)
        folder.chmod(0o755)
        started = Cluster(folder, nodes)
        try:
            _start(started, settings)
            started.until("idle")
            yield started
        finally:
            started.stop()


def _start(started: Cluster, settings: str) -> None:
    folder = started.folder
    for part in ("state", *(f"spool/{node}" for node in started.nodes)):
        (folder / part).mkdir(parents=True)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    ports = _free_ports(1 + len(started.nodes))
    nodes = "\n".join(
        f"NodeName={node} NodeHostname={socket.gethostname()} NodeAddr={address} Port={port} "
        "CPUs=8 Gres=gpu:8"
        for (node, address), port in zip(_addresses(started.nodes), ports[1:], strict=True)
    )
    (folder / "slurm.conf").write_text(
        _CONF.format(
            cluster=folder.name.lower().replace("_", "-"), folder=folder,
            machine=socket.gethostname(), port=ports[0], nodes=nodes,
            more=settings.replace("{folder}", str(folder)),
        )
    )  # fmt: skip
    for number in range(8):
        (folder / f"gpu{number}").touch()
    (folder / "gres.conf").write_text(
        f"NodeName={','.join(started.nodes)} Name=gpu File={folder}/gpu[0-7]\n"
    )
    places = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
    options = [f"--{option}={folder}/munge.{end}" for option, end in places.items()]
    started.start_daemon(
        "munged", "munged", "--foreground", "--force", *options, f"--log-file={folder}/munge.log"
    )
    _wait_for(folder / "munge.socket")
    started.start_daemon("slurmctld", "slurmctld", "-D", "-c")
    for node in started.nodes:
        started.start_daemon(node, "slurmd", "-D", "-N", node)


def _addresses(nodes: Sequence[str]) -> list[tuple[str, str]]:
    return [(node, f"127.0.77.{number}") for number, node in enumerate(nodes, 1)]


@contextmanager
def names_of(nodes: Sequence[str]) -> Iterator[None]:
    """Make the names of the nodes known, as long as this lasts."""
    lines = [f"{address} {node} {_MARK}\n" for node, address in _addresses(nodes)]
    with _HOSTS.open("a") as hosts:
        hosts.writelines(lines)
    try:
        yield
    finally:
        kept = [line for line in _HOSTS.read_text().splitlines(keepends=True) if _MARK not in line]
        # In place, for in a container the file is a mount; and never empty on the way, for other
        # tests look up the name of this machine, and a name server may not answer for long.
        with _HOSTS.open("r+") as hosts:
            hosts.writelines(kept)
            hosts.truncate()


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, below those that systems give to connections.

    A port of that range may be taken by somebody's connection before the daemon listens on it.
    """
    found: list[int] = []
    for port in random.sample(range(10000, 20000), 1000):
        with suppress(OSError), socket.create_server(("", port)):
            found.append(port)
        if len(found) == count:
            break
    return found


def _wait_for(path: Path) -> None:
    end = time.monotonic() + _END
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{path} does not appear")
        time.sleep(0.05)


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


if __name__ == "__main__":
    why = missing()
    if why:
        sys.exit(why)
    with cluster() as running:
        sys.stdout.write(f"export SLURM_CONF={running.env['SLURM_CONF']}\n")
        sys.stdout.flush()
        signal.sigwait([signal.SIGINT, signal.SIGTERM])
