"""Ranks and nodes of a job: which is missing, hangs, crashed, is slow or differs."""

from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.preflight import ProcessState
from gpucheck.findings.form import Hit, InPreflight, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestRanks
from gpucheck.language import say

STOPS_RANKS = (
    "gpu-fallen-off-bus",
    "gpu-hardware-fault",
    "fabric-manager-down",
    "host-out-of-memory",
    "shm-too-small",
    "nccl-p2p-broken",
    "nccl-transport-broken",
    "nccl-infiniband",
    "nccl-network-interface",
    "nccl-version-mismatch",
)
"""Causes of which a rank that is lost, hangs or times out is the consequence."""

RANK_CRASHED = Rule(
    "rank-crashed",
    page="""\
A rank was killed by a signal, such as a segmentation fault or an abort.

Symptoms: "Signal 11 (SIGSEGV) received by PID 4242", "exitcode : -11", "Segmentation fault (core
dumped)", and on the other ranks a lost connection or a timeout. If a text shows only one
process, its crash is reported as application-bug.

A negative exit code of torchrun is the number of the signal: -9 usually comes from the kernel
(host-out-of-memory), -7 is a bus error (shm-too-small), -15 is how the launcher ends the other
ranks.

The message alone does not say why the rank died. The first lines of that rank's own output do.

When it is reported: some ranks of a self-test with several ranks died and others did not.

``gpucheck preflight`` names the rank that ended first. Ranks that lost their connection to it
afterwards are its victims.

Fix: read the output of the rank that failed first (torchrun's "Root Cause" table names it), run it
alone with PYTHONFAULTHANDLER=1, and check dmesg.
""",
    title=say("a rank died"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=STOPS_RANKS,
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say("Check that host for driver errors and for processes that the kernel killed."),
        commands=(
            "sudo dmesg | grep -i -e NVRM -e Xid | tail -n 20",
            "sudo dmesg | grep -i -e oom -e segfault | tail -n 20",
        ),
        of_ranks=("error",),
    ),
)


@RANK_CRASHED.check
def check_rank_crashed(ranks: SelfTestRanks) -> Hit | None:
    """Look for a rank whose process ended in the middle of a self-test."""
    return ranks.died()


RANK_CRASHED_ELSEWHERE = Rule(
    "rank-crashed-elsewhere",
    page="""\
The error shown is only a consequence of another rank's failure.

When one rank dies, the others lose their connection to it. Each prints an error of its own, often
longer than the original one.

Symptoms: "Connection closed by remote peer", "Connection reset by peer", "failed to recv, got 0
bytes", "store->get('0') got error", "ncclRemoteError", "ChildFailedError" with an exit code of -15.

When it is reported: only if the text does not contain the other rank's own error. Otherwise that
error is named.

Fix: read the output of the rank that failed first: torchrun names it under "Root Cause (first
observed failure)"; ``--redirects 3 --log-dir logs`` writes each rank's output into a file.
""",
    title=say("the error shown follows from the failure of another rank"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("text",),
    preflight=InPreflight(breaks_node=False),
)


_AGAIN = "gpucheck preflight"
_STATES = "ps -eo pid,ppid,stat,wchan:32,etime,args"
HELD: dict[ProcessState, Fix] = {
    "stopped": Fix(
        text=say(
            "Find out what stops processes on that host: a batch system that suspends jobs, a "
            "terminal, a script with kill -STOP. Its GPU is not to blame."
        ),
        commands=(_STATES,),
        verify=_AGAIN,
    ),
    "traced": Fix(
        text=say(
            "End the debugger or tracer that is attached to processes of the job on that host. Its "
            "GPU is not to blame."
        ),
        commands=("grep -H TracerPid /proc/[0-9]*/status | grep -v -w 0",),
        verify=_AGAIN,
    ),
    "frozen": Fix(
        text=say(
            "Find out what freezes the job's control group on that host: a paused container, a "
            "batch system that suspends jobs. Its GPU is not to blame."
        ),
        commands=(_STATES,),
        verify=_AGAIN,
    ),
    "uninterruptible": Fix(
        text=say(
            "Find out what the process waited for on that host: a file server that does not "
            "answer, a disk, or the driver of the GPU. The kernel log names blocked tasks."
        ),
        commands=(
            "sudo dmesg | grep -i -e NVRM -e Xid -e blocked -e nfs -e I/O | tail -n 20",
            _STATES,
        ),
        verify=_AGAIN,
    ),
}
"""What to do about a process that was held, by its state when its time was over."""

RANK_HANGS = Rule(
    "rank-hangs",
    page="""\
A rank is stuck: it is running, but does not reach the collective in which the others wait.

Symptoms: the watchdogs of the other ranks time out; a flight recorder or a monitored barrier names
the rank that did not join.

``gpucheck triage`` also reads what NCCL's RAS prints (``ncclras``: ranks that do not answer), and
what PyTorch's analysis of flight recorders prints (ranks that did not join a collective).

A text that says only that work on several GPUs hangs gets this finding, too.

The rank may wait for data, a lock or a file system, or compute longer than the others.

When it is reported: a rank does not enter or finish a self-test with several ranks while others do.
If the rank is not known, the finding is nccl-timeout.

``gpucheck preflight`` names the rank, its host and GPU: a rank that never reached the all-reduce in
which the others were, or one that hangs with every partner while the partners pass with others.
Before it ends a process after a time-out, it examines the process. If a signal had stopped it, a
debugger held it, or it waited in the kernel where no signal reaches it (state D), gpucheck says so.

Fix: ``py-spy dump --pid PID`` on that rank shows the line; TORCH_NCCL_TRACE_BUFFER_SIZE=20000 makes
the flight recorder log every collective.
""",
    title=say("a rank is stuck"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=STOPS_RANKS,
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Check that host for driver errors. A GPU on which programs hang needs a reset or a "
            "reboot."
        ),
        commands=("sudo dmesg | grep -i -e NVRM -e Xid | tail -n 20",),
        restart="machine",
        of_ranks=("connect", "hang"),
    ),
)


