"""What the kernel, the fabric and other witnesses say: faults by name, and healthy logs in peace.

The lines follow the formats of Linux, NVIDIA's open kernel modules, the Fabric Manager, mlx5_core,
DCGM and NVSentinel, with values of our own.
"""

import json

from each import each

from gpucheck import triage
from gpucheck.facts.claims import Confidence

SWITCH = "nvidia-nvswitch0: SXid (PCI:0000:84:00.0): "
DIAGNOSIS = {
    "DCGM Diagnostic": {
        "test_categories": [
            {"category": "Deployment", "tests": [
                {"name": "software", "results": [
                    {"entity_group": "GPU", "entity_id": 0, "status": "Pass"}]}]},
            {"category": "Hardware", "tests": [
                {"name": "memory", "results": [
                    {"entity_group": "GPU", "entity_id": 0, "status": "Pass"},
                    {"entity_id": 3, "status": "Fail", "warnings": [{"error_id": 46}]}]}]},
        ]
    }
}  # fmt: skip
DIAGNOSIS_TABLE = """\
$ dcgmi diag -r 3
Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Deployment  --------+------------------------------------------------|
| Denylist                  | Pass                                           |
| Persistence Mode          | Fail                                           |
+-----  Hardware  ----------+------------------------------------------------+
| GPU Memory                | {result}                                       |
"""
NODE = """\
Name:               gpu-7
Conditions:
  Type             Status  LastHeartbeatTime   LastTransitionTime   Reason   Message
  ----             ------  -----------------   ------------------   ------   -------
  {type}  {status}  Mon, 02 Mar 2026 10:00:00 +0000  Mon, 02 Mar 2026 09:00:00 +0000  {rest}
"""
FAULTS = {
    "gpu-hardware-fault": (
        f"[ 1533.1] {SWITCH}22003, Fatal, Link 60 MINION HALT",
        f"[ 1533.1] {SWITCH}24007, Fatal, Link 44 sourcetrack timeout error (First)",
        ("[Jul 23 2024 07:53:55] [ERROR] [tid 841] detected NVSwitch fatal error 20034 on fid 0 on "
        "NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 33"),
        "[  212.1] NVRM: Xid (0000:03:00): 48, An uncorrectable double bit error",  # the old form
        "[  212.1] NVRM: _issueRpcAndWait: rpcSendMessage failed with status 0x0f for fn 78!",
        "[  212.1] NVRM: _issueRpcAndWait: rpcRecvPoll timedout for fn 76 sequence 12!",
        ("[  212.1] NVRM: _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting "
        "GSP\n[  212.1] NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x40:1854)"),
        ("[  212.1] NVRM: kgspHealthCheck_TU102: ****************************** GSP-CrashCat "
        "Report *******************************"),
        "[  212.1] NVRM: kgspHealthCheckHeartbeat_IMPL: GSP RM heartbeat timed out",
        ("[  212.1] NVRM: kgspDumpMailbox_GH100: Fatal GSP-FMC Error: version=0x1, partition=0x2, "
        "error code=0x1a, additional info=0x0"),
        ("[  212.1] NVRM: gpuHandleSanityCheckRegReadError_GM107: Possible bad register read: "
        "addr: 0x110100,  regvalue: 0xbadf5620,  error code: Unknown SYS_PRI_ERROR_CODE"),
        ("[  212.1] watchdog: BUG: soft lockup - CPU#17 stuck for 26s! [python:4410]\n"
        "[  212.1] RIP: 0010:_nv042345rm+0x12/0x40 [nvidia]"),
        json.dumps(DIAGNOSIS),
        json.dumps(DIAGNOSIS, indent=2),
        DIAGNOSIS_TABLE.format(result="Fail - GPU: 2"),
        "$ dcgmi health -c -g 1\n| Health Monitor Report     |\n| Overall Health | Failure  |",
        NODE.format(
            type="GpuMemWatch", status="True",
            rest="GpuMemWatchIsNotHealthy  ErrorCode:DCGM_FR_VOLATILE_DBE_DETECTED GPU:3 "
            "Recommended Action=RESTART_VM;",
        ),
    ),
    "gpu-fallen-off-bus": (
        ("[  212.1] nvidia 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), "
        "type=Transaction Layer, (Receiver ID)"),
        "[  212.1] NVRM: Xid (0000:03:00): 79, GPU has fallen off the bus.",
        NODE.format(
            type="SysLogsXIDError", status="True",
            rest="SysLogsXIDErrorIsNotHealthy  ErrorCode:79 PCI:0002:00:00 "
            "Recommended Action=RESTART_VM;",
        ),
    ),
    "nvlink-down": (
        ("[   41.2] NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask "
        "failed!"),
        ("[   41.2] NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link "
        "mask!"),
    ),
    "application-bug": (
        ("[Thu Oct 10 03:06:53 2024] pt_main_thread[2536443]: segfault at 7f797fe00000 ip "
        "00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in libnccl.so.2[7f7c7ac00000+d3d3000]"),
        ("[  921.5] python3[4410]: segfault at 8 ip 00007f3b7c2b11aa sp 00007ffd2a7e1d20 error 4 "
        "in libcuda.so.550.54.15[7f3b7c000000+4d0000] likely on CPU 12 (core 6, socket 0)"),
        ("[  921.5] traps: pt_main_thread[3536] general protection fault ip:7f1d2c5b1f3c "
        "sp:7ffc7f1d3f48 error:0 in libtorch_cuda.so[7f1d20000000+30000000]"),
    ),
    "nccl-infiniband": (
        ("[  212.1] nvidia-peermem nv_get_p2p_free_callback:139 ERROR detected invalid context, "
        "skipping further processing"),
        ("[   20.1] mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected "
        "insufficient power on the PCIe slot (27W)."),
        ("[   20.1] mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High "
        "Temperature"),
        ("[  212.1] mlx5_core 0000:5c:00.0: poll_health:825:(pid 0): device's health compromised - "
        "reached miss count"),
        ("[  212.1] mlx5_core 0000:5c:00.0: wait_func:1151:(pid 712): ENABLE_HCA(0x104) timeout. "
        "Will cause a leak of a command resource"),
    ),
    "kernel-module-not-loaded": (
        "[   12.1] nvidia: disagrees about version of symbol module_layout",
        ("[   12.1] NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
        "[   12.1] NVRM: BAR0 is 0M @ 0x0 (PCI:0000:01:00.0)"),
        ("[   12.1] NVRM: Can't find an IRQ for your NVIDIA card!\n"
        "[   12.1] NVRM: Please check your BIOS settings."),
    ),
    "driver-dropped-gpu": (
        ("[   12.1] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2bb1)\n"
        "[   12.1] NVRM: installed in this system is not supported by the\n"
        "[   12.1] NVRM: NVIDIA 550.54.15 driver release."),
    ),
    "not-gpu-related": (
        ("slurmstepd: error: *** JOB 123456 ON node07 CANCELLED AT 2026-05-01T12:00:00 DUE TO TIME "
        "LIMIT ***"),
        ("torchrun train.py\n[  212.1] blk_update_request: I/O error, dev sdb, sector 1234\n"
        "[  212.1] EXT4-fs (sdb1): Remounting filesystem read-only"),
    ),
    "extension-abi-mismatch": (
        "CUDA SETUP: Loading binary /opt/env/bitsandbytes/libbitsandbytes_cpu.so...",
    ),
    "wrong-result": (
        ("#  Rank  0 Group  0 Pid   4410 on  node7 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n"
        "# Out of bounds values : 12 FAILED\n# Avg bus bandwidth    : 229.7"),
    ),
}  # fmt: skip
BOOT = """\
[    5.101] nvidia: loading out-of-tree module taints kernel.
[    5.201] nvidia-nvlink: Nvlink Core is being initialized, major device number 236
[    5.402] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build
"""
HEALTHY = {
    "boot": BOOT,
    "uvm": "[    6.003] nvidia-uvm: Loaded the UVM driver, major device number 234.",
    "drm": "[    6.110] [drm] Initialized nvidia-drm 0.0.0 20160202 for 0000:1b:00.0 on minor 1",
    "no-signature": "[    5.1] nvidia: module verification failed: signature and/or required key "
    "missing - tainting kernel",
    "decodes": "[    5.4] nvidia 0000:1b:00.0: vgaarb: VGA decodes changed: "
    "olddecodes=io+mem,decodes=none:owns=none",
    "nvswitch-boot": "[    5.3] nvidia-nvswitch0: using MSI\n"
    "[    5.4] nvidia-nvswitch: Probing device 0000:84:00.0, Vendor Id = 0x10de, Device Id = "
    "0x22a3, Class = 0x68000\n[    5.5] nvidia-nvswitch0: open (major=510)",
    "sxid-corrected": f"{BOOT}[  533.1] {SWITCH}11012, Correctable, Link 32 ingress header ECC",
    "sxid-replay": f"{BOOT}[  533.1] {SWITCH}20001, Non-fatal, Link 12 TX Replay Error (First)",
    "sxid-minion": f"{BOOT}[  533.1] {SWITCH}22013, Non-fatal, Link 60 Minion Link DLREQ interrupt",
    "sxid-cooler": f"{BOOT}[  533.1] {SWITCH}10005, Thermal slowdown Disengaged",
    "manager-minion": "Mar 03 18:39:57 node7 nv-fabricmanager[5183]: detected NVSwitch non-fatal "
    "error 22013 on NodeId 0 on NVSwitch pci bus id 00000000:08:00.0 physical id 3 port 60",
    "manager-start": "[Feb 25 2025 13:59:45] [INFO] [tid 1803] Fabric Manager version 580.95.05 is "
    "running with the following configuration options\n"
    "[Feb 25 2025 13:59:46] [INFO] [tid 1803] Successfully configured all the available GPUs and "
    "NVSwitches to route NVLink traffic.",
    "manager-unit": "Mar 03 18:39:19 node7 systemd[1]: Starting NVIDIA fabric manager service...\n"
    "Mar 03 18:39:19 node7 systemd[1]: Started NVIDIA fabric manager service.",
    "manager-inband": "[Feb 25 2025 13:59:45] [INFO] [tid 1803] Received an inband message:  "
    "Message header details: magic Id:adbc request Id:1 status:0 type:2 length:24",
    "persistenced": "Mar  3 18:39:10 node7 nvidia-persistenced: Verbose syslog connection opened\n"
    "Mar  3 18:39:10 node7 nvidia-persistenced: Started (1201)\n"
    "Mar  3 18:39:11 node7 nvidia-persistenced: device 0000:1b:00.0 - persistence mode enabled.",
    "nvlink-training": "[   12.2] NVRM: knvlinkCoreGetRemoteDeviceInfo_IMPL: Soe init done\n"
    "[   12.3] nvidia-nvlink: Registering link with remote",
    "aer-corrected": f"{BOOT}[  212.1] pcieport 0000:16:01.0: AER: Corrected error message received"
    " from 0000:1b:00.0\n[  212.1] nvidia 0000:1b:00.0: PCIe Bus Error: severity=Corrected, "
    "type=Physical Layer, (Receiver ID)\n"
    "[  212.1] nvidia 0000:1b:00.0:   device [10de:2330] error status/mask=00000001/0000a000\n"
    "[  212.1] nvidia 0000:1b:00.0:    [ 0] RxErr                  (First)",
    "aer-other-device": f"{BOOT}[  212.1] nvme 0000:e1:00.0: PCIe Bus Error: severity=Uncorrected "
    "(Non-Fatal), type=Transaction Layer, (Requester ID)",
    "mlx5-boot": "[    9.1] mlx5_core 0000:5c:00.0: firmware version: 28.39.1002\n"
    "[    9.2] mlx5_core 0000:5c:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 "
    "link)\n[    9.5] mlx5_core 0000:5c:00.0: Port module event: module 0, Cable plugged\n"
    "[    9.6] mlx5_core 0000:5c:00.0: mlx5_pcie_event:301:(pid 12): PCIe slot advertised "
    "sufficient power (75W).",
    "mlx5-link": "[   11.1] mlx5_core 0000:5c:00.0 ens3f0np0: Link down\n"
    "[   14.7] mlx5_core 0000:5c:00.0 ens3f0np0: Link up",
    "mlx5-spark": "[   20.1] DMI: NVIDIA NVIDIA_DGX_Spark/P4242, BIOS 5.36\n"
    "[   20.2] mlx5_core 0000:01:00.0: mlx5_pcie_event:326:(pid 3202): Detected insufficient power "
    "on the PCIe slot (27W).\nNVIDIA GB10",
    "carrier-of-another-port": "systemd-networkd[1021]: eno2: Lost carrier",
    "peermem-loaded": "[    8.1] nvidia_peermem: loaded",
    "segfault-elsewhere": f"{BOOT}[  921.5] chrome[4410]: segfault at 0 ip 00007f9ad32fb1f1 sp "
    "00007fff1dbe8cb0 error 4 in libc.so.6[7f9ad1a00000+1c31000]",
    "lockup-elsewhere": f"{BOOT}[  212.1] watchdog: BUG: soft lockup - CPU#17 stuck for 26s! "
    "[kworker/17:1:812]\n[  212.1] RIP: 0010:native_queued_spin_lock_slowpath+0x12/0x40",
    "acpi": f"{BOOT}[    5.6] ACPI Warning: \\_SB.PCI0.PEG0.PEGP._DSM: Argument #4 type mismatch - "
    "Found [Buffer], ACPI requires [Package] (20240827/nsarguments-61)",
    "diagnosis": json.dumps(DIAGNOSIS).replace("Fail", "Pass"),
    "diagnosis-lines": json.dumps(DIAGNOSIS, indent=2).replace("Fail", "Pass"),
    "diagnosis-table": DIAGNOSIS_TABLE.format(result="Pass - All"),
    "health": "$ dcgmi health -c -g 1\n| Health Monitor Report |\n| Overall Health  | Healthy  |",
    "health-warning": "$ dcgmi health --check\n| Health Monitor Report |\n"
    "| Overall Health  | Warning  |\n| GPU  |  |\n| -> 0  | Warning  |\n|    -> Errors  |  |",
    "health-without-watches": "$ dcgmi health --check\n"
    "Error: Health watches not enabled. Please enable watches. ",
    "nvsentinel": NODE.format(
        type="GpuMemWatch", status="False", rest="GpuMemWatchIsHealthy  No Health Failures"
    ),
    "nccl-tests": "#  Rank  0 Group  0 Pid   4410 on  node7 device  0 [0000:1b:00] NVIDIA H100\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 450.4",
    "lspci": "$ lspci -vvv\n5c:00.0 Infiniband controller: Mellanox Technologies MT2910\n"
    "Capabilities: [48] Vital Product Data\nProduct Name: NVIDIA ConnectX-7 HHHL Adapter card, "
    "200GbE / NDR200 IB, PCIe 5.0 x16, Crypto Disabled, Secure Boot Enabled\n"
    "Kernel driver in use: mlx5_core\n$ nvidia-smi -L\nGPU 0: NVIDIA H100 80GB HBM3",
}


