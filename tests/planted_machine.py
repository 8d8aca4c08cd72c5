"""A machine in which private values stand wherever they stand in real ones."""

from typing import Any

import machine_files

from gpucheck.machine import Identity, RecordedHost
from gpucheck.machine.record_folder import RecordedCommand

USER = "fennimore"
PRIVATE = (
    USER, "sparrowhawk", "velden", "tannhauser", "heimdall", "hmoss", "pr0xYpw", "10.77.4", "91c4",
    "9b1f3c2a", "q1W2e3R4", "LkJhGfDs", "ZzTy7Wm", "aB3dE5fG", "Vermeer", "bkramer", "Tr0ub4dor",
    "quokka", "a4:bf:01", "K7MDENG", "hunter22x", "1650921034417",
)  # fmt: skip
"""Of each private value a part that nothing else contains."""
UUID = "GPU-9b1f3c2a-77de-4e0b-a1f4-3c55ab01de92"
LOG = f"""\
Mar  1 10:00:00 sparrowhawk kernel: NVRM: Xid (PCI:0000:65:00): 31, pid=7, Ch 00000008
quokka-n017:4471:4471 [0] NCCL WARN Connect to 10.77.4.21<51022> failed, a4:bf:01:2d:33:c1
inet6 fd3a:91c4:7e2b::1f, Serial Number : 1650921034417, UUID: {UUID}
HF_TOKEN=hf_LkJhGfDsAqWeRtYuIoPzXcVbNm, glpat-4Kq9ZzTy7WmXcVbNhGfD
export OPENAI_API_KEY=sk-proj-aB3dE5fG7hI9jK; aws_secret_access_key = wJalrX/K7MDENG/bPxRfiCY
postgres://svc_train:hunter22x@db07.velden-lab.nl/x --user bkramer --password Tr0ub4dor-and-3
Author: Annelies Vermeer <annelies.vermeer@velden-lab.nl>
(base) {USER}@sparrowhawk:~/heimdall$ python /data/tannhauser/heimdall/train.py
"""
_SECRET_SETTINGS = {
    "MASTER_ADDR": "quokka-n017.cluster.velden-lab.nl",
    "NCCL_NET": "hf_LkJhGfDsAqWeRtYuIoPzXcVbNm",
    "LD_LIBRARY_PATH": f"/data/tannhauser/lib:/home/{USER}/heimdall/lib",
    "PYTHONPATH": "/data/heimdall",
    "CUDA_VISIBLE_DEVICES": UUID,
    "HTTPS_PROXY": "http://hmoss:pr0xYpw@proxy.velden-lab.nl:3128",
}
_CONDARC = """\
channels:
  - https://conda.velden-lab.nl/t/ab-q1W2e3R4-00/visionteam
  - tannhauser-ml
  - conda-forge
"""


def host() -> RecordedHost:
    """Return the door to this machine, which is like one of the test machines."""
    record = machine_files.copied("conda-cpu-build-mirrors")
    for name in record.__struct_fields__:
        setattr(record, name, _renamed(getattr(record, name)))
    record.identity = Identity(
        os="linux", machine="x86_64", release="6.8.0-60-generic", version="#63-Ubuntu SMP",
        node="sparrowhawk.velden-lab.nl", uid=1000, groups=(1000, 44), user=USER,
        home=f"/home/{USER}", cwd=f"/home/{USER}/heimdall",
    )  # fmt: skip
    record.env |= _SECRET_SETTINGS
    meta = f"/home/{USER}/miniforge3/envs/train/conda-meta"
    lines = enumerate(LOG.splitlines(), 1)
    record.files |= {
        "/dev/kmsg": "".join(f"3,{at},{at},-;NVRM: {line}\n" for at, line in lines).encode(),
        "/etc/pip.conf": b"[global]\nindex-url = https://ci:q1W2e3R4@pypi.velden-lab.nl/simple/\n",
        f"/home/{USER}/.condarc": _CONDARC.encode(),
        f"{meta}/pytorch-2.8.0-cpu_generic_py311_h1234567_2.json": (
            b'{"build": "cpu_generic_py311_h1234567_2", "channel": '
            b'"https://conda.velden-lab.nl/tannhauser-ml/linux-64"}'
        ),
    }
    record.problems.pop("/dev/kmsg")
    failed = RecordedCommand(status=255, out=LOG)
    query = "/usr/bin/nvidia-smi --query-gpu=driver_version,name --format=csv,noheader"
    record.commands |= {query: failed, "/usr/bin/nvidia-smi": failed}
    return RecordedHost(record)


def _renamed(value: Any) -> Any:  # noqa: ANN401  # what a record holds
    if isinstance(value, dict):
        return {_renamed(key): _renamed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_renamed(item) for item in value])
    if isinstance(value, bytes):
        return value.replace(b"/home/ana", f"/home/{USER}".encode())
    return value.replace("/home/ana", f"/home/{USER}") if isinstance(value, str) else value
