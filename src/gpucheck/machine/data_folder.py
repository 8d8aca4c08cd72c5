"""Where gpucheck keeps what the user asked it to keep: the tables of ``gpucheck tables update``."""

import os
import sys


def data_folder() -> str:
    """Return the folder for this user's data of gpucheck; "" if no variable names one.

    It is also "" for root where another user could exchange the folder.
    """
    env = os.environ
    shared = env.get("XDG_DATA_HOME", "")
    home = env.get("HOME") or env.get("USERPROFILE") or ""
    if os.path.isabs(shared):  # noqa: PTH117  # the definition of the variable says so
        base = shared
    elif sys.platform == "win32" and env.get("LOCALAPPDATA"):
        base = env["LOCALAPPDATA"]
    elif home:
        base = os.path.join(home, ".local", "share")  # noqa: PTH118  # pathlib costs every check 2 ms
    else:
        return ""
    folder = os.path.join(base, "gpucheck")  # noqa: PTH118
    if not os.path.isdir(folder):  # noqa: PTH112
        return folder
    from gpucheck.machine.owners import folder_of_others  # noqa: PLC0415  # only if there is one

    return "" if folder_of_others(folder) else folder
