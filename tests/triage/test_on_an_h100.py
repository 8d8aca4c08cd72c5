"""What programs printed on the one GPU that gpucheck has seen: when they ended well, and when not.

The files of ``on_an_h100`` are the real outputs of 27 November 2026, without UUIDs and the like;
``NAME`` in ``SLUG__NAME.txt`` says how the program was made to fail (``docs/evidence.md``).
"""

from pathlib import Path

from each import each

from gpucheck import triage
from gpucheck.facts.driver import Nvml

FOLDER = Path(__file__).parent / "on_an_h100"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.txt"))}
HEALTHY = "healthy_"


@each("name", [name for name in TEXTS if name.startswith(HEALTHY)])
def test_what_ended_well_raises_no_alarm(name: str) -> None:
    report = triage(TEXTS[name])
    assert (report.root_causes, report.standing) == ((), ())
    assert report.verdict in ("healthy", "unknown")


@each("name", [name for name in TEXTS if not name.startswith(HEALTHY)])
def test_what_failed_is_named(name: str) -> None:
    cause = name.partition("__")[0].replace("_", "-")
    assert triage(TEXTS[name]).root_causes == (cause,)


@each("name", ["healthy_smi_q", "healthy_x"])
def test_the_gpu_is_read(name: str) -> None:
    gpus = triage(TEXTS[name]).snapshot.get(Nvml).gpus or []
    assert len(gpus) == 1
    gpu = gpus[0]
    assert (gpu.device_name, gpu.pci_address) == ("NVIDIA H100 80GB HBM3", "0000:00:06.0")
    assert (gpu.power_limit_w, gpu.rows_failed, gpu.throttle) == (700.0, False, ["gpu-idle"])
