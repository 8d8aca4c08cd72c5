"""Which values of variables are settings: numbers, devices, and words that libraries document.

A variable is listed because its setting matters. If it holds anything else, a key that was pasted
into the wrong line for example, nobody can tell what that is.
"""

import re

_PARTS = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 4000
"""NVIDIA_REQUIRE_CUDA of an image for CUDA 13.0 has 2165 characters."""
_NUMBER = re.compile(
    r"0x[0-9a-fA-F]{1,16}|[0-9]{1,2}[af]|[0-9]{1,10}(?:[KMGTkmgt]i?[Bb]?|[mu]?s|gpu|_[0-9]{1,6})?"
)
_DEVICE = re.compile(
    r"(?:eth|en[a-z]?|eno|ens|enp|ib|ibp|ibs|bond|br|docker|lo|wl|wlan|wlp|veth|hsn|roce|rdma|mlx|mce"
    r"|bnxt_re|irdma|efa|rocep|net|mgmt|team|vlan|cni|cali|flannel|virbr|tun|tap|ipogif|opap|hfi"
    r"|sm_|compute_)(?:[0-9]{1,4}[a-z_]{0,6}){1,6}"
    r"|(?:[abhklmptv]|g[bh]|gtx|rtx|mi)[0-9]{1,4}[a-z]{0,2}"
)
"""Interfaces (``enp65s0f0np0``), adapters (``mlx5_bond_0``), architectures, models (``a100``)."""
_WORDS = frozenset(
    """
    true false yes no on off y n t f null none all void auto default unset enable enabled disable
    disabled
    lazy eager pci_bus_id fastest_first nodevfiles
    version warn info trace abort error debug detail verbose init coll p2p shm net graph tuning env
    alloc call proxy nvls bootstrap reg profile ras
    ring tree collnet collnetdirect collnetchain collnet_direct collnet_chain nvlstree pat simple
    ll ll128 loc nvl pix pxb phb node sys group parallel process af_inet af_inet6
    ib socket gpudirect aws libfabric ofi rccl ucx sharp spcx gin tuner plugin file
    docker0 lo eth ib mlx bond ens eno enp en wl roce hsn efa
    native backend cudamallocasync expandable_segments max_split_size_mb roundup_power2_divisions
    roundup_bypass_threshold_mb garbage_collection_threshold pinned_use_cuda_host_register
    pinned_use_background_threads pinned_num_register_threads release_lock_on_cudamalloc
    graph_capture_record_stream_reuse per_process_memory_fraction large_segment_size_mb
    compute utility graphics video display ngx compat32
    cuda arch brand driver tesla geforce quadro quadrortx titan titanrtx grid nvs nvidia nvidiartx
    vapps vpc vcs vws vgaming cloudgaming unknown
    gpu gpus mig shard kepler maxwell pascal volta turing ampere ada hopper blackwell ptx rtx gtx
    docker podman oci lxc containerd crio singularity apptainer enroot pyxis wsl systemd nspawn
    stdout stderr
    """.split()  # noqa: SIM905  # a list of words is most readable as words
)


def is_setting(value: str) -> bool:
    """Whether a value consists of numbers, devices, and words that libraries document."""
    return len(value) <= _LONGEST and all(map(_is_part, _PARTS.split(value)))


def _is_part(part: str) -> bool:
    return (
        not part
        or part.lower() in _WORDS
        or _NUMBER.fullmatch(part) is not None
        or _DEVICE.fullmatch(part) is not None
    )
