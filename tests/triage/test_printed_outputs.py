# ruff: noqa: E101, E501  # nvidia-smi and lspci indent with tabs, logs have long lines
"""Outputs that nobody wrote as a complaint: fields, logs and help texts name no cause.

Beside each healthy output stands the same output of a machine with a fault, which is named.
"""

from each import each

from gpucheck import triage
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.system import Pci
from gpucheck.log_patterns.roles import Role, role_of
from gpucheck.ticket.intake import read_text

SMI_Q = """
==============NVSMI LOG==============

Timestamp                                 : Tue May 13 10:00:00 2025
Driver Version                            : 550.90.07
CUDA Version                              : 12.4

Attached GPUs                             : 1
GPU 00000000:65:00.0
    Product Name                          : NVIDIA A40
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : N/A
        Pending                           : N/A
    GPU Reset Status
        Reset Required                    : No
        Drain and Reset Recommended       : No
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 16x
    Clocks Event Reasons
        Idle                              : Active
        SW Power Cap                      : Not Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : Not Active
        SW Thermal Slowdown               : Not Active
    Compute Mode                          : Default
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            SRAM Uncorrectable            : 0
            DRAM Uncorrectable            : {volatile}
        Aggregate
            SRAM Uncorrectable            : 0
            DRAM Uncorrectable            : 0
    Retired Pages
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 0
        Pending                           : {pending}
        Remapping Failure Occurred        : {failed}
    Temperature
        GPU Current Temp                  : 34 C
        GPU Shutdown Temp                 : 98 C
        GPU Slowdown Temp                 : 95 C
    Processes                             : None
"""
SMI_XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>535.54.03</driver_version>
	<cuda_version>12.2</cuda_version>
	<attached_gpus>1</attached_gpus>
	<gpu id="00000000:01:00.0">
		<product_name>NVIDIA A30</product_name>
		<mig_mode>
			<current_mig>Enabled</current_mig>
			<pending_mig>Enabled</pending_mig>
		</mig_mode>
		<mig_devices>
			<mig_device>
				<fb_memory_usage>
					<total>6144 MiB</total>
				</fb_memory_usage>
			</mig_device>
		</mig_devices>
		<gpu_reset_status>
			<reset_required>No</reset_required>
		</gpu_reset_status>
		<clocks_event_reasons>
			<clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
			<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
			<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
		</clocks_event_reasons>
		<fb_memory_usage>
			<total>24576 MiB</total>
		</fb_memory_usage>
		<ecc_errors>
			<volatile>
				<sram_uncorrectable>0</sram_uncorrectable>
				<dram_uncorrectable>{volatile}</dram_uncorrectable>
			</volatile>
			<aggregate>
				<dram_uncorrectable>7</dram_uncorrectable>
			</aggregate>
		</ecc_errors>
		<remapped_rows>
			<remapped_row_pending>{pending}</remapped_row_pending>
			<remapped_row_failure>{failed}</remapped_row_failure>
		</remapped_rows>
	</gpu>
</nvidia_smi_log>
"""
FINE = {"volatile": "0", "pending": "No", "failed": "No"}
KERNEL = """
[    0.000000] Linux version 6.1.0-21-amd64 (gcc-12 (Debian 12.2.0-14) 12.2.0) #1 SMP
[    0.000000] secureboot: Secure boot disabled
[    0.002113] Initializing cgroup subsys freezer
[    0.341025] DMAR: Disabling IOMMU for graphics on this chipset
[    1.220114] pci 0000:01:00.0: BAR 5: could not be determined
[    1.512201] Loaded X.509 cert 'Debian Secure Boot CA: 6ccece7e4c6c0d1f6149f3dd27dfcc5cbb419ea1'
[    2.001001] Bluetooth: hci0: Secure boot is enabled
[    2.904411] nvidia: module verification failed: signature and/or required key missing
[    2.911842] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07
[    3.000000] thermal thermal_zone0: throttling limit OK
[    9.120011] iwlwifi 0000:02:00.0: Microcode SW error detected, the device hangs and restarts
"""
JOURNAL = """
Mar 08 10:22:57 host kernel: usb 1-2: device descriptor read error, timed out
Mar 08 10:22:58 host systemd[1]: Stopped left-over process (kerneloops), it was killed.
Mar 08 10:22:59 host dockerd[801]: container runtime failed a health check, restarts
Mar 08 10:23:01 host gdm[1200]: the GPU session hangs up; no more devices
"""
HELP = """
usage: nvidia-smi [OPTION1 [ARG1]] ...
    -L,   --list-gpus           Display a list of GPUs connected to the system.
    -q,   --query               Display GPU or Unit info.
    -d,   --display=            Display only selected information: MEMORY, ECC, ROW_REMAPPER.
