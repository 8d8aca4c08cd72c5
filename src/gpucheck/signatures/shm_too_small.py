"""Texts that point to shm-too-small."""

from gpucheck.findings import Severity
from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="shm-too-small",
    zh="/dev/shm 太小",
    signatures=(
        Signature(
            name="insufficient",
            literal="insufficient shared memory",
            pattern=r"insufficient shared memory",
            weight=94,
            says="/dev/shm is too small for the DataLoader's workers",
            sample=(
                "ERROR: Unexpected bus error encountered in worker. This might "
                "be caused by insufficient shared memory (shm)."
            ),
            other="insufficient memory",
            stands=True,
        ),
        Signature(
            name="bus-error",
            literal="bus error",
            pattern=r"worker .{0,60}is killed by signal: Bus error",
            weight=90,
            says="/dev/shm is too small for the DataLoader's workers",
            sample="RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error.",
            other="a bus error of the disk",
            stands=True,
        ),
        Signature(
            name="out-of-shared",
            literal="out of shared memory",
            pattern=r"out of shared memory",
            weight=91,
            says="/dev/shm is too small for the DataLoader's workers",
            sample=(
                "It is possible that dataloader's workers are out of shared "
                "memory. Please try to raise your shared memory limit."
            ),
            other="triton out of resource: shared memory",
            unless=("required:",),
            stands=True,
        ),
        Signature(
            name="torch-file",
            literal="unable to write to file",
            pattern=r"unable to write to file </?torch_",
            weight=88,
            says="torch cannot write its shared-memory file: /dev/shm is full",
            sample="RuntimeError: unable to write to file </torch_4242_1234567>",
            other="unable to write to file foo",
            stands=True,
        ),
        Signature(
            name="nccl-extend",
            literal="/dev/shm/nccl-",
            pattern=(
                r"(?:failed to extend|error while creating shared memory segment|"
                r"error while attaching to shared memory segment).{0,20}/dev/shm/nccl-.{0,200}(?"
                r":No space|size)"
            ),
            weight=94,
            says="NCCL cannot create its shared-memory file: /dev/shm is too small",
            sample=(
                "NCCL WARN Error: failed to extend /dev/shm/nccl-AbCdEf to "
                "4194308 bytes, error: No space left on device (28)"
            ),
            other="/dev/shm/nccl-x exists",
            stands=True,
        ),
        Signature(
            name="nccl-extend-any",
            literal="failed to extend /dev/shm",
            pattern=r"failed to extend /dev/shm/\S{1,80} to",
            weight=90,
            says="NCCL cannot create its shared-memory file: /dev/shm is too small",
            sample="NCCL WARN Error: failed to extend /dev/shm/nccl-QrStUv to 9637892 bytes",
            other="failed to extend /dev/sda2 to 4 GB",
            stands=True,
        ),
        Signature(
            name="nccl-segment",
            literal="shared memory segment",
            pattern=r"error while creating shared memory segment",
            weight=90,
            says="NCCL cannot create its shared-memory file: /dev/shm is too small",
            sample=(
                "NCCL WARN Error while creating shared memory segment nccl-shm-recv-a1b2c3d4e5f"
                "60718-0-1-0 (size 4194304)"
            ),
            other="shared memory segment",
            stands=True,
        ),
        Signature(
            name="fallocate",
            literal="posix_fallocate failed",
            pattern=r"posix_fallocate failed : No space left",
            weight=91,
            says="NCCL cannot create its shared-memory file: /dev/shm is too small",
            sample="NCCL WARN Call to posix_fallocate failed : No space left on device",
            other="posix_fallocate",
            stands=True,
        ),
        Signature(
            name="sigbus",
            literal="sigbus",
            pattern=r"Signal 7 \(SIGBUS\)|SIGBUS",
            weight=80,
            says="A process died of a bus error: /dev/shm is too small",
            sample="traceback : Signal 7 (SIGBUS) received by PID 4242",
            other="SIGSEGV",
        ),
        Signature(
            name="shm-open",
            literal="unable to open shared memory object",
            pattern=r"unable to open shared memory object </torch_",
            weight=70,
            says="torch cannot open its shared-memory file",
            sample=(
                "RuntimeError: unable to open shared memory object </torch_4242_7654321> "
                "in read-write mode"
            ),
            other="open shared memory",
            unless=("too many open files",),
        ),
        Signature(
            name="bus-core",
            literal="bus error",
            pattern=r"^.{0,60}Bus error(?: \(core dumped\))?\s{0,4}$",
            weight=66,
            says="A process died of a bus error, most often because /dev/shm is too small",
            sample="Bus error (core dumped)",
            other="bus error on the i2c line 3",
            beside=("docker|container|shm|dataloader|num_workers|nccl|k8s|word:pod",),
        ),
        Signature(
            name="banner",
            literal="shmem allocation limit",
            pattern=r"SHMEM allocation limit.{0,20}(?:set to the default of|is set)",
            weight=34,
            says="The container has the default 64 MB of /dev/shm",
            sample="NOTE: The SHMEM allocation limit is set to the default of 64MB.",
            other="SHMEM",
            severity=Severity.WARNING,
        ),
        Signature(
            name="words",
            literal="shm",
            pattern=r"/dev/shm|--shm-size|--ipc[ =]host|shm_size",
            weight=52,
            says="/dev/shm is in question: 64 MB is a container's default",
            sample="with --shm-size=8g it works",
            other="shm",
            beside=(
                "dataloader|num_workers|nccl|worker|bus error|docker|torch",
                (
                    "said:bus error|sigbus|no space|word:hang|hangs|"
                    "killed|works|helps|too small|64m|报错|unable to|"
                    "dataloader worker|shared memory"
                ),
            ),
        ),
        Signature(
            name="shared-words",
            literal="shared memory",
            pattern=r"shared memory",
            weight=50,
            says="Shared memory is in question: /dev/shm may be too small",
            sample="not enough shared memory for the workers",
            other="shm",
            beside=(
                "dataloader|num_workers|nccl|docker|container",
                "error|fail|crash|word:hang|word:hangs|word:hanging|killed|word:bus|no space",
            ),
            unless=(
                "required:",
                "hardware limit",
                "direct shared memory",
            ),
        ),
        Signature(
            name="no-space-nccl",
            literal="no space left on device",
            pattern=r"no space left on device",
            weight=70,
            says="NCCL or torch finds no room in /dev/shm",
            sample="NCCL WARN Call to shm_open failed : No space left on device",
            other="no space",
            beside=("nccl|dataloader|/dev/shm|torch_shm|multiprocessing",),
        ),
        Signature(
            name="shm-open-nccl",
            literal="shm",
            pattern=(
                r"(?:shm_open|shmOpen|ncclShm\w{0,12}).{0,40}(?:fail|error)|"
                r"shm\.(?:cc|h):\d{1,4} NCCL WARN"
            ),
            weight=74,
            says="NCCL cannot use its shared memory: /dev/shm is too small or not usable",
            sample="include/shm.h:28 NCCL WARN Call to shm_open failed : Permission denied",
            other="shm_open",
        ),
        Signature(
            name="exit-7",
            literal="-7",
            pattern=r"code\W{1,5}-7\b",
            weight=76,
            says="A rank died of a bus error (signal 7): /dev/shm is too small",
            sample="exits with return code = -7",
            other="code 7",
            beside=("code",),
        ),
        Signature(
            name="mpi-bus",
            literal="bus error",
            pattern=r"Signal: Bus error \(7\)|caught signal 7\b|Fatal Python error: Bus error",
            weight=72,
            says="A process died of a bus error: shared memory (/dev/shm) is exhausted",
            sample="[box:4242] Signal: Bus error (7)",
            other="Signal: Segmentation fault (11)",
            beside=("nccl|torch|dataloader|horovod",),
        ),
        Signature(
            name="allocate-shm",
            literal="unable to allocate shared memory",
            pattern=r"unable to allocate shared memory ?\(shm\) for file </?torch_",
            weight=90,
            says="/dev/shm is full",
            sample=(
                "RuntimeError: unable to allocate shared memory(shm) for file </torch_1_2_3>: No "
                "space left on device (28)"
            ),
            other="unable to allocate shared memory for the window",
        ),
        Signature(
            name="no-space-shm",
            literal="/dev/shm",
            pattern=(
                r"no space left on device:? .{0,20}/dev/shm|/dev/shm.{0,80}no space left on device"
            ),
            weight=86,
            says="/dev/shm is full",
            sample="OSError: [Errno 28] No space left on device: '/dev/shm/sem.mp'",
            other="/dev/shm has space",
        ),
    ),
    cures=(
        Cure(
            text="Give the container more shared memory.",
            zh="给容器更大的共享内存。",
            commands=(
                "docker run --shm-size=8g IMAGE",
                "df -h /dev/shm",
            ),
        ),
        Cure(
            text="Or use fewer DataLoader workers (num_workers=0 tells whether it is this).",
            zh="或减少 DataLoader 的 num_workers（设为 0 可以判断是否为此原因）。",
        ),
    ),
)
