"""Whose interpreter the target is: root runs the code of whoever may write to it."""

import os

from gpucheck.machine.base import Host
from gpucheck.machine.target import TargetWish, choose


def foreign_owner(host: Host, wish: TargetWish) -> tuple[str, int] | None:
    """Return the target and the user id of its owner if root would run another user's code.

    The program itself is looked at, the environment around it, and the folder of its site packages
    as far as its layout is the usual one.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or host.origin != "live":
        return None
    usable = [one for one in choose(host, wish) if not one.problem]
    if not usable:
        return None
    target = usable[0]
    folder = os.path.dirname(os.path.dirname(target.executable))  # noqa: PTH120  # as written
    inside = host.glob(f"{folder}/lib/python3*/site-packages").value or []
    for place in (target.executable, target.prefix or folder, folder, *inside):
        seen = host.stat(place).value
        if seen is not None and seen.uid != 0:
            return target.executable, seen.uid
    return None