"remapped_rows.failure"
Whether any row remapping failure happens, after which the GPU is to be replaced.
"gpu_recovery_action"
The action that a GPU needs after a failure: None, Reset, Reboot, Drain P2P.
"""
METRICS = """
# HELP DCGM_FI_DEV_XID_ERRORS Value of the last XID error encountered.
# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS{gpu="0",modelName="NVIDIA A100-SXM4-40GB"} 0
# HELP DCGM_FI_DEV_ROW_REMAP_FAILURE Whether remapping of rows has failed.
# TYPE DCGM_FI_DEV_ROW_REMAP_FAILURE gauge
DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="0",modelName="NVIDIA A100-SXM4-40GB"} 0
node_nvidia_throttle_hw_slowdown_active{gpu="0"} 0
"""
LSPCI = """
00:1c.0 PCI bridge: Intel Corporation Sunrise Point-H PCI Express Root Port #1 (rev f1)
	Capabilities: [40] Express (v2) Root Port (Slot+), MSI 00
		LnkCap:	Port #1, Speed 8GT/s, Width x4, ASPM not supported
		LnkSta:	Speed 2.5GT/s (downgraded), Width x0 (downgraded)
01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)
	Capabilities: [78] Express (v2) Legacy Endpoint, MSI 00
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM L0s L1
		LnkSta:	Speed 2.5GT/s (downgraded), Width x16
	Kernel driver in use: nvidia
	Kernel modules: nouveau, nvidia_drm, nvidia
03:00.0 Ethernet controller: Mellanox Technologies MT27710 Family [ConnectX-4 Lx]
		LnkCap:	Port #0, Speed 8GT/s, Width x8, ASPM not supported
		LnkSta:	Speed 8GT/s, Width x4 (downgraded)
"""
TOPOLOGY = """
	GPU0	GPU1	mlx5_0	CPU Affinity	NUMA Affinity
GPU0	 X 	NV12	PXB	0-31	0
GPU1	NV12	 X 	SYS	32-63	1
mlx5_0	PXB	SYS	 X

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the interconnect between NUMA nodes (e.g., QPI/UPI)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
"""
LINKS = """
GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-6a2c8c3e-1111-2222-3333-444455556666)
	 Link 0: <inactive>
	 Link 1: <inactive>
GPU 1: NVIDIA GeForce RTX 3090 (UUID: GPU-6a2c8c3e-1111-2222-3333-444455556667)
	 Link 0: <inactive>
	 Link 1: <inactive>
"""
ROUNDS = """
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx      W      C      C      %      %      %      %    MHz    MHz
    0     61     31     30     97     41      0      0   1215   1410
    1     60     92      -     97     40      0      0   1215   1410
    0     63     31     30     97     41      0      0   1215   1410
"""
DUMPED = """
import torch
tokens = len(batch)
# the loader cuts what is too long
assert tokens % world == 0, "Batch size must be divisible by world size"
if loss.isnan():
    raise RuntimeError("CUDA error: device-side assert triggered")
def main():
    pass
