"""Texts of the causes that only texts show: one that names it, one that only sounds like it."""

TEXTS = {
    "application-bug": (
        """
IndexKernel.cu:92: operator(): block: [0,0,0], thread: [1,0,0] Assertion `index >= -sizes[i] && \
index < sizes[i] && "index out of bounds"` failed.
""",
        """
Assertions are enabled in this build
""",
    ),
    "extension-source-too-old": (
        """
csrc/roi_align.cpp:3:10: fatal error: THC/THC.h: No such file or directory
""",
        """
#include <THC/THC.h> was replaced
""",
    ),
    "nccl-duplicate-gpu": (
        """
node1:4242:4243 [0] init.cc:795 NCCL WARN Duplicate GPU detected : rank 3 and rank 1 both on \
CUDA device 9000
""",
        """
rank 6 and rank 4 are on different devices
""",
    ),
    "nccl-infiniband": (
        """
node1:4242:4243 [1] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer \
10.1.0.2<40000> with error 12, opcode 0, len 0, vendor err 129
""",
        """
NCCL INFO NET/IB : No device found.
""",
    ),
    "nccl-network-interface": (
        """
node2:4242:4243 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to \
172.17.0.9<40001> failed : Connection refused
""",
        """
curl: (7) Failed to connect to example.org port 443: Connection refused
""",
    ),
    "nccl-p2p-broken": (
        """
The two GPUs stay at 100 % right after NCCL has started, and nothing moves. With \
NCCL_P2P_DISABLE=1 it works.
""",
        """
the P2P file sharing program is fine
""",
    ),
    "nccl-timeout": (
        """
[rank2]:[E ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600123 \
milliseconds before timing out.
""",
        """
the request to the web server timed out after 30 s
""",
    ),
    "nccl-transport-broken": (
        """
node1:100:200 [0] transport/nvls.cc:244 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast \
memory of size 2097152
""",
        """
NCCL INFO NVLS comm 0x1 headRank 0 nHeads 8
""",
    ),
    "not-gpu-related": (
        """
RuntimeError: unable to open shared memory object </torch_4242_1> in read-write mode: Too many \
open files (24)
""",
        """
the files are open
""",
    ),
    "rank-crashed": (
        """
traceback : Signal 11 (SIGSEGV) received by PID 4242
""",
        """
a traceback of the last signal
""",
    ),
    "rank-crashed-elsewhere": (
        """
[3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value \
store by key '0', but store->get('0') got error: Connection reset by peer
""",
        """
Connection reset by peer while downloading from the mirror
""",
    ),
    "rank-hangs": (
        """
Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE) ran for 600071 ms
- To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
""",
        """
rank 3 joined the collective
""",
    ),
    "rank-missing": (
        """
RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: \
store_based_barrier_key:1 (world_size=4, worker_count=2, timeout=0:30:00)
""",
        """
world_size=4, worker_count=4
""",
    ),
    "ranks-heterogeneous": (
        """
node1:1:1 [0] NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so
node2:1:1 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network \
plugin.
""",
        """
NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.
""",
    ),
    "rendezvous-failed": (
        """
[W socket.cpp:663] [c10d] The client socket has timed out after 300000ms while trying to \
connect to (10.0.0.1, 29500).
""",
        """
OSError: [Errno 98] error while attempting to bind to 7860 by gradio: address already in use
""",
    ),
}
