"""An interpreter whose worker says whatever a test wants: any code of the target may do so."""

import sys
from pathlib import Path
from typing import Any

_SCRIPT = """#!{python}
import json, os, sys
mark = sys.argv[-2]
def say(message):
    sys.stdout.write(mark + json.dumps(message) + mark)
    sys.stdout.flush()
say({ready!r})
for line in sys.stdin:
    told = json.loads(line)
    if "signal" in told:
        continue
    order = told.get("order", told)
    result = {{"event": "result", "test": order["tests"][0], "status": "passed", **{answer!r}}}
    if order is told:  # it is a worker of its own
        say(result)
        break
    key = told["worker"]
    say({{"event": "forked", "worker": key, "pid": os.getpid()}})
    for _time in range({times}):
        say({{"event": "said", "worker": key, "said": json.dumps(result)}})
    say({{"event": "ended", "worker": key, "status": 0, "signal": None, "printed": ""}})
"""


def lying_zygote(
    folder: Path,
    answer: dict[str, Any] | None = None,
    *,
    ready: dict[str, Any] | None = None,
    times: int = 1,
) -> str:
    """Return the path of an interpreter.

    Args:
        folder: for its file.
        answer: what it adds to the result of the first test of every order.
        ready: what it adds to the message with which the zygote begins.
        times: how often it sends each result.
    """
    path = folder / "python"
    text = _SCRIPT.format(
        python=sys.executable, ready={"event": "ready", **(ready or {})}, answer=answer or {},
        times=times,
    )  # fmt: skip
    path.write_text(text)
    path.chmod(0o755)
    return str(path)