====================================================================================
Running Python 3.12.7 with PyTorch 2.7.0+cu126
step:1/900 train_time:201ms step_avg:201.00ms
step:900/900 val_loss:3.2790 train_time:180100ms step_avg:200.11ms
peak memory allocated: 29998 MiB reserved: 31400 MiB
"""

DUMP = """
the config space of the nvidia card, read with torch loaded
0000: 10de 2080 4090 0000  ffff 3090 0000 2080
"""
HANDLERS = """
Signal Handlers of a Java machine beside CUDA:
SIGSEGV: [libjvm.so+0xe4a6d0], sa_mask[0]=11111111011111111101111111111110, sa_flags=SA_RESTART
SIGBUS: [libjvm.so+0xe4a6d0], sa_mask[0]=11111111011111111101111111111110, sa_flags=SA_RESTART
SIGKILL: SIG_DFL
"""
SHARED_MEMORY = """
torch version .................... 2.5.1+cu124
torch cuda version ............... 12.4
nvcc version ..................... 12.4
shared memory (/dev/shm) size .... 865.00 GB
"""
RUN = """
INFO: training with torch on 4 GPUs, NCCL 2.21.5
Note: with more than 8 images for each GPU you may encounter OOM.
[W610 23:17:09.830912634 socket.cpp:767] [c10d] The IPv6 network addresses of (node1, 44329) cannot be retrieved (gai error: -2 - Name or service not known).
/opt/lib/popen_fork.py:66: RuntimeWarning: os.fork() was called, which will likely lead to a deadlock
epoch 1 loss 0.51
epoch 30 loss 0.12
RESULT: accuracy 0.91
"""
MANUAL = """
.TH nvidia\\-smi 1 2024/6/1 nvidia\\-smi nvidia\\-smi
.SH RETURN VALUE
Return code 15 \\- The GPU has fallen off the bus or has otherwise become inaccessible
Only one process is allowed where the compute mode of the GPU is "EXCLUSIVE_PROCESS".
"""
X_SERVER = """
[    6.575] (II) LoadModule: "nouveau"
[    6.575] (WW) Warning, couldn't open module nouveau
[    6.575] (EE) Failed to load module "nouveau" (module does not exist, 0)
[    6.603] (II) NVIDIA dlloader X Driver  550.90.07
"""
LOGCAT = """
04-07 12:46:35.941  1407  3531 W ActivityManager: a GPU process hangs and its memory is still held
04-07 12:46:35.950  1407  3531 W System: java.lang.ClassCastException: android.os.BinderProxy
"""
JAVA = """
2015-10-18 18:05:27,570 FATAL [IPC Server 13] org.example.Listener: Task failed: java.net.NoRouteToHostException: No Route to Host from host1 to host2
a node of the cluster, by its psu, is restarted
"""
COMPILED = """
  x86_64-linux-gnu-gcc-12 -Wp,-MMD,/var/lib/dkms/nvidia/535.154.05/build/.nv.o.d -Werror=return-type -nostdinc -c nv.c
"""
P2P = """
Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 913.01  32.53
     1  32.49 915.11
nvidia-smi lists 2 GPUs
"""
MOUNTS = """
3745 838 253:0 /var/lib/kubelet/pods/1/volumes/nvidia-device-plugin /dev/x rw - ext4 /dev/vda rw
the nvidia plugin does not work without it
"""
KCONFIG = """
CONFIG_DRM_NOUVEAU=m
# CONFIG_WATCHDOG_PRETIMEOUT_GOV is not set
# CONFIG_NVIDIA_SHIELD is not set
"""

UPDATES = """
May  9 01:38:58 host kernel: nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver
May  9 01:39:01 host systemd[1]: Finished Secure Boot updates for DB and DBX; it is enabled.
"""
BUSY = """
============================ ROCm System Management Interface ============================
=================================== % time GPU is busy ===================================
GPU[0]		: GPU use (%): 0
"""
WHEEL = """
[     9.412] (**) evdev: USB OPTICAL MOUSE: EmulateWheelInertia: 10, EmulateWheelTimeout: 200
[     9.500] (II) NVIDIA(0): Setting mode "HDMI-0: nvidia-auto-select"
"""
PROPERTIES = """
List of valid properties to query for the switch "--query-gpu":

