"""Texts that point to host-out-of-memory."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="host-out-of-memory",
    zh="主机内存不足，进程被杀死",
    signatures=(
        Signature(
            name="kernel",
            literal="killed process",
            pattern=(
                r"(?:out of memory|oom-kill|memory cgroup out of memory).{0,120}killed "
                r"process \d|killed process \d{1,9} \(\S{1,40}\) total-vm"
            ),
            weight=93,
            says="The kernel killed a process for want of host memory",
            sample="Out of memory: Killed process 4242 (python) total-vm:65536000kB",
            other="killed process by the user",
            stands=True,
        ),
        Signature(
            name="oom-kill",
            literal="oom",
            pattern=(
                r"oom-kill:|oom_reaper: reaped|oom-kill event|result 'oom-kill'"
                r"|by the OOM killer|invoked oom-killer|oom_kill event"
            ),
            weight=90,
            says="A process was killed for want of host memory",
            sample="slurmstepd: error: Detected 1 oom-kill event(s) in step 123.0 cgroup.",
            other="root 42 [oom_reaper]",
            stands=True,
        ),
        Signature(
            name="cpu-alloc",
            literal="defaultcpuallocator",
            pattern=r"DefaultCPUAllocator: (?:not enough memory|can't allocate memory)",
            weight=91,
            says="Host memory is exhausted",
            sample=(
                "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: "
                "not enough memory: you tried to allocate 4096 bytes."
            ),
            other="DefaultCPUAllocator",
            stands=True,
        ),
        Signature(
            name="ray",
            literal="due to memory pressure",
            pattern=(
                r"(?:killed|killing).{0,80}due to (?:memory pressure|the node "
                r"running low on memory)"
            ),
            weight=93,
            says="Ray killed a worker for want of host memory",
            sample="Workers (tasks / actors) killed due to memory pressure (OOM): 3",
            other="memory pressure",
            stands=True,
        ),
        Signature(
            name="ray-low",
            literal="running low on memory",
            pattern=r"node running low on memory",
            weight=93,
            says="Ray killed a worker for want of host memory",
            sample="Task was killed due to the node running low on memory.",
            other="running low",
            stands=True,
        ),
        Signature(
            name="worker-killed",
            literal="killed by signal: killed",
            pattern=r"DataLoader worker .{0,40}is killed by signal: Killed",
            weight=84,
            says="A DataLoader worker was killed, most often for want of host memory",
            sample="RuntimeError: DataLoader worker (pid 1234) is killed by signal: Killed.",
            other="killed by signal: Bus error",
        ),
        Signature(
            name="exit-9",
            literal="-9",
            pattern=r"(?:code|returned|exits with)\D{0,16}-9\b",
            weight=66,
            says="A process was killed with signal 9, most often for want of host memory",
            sample="exitcode  : -9 (pid: 4242)",
            other="exit code 9",
            beside=("code|returned|exits with",),
        ),
        Signature(
            name="sigkill",
            literal="sigkill",
            pattern=r"(?:SIGKILL|signal 9)\b.{0,60}",
            weight=62,
            says="A process was killed with SIGKILL, most often for want of host memory",
            sample="Signal 9 (SIGKILL) received by PID 4242",
            other="SIGTERM",
        ),
        Signature(
            name="137",
            literal="137",
            pattern=(
                r"(?:exit(?:ed)?(?: with)?(?: code| status)?|code|status|exited)[ "
                r"=:(]{1,3}137\b"
            ),
            weight=70,
            says="A container or process was killed (137), most often for want of host memory",
            sample="Command exited with code 137",
            other="port 137",
        ),
        Signature(
            name="killed-word",
            literal="killed",
            pattern=(
                r"^(?:[!-~]{0,40}\s{0,4}|\[\d{1,3}\]\s[ +-]{0,4}|\S{1,80}: line \d{1,5}: {1,3})"
                r"(?:\d{2,8}\s{1,4})?Killed(?:\s{1,24}[!-~].{0,120})?$"
            ),
            weight=58,
            says="The shell says Killed, most often for want of host memory",
            sample="Killed",
            other="it was killed.",
            unless=("killed by signal: segm", "killed by signal: bus", "segmentation fault"),
        ),
        Signature(
            name="winerror-1455",
            literal="winerror 1455",
            pattern=r"\[WinError 1455\]",
            weight=84,
            says="Windows' paging file is too small to load torch's libraries",
            sample=(
                "OSError: [WinError 1455] The paging file is too small for "
                "this operation to complete."
            ),
            other="WinError 5",
        ),
        Signature(
            name="paging",
            literal="paging file is too small",
            pattern=r"paging file is too small",
            weight=84,
            says="Windows' paging file is too small",
            sample="The paging file is too small for this operation to complete. Error loading",
            other="paging file",
        ),
        Signature(
            name="cannot-alloc",
            literal="cannot allocate memory",
            pattern=r"OSError: \[Errno 12\] Cannot allocate memory|std::bad_alloc|MemoryError",
            weight=70,
            says="Host memory is exhausted",
            sample="OSError: [Errno 12] Cannot allocate memory",
            other="cannot allocate memory in static TLS block",
        ),
        Signature(
            name="memory-error",
            literal="memoryerror",
            pattern=r"(?:^|\s)(?:numpy\S{0,40})?(?:_Array)?MemoryError\b",
            weight=64,
            says="Host memory is exhausted",
            sample="MemoryError: Unable to allocate 12.0 GiB for an array",
            other="OutOfMemoryError",
        ),
        Signature(
            name="ram-words",
            literal="ram",
            pattern=(
                r"(?:runs? out of|not enough|exhaust\w{0,3}|insufficient|too "
                r"little|fills?).{0,20}(?:host |system |cpu |\b)(?:ram\b|host memory|"
                r"system memory)|(?:\bram|host memory|system memory)\b.{0,40}(?:runs? "
                r"out|exhaust|full|100 ?%|not enough|insufficient)"
            ),
            weight=62,
            says="Host memory is exhausted",
            sample="the machine runs out of RAM",
            other="then it runs out of VRAM",
        ),
        Signature(
            name="cgroup-exceeded",
            literal="exceeded",
            pattern=(
                r"(?:step|job|task|container|pod).{0,60}exceeded.{0,20}memory "
                r"limit|memory limit.{0,40}exceeded"
            ),
            weight=84,
            says="The job's limit on host memory was reached",
            sample="slurmstepd: error: Exceeded job memory limit",
            other="exceeded the quota",
        ),
        Signature(
            name="cuda-host",
            literal="cudahostalloc",
            pattern=(
                r"cudaHostAlloc.{0,60}(?:fail|out of memory)|pin(?:ned)?[ _]memory.{0,60}(?:fail"
                r"|out of memory|cannot allocate)"
            ),
            weight=70,
            says="Pinned host memory is exhausted",
            sample="cudaHostAlloc failed: out of memory",
            other="cudaHostAlloc",
        ),
        Signature(
            name="worker-terminated",
            literal="killed by signal: terminated",
            pattern=r"DataLoader worker .{0,40}is killed by signal: Terminated",
            weight=60,
            says="A DataLoader worker was terminated, most often for want of host memory",
            sample="RuntimeError: DataLoader worker (pid 1234) is killed by signal: Terminated.",
            other="killed by signal: Segmentation fault",
            unless=("keyboardinterrupt", "scancel", "timeout"),
        ),
        Signature(
            name="oomkilled",
            literal="oomkilled",
            pattern=r"\bOOMKilled\b",
            weight=91,
            says="Kubernetes or Docker killed the container for want of host memory",
            sample="      Reason:       OOMKilled",
            other='"OOMKilledBy": ""',
            stands=True,
            unless=('"oomkilled": false',),
        ),
        Signature(
            name="ray-threshold",
            literal="exceeds the memory usage threshold",
            pattern=r"which exceeds the memory usage threshold of 0?\.\d",
            weight=93,
            says="Ray killed a worker for want of host memory",
            sample=(
                "was running was 28.50GB / 30.00GB (0.951), which exceeds the memory usage "
                "threshold of 0.95."
            ),
            other="it exceeds the memory usage threshold of the monitor",
            stands=True,
        ),
        Signature(
            name="ray-page",
            literal="ray-oom-prevention",
            pattern=r"how to address the out of memory issue: .{0,80}ray-oom-prevention",
            weight=91,
            says="Ray killed a worker for want of host memory",
            sample=(
                "Refer to the documentation on how to address the out of memory issue: "
                "https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html."
            ),
            other="see ray-oom-prevention.html",
            stands=True,
        ),
        Signature(
            name="dask",
            literal="memory budget. restarting",
            pattern=r"exceeded \d{1,3}% memory budget\. Restarting",
            weight=90,
            says="Dask restarted a worker for want of host memory",
            sample="Worker tcp://127.0.0.1:42 (pid=7) exceeded 95% memory budget. Restarting...",
            other="the memory budget",
        ),
        Signature(
            name="dask-killed",
            literal="all those workers died while running it",
            pattern=r"attempted to run task .{1,200} but all those workers died while running it",
            weight=70,
            says="Dask's workers died, most often for want of host memory",
            sample=(
                "KilledWorker: Attempted to run task 'f-1' on 4 different workers, but all those "
                "workers died while running it."
            ),
            other="all those workers died while running it by hand",
        ),
        Signature(
            name="srun",
            literal=": out of memory",
            pattern=r"\bsrun: error: \S{1,60}: tasks? [\d,-]{1,40}: Out Of Memory",
            weight=92,
            says="Slurm killed a task for want of host memory",
            sample="srun: error: node1: task 0: Out Of Memory",
            other="CUDA error: out of memory",
            stands=True,
        ),
        Signature(
            name="slurm-state",
            literal="out_of_memory",
            pattern=r"(?:^|\s)(?:State\W{1,4}|JobState=)OUT_OF_MEMORY\b|^\d{1,9}\S{0,20}\s.{1,120}\sOUT_OF_ME",
            weight=90,
            says="Slurm ended the job for want of host memory",
            sample="State: OUT_OF_MEMORY (exit code 0)",
            other="CUDA_ERROR_OUT_OF_MEMORY",
            stands=True,
        ),
        Signature(
            name="earlyoom",
            literal="earlyoom",
            pattern=r"earlyoom.{0,60}(?:sending SIG(?:TERM|KILL)|killing) .{0,20}process",
            weight=90,
            says="earlyoom ended a process for want of host memory",
            sample='earlyoom[611]: sending SIGTERM to process 1234 uid 1000 "python": badness 900',
            other="earlyoom is running",
            stands=True,
        ),
        Signature(
            name="mmap",
            literal="unable to mmap",
            pattern=r"unable to mmap \d{1,20} bytes from file .{0,300}Cannot allocate memory",
            weight=86,
            says="Host memory is exhausted",
            sample=(
                "RuntimeError: unable to mmap 1024 bytes from file <model.safetensors>: Cannot "
                "allocate memory (12)"
            ),
            other="unable to mmap the file",
        ),
        Signature(
            name="session",
            literal="after using all available ram",
            pattern=r"crashed after using all available RAM",
            weight=91,
            says="The notebook's host memory is exhausted",
            sample="Your session crashed after using all available RAM.",
            other="after using all available RAM it is slow",
            stands=True,
        ),
    ),
    cures=(
        Cure(
            text=(
                "Use less host memory (fewer DataLoader workers, load checkpoints "
                "on one rank at a time) or raise the job's limit."
            ),
            zh=(
                "减少主机内存使用（减少 DataLoader worker、分批加载检查点），或提高任务的内存上限。"
            ),
            commands=(
                "sudo dmesg | grep -i 'killed process'",
                "free -h",
            ),
        ),
    ),
)
