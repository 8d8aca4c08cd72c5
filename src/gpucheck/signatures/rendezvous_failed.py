"""Texts that point to rendezvous-failed."""

from gpucheck.signatures.base import Cure, Signature, Signs

_ABOUT_TORCH = (
    (
        "torch|nccl|cuda|gpu|c10d|rdzv|master_port|master_addr|"
        "tcpstore|server socket has failed|deepspeed|accelerate|"
        "word:rank|word:ranks"
    ),
)

SIGNS = Signs(
    slug="rendezvous-failed",
    zh="各 rank 没有汇合成功（端口、地址或主机名的问题）",
    signatures=(
        Signature(
            name="in-use",
            literal="address already in use",
            pattern=(
                r"(?:bind|listen|socket|EADDRINUSE|errno: ?98|errno: ?10048|"
                r"TCPStore|port).{0,200}address already in use|address already "
                r"in use"
            ),
            weight=87,
            says="The port of the rendezvous is taken",
            sample=(
                "The server socket has failed to bind to [::]:29500 (errno: "
                "98 - Address already in use)."
            ),
            other="address in use",
            beside=_ABOUT_TORCH,
            unless=(
                "uvicorn",
                "gradio",
                "jupyter",
                "7860",
            ),
        ),
        Signature(
            name="eaddrinuse",
            literal="eaddrinuse",
            pattern=r"EADDRINUSE",
            weight=87,
            says="The port of the rendezvous is taken",
            sample=(
                "DistNetworkError: The server socket has failed to listen "
                "on any local network address. port: 29500, useIpv6: true, "
                "code: -98, name: EADDRINUSE"
            ),
            other="EADDR",
            beside=_ABOUT_TORCH,
        ),
        Signature(
            name="listen",
            literal="failed to listen on any local network",
            pattern=r"server socket has failed to listen on any local network",
            weight=86,
            says="The rendezvous cannot listen on its port",
            sample=(
                "RuntimeError: The server socket has failed to listen on any local network address."
            ),
            other="listen",
        ),
        Signature(
            name="client-timeout",
            literal="the client socket has timed out",
            pattern=(
                r"client socket has timed out after \d{1,9}\s?ms while trying "
                r"to connect to \((?P<host>[^,()]{1,80}), (?P<port>\d{1,5})\)"
            ),
            weight=86,
            says="The rendezvous at {host}:{port} was not reached in time",
            sample=(
                "The client socket has timed out after 300000ms while trying "
                "to connect to (10.0.0.1, 29500)."
            ),
            other="socket has timed out",
        ),
        Signature(
            name="client-failed",
            literal="client socket has failed to connect",
            pattern=r"client socket has failed to connect to",
            weight=74,
            says="The rendezvous address is not reached",
            sample=(
                "[W socket.cpp:663] [c10d] The client socket has failed to "
                "connect to [::ffff:10.0.0.1]:29500 (errno: 110 - Connection "
                "timed out)."
            ),
            other="client socket",
        ),
        Signature(
            name="server-timeout",
            literal="server socket on",
            pattern=r"server socket on .{1,80} has timed out, will retry",
            weight=76,
            says="The rendezvous address is not reached",
            sample=(
                "[c10d] The server socket on [::ffff:10.9.8.7]:40000 has timed out, will retry."
            ),
            other="server socket",
        ),
        Signature(
            name="connect-timeout",
            literal="connect() timed out",
            pattern=r"connect\(\) timed out\. Original timeout was",
            weight=86,
            says="The rendezvous was not reached in time",
            sample="RuntimeError: connect() timed out. Original timeout was 60000 ms.",
            other="connect timed",
        ),
        Signature(
            name="c10d-store",
            literal="rendezvousconnectionerror",
            pattern=r"RendezvousConnectionError",
            weight=86,
            says="The rendezvous store is not reached",
            sample=(
                "RendezvousConnectionError: The connection to the C10d store "
                "has failed. See inner exception for details."
            ),
            other="rendezvous",
        ),
        Signature(
            name="c10d-timeout",
            literal="rendezvoustimeouterror",
            pattern=r"RendezvousTimeoutError",
            weight=84,
            says="Not all nodes came to the rendezvous in time",
            sample="torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
            other="rendezvous",
        ),
        Signature(
            name="closed",
            literal="rendezvousclosederror",
            pattern=r"RendezvousClosedError",
            weight=78,
            says=(
                "The rendezvous is closed: a node came too late, or an old job's id is used again"
            ),
            sample="torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
            other="rendezvous",
        ),
        Signature(
            name="clients-joined",
            literal="clients joined",
            pattern=(
                r"Timed out after \d{1,6} seconds waiting for clients\. (?P<joined>\d{1,6}/\d{1,"
                r"6}) clients joined"
            ),
            weight=88,
            says="Only {joined} ranks came to the store in time",
            sample=(
                "torch.distributed.DistStoreError: Timed out after 301 seconds "
                "waiting for clients. 1/2 clients joined."
            ),
            other="clients joined us",
        ),
        Signature(
            name="store-barrier",
            literal="store based barrier",
            pattern=(
                r"Timed out initializing process group in store based barrier "
                r"on rank:? \d{1,6}"
            ),
            weight=80,
            says="Not all ranks came to the store in time",
            sample=(
                "RuntimeError: Timed out initializing process group in store "
                "based barrier on rank: 0, for key: store_based_barrier_key:1 "
                "(world_size=4, worker_count=2, timeout=0:30:00)"
            ),
            other="barrier",
        ),
        Signature(
            name="resolve",
            literal="name resolution",
            pattern=(
                r"(?:temporary failure in name resolution|name or service not "
                r"known|gai error: -\d)"
            ),
            weight=84,
            says="The rendezvous host's name cannot be resolved",
            sample=(
                "[c10d] The IPv6 network addresses of (node0, 29500) cannot "
                "be retrieved (gai error: -3 - Temporary failure in name resolution)."
            ),
            other="name resolution",
            beside=(
                "c10d|master_addr|init_process_group|tcpstore|rdzv|torchrun|torch.distributed",
            ),
        ),
        Signature(
            name="gai",
            literal="cannot be retrieved",
            pattern=r"network addresses of \(.{1,80}\) cannot be retrieved",
            weight=84,
            says="The rendezvous host's name cannot be resolved",
            sample=(
                "[c10d] The IPv6 network addresses of (node0, 29500) cannot "
                "be retrieved (gai error: -2 - Name or service not known)."
            ),
            other="cannot be retrieved",
        ),
        Signature(
            name="hostname-client",
            literal="hostname of the client socket cannot be retrieved",
            pattern=r"hostname of the client socket cannot be retrieved",
            weight=60,
            says="A host's address has no name (a warning by itself)",
            sample="[c10d] The hostname of the client socket cannot be retrieved. err=-3",
            other="hostname",
        ),
        Signature(
            name="libuv",
            literal="use_libuv was requested",
            pattern=r"use_libuv was requested but PyTorch was build without libuv support",
            weight=88,
            says="This build (Windows) has no libuv for the store: set USE_LIBUV=0",
            sample=(
                "DistStoreError: use_libuv was requested but PyTorch was build "
                "without libuv support"
            ),
            other="libuv",
            stands=True,
            cures=(
                Cure(
                    text="Switch libuv off for the store, which this build does not have.",
                    zh="该版本没有 libuv，请为 store 关闭它。",
                    commands=("set USE_LIBUV=0",),
                ),
            ),
        ),
        Signature(
            name="env",
            literal="environment variable",
            pattern=(
                r"Error initializing torch\.distributed using env:// rendezvous: "
                r"environment variable (?P<variable>\w{1,30}) expected, but "
                r"not set"
            ),
            weight=86,
            says="{variable} is not set: the script was not started by a launcher",
            sample=(
                "ValueError: Error initializing torch.distributed using env:// "
                "rendezvous: environment variable RANK expected, but not set"
            ),
            other="environment variable",
            cures=(
                Cure(
                    text="Start the script with the launcher, which sets these variables.",
                    zh="用启动器启动脚本，它会设置这些变量。",
                    commands=("torchrun --nproc-per-node=gpu SCRIPT",),
                ),
            ),
        ),
        Signature(
            name="refused",
            literal="connection refused",
            pattern=(
                r"(?:TCPStore|c10d|store|rendezvous|torch/distributed|init_process_group).{0,200"
                r"}connection refused"
            ),
            weight=68,
            says="The rendezvous address refuses connections",
            sample="RuntimeError: [c10d - TCPStore] Connection refused",
            other="connection refused by the mail server",
        ),
        Signature(
            name="refused-near",
            literal="connection refused",
            pattern=r"connection refused",
            weight=62,
            says="The rendezvous address refuses connections",
            sample="RuntimeError: Connection refused",
            other="refused",
            beside=(
                (
                    "init_process_group|tcpstore|rendezvous|rdzv|torch.distributed.launch|"
                    "master_addr"
                ),
            ),
            unless=(
                "nccl warn",
                "nccl info",
            ),
        ),
        Signature(
            name="store-get",
            literal="socket timeout",
            pattern=(
                r"(?:store|TCPStore|init_process_group|torch\.distributed).{0,80}socket "
                r"timeout|RuntimeError: Socket Timeout"
            ),
            weight=58,
            says="The store was not reached in time",
            sample="RuntimeError: Socket Timeout",
            other="socket timeout of mysql",
        ),
        Signature(
            name="wait-keys",
            literal="wait timeout after",
            pattern=r"wait timeout after \d{1,9}ms, keys:",
            weight=66,
            says="A rank waits in the store for one that never came",
            sample=(
                "torch.distributed.DistStoreError: wait timeout after 600000ms, "
                "keys: /default_pg/0//cuda//0"
            ),
            other="wait timeout",
        ),
        Signature(
            name="words",
            literal="rendezvous",
            pattern=(
                r"rendezvous.{0,80}(?:fail|timeout|timed out|error|stuck|hang)|"
                r"(?:stuck|hang\w{0,2}|fail\w{0,2}).{0,60}(?:rendezvous|init_process_group)"
            ),
            weight=58,
            says="The ranks do not find one another",
            sample="the rendezvous timed out",
            other="rendezvous works",
        ),
        Signature(
            name="init-words",
            literal="init_process_group",
            pattern=(
                r"init_process_group.{0,120}(?:hang|stuck|timeout|timed out|"
                r"block|wait|卡)|(?:hang|stuck|卡).{0,80}init_process_group"
            ),
            weight=56,
            says="The ranks do not find one another",
            sample="it hangs in init_process_group",
            other="init_process_group(nccl)",
        ),
        Signature(
            name="tcpstore",
            literal="tcpstore",
            pattern=r"TCPStore.{0,120}(?:fail|timeout|timed out|error|refused|broken)",
            weight=60,
            says="The store of the rendezvous is not reached",
            sample="TCPStore timed out",
            other="TCPStore(",
        ),
        Signature(
            name="socket-c10d",
            literal="[c10d]",
            pattern=r"\[c10d\].{0,160}(?:failed|timed out|retry|refused|unreachable)",
            weight=62,
            says="The store of the rendezvous is not reached",
            sample="[c10d] The client socket has failed to connect to node0:29500",
            other="[c10d] ok",
        ),
    ),
    cures=(
        Cure(
            text="Check address, port and name from the other node; take a free port.",
            zh="在其他节点检查地址、端口和主机名；换一个空闲端口。",
            commands=(
                "getent hosts $MASTER_ADDR",
                "ss -ltn | grep 29500",
                "torchrun --master-port 29511 SCRIPT",
            ),
        ),
    ),
)