@RANK_HANGS.check
def check_rank_hangs(ranks: SelfTestRanks) -> Hit | None:
    """Look for a rank for which the others waited in a collective of a self-test."""
    return ranks.hanging()


RANK_MISSING = Rule(
    "rank-missing",
    page="""\
A rank of the job never arrived at the rendezvous.

Symptoms: the others wait, and finally "Timed out initializing process group in store based barrier
... (world_size=4, worker_count=2)".

Causes: the missing rank was not started (wrong --nnodes or node list), died while it imported
torch, or does not reach the master.

When it is reported: a rank of a self-test with several ranks does not come to their rendezvous. If
an address or a port fails, rendezvous-failed reports it.

``gpucheck preflight`` names the rank, and the host if the launcher reports it.

Fix: read the output of the missing rank on its own node, and compare --nnodes and --node-rank on
all nodes.
""",
    title=say("a rank never arrived"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Read the output of the process that should have started there. If it says that task 0 "
            "was not reached, check the network between the two hosts. Otherwise check that the "
            "node is up and that the launcher knows of it."
        ),
    ),
)


@RANK_MISSING.check
def check_rank_missing(ranks: SelfTestRanks) -> Hit | None:
    """Look for a rank that never joined the rendezvous of a self-test."""
    return ranks.missing()


RAISE_THE_LIMIT = Fix(
    text=say(
        "Give the job more processors on that host: the limit comes from the batch system, the "
        "container (limits.cpu in Kubernetes, --cpus in Docker) or the service that starts it."
    ),
    commands=(
        "cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us",
        "grep throttled /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu/cpu.stat",
    ),
    verify="gpucheck preflight",
)
"""What to do about a rank that a limit on processor time holds up."""

