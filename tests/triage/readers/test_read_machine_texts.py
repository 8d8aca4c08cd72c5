"""What commands, the kernel, shells and container files say about a machine."""

from each import each
from pasted_samples import COMMANDS
from readers_support import Read

from gpucheck.facts.driver import Driver, KernelLog
from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.system import Environment, LimitsOfProcess, Pci, System
from gpucheck.facts.torch import TorchBuild

MIB = 1024 * 1024


def test_ordinary_commands() -> None:
    read = Read(COMMANDS)
    assert read.get(Toolkits).selected_version == "11.8"
    assert [compiler.version for compiler in read.get(Toolkits).compilers or ()] == ["13.2.0"]
    system = read.get(System)
    assert (system.kernel, system.machine, system.glibc) == ("6.5.0-15-generic", "x86_64", "2.38")
    assert (system.distribution, system.distribution_version) == ("ubuntu", "23.10")
    (card,) = read.get(Pci).gpus or []
    assert (card.address, card.product) == ("0000:01:00.0", "GeForce RTX 3090")
    limits = read.get(LimitsOfProcess)
    assert (limits.shm_total_bytes, limits.memlock_bytes) == (64 * MIB, 8 * MIB)
    assert read.get(Driver).module_release == "535.154.05"


def test_wsl_tells_itself_by_its_kernel() -> None:
    text = "Linux PC 5.15.146.1-microsoft-standard-WSL2 #1 SMP Thu Jan 11 2024 x86_64 GNU/Linux\n"
    assert Read(text).get(System).wsl == 2


def test_the_kernels_log() -> None:
    text = (
        "[ 1234.567890] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n"
        "[ 1234.567891] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
        "Mar  1 10:00:00 node7 kernel: NVRM: Xid (PCI:0000:81:00): 48, pid='<unknown>', "
        "An uncorrectable double bit error (DBE) has been detected\n"
        "Mar  1 10:00:00 node7 kernel: Out of memory: Killed process 4242 (python) total-vm:1kB\n"
        "Mar  1 10:00:01 node7 kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, "
        "Non-fatal, Link 32 egress non-posted PRIV error\n"
    )
    log = Read(text).get(KernelLog)
    assert [(event.xid, event.pci_address) for event in log.xids or ()] == [
        (79, "0000:3b:00.0"),
        (48, "0000:81:00.0"),
    ]
    assert log.fallen_off_bus == ["0000:3b:00.0"]
    assert [oom_kill.process_name for oom_kill in log.oom_kills or ()] == ["python"]
    sxids = [(event.sxid, event.link, event.fatal) for event in log.sxids or ()]
    assert sxids == [(12028, 32, False)]
    assert (log.xids or [])[1].source("xid") == "line 3"


def variables(text: str) -> dict[str, str]:
    return Read(text).get(Environment).variables or {}


@each(
    "text",
    [
        "export CUDA_VISIBLE_DEVICES=3",
        'os.environ["CUDA_VISIBLE_DEVICES"] = "3"',
        "CUDA_VISIBLE_DEVICES=3",
        "CUDA_VISIBLE_DEVICES=3 python train.py",
        "NCCL_DEBUG=INFO CUDA_VISIBLE_DEVICES='3' torchrun x.py",
        "$ echo $CUDA_VISIBLE_DEVICES\n3",
        '$env:CUDA_VISIBLE_DEVICES = "3"',
        'C:\\work>set "CUDA_VISIBLE_DEVICES=3"',
        "set CUDA_VISIBLE_DEVICES=3",
        "docker run --gpus all -e CUDA_VISIBLE_DEVICES=3 image",
        "ENV CUDA_VISIBLE_DEVICES 3",
        "%env CUDA_VISIBLE_DEVICES=3",
    ],
)
def test_variables_in_every_tongue(text: str) -> None:
    assert variables(text)["CUDA_VISIBLE_DEVICES"] == "3"


def test_a_variable_with_two_values_is_left_out() -> None:
    assert variables("export NCCL_DEBUG=INFO\nexport NCCL_DEBUG=WARN\n") == {}


@each(
    "text",
    [
        "CUDA_VISIBLE_DEVICES=-1 python train.py works",
        'CUDA_VISIBLE_DEVICES="" python train.py',
        "Is CUDA available: True\nexport CUDA_VISIBLE_DEVICES=-1",
        "unset CUDA_VISIBLE_DEVICES; export CUDA_VISIBLE_DEVICES=",
        "export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID",
        "$ echo $CUDA_VISIBLE_DEVICES\nuser@host:~$",
    ],
)
def test_a_doubtful_mask_is_no_fact(text: str) -> None:
    assert "CUDA_VISIBLE_DEVICES" not in variables(text)


def test_only_listed_variables_are_kept() -> None:
    assert variables("export HF_TOKEN=hf_secret\nexport NCCL_API_KEY=secret\n") == {}


def test_a_value_in_quotes_may_hold_anything_but_them() -> None:
    assert variables('ENV TORCH_CUDA_ARCH_LIST="7.5;8.0 9.0+PTX"') == {
        "TORCH_CUDA_ARCH_LIST": "7.5;8.0 9.0+PTX"
    }


def test_an_image_says_which_torch_or_toolkit_it_has() -> None:
    torch = Read("FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime\n").get(TorchBuild)
    assert (torch.version, torch.cuda) == ("2.1.0", "12.1")
    devel = Read("FROM nvidia/cuda:11.8.0-cudnn8-devel-ubuntu22.04\n")
    assert devel.get(Toolkits).selected_version == "11.8"
    runtime = Read("FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04\n")
    assert runtime.get(Toolkits).selected_version is None


def test_an_image_in_passing_is_no_fact() -> None:
    text = "I could try pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime instead.\n"
    assert Read(text).get(TorchBuild).version is None
    several = (
        "FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime\n"
        "FROM pytorch/pytorch:2.2.0-cuda12.1-cudnn8-runtime\n"
    )
    assert Read(several).get(TorchBuild).version is None


def test_what_docker_gives_a_container() -> None:
    limits = Read("docker run --gpus all --shm-size=8g --ulimit memlock=-1 image\n").get(
        LimitsOfProcess
    )
    assert (limits.shm_total_bytes, limits.memlock_bytes) == (8 * 1024 * MIB, -1)
    twice = "docker run --shm-size=64m image\nwith --shm-size=8g it works\n"
    assert Read(twice).get(LimitsOfProcess).shm_total_bytes is None
