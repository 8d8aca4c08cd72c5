"""The Chinese words for a finding and its fixes, as far as its messages have them."""

from gpucheck.advice.interruption import (
    COLLECT_FIRST,
    DRAIN_EITHER,
    DRAIN_KUBERNETES,
    DRAIN_SLURM,
    ENDS_PROCESS,
    ENDS_WSL,
    NOW,
    STOPS_OTHERS,
)
from gpucheck.messages.loading import all_messages


def cause_in_chinese(slug: str) -> str | None:
    """Return the cause as a short sentence; None if there is none in Chinese."""
    known = all_messages().get(slug)
    return known.zh if known is not None else None


def fix_in_chinese(slug: str, text: str) -> str | None:
    """Return the Chinese words of the fix with exactly this English text; None if none."""
    known = all_messages().get(slug)
    return known.in_chinese(text) if known is not None else None


_CAUTIONS = {
    ENDS_PROCESS: "这会结束该进程，无论它属于谁：第一条命令会显示进程的所有者。",
    ENDS_WSL: "这会结束 WSL 中运行的所有程序：请先保存工作。",
    STOPS_OTHERS: "这会中断所有正在使用这台机器的人的工作：请先征得他们同意。",
    DRAIN_SLURM: "请先排空节点：scontrol update nodename=$(hostname -s) state=drain reason=gpu；"
    "完成后设为 state=resume。",
    DRAIN_KUBERNETES: "请先对该节点执行 kubectl cordon 和 kubectl drain --ignore-daemonsets，"
    "完成后执行 kubectl uncordon。",
    DRAIN_EITHER: "集群节点请先排空：Slurm 用 scontrol update ... state=drain，"
    "Kubernetes 用 kubectl cordon 和 kubectl drain。",
    COLLECT_FIRST: "请先收集驱动信息，重置或重启后会丢失；NVIDIA 会要求提供该报告文件。",
}


def caution_in_chinese(caution: str) -> str:
    """Return the Chinese words of a caution; that which names processes keeps their names."""
    if caution.startswith(NOW):
        named = caution.removeprefix(NOW).strip().rstrip(".").replace(" and ", "、另有 ")
        return f"目前正在使用 GPU 的进程：{named}。"
    return _CAUTIONS[caution]