Section about ecc.errors properties
NVIDIA GPUs can provide error counts. Some are double bit ECC errors, which were detected and not corrected.
"""

DIRECTIVES = """
job 4242 on 4 GPUs is done, CUDA 11.8
# LSBATCH: User input
#BSUB -gpu "num=1:mode=exclusive_process"
#SBATCH --gres=gpu:a100:4 --exclusive
"""
BARS = """
YOLOv8n summary, CUDA:0 (NVIDIA A30)
train: Caching images (0.1GB ram, not enough for more): 100%|##########| 144/144 [00:00<00:00, 171.31it/s]
"""
FRENCH = """
ao\u00fbt 25 19:38:05 host NetworkManager[760]: <info>  Loaded device plugin: NMAtmManager, not found by nvidia
"""

SHOWN_MANUAL = """
MPIRUN(1)                                                                                        Open MPI                                                                                        MPIRUN(1)

NAME
       mpirun - starts jobs on nodes with GPUs, for NCCL as well
       After some seconds it sends all processes in the job a SIGKILL.
"""
LINKS_OF_LIBRARIES = """
	libcudart.so.12 -> libcudart.so.12.4.127
	libsigsegv.so.2 -> libsigsegv.so.2.0.3
"""
TOP = """
Tasks: 390 total,   1 running, 389 sleeping,   0 stopped,   0 zombie
MiB Mem :  64215 total, nvidia-smi lists 2 GPUs
"""
THEANO = """
Using gpu device 0: Tesla K40c (CNMeM is disabled, CuDNN not available)
epoch 9 loss 0.12
"""
OPEN_MPI = """
[node3][[47604,1],0][../opal/mca/btl/openib/btl_openib_component.c:1671:init_one_device] error obtaining device attributes for mlx5_0 of InfiniBand
rank 0 of 4: the energy is -12.5
"""
LOGGED = """
W0822 20:19:14.293354 140195756140288 __init__.py:44] file_cache is unavailable
Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/discovery/__init__.py", line 41, in autodetect
    from . import file_cache
