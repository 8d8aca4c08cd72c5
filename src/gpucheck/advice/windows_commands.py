"""Commands of Linux in the form of Windows, for PowerShell and cmd alike."""

import re

_AS_ROOT = "sudo "
_REBOOT = "shutdown /r /t 0"
_SHOW = r"ps -(?:fp|o \S{1,99} -p) (?P<pids>[\d,]{1,200})"
_END = r"kill (?:-9 )?(?P<pids>[\d ]{1,200})"
_LINUX_ALONE = (
    "cat", "chmod", "df", "dmesg", "export", "free", "grep", "journalctl", "ldconfig", "ls",
    "lsof", "lspci", "modprobe", "mv", "printf", "rm", "rmmod", "sed", "stat", "systemctl",
    "timeout", "ulimit", "unset",
)  # fmt: skip
"""First words of commands that Windows does not have, or has for something else."""
_OF_POWERSHELL = ("$env:", "Remove-Item Env:")


def on_windows(command: str) -> tuple[str, ...]:
    """Return what does the same there; () if nothing does."""
    plain = command.removeprefix(_AS_ROOT)
    if plain == "reboot":
        return (_REBOOT,)
    if found := re.fullmatch(_SHOW, plain):
        pids = found["pids"].split(",")
        return tuple(f'tasklist /FI "PID eq {pid}"' for pid in pids)
    if found := re.fullmatch(_END, plain):
        return tuple(f"taskkill /PID {pid}" for pid in found["pids"].split())
    program = plain.split(" ", 1)[0]
    as_root = plain != command
    return () if program in _LINUX_ALONE or (as_root and program != "nvidia-smi") else (plain,)


def needs_administrator(command: str) -> bool:
    """Whether an administrator must run what stands for this command of Linux."""
    return command.startswith(f"{_AS_ROOT}nvidia-smi")


def is_for_powershell(command: str) -> bool:
    """Whether cmd does not understand the command; one for cmd follows it."""
    return command.startswith(_OF_POWERSHELL)
