"""Texts that point to nccl-network-interface."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="nccl-network-interface",
    zh="NCCL/Gloo 使用的网卡不对，或节点之间连不通",
    signatures=(
        Signature(
            name="connect-failed",
            literal="failed",
            pattern=(
                r"(?:NCCL WARN|socketStartConnect|ncclSocket\w{1,20}|include/socket\.h|"
                r"misc/socket\.cc).{0,40}Connect to (?P<peer>\S{1,60}) failed "
                r"?:? (?P<why>Connection refused|No route to host|Network is "
                r"unreachable|Connection timed out|Software caused connection "
                r"abort|Operation timed out|Invalid argument|Cannot assign "
                r"requested address)"
            ),
            weight=76,
            says="NCCL cannot connect to {peer}: {why}",
            sample=(
                "include/socket.h:400 NCCL WARN Connect to 172.17.0.9<40001> "
                "failed : Connection refused"
            ),
            other="NCCL INFO Connected all rings",
            beside=("connect to",),
        ),
        Signature(
            name="connect-returned",
            literal="call to connect",
            pattern=(
                r"Call to connect(?: to \S{1,60})? (?:returned|failed).{0,10}(?P<why>Connection "
                r"refused|No route to host|Network is unreachable|Connection "
                r"timed out|Connection reset by peer|timed out)"
            ),
            weight=68,
            says="NCCL cannot connect to its peer: {why}",
            sample="NCCL INFO Call to connect returned Connection timed out, retrying",
            other="call to connect",
        ),
        Signature(
            name="no-interface",
            literal="interface found",
            pattern=(
                r"(?:Bootstrap|NET/Socket|NCCL WARN).{0,40}no (?:socket |usable "
                r")?(?:interface|network interface)s? (?:found|in the same)"
            ),
            weight=92,
            says="NCCL finds no network interface to use",
            sample="NCCL WARN Bootstrap : no socket interface found",
            other="NCCL INFO Bootstrap : Using eth0",
            stands=True,
        ),
        Signature(
            name="no-interface-name",
            literal="socket interface",
            pattern=(
                r"no (?:usable )?socket interface found|No interface found "
                r"in the same subnet"
            ),
            weight=92,
            says="NCCL finds no network interface to use",
            sample="NCCL WARN NET/Socket : No usable socket interface found",
            other="socket interface eth0",
            stands=True,
        ),
        Signature(
            name="gloo-address",
            literal="unable to find address for",
            pattern=r"unable to find (?:address|interface) for: \S{1,60}",
            weight=92,
            says="Gloo finds no such network interface",
            sample=(
                "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/de"
                "vice.cc:83] ifa != nullptr. Unable to find address for: eth0"
            ),
            other="find address",
            stands=True,
        ),
        Signature(
            name="gloo-mesh",
            literal="connectfullmesh failed",
            pattern=r"connectFullMesh failed",
            weight=86,
            says=(
                "Gloo's ranks cannot connect: a host name leads to an address "
                "that others cannot reach"
            ),
            sample=(
                "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/trans"
                "port/tcp/pair.cc:144] no error"
            ),
            other="connectFullMesh",
            stands=True,
        ),
        Signature(
            name="gloo-hostname",
            literal="makedeviceforhostname",
            pattern=r"makeDeviceForHostname\(\): unsupported gloo device|makeDeviceForInterface",
            weight=84,
            says="Gloo finds no address for this host's name",
            sample="RuntimeError: makeDeviceForHostname(): unsupported gloo device",
            other="hostname",
        ),
        Signature(
            name="loopback",
            literal="using [0]lo:",
            pattern=(
                r"Using \[0\]lo:127\.|NET/Socket : Using \[0\]lo:|Bootstrap "
                r": Using (?:\[0\])?lo:127\."
            ),
            weight=72,
            says="NCCL uses the loopback interface, which other nodes cannot reach",
            sample="NCCL INFO NET/Socket : Using [0]lo:127.0.0.1<0>",
            other="NCCL INFO Using [0]eth0:10.0.0.1",
            beside=("node|nnodes|master|hosts|-h ",),
        ),
        Signature(
            name="bootstrap-lo",
            literal="bootstrap : using lo:",
            pattern=r"Bootstrap : Using lo:127\.",
            weight=72,
            says="NCCL uses the loopback interface, which other nodes cannot reach",
            sample="NCCL INFO Bootstrap : Using lo:127.0.0.1<0>",
            other="NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
            beside=("node|nnodes|master|hosts|-h ",),
        ),
        Signature(
            name="no-route",
            literal="no route to host",
            pattern=(
                r"^(?!.{0,600}(?:client socket|TCPStore|rendezvous)).{0,600}?"
                r"(?:NCCL|gloo|c10d|socket|connect).{0,200}no route to host"
            ),
            weight=84,
            says="There is no route to the other node: a firewall or the wrong interface",
            sample=(
                "NCCL WARN socketStartConnect: Connect to 10.0.0.2<41000> failed : No route to host"
            ),
            other="ping: no route to host",
        ),
        Signature(
            name="dev-mismatch",
            literal="nccl_socket_ifname",
            pattern=(
                r"NCCL_SOCKET_IFNAME\b.{0,80}(?:fix|solv|work|wrong|different|"
                r"help|必须|解决|correct|needed|should)"
            ),
            weight=70,
            says="The interface of NCCL_SOCKET_IFNAME is not the right one",
            sample="setting NCCL_SOCKET_IFNAME=eth1 fixed it",
            other="NCCL_SOCKET_IFNAME=eth0",
        ),
        Signature(
            name="peer-addr",
            literal="peer",
            pattern=(
                r"(?:NCCL WARN )?(?:NET/Socket ?:? )?(?:Unable|unable|failed|"
                r"Failed) to connect to (?:peer|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})"
            ),
            weight=64,
            says="NCCL cannot reach its peer",
            sample="NCCL WARN Unable to connect to peer",
            other="connect to peer",
        ),
        Signature(
            name="socket-system",
            literal="system call",
            pattern=(
                r"unhandled system error|ncclSystemError: System call \(e\.g\. "
                r"socket, malloc\)"
            ),
            weight=58,
            says="A system call of NCCL failed, most often on the network",
            sample=(
                "ncclSystemError: System call (e.g. socket, malloc) or external "
                "library call failed or device error."
            ),
            other="system call",
        ),
        Signature(
            name="system-error",
            literal="unhandled system error",
            pattern=r"unhandled system error",
            weight=56,
            says="A system call of NCCL failed, most often on the network",
            sample=(
                "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:825, unhandled "
                "system error, NCCL version 2.7.8"
            ),
            other="system error",
        ),
        Signature(
            name="family",
            literal="neither af_inet",
            pattern=r"connecting to address.{0,12} with family \d{1,5} is neither AF_INET",
            weight=82,
            says=(
                "NCCL has no usable address: NCCL_SOCKET_IFNAME names an interface "
                "that is not there"
            ),
            sample=(
                "ncclSocketInit: connecting to address  with family 12345 "
                "is neither AF_INET(2) nor AF_INET6(10)"
            ),
            other="AF_INET",
            beside=("nccl_socket_ifname",),
        ),
        Signature(
            name="unreachable",
            literal="network is unreachable",
            pattern=r"network is unreachable",
            weight=74,
            says="A node cannot reach the other's address: the wrong interface",
            sample="it ends with Network is unreachable",
            other="unreachable code",
            beside=("nccl|gloo",),
        ),
        Signature(
            name="refused-nccl",
            literal="connection refused",
            pattern=r"connection refused",
            weight=62,
            says="A node cannot connect to the other's address",
            sample="NCCL INFO Call to connect returned Connection refused, retrying",
            other="refused",
            beside=("nccl info|nccl warn|net/socket",),
            unless=("tcpstore",),
        ),
        Signature(
            name="loopback-old",
            literal="using interface lo",
            pattern=r"Using interface lo:127\.",
            weight=74,
            says="NCCL uses the loopback interface, which other nodes cannot reach",
            sample="NCCL INFO NET : Using interface lo:127.0.0.1<0>",
            other="Using interface eth0",
        ),
        Signature(
            name="loopback-any",
            literal="lo:127.0.0.1",
            pattern=r"Using .{0,20}lo:127\.0\.0\.1",
            weight=70,
            says="NCCL uses the loopback interface, which other nodes cannot reach",
            sample="NCCL INFO NET/Socket : Using [0]lo:127.0.0.1<0>",
            other="eth0",
            beside=("machines|nodes|nnodes|host|slurm|horovod|word:ray",),
            unless=("single node", "single-node", "only one node", "nnodes 1", "nnodes=1"),
        ),
        Signature(
            name="virtual",
            literal="using",
            pattern=(
                r"(?:NET/Socket|Bootstrap) : Using .{0,200}(?:docker0|virbr\d|"
                r"veth\w{4,12}|br-\w{6,14}|tun\d|tailscale\d|zt\w{6,12})[:<]"
            ),
            weight=70,
            says="NCCL uses a virtual interface that other nodes cannot reach",
            sample="NCCL INFO NET/Socket : Using [0]docker0:172.17.0.1<0>",
            other="using eth0",
            unless=("using network ib",),
        ),
        Signature(
            name="ifname-words",
            literal="ifname",
            pattern=r"(?:NCCL|GLOO|TP)_SOCKET_IFNAME",
            weight=62,
            says="The network interface that NCCL or Gloo uses is in question",
            sample="export NCCL_SOCKET_IFNAME=eth1 does not help",
            other="IFNAME",
            beside=(
                (
                    "unhandled system error|connection refused|timed out|"
                    "no route|unreachable|unable to find|invalid|not found|"
                    "not exist|wrong"
                ),
            ),
        ),
        Signature(
            name="firewall",
            literal="firewall",
            pattern=r"firewall",
            weight=66,
            says="A firewall stands between the nodes",
            sample="the firewall blocks the ports",
            other="a wall of fire",
            beside=("nccl|gloo|torchrun|torch.distributed|rdzv",),
        ),
        Signature(
            name="ipv6-link",
            literal="fe80::",
            pattern=r"Using .{0,80}fe80::",
            weight=60,
            says="NCCL uses a link-local address",
            sample="NCCL INFO NET/Socket : Using [0]veth1:fe80::1%veth1<0>",
            other="fe80:: is link-local",
            beside=("nccl warn|timed out|refused|unreachable|word:hang|word:hangs|word:hanging",),
        ),
        Signature(
            name="wrong-address",
            literal="172.17.0.",
            pattern=r"172\.17\.0\.\d{1,3}",
            weight=60,
            says="An address of docker's own bridge is used between hosts",
            sample="NCCL INFO NET/Socket : Using [0]eth0:172.17.0.9<0>",
            other="172.18.0.1",
            beside=(
                "nccl|gloo|master",
                "timeout|timed out|refused|unreachable|word:hang|word:hangs|word:hanging|stuck",
                "node|host|machine",
            ),
        ),
        Signature(
            name="ssh-nodes",
            literal="nodes",
            pattern=(
                r"(?:two|2|several|multi(?:ple)?|different) (?:nodes|machines|"
                r"hosts|servers|computers)"
            ),
            weight=44,
            says="Nodes do not reach one another",
            sample="two nodes, the second hangs",
            other="nodes",
            beside=(
                "nccl|gloo|torchrun|torch.distributed|horovod|ddp",
                (
                    "word:hang|word:hangs|word:hanging|stuck|timeout|"
                    "timed out|refused|freez|not connect|unreachable"
                ),
            ),
        ),
        Signature(
            name="no-route-cut",
            literal="no route to",
            pattern=r"failed ?:? No route to",
            weight=82,
            says="There is no route to the other node: a firewall or the wrong interface",
            sample="NCCL WARN Net : Connect to 192.168.7.8<40002> failed : No route to",
            other="no route to work",
        ),
        Signature(
            name="gloo-family",
            literal="ss_family",
            pattern=(
                r"ss1?\.ss_family ==? ?ss2?\.ss_family|\bss_family\b.{0,40}\b(?:2 vs\.? 10|10 "
                r"vs\.? 2)\b"
            ),
            weight=93,
            says="One rank uses IPv4 and another IPv6: name the interface, or use one of them only",
            sample=(
                "RuntimeError: [enforce fail at pair.cc:210] ss1.ss_family == ss2.ss_family. 10 "
                "vs 2"
            ),
            other="ss_family of a socket",
            stands=True,
        ),
        Signature(
            name="docker-bridge",
            literal="172.17.0.",
            pattern=(
                r"(?:Bootstrap : Using|NET/Socket : Using) (?:\[\d\])?\w{2,12}:172\.17\.0\.\d{1,3}<"
            ),
            weight=66,
            says="NCCL uses the address of a container's bridge, which other machines cannot reach",
            sample="NCCL INFO Bootstrap : Using eth0:172.17.0.2<0>",
            other="NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>",
            beside=(
                (
                    "multi-node|multi node|multinode|multi-machine|two machines|two nodes|2 nodes|"
                    "2 machines|nnodes|node_rank|node-rank|hostfile|between nodes|多机|两台|跨机"
                ),
            ),
            unless=("using network ib", "no space left"),
        ),
        Signature(
            name="gloo-interface",
            literal="unable to find interface for",
            pattern=r"unable to find interface for:",
            weight=84,
            says="gloo finds no network interface for the address of this host",
            sample="RuntimeError: ifa != nullptr. Unable to find interface for: 10.0.0.9",
            other="unable to find interface for the printer",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Name the interface that leads to the other nodes, on every "
                "node, and open the ports between them."
            ),
            zh="在每个节点上指定通往其他节点的网卡，并放行节点间端口。",
            commands=(
                "ip route get ADDRESS_OF_THE_OTHER_NODE",
                "export NCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0",
            ),
        ),
    ),
)
