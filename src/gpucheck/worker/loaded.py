"""Runs in the target interpreter: imports torch, uses cuDNN and reports which files are loaded.

It is run by its path with a mark as its only argument, and writes one JSON answer between two of
them. Python 3.8 or newer; standard library and torch only.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Write the answer to the real stdout, even if sys.stdout has been replaced."""
    mark = sys.argv[1]
    _stand_aside()
    text = ("\n" + mark + json.dumps(loaded()) + mark + "\n").encode("ascii")
    while text:
        text = text[os.write(1, text) :]


def loaded() -> dict[str, Any]:
    """Return ``libraries``, and in ``error`` why torch or cuDNN could not be queried ("" if not).

    ``cudnn`` is the version from ``torch.backends.cudnn``; this query opens the parts of cuDNN.
    """
    answer: dict[str, Any] = {"cudnn": None, "error": ""}
    try:
        import torch  # noqa: PLC0415

        answer["cudnn"] = torch.backends.cudnn.version()
    except Exception as error:  # noqa: BLE001  # whatever a broken torch raises is the answer
        answer["error"] = f"{type(error).__name__}: {error}"
    answer["libraries"] = mapped_libraries()
    return answer


def mapped_libraries() -> list[str]:
    """Return the shared libraries in this process, by /proc/self/maps, sorted."""
    paths = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line[line.find("/") :].rstrip("\n") if "/" in line else ""
            if ".so" in path.rpartition("/")[2]:
                paths.add(path)
    return sorted(paths)


def _stand_aside() -> None:
    """Put the current folder where the folder of a user's script would stand on sys.path."""
    own = os.path.dirname(os.path.realpath(__file__))
    if sys.path and os.path.realpath(sys.path[0]) == own:
        try:
            sys.path[0] = os.getcwd()
        except OSError:
            del sys.path[0]  # the current folder has been removed


if __name__ == "__main__":
    main()