ImportError: file_cache is unavailable when using oauth2client >= 4.0.0
I0822 20:19:20.468494 140195756140288 train.py:125] step 100 loss 2.1 with torch on cuda:0
"""


@each(
    "text",
    [
        DUMP, HANDLERS, SHARED_MEMORY, RUN, MANUAL, X_SERVER, LOGCAT, JAVA, COMPILED, P2P, MOUNTS,
        KCONFIG, UPDATES, BUSY, WHEEL, PROPERTIES, DIRECTIVES, BARS, FRENCH, SHOWN_MANUAL, LINKS_OF_LIBRARIES, TOP, THEANO, OPEN_MPI, LOGGED,
    ],
    ids=[
        "hex-dump", "java-handlers", "shared-memory", "run", "manual", "x-server", "logcat", "java",
        "compiler", "p2p", "mounts", "kernel-options",
        "updates", "busy", "wheel", "properties", "directives", "bars", "french", "manual-shown", "links-of-libraries", "top", "theano", "open-mpi", "logged",
    ],
)  # fmt: skip
def test_an_output_of_another_program_names_nothing(text: str) -> None:
    report = triage(text)
    assert report.root_causes == ()
    assert report.verdict in {"healthy", "unknown"}


def test_groups_of_digits_are_no_cards() -> None:
    assert not triage(DUMP).snapshot.get(Pci).gpus
    text = "pip install torch on my 4090, is_available() is False"
    cards = triage(text).snapshot.get(Pci).gpus or []
    assert [card.product for card in cards] == ["RTX 4090"]


def test_a_logged_exception_counts_where_the_program_does_not_go_on() -> None:
    ended, _, _ = LOGGED.partition("I0822 20:19:20")
    assert triage(ended).root_causes != ()


def test_a_warning_counts_where_the_program_does_not_go_on() -> None:
    begun, _, _ = RUN.partition("epoch 1 ")
    assert triage(begun).root_causes == ("rendezvous-failed",)


@each(
    "text",
    [
        SMI_Q.format_map(FINE), SMI_XML.format_map(FINE), KERNEL, JOURNAL, HELP, METRICS, LSPCI,
        TOPOLOGY, LINKS, ROUNDS, DUMPED,
    ],
    ids=[
        "smi-q", "smi-xml", "kernel", "journal", "help", "metrics", "lspci", "topology", "links",
        "rounds", "dumped",
    ],
)  # fmt: skip
def test_an_output_without_a_fault_names_nothing(text: str) -> None:
    report = triage(text)
    assert report.root_causes == ()
    assert report.verdict in {"healthy", "unknown"}


@each("text", [SMI_Q, SMI_XML], ids=["q", "xml"])
@each(
    ("field", "value", "slug"),
    [
        ("volatile", "3", "gpu-hardware-fault"),
        ("failed", "Yes", "gpu-hardware-fault"),
        ("pending", "Yes", "gpu-memory-pending-repair"),
    ],
)
def test_a_value_in_it_that_shows_a_fault_is_named(
    text: str, field: str, value: str, slug: str
) -> None:
    assert triage(text.format_map({**FINE, field: value})).root_causes == (slug,)


@each("text", [SMI_Q.format_map(FINE), SMI_XML.format_map(FINE), LINKS, TOPOLOGY, ROUNDS])
def test_a_driver_that_lists_its_gpus_is_healthy(text: str) -> None:
    assert triage(text).verdict == "healthy"


def gpus_in(text: str) -> list[NvmlGpu]:
    return triage(text).snapshot.get(Nvml).gpus or []


def test_the_elements_of_xml_are_facts() -> None:
    (gpu,) = gpus_in(SMI_XML.format_map(FINE))
    assert gpu.device_name == "NVIDIA A30"
    assert gpu.pci_address == "0000:01:00.0"
    assert gpu.mig_enabled is True
    assert gpu.memory_total_bytes == 24576 * 2**20, "not that of the MIG slice"
    assert gpu.ecc_uncorrected == 0, "not the aggregate"
    assert gpu.throttle == ["gpu-idle", "sw-power-cap"]


def test_links_and_rounds_are_facts() -> None:
    first, second = gpus_in(LINKS)
    assert first.nvlinks == second.nvlinks == [False, False]
    first, second = gpus_in(ROUNDS)
    assert (first.power_w, first.temperature_c) == (61, 31)
    assert second.temperature_c == 92


PROCESSES = """
timestamp, gpu_name, gpu_bus_id, gpu_uuid, pid, process_name, used_gpu_memory [MiB]
2026/06/24 10:17:57.038, NVIDIA L40S, 00000000:0C:00.0, GPU-0a, 2140, python, [N/A]
2026/06/24 10:17:57.038, NVIDIA L40S, 00000000:0C:00.0, GPU-0a, 2141, python, [N/A]
2026/06/24 10:17:57.038, NVIDIA L40S, 00000000:0D:00.0, GPU-0b, 2142, python, [N/A]
"""
HOLDERS = """
# gpu         pid   type     sm    mem    enc    dec    command
# Idx           #    C/G      %      %      %      %    name
    0      20037     C      2      0     24      -      ffmpeg
    1          -     -      -      -      -      -      -