@each(
    ("slug", "text"),
    [(slug, text) for slug, texts in FAULTS.items() for text in texts],
    ids=[f"{slug}-{at}" for slug, texts in FAULTS.items() for at in range(len(texts))],
)
def test_a_fault_has_its_name(slug: str, text: str) -> None:
    assert triage(text + "\n").root_causes == (slug,)


@each("text", HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_log_names_nothing(text: str) -> None:
    report = triage(text + "\n")
    assert report.root_causes == ()
    assert report.verdict in {"healthy", "unknown"}


@each(
    ("text", "words"),
    [
        (FAULTS["application-bug"][0], "pt_main_thread died of a segmentation fault in libnccl"),
        (FAULTS["gpu-fallen-off-bus"][0], "the GPU at 0000:01:00.0"),
        (FAULTS["gpu-hardware-fault"][2], "SXid 20034 (DLPL_LTSSM_FAULT_UP) of link 33"),
    ],
)
def test_the_headline_says_where(text: str, words: str) -> None:
    (found,) = triage(text + "\n").causes
    assert words in found.headline


def test_what_a_single_symptom_suggests_is_only_possible() -> None:
    text = FAULTS["nvlink-down"][0]
    (found,) = triage(text + "\n").causes
    assert found.confidence is Confidence.POSSIBLE


def test_an_error_that_stalls_a_gpu_is_a_warning() -> None:
    report = triage(
        "[Jul 09 2024 18:14:07] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028 on fid "
        "0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61\n"
    )
    assert (report.verdict, report.root_causes) == ("warning", ("gpu-hardware-fault",))


def test_an_xid_that_the_tables_lack_is_named() -> None:
    report = triage("[  212.1] NVRM: Xid (PCI:0000:03:00): 210, pid=1234, name=python, Some\n")
    assert report.verdict == "unknown"
    (found,) = (found for found in report.findings if found.slug == "newer-than-tables")
    assert "Xid 210" in found.headline
    assert found.confidence is Confidence.POSSIBLE


def test_in_a_text_nobody_knows_whether_the_job_uses_a_lost_link() -> None:
    lost = "[ 9212.1] mlx5_core 0000:5c:00.0 ens3f0np0: Link down"
    assert triage(f"{BOOT}{lost}").findings == ()
    report = triage(f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\n{lost}")
    assert [finding.slug for finding in report.findings] == ["nccl-timeout"]
