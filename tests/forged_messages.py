"""What the tasks of a job say to task 0, and the same with values of somebody who lies."""

import copy
import random
from collections.abc import Iterator
from typing import Any

LEAVES: list[Any] = [
    None, True, 0, -1, 2**31, 2**53, 10**18, 0.5, -1.0, 1e300, "", " ", "x", "²", "\x1b[2J",
    "\u202ex", "cuda:0", "GPU-", "n0", "0-9", [], {}, [[]], [{}], {"": 0}, ["x", 1], {"x": ["y"]},
]  # fmt: skip
ROOT = {
    "slug": "driver-too-old", "headline": "h", "confidence": "certain",
    "fixes": [{"text": "t", "commands": ["c"], "verify": "v"}],
}  # fmt: skip


def facts(task: int) -> dict[str, Any]:
    return {
        "task": task, "host": f"n{task // 2}", "node": task // 2, "pid": 7, "address": "10.0.0.1",
        "python": "3.11", "torch": "2.9.1", "cuda": "12.8", "cudnn": "9.1", "nccl": "2.27",
        "driver": "570.1", "gpu_numbers": {f"GPU-{task}": task}, "nvlinks": {f"GPU-{task}": 18},
        "infiniband": ["mlx5_0/1 ACTIVE"], "ports": {"mlx5_0/1": {
            "state": "ACTIVE", "physical": "LinkUp", "rate": "400 Gb/sec (4X NDR)",
            "gigabits": 400.0, "layer": "InfiniBand"}},
        "settings": {"port-rates": "1 x 400", "acs": "disabled"},
        "settings_unknown": {"gpu-payload": "needs root"}, "shm_bytes": 1, "memlock_bytes": -1,
        "variables": {"NCCL_DEBUG": "WARN"}, "problem": "", "kind": "", "roots": [ROOT],
        "devices": [{"index": 0, "name": "H", "memory": 5, "capability": "9.0",
                     "uuid": f"GPU-{task}", "pci": "0:1"}],
        "baseline": {"gpus": {f"GPU-{task}": {"model": "H", "rates": {"fp16 TFLOP/s": 1.0}}}},
    }  # fmt: skip


def result(rank: int, chance: random.Random) -> dict[str, Any]:
    return {
        "rank": rank, "order": chance.randrange(5), "collective": 1, "detail": "d", "seconds": 1.0,
        "status": chance.choice(("passed", "failed", "crashed", "timed-out", "stopped", "lost")),
        "phase": chance.choice(("alone", "connect", "enter", "leave", "done")),
        "kind": chance.choice(("", "wrong-value", "store-unreachable", "signal", "unkillable",
                               "collective-timeout", "no-device", "import-failed")),
        "flight": {"begun": 7, "completed": 6, "operation": "nccl:all_reduce", "state": "started"},
        "measurements": {"fp32 TFLOP/s": 1.0, "all-reduce 65536 B s": 0.1},
        "data": {"in_phase": 2.0, "own_deadline": True, "rank": 1, "address": "10.0.0.2",
                 "port": 80, "roots": [ROOT], "fault": "missing", "error": "e",
                 "nccl_warnings": ["w"], "printed": "p"},
    }  # fmt: skip


def deputies() -> dict[str, Any]:
    """Where to meet without task 0."""
    return {
        "message": "deputies", "host": "n0",
        "process": {"pid": 7, "started": 9, "place": "boot pid:[1] net:[2]"},
        "deputies": [{"task": 2, "host": "10.0.0.2", "port": 4000}, {"task": 1, "host": "",
                     "port": 4001}],
    }  # fmt: skip


def roll() -> dict[str, Any]:
    """Who was there before task 0 was lost: tasks 0 and 1 on one host, 2 and 3 on another."""
    return {
        "message": "roll", "tasks": 4, "hosts": 2, "beside": 2, "ranks": "0", "world_size": 4,
        "seats": {"1": [0, "0123456789ab"], "2": [1, ""], "3": [1, "ba9876543210"]},
    }  # fmt: skip


def survivor(task: int, seen: str = "unreachable") -> dict[str, Any]:
    """What a task saw of task 0."""
    return {
        "message": "survivor", "host": f"n{task // 2}", "seen": seen, "closed": True,
        "seconds": 3.5, "ranks": {str(task): f"cuda:{task}"},
    }  # fmt: skip


def deputys_verdict(host: str = "n0") -> dict[str, Any]:
    """What a deputy says about task 0."""
    culprit = {
        "slug": "rank-missing", "severity": "error", "confidence": "likely", "rank": 0,
        "ranks": [0], "host": host, "hosts": [host], "evidence": "e",
    }  # fmt: skip
    return {
        "message": "verdict", "exit": 1, "class": "culprit", "culprits": [culprit],
        "root_causes": ["rank-missing"], "verdict": "broken",
    }  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401  # JSON
    """Yield where the values of a message are."""
    if path and path != ("message",):
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def forged(message: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return the message with up to three of its values, or of its keys, replaced."""
    made = copy.deepcopy(message)
    for _ in range(chance.randrange(1, 4)):
        *above, last = chance.choice(list(places(made)))
        owner: Any = made
        for key in above:
            owner = owner[key]
        if isinstance(owner, dict) and chance.random() < 0.2:
            owner[str(chance.choice(LEAVES))] = owner.pop(last)
        else:
            owner[last] = copy.deepcopy(chance.choice(LEAVES))
    return made