"""


def test_rows_of_processes_are_of_the_gpus_that_they_name() -> None:
    assert [gpu.pci_address for gpu in gpus_in(PROCESSES)] == ["0000:0c:00.0", "0000:0d:00.0"]
    assert [gpu.index for gpu in gpus_in(HOLDERS)] == [0, 1]
    assert triage(PROCESSES).verdict == triage(HOLDERS).verdict == "healthy"


def test_columns_of_newer_drivers_are_read() -> None:
    wide = SMI_Q.format_map(FINE).replace(" : ", f"{' ' * 13} : ")
    assert triage(wide).verdict == "healthy"
    assert triage(wide).snapshot.get(Nvml).driver_release == "550.90.07"


def test_the_link_of_a_card_is_a_fact_and_that_of_a_bridge_is_none() -> None:
    card = (triage(LSPCI).snapshot.get(Pci).gpus or [])[0]
    assert (card.link_width, card.link_width_max) == (16, 16)
    assert (card.link_speed, card.link_speed_max) == (2.5, 16.0)


def test_a_link_of_which_only_the_row_is_quoted_counts() -> None:
    text = "my RTX 3090 is slow\nLnkSta: Speed 8GT/s (ok), Width x4 (downgraded)\n"
    assert triage(text).root_causes == ("pcie-link-degraded",)


def test_what_the_driver_says_in_a_kernel_log_counts() -> None:
    xid = "[ 99.000001] NVRM: Xid (PCI:0000:65:00): 79, pid=42, GPU has fallen off the bus.\n"
    assert triage(KERNEL + xid).root_causes == ("gpu-fallen-off-bus",)


def test_a_statement_in_a_traceback_counts_and_in_a_script_does_not() -> None:
    raised = (
        '  File "/home/user/train.py", line 9, in main\n    raise RuntimeError("CUDA error: {}")\n'
    )
    text = raised.format("an illegal memory access was encountered")
    assert triage(f"Traceback (most recent call last):\n{text}").verdict != "healthy"
    assert triage(DUMPED).verdict == "healthy"


@each(
    ("text", "line", "role"),
    [
        (SMI_Q, "    Remapped Rows", Role.LISTING),
        (SMI_Q, "        HW Slowdown                       : Not Active", Role.LISTING),
        (SMI_XML, "\t\t<product_name>NVIDIA A30</product_name>", Role.LISTING),
        (KERNEL, "[    0.002113] Initializing cgroup subsys freezer", Role.KERNEL),
        (JOURNAL, "Mar 08 10:23:01 host gdm[1200]: the GPU session hangs up; no more devices",
         Role.JOURNAL),
        (HELP, "Whether any row remapping failure happens, after which the GPU is to be replaced.",
         Role.HELP),
        (METRICS, "# HELP DCGM_FI_DEV_ROW_REMAP_FAILURE Whether remapping of rows has failed.",
         Role.LISTING),
        (LSPCI, "\t\tLnkSta:\tSpeed 8GT/s, Width x4 (downgraded)", Role.OTHER),
    ],
)  # fmt: skip
def test_the_role_of_a_printed_line(text: str, line: str, role: Role) -> None:
    read = read_text(text.encode())
    index = next(at for at, text_line in enumerate(read.lines) if text_line.text == line)
    assert role_of(read, index) is role


SMI_ROWS = """
Mon Mar  2 08:15:00 2026
+-----------------------------------------+------------------------+----------------------+
| NVIDIA-SMI 590.44.01              Driver Version: 590.44.01      CUDA Version: 13.1     |
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 3090        On  |   00000000:1A:00.0 Off |                  N/A |
|{fan}   41C    P8             {power}  /  350W |       5MiB /  24576MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""


def test_a_row_with_err_is_not_healthy_whatever_else_the_table_shows() -> None:
    assert triage(SMI_ROWS.format(fan="30%", power=" 21W")).verdict == "healthy"
    report = triage(SMI_ROWS.format(fan="ERR!", power="ERR!"))
    assert report.root_causes == ("gpu-hardware-fault",)


@each(
    "line",
    [
        "2026-03-02 09:00:01 [pid=7 tid=7] ERROR  0:106 cuDeviceGet failed with error 4",
        "cudaMemcpyAsync() returned error 1",
        "cuIpcOpenMemHandle has failed: 201",
    ],
)
def test_a_driver_call_that_failed_keeps_a_log_from_being_healthy(line: str) -> None:
    assert (
        triage(f"the writer started and wrote 12 blocks to the disk\n{line}\n").verdict == "unknown"
    )


@each("line", ["cudaMemcpy returned 0", "cuInit ok", "cufile.json: error_level"])
def test_a_call_that_went_well_is_no_failure(line: str) -> None:
    log = f"step 1 loss 0.5\n{line}\nstep 2 loss 0.4\nTraining completed on the GPU\n"
    assert triage(log).verdict == "healthy"
