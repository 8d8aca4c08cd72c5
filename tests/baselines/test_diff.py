import json
import time

from rules_support import snapshot

from gpucheck.baselines.diff import Change, as_json, compare, render
from gpucheck.engine import judge_machine
from gpucheck.facts import Section
from gpucheck.facts.driver import GpuProcess, KernelLog, Nvml, NvmlGpu, XidEvent
from gpucheck.facts.libraries import CudaLibraries, CudaLibrary
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Environment, LimitsOfProcess, System
from gpucheck.facts.torch import (
    AlteredLibrary,
    Distribution,
    Interpreter,
    Packages,
    TorchBuild,
    WheelHashes,
)
from gpucheck.output.redact import redact
from gpucheck.tables import Tables


def diff(before: Section, after: Section) -> list[Change]:
    return compare(snapshot(before), snapshot(after))


def test_what_changes_by_itself_is_no_change() -> None:
    before = Nvml(
        gpus=[
            NvmlGpu(
                uuid="GPU-1",
                temperature_c=30,
                memory_used_bytes=1,
                power_w=60.5,
                throttle=["gpu-idle"],
                processes=[GpuProcess(pid=1)],
            )
        ],
        sources={"gpus": "NVML"},
    )
    after = Nvml(gpus=[NvmlGpu(uuid="GPU-1", temperature_c=70, memory_used_bytes=9, processes=[])])
    assert diff(before, after) == []
    assert (
        diff(LimitsOfProcess(shm_free_bytes=1, open_files=9), LimitsOfProcess(open_files=9)) == []
    )


def test_hashes_that_were_compared_in_one_run_only_are_no_change() -> None:
    asked = WheelHashes(altered=[], compared=5, left_out="")
    assert diff(asked, WheelHashes(problems={"*": "with -v only"})) == []
    assert diff(Request(hash_seconds=10.0), Request()) == []
    altered = AlteredLibrary(library="libcudnn.so.9", path="/a")
    assert diff(asked, WheelHashes(altered=[altered], compared=5, left_out="")) != []


def test_a_fact_that_changed() -> None:
    assert diff(Nvml(driver_release="535.54"), Nvml(driver_release="580.65")) == [
        Change(fact="nvml.driver_release", change="changed", before="535.54", after="580.65")
    ]


def test_unknown_is_told_from_a_value() -> None:
    old, new = TorchBuild(installed=True, cuda=None), TorchBuild(installed=True, cuda="")
    assert [change.change for change in diff(old, new)] == ["became known"]
    assert [change.change for change in diff(new, old)] == ["became unknown"]
    assert diff(old, old) == []


def test_a_probe_that_gave_no_answer_is_one_change() -> None:
    before = Nvml(library_found=True, init_code=0, driver_release="580.65", gpus=[NvmlGpu(index=0)])
    silent = Nvml(problems={"*": "timed-out: no answer in 30 s"})
    why = "timed-out: no answer in 30 s"
    assert diff(before, silent) == [
        Change(fact="nvml", change="became unknown", before="known", after=None, reason=why)
    ]
    assert diff(silent, before) == [
        Change(fact="nvml", change="became known", before=None, after="known", reason=why)
    ]


def test_things_are_matched_by_name_and_not_by_place() -> None:
    before = Nvml(gpus=[NvmlGpu(uuid="GPU-a", pcie_width=16), NvmlGpu(uuid="GPU-b", pcie_width=16)])
    after = Nvml(gpus=[NvmlGpu(uuid="GPU-b", pcie_width=8), NvmlGpu(uuid="GPU-c", pcie_width=16)])
    assert [(change.fact, change.change) for change in diff(before, after)] == [
        ("nvml.gpus[GPU-a]", "removed"),
        ("nvml.gpus[GPU-b].pcie_width", "changed"),
        ("nvml.gpus[GPU-c]", "added"),
    ]


def test_things_without_a_name_in_both_are_matched_by_another_name() -> None:
    before = Nvml(gpus=[NvmlGpu(pci_address="0000:01:00.0", lost=True, index=0)])
    after = Nvml(gpus=[NvmlGpu(pci_address="0000:01:00.0", lost=False, index=0, uuid="GPU-1")])
    assert [change.fact for change in diff(before, after)] == [
        "nvml.gpus[0000:01:00.0].lost",
        "nvml.gpus[0000:01:00.0].uuid",
    ]