RANK_SLOW = Rule(
    "rank-slow",
    page="""\
A rank comes last to every collective, and all others wait for it.

Symptoms: every step of the training takes as long as this rank needs, and no rank shows an error.
The other ranks spend much of their time in collectives, and this rank spends the least.

When it is reported: only by ``gpucheck preflight``, if the rank began nearly every collective at
least 0.2 s later than the others, and they waited for it (an error from 0.5 s on). Time in which
its machine had no processor for it does not count, so a rank is not named because other programs
keep its machine busy.

It is also reported if the limit of its control group on processor time (``cpu.max``) held its task
up in at least half of the periods until torch was imported, and did not hold up most of the other
hosts. With less than half a processor for each task it is an error, otherwise a warning.

A slow GPU that is seen when the rank is tested alone is gpu-slow, and a slow network is link-slow.

Fix: for a rank that is late, look at what delays its process on that host: memory that is swapped,
a file server, a slow disk, clocks that are too low. For a limit, raise the processors that the
batch system or the container gives to the job there.
""",
    title=say("a rank makes all others wait"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight",),
    preflight=InPreflight(
        exit_class=5,
        fix=say(
            "Find out what delays processes on that host: swapped memory, a file server, a slow "
            "disk, low clocks. Until then, run the job without it."
        ),
        commands=(
            "free -h",
            "grep -H . /proc/pressure/*",
            "grep MHz /proc/cpuinfo",
            "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER",
        ),
    ),
)


RANKS_HETEROGENEOUS = Rule(
    "ranks-heterogeneous",
    page="""\
The nodes or ranks of a job differ in drivers, torch, CUDA libraries, GPUs or NCCL settings.

Ranks must agree on protocols, buffer sizes and algorithms. Nodes with another NCCL, another network
plugin, other NCCL_* variables or another number of adapters hang or fail together, although each of
them works alone.

Symptoms: a hang without an error that appears only with certain nodes; different lines "NCCL
version" or "cudaDriverVersion"; a plugin that only some nodes load.

When it is reported: it is an error if torch, CUDA's major version or NCCL differ, otherwise a
warning. Different NCCL versions are reported as nccl-version-mismatch.

``gpucheck preflight`` names the hosts that differ from the majority, with both values; every host
has one vote. A tie is reported as a tie. A value that is unknown on a host does not count as a
difference. Shared memory and the limit of locked memory count if one host has less than half of
another. Interfaces and adapters (NCCL_SOCKET_IFNAME, NCCL_IB_HCA) count only if some hosts do not
have the variable at all.

Settings and firmware of the nodes are compared as well: VBIOS, InfoROM, power limit, application
clock, persistence mode, ECC, MIG, PCIe link, waiting repairs and NVLink fabric of the GPUs; the
number of NVSwitches; type, firmware, PCIe link, states, rates and link layers of the RDMA adapters;
the modules of the driver, nvidia_peermem and gdrdrv; as root PCIe payload, read request, relaxed
ordering and ACS. What depends on the GPU is compared
between nodes with one and the same model.

It also names a task whose command line, or a file that it names, was refused while other tasks
accepted theirs, and tasks that presented another token to the store of the pre-flight.

Fix: use the same image or environment on every node, the same firmware and GPU settings, and the
same command line and environment variables for every rank.
""",
    title=say("the nodes or ranks differ in what must be the same"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=("nccl-version-mismatch",),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix=say(
            "Give every node the same image or environment, the same firmware and GPU settings, "
            "and every rank the same command line and the same variables."
        ),
    ),
)


RENDEZVOUS_FAILED = Rule(
    "rendezvous-failed",
    page="""\
The ranks of a job do not find each other: store, port, address or name.

Before any GPU is used, the ranks meet at a store on MASTER_ADDR:MASTER_PORT.

Symptoms: "Address already in use" (EADDRINUSE), "The client socket has timed out after 300000ms
while trying to connect to (10.0.0.1, 29500)", "RendezvousConnectionError", "gai error: -3", "1/2
clients joined".

Causes: the port is taken, a name resolves to the wrong address, a firewall blocks the connection,
or a rank never starts.

A failure later on, between nodes that have already met, is nccl-network-interface.

``gpucheck preflight`` names the ranks that reached its own store, but not the store of their group.
If one host does not reach another, it reports nccl-network-interface instead.

Fix: choose a free port on the master (``ss -ltn``) and the address of the master by which the other
nodes reach it (not 127.0.0.1, nor a name that only its own host knows). Use the same values on all
nodes, start all nodes, open the port in the firewall, and start one launcher per node.
""",
    title=say("the ranks do not find each other"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix=say(
            "Give every rank an address of the master that the other nodes reach (not 127.0.0.1), "
            "and a port that is free on the master and open in the firewall."
        ),
        commands=("ss -ltn",),
        of_ranks=("store",),
        of_links=("store",),
    ),
)


REQUIREMENT_NOT_MET = Rule(
    "requirement-not-met",
    page="""\
A node does not meet what ``gpucheck preflight --require`` demands of it.

A site can require a GPU model, and a minimum version of the driver, torch, CUDA or NCCL, on every
node of a job. gpucheck names each host that differs, with the value found and the value required. A
value that could not be determined is not a violation; it is reported as unknown.

Symptoms: none. The job may run well; the site does not allow it.

Other requirements have findings of their own: fewer GPUs than required is rank-missing, a lower
bandwidth link-slow, a slower GPU gpu-slow.

Fix: make the host meet the requirement, or change the requirement.
""",
    title=say("a requirement is not met"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix=say("Make the named hosts meet the requirement, or change the requirement."),
    ),
)
