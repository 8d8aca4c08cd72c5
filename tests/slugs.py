"""Everything that gpucheck can name: what is there, and what was promised once."""

import re
from pathlib import Path

import gpucheck

_FOLDER = Path(gpucheck.__file__).parent / "findings"
_HEADER = re.compile(r'^\w+ = Rule\(\s*"([a-z0-9-]+)"', re.MULTILINE)
SLUGS = frozenset(
    slug
    for file in _FOLDER.glob("*.py")
    for slug in _HEADER.findall(file.read_text(encoding="utf-8"))
)
"""Every finding, by its header; nothing is imported."""
PUBLISHED = frozenset(
    [
        "no-nvidia-gpu",
        "driver-missing",
        "kernel-module-not-loaded",
        "driver-library-mismatch",
        "driver-too-old",
        "driver-dropped-gpu",
        "device-nodes-missing",
        "device-permission",
        "fabric-manager-down",
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
        "forward-compat-unsupported",
        "libcuda-stub-loaded",
        "wsl-driver-problem",
        "container-no-gpu",
        "container-cuda-requirement",
        "visible-devices-hides-gpus",
        "mig-misconfigured",
        "compute-mode-exclusive",
        "driver-branch-end-of-life",
        "pcie-link-degraded",
        "gpu-memory-pending-repair",
        "thermal-or-power-throttle",
        "torch-missing",
        "torch-cpu-only",
        "torch-rocm-or-other-build",
        "gpu-too-new-for-torch",
        "gpu-too-old-for-torch",
        "torch-python-unsupported",
        "torch-companion-mismatch",
        "torch-mixed-install",
        "torch-import-broken",
        "numpy-abi-mismatch",
        "system-library-too-old",
        "cudnn-missing",
        "cudnn-version-mismatch",
        "cuda-library-conflict",
        "cuda-library-missing",
        "nvidia-wheel-mismatch",
        "toolkit-missing",
        "toolkit-torch-mismatch",
        "toolkit-gpu-unsupported",
        "host-compiler-unsupported",
        "extension-abi-mismatch",
        "extension-gpu-unsupported",
        "extension-source-too-old",
        "compiler-missing",
        "out-of-memory",
        "gpu-memory-held",
        "shm-too-small",
        "cudnn-runtime-failure",
        "cublas-runtime-failure",
        "wrong-result",
        "selftest-failed",
        "gpu-slow",
        "host-out-of-memory",
        "application-bug",
        "not-gpu-related",
        "nccl-timeout",
        "nccl-network-interface",
        "nccl-infiniband",
        "nccl-p2p-broken",
        "nccl-transport-broken",
        "nccl-duplicate-gpu",
        "nccl-version-mismatch",
        "nccl-missing",
        "rendezvous-failed",
        "rank-missing",
        "rank-hangs",
        "rank-crashed",
        "rank-crashed-elsewhere",
        "ranks-heterogeneous",
        "link-slow",
        "requirement-not-met",
        "nvlink-down",
        "memlock-too-low",
        "newer-than-tables",
        "probe-timed-out",
        "probe-crashed",
    ]
)
"""Slugs are a contract: whoever filters by one of these must go on getting an answer."""