def test_two_things_of_one_name_are_both_kept() -> None:
    before = Packages(distributions=[Distribution(project="torch", version="2.6.0")])
    after = Packages(
        distributions=[
            Distribution(project="torch", version="2.6.0"),
            Distribution(project="torch", version="2.9.1"),
        ]
    )
    assert diff(before, after) == [
        Change(
            fact="packages.distributions[torch #2]",
            change="added",
            before=None,
            after={"project": "torch", "version": "2.9.1"},
        )
    ]


def test_events_without_any_name_are_matched_by_place() -> None:
    event = XidEvent(xid=79, message="fallen off", seconds_ago=5.0)
    later = XidEvent(xid=79, message="fallen off", seconds_ago=90.0)
    assert diff(KernelLog(xids=[event]), KernelLog(xids=[later])) == []
    assert [c.fact for c in diff(KernelLog(xids=[]), KernelLog(xids=[event]))] == [
        "kernel_log.xids[0]"
    ]


def test_variables_by_name() -> None:
    before = Environment(variables={"CUDA_HOME": "/usr/local/cuda", "NCCL_DEBUG": "INFO"})
    after = Environment(variables={"NCCL_DEBUG": "WARN", "LD_PRELOAD": "libx.so"})
    assert diff(before, after) == [
        Change(
            fact="environment.variables.CUDA_HOME",
            change="removed",
            before="/usr/local/cuda",
            after=None,
        ),
        Change(
            fact="environment.variables.LD_PRELOAD", change="added", before=None, after="libx.so"
        ),
        Change(
            fact="environment.variables.NCCL_DEBUG", change="changed", before="INFO", after="WARN"
        ),
    ]


def test_a_redacted_snapshot_is_compared_with_a_redacted_one() -> None:
    sections = (
        System(os="linux", user="alice", home="/home/alice", hostname="box-7"),
        Interpreter(status="ok", executable="/home/alice/v/bin/python"),
        Nvml(gpus=[NvmlGpu(uuid="GPU-8f2c1c55-0b8d-4c39-9d2b-7f3f4c1e5a90")]),
    )
    plain = snapshot(*sections)
    assert compare(redact(plain), plain) == []
    assert compare(plain, redact(plain)) == []
    other = snapshot(*sections[1:], System(os="linux", user="alice", home="/srv/alice"))
    changes = compare(redact(plain), other)
    assert changes
    assert "alice" not in json.dumps(as_json(changes))


def test_the_json_form() -> None:
    changes = diff(TorchBuild(version="2.6.0"), TorchBuild(version="2.9.1"))
    assert as_json(changes) == {
        "schema": "gpucheck.diff/1",
        "changes": [
            {
                "fact": "torch.version",
                "change": "changed",
                "before": "2.6.0",
                "after": "2.9.1",
                "reason": "",
            }
        ],
    }


def overview(before: Snapshot, after: Snapshot, verbose: int = 0, *, color: bool = False) -> str:
    tables = Tables()
    return render(
        judge_machine(before, tables),
        judge_machine(after, tables),
        compare(before, after),
        verbose=verbose,
        color=color,
    )


BEFORE = snapshot(
    TorchBuild(installed=True, version="2.6.0", cuda="12.4", arch_list=["sm_50", "sm_90"]),
    CudaLibraries(libraries=[CudaLibrary(library="cudnn", version="9.1", path="/usr/cudnn.so.9")]),
    Interpreter(sys_path=["/a", "/b"], version="3.11.1"),
    Packages(distributions=[Distribution(project="torch", version="2.6.0", location="/a")]),
    Environment(variables={}),
    LimitsOfProcess(
        shm_total_bytes=67108864, memlock_bytes=-1, problems={"open_files": "not read"}
    ),
)
AFTER = snapshot(
    TorchBuild(installed=True, version="2.9.1\x1b[2J", cuda="12.8", arch_list=["sm_90", "sm_120"]),
    CudaLibraries(libraries=[]),
    Interpreter(sys_path=["/b", "/a"], version="3.12.1"),
    Packages(
        distributions=[
            Distribution(project="torch", version="2.9.1", location="/b"),
            Distribution(project="numpy", version="2.1.0", location="/b"),
        ]
    ),
    Environment(variables={"CUDA_VISIBLE_DEVICES": "1"}),
    LimitsOfProcess(shm_total_bytes=8589934592, open_files=1024, memlock_bytes=-1),
)


