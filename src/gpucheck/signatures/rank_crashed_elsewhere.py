"""Texts that point to rank-crashed-elsewhere."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="rank-crashed-elsewhere",
    zh="这里的错误只是另一个 rank 失败的回声",
    signatures=(
        Signature(
            name="store-get",
            literal="retrieving nccluniqueid",
            pattern=(
                r"setting up NCCL communicator and retrieving ncclUniqueId "
                r"from \[0\] via c10d key-value store"
            ),
            weight=80,
            says="This rank waited for rank 0, which had died or hung before",
            sample=(
                "[3] is setting up NCCL communicator and retrieving ncclUniqueId "
                "from [0] via c10d key-value store by key '0', but store->get('0') "
                "got error: Connection reset by peer"
            ),
            other="ncclUniqueId",
        ),
        Signature(
            name="remote",
            literal="ncclremoteerror",
            pattern=r"ncclRemoteError",
            weight=64,
            says="Another rank died first; this is its echo",
            sample=(
                "ncclRemoteError: A call failed possibly due to a network "
                "error or a remote process exiting prematurely."
            ),
            other="remote error",
        ),
        Signature(
            name="remote-exited",
            literal="remote process exited or there was a network error",
            pattern=r"remote process exited or there was a network error",
            weight=64,
            says="Another rank died first; this is its echo",
            sample="NCCL error: remote process exited or there was a network error, NCCL 2.18.1",
            other="there was a network error",
        ),
        Signature(
            name="remote-closed",
            literal="connection closed by remote peer",
            pattern=r"connection closed by remote peer",
            weight=62,
            says="Another rank died first; this is its echo",
            sample="NCCL WARN Net : Connection closed by remote peer host2<41000>",
            other="connection closed",
        ),
        Signature(
            name="reset",
            literal="connection reset by peer",
            pattern=(
                r"(?:NCCL|gloo|c10d|TCPStore|unbound_buffer|pair\.cc|store|"
                r"process ?group).{0,200}connection reset by peer"
            ),
            weight=62,
            says="Another rank died first; this is its echo",
            sample=(
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:589] "
                "Read error [10.0.0.2]:41000: Connection reset by peer"
            ),
            other="connection reset by peer of the mirror",
        ),
        Signature(
            name="gloo-closed",
            literal="connection closed by peer",
            pattern=r"(?:gloo|pair\.cc).{0,200}connection closed by peer",
            weight=66,
            says="Another rank died first; this is its echo",
            sample=(
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] "
                "Connection closed by peer [127.0.0.1]:33417"
            ),
            other="closed by peer",
        ),
        Signature(
            name="zero-bytes",
            literal="failed to recv, got 0 bytes",
            pattern=r"failed to recv, got 0 bytes",
            weight=72,
            says="Rank 0, which holds the store, died first",
            sample="torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
            other="recv",
        ),
        Signature(
            name="shutdown",
            literal="did the remote server shutdown or crash",
            pattern=r"did the remote server shutdown or crash",
            weight=72,
            says="Rank 0, which holds the store, died first",
            sample=(
                "Failed to recv, got 0 bytes. Connection was likely closed. "
                "Did the remote server shutdown or crash?"
            ),
            other="remote server",
        ),
        Signature(
            name="sendbytes",
            literal="sendbytes failed",
            pattern=r"sendBytes failed on SocketImpl.{0,120}(?:Broken pipe|Connection reset)",
            weight=70,
            says="Rank 0, which holds the store, died first",
            sample=(
                "[c10d] sendBytes failed on SocketImpl(fd=3, addr=[localhost]:40000, "
                "remote=[localhost]:29500): Broken pipe"
            ),
            other="sendBytes",
        ),
        Signature(
            name="aborted",
            literal="communicator was aborted",
            pattern=r"NCCL communicator was aborted",
            weight=58,
            says="NCCL was aborted after another rank's failure",
            sample="RuntimeError: NCCL communicator was aborted on rank 1.",
            other="aborted",
        ),
        Signature(
            name="dump",
            literal="another rank",
            pattern=(
                r"(?:another rank|other rank|remote rank|peer rank).{0,60}(?:report|"
                r"fail|error|died|crash|abort|timeout)"
            ),
            weight=50,
            says="Another rank failed first",
            sample=(
                "Received a dump signal due to a collective timeout from another "
                "rank reporting failure"
            ),
            other="another rank",
        ),
        Signature(
            name="child",
            literal="childfailederror",
            pattern=r"ChildFailedError",
            weight=30,
            says="A rank failed; the launcher only reports it",
            sample="torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
            other="child",
        ),
        Signature(
            name="launcher-failed",
            literal="multiprocessing.api:failed",
            pattern=r"multiprocessing\.api:failed \(exitcode: -?\d{1,3}\) local_rank: \d",
            weight=30,
            says="A rank failed; the launcher only reports it",
            sample=(
                "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) "
                "local_rank: 0 (pid: 4242) of binary: /usr/bin/python3"
            ),
            other="multiprocessing.api:failed",
        ),
        Signature(
            name="sigterm",
            literal="closing signal sigterm",
            pattern=r"Sending process \d{1,9} closing signal SIGTERM",
            weight=30,
            says="The launcher ends the other ranks after one failed",
            sample=(
                "WARNING:torch.distributed.elastic.multiprocessing.api:Sending "
                "process 4242 closing signal SIGTERM"
            ),
            other="closing signal",
        ),
        Signature(
            name="exit-neg15",
            literal="-15",
            pattern=r"exit ?code\s{0,3}: ?-15\b",
            weight=54,
            says="This rank was ended by the launcher after another had failed",
            sample="exitcode  : -15 (pid: 4242)",
            other="exit code 15",
            beside=("code",),
        ),
        Signature(
            name="peer-gone",
            literal="peer",
            pattern=(
                r"(?:NCCL|gloo|rank|c10d).{0,120}(?:remote (?:peer|process|"
                r"rank|side)|peer).{0,40}(?:closed|exited|gone|died|reset|unreachable|"
                r"disconnected)"
            ),
            weight=54,
            says="Another rank died first; this is its echo",
            sample="NCCL: remote process exited or there was a network error, peer closed",
            other="peer review",
        ),
        Signature(
            name="broken-pipe",
            literal="broken pipe",
            pattern=r"(?:c10d|TCPStore|store|socket|NCCL).{0,200}broken pipe",
            weight=56,
            says="Rank 0, which holds the store, died first",
            sample="[c10d] store: Broken pipe",
            other="broken pipe of the sink",
        ),
        Signature(
            name="async-error",
            literal="ncclcommgetasyncerror",
            pattern=(
                r"ncclCommGetAsyncError|async(?:hronous)? (?:NCCL )?error.{0,60}(?:another|"
                r"remote|rank)"
            ),
            weight=52,
            says="NCCL reports an error of another rank",
            sample="Rank 1: ncclCommGetAsyncError: asynchronous NCCL error of another rank",
            other="async",
        ),
    ),
    cures=(
        Cure(
            text=(
                'Read the output of the rank that failed first (torchrun\'s table "Root Cause").'
            ),
            zh="查看最先失败的 rank 的输出（torchrun 的 Root Cause 表）。",
            commands=("torchrun --redirects 3 --log-dir logs SCRIPT",),
        ),
    ),
)
