"""Which task of the job this is, and what it may do."""

import msgspec


class TaskPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Which task this is."""

    task: int
    tasks: int
    run: str
    """The name of the run."""
    domain: str = ""
    """What follows the launcher's names of hosts where they are looked up."""
    node: int | None
    local: int
    """Its place among the tasks of its node."""
    cuda: bool
    """Whether ranks are GPUs, or processes on the CPU."""
    python: str
    """The target interpreter."""
    chosen_by: str
    """How it was chosen."""
    end: float
    """When the run must be over, a time of ``time.monotonic()``."""
    import_seconds: float = 60.0
    """How long importing torch may take, and then starting CUDA."""
    counters: tuple[str, ...] = ()
    """The files of the error counters of this node's RDMA ports, for its first task."""
    absent: bool = False
    """Whether it takes no part: a drill."""
    takes_signals: bool = True
    """Whether this process is gpucheck's own, so that a SIGTERM means the pre-flight."""
    deputy_port: int = 0
    """On which it would hold the store if task 0 were lost; 0 if it would not."""
    mark: str = ""
    """What others may know of the mark of its process."""