def test_what_matters_comes_first_and_the_rest_is_counted() -> None:
    assert overview(BEFORE, AFTER) == (
        "12 changes\n"
        "Verdict   UNKNOWN, as before\n"
        "PyTorch   2.6.0 (CUDA 12.4) -> 2.9.1\\x1b[2J (CUDA 12.8)\n"
        "Python    3.11.1 -> 3.12.1\n"
        "\n"
        "Packages: 2 changes\n"
        "  torch: 2.6.0 -> 2.9.1\n"
        "  numpy: new, 2.1.0\n"
        "\n"
        "Variables: 1 change\n"
        "  CUDA_VISIBLE_DEVICES: new, 1\n"
        "\n"
        "And 6 further changes: 2 of limits, 1 of cuda_libraries, 1 of interpreter, 1 of\n"
        "  packages, 1 of torch. -v shows all.\n"
    )


def test_with_v_every_change_is_shown() -> None:
    assert overview(BEFORE, AFTER, verbose=1).partition("Every change\n")[2] == (
        "  cuda_libraries.libraries[/usr/cudnn.so.9]: gone, was library=cudnn,\n"
        "    version=9.1, path=/usr/cudnn.so.9\n"
        "  environment.variables.CUDA_VISIBLE_DEVICES: new, 1\n"
        "  interpreter.version: was 3.11.1, is 3.12.1\n"
        "  interpreter.sys_path: the order is now /b, /a\n"
        "  limits.shm_total_bytes: was 64 MiB, is 8 GiB\n"
        "  limits.open_files: was unknown (not read), is 1024\n"
        "  packages.distributions[torch].version: was 2.6.0, is 2.9.1\n"
        "  packages.distributions[torch].location: was /a, is /b\n"
        "  packages.distributions[numpy]: new, project=numpy, version=2.1.0, location=/b\n"
        "  torch.version: was 2.6.0, is 2.9.1\\x1b[2J\n"
        "  torch.cuda: was 12.4, is 12.8\n"
        "  torch.arch_list: gone sm_50; new sm_120\n"
    )
    assert "\x1b[1m" in overview(BEFORE, AFTER, color=True)


def test_a_few_further_changes_are_shown_and_not_counted() -> None:
    assert overview(BEFORE, BEFORE) == "Nothing changed.\n"
    limits = LimitsOfProcess(shm_total_bytes=1, memlock_bytes=-1)
    text = overview(BEFORE, BEFORE.with_section(limits))
    assert "Further changes\n  limits.shm_total_bytes: was 64 MiB, is 1 byte" in text


def test_a_verdict_that_changed_says_why() -> None:
    missing = TorchBuild(installed=False, sources={"*": "no torch"})
    venv = Interpreter(status="ok", executable="/venv/bin/python", version="3.11.1")
    text = " ".join(overview(snapshot(venv), snapshot(venv, missing)).split())
    assert "Verdict UNKNOWN -> BROKEN: PyTorch is not installed in" in text
    assert "[torch-missing]" in text


def test_a_hundred_thousand_changes_are_told_apart_in_one_pass() -> None:
    changes = [
        Change(fact=f"environment.variables.V{at}", change="added", before=None, after="1")
        for at in range(100_000)
    ]
    changes.append(Change(fact="limits.memlock_bytes", change="changed", before=1, after=2))
    report = judge_machine(snapshot(Environment(variables={})), Tables())
    begun = time.process_time()
    text = render(report, report, changes)
    assert time.process_time() - begun < 10
    assert "and 99988 more: see -v" in text
    assert "limits.memlock_bytes" in text
