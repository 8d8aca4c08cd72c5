"""What the tests let a real launcher start: each task finds its place and meets the others.

Task 0 prints what all have told, as one JSON line. No torch is needed.
"""

import json
import os
import sys
import time

from gpucheck.cluster.launcher import PlaceRequest, find, token
from gpucheck.cluster.store.attempt import Who
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.wire import ports
from gpucheck.facts import builtins

SECONDS = 30.0


def main(arguments: list[str]) -> None:
    """Meet; ``--master`` may be given."""
    request = PlaceRequest(
        master=arguments[1] if arguments[:1] == ["--master"] else "",
        nodes=int(os.environ["NODES"]) if "NODES" in os.environ else None,
        pid=os.getpid(),
        parent=os.getppid(),
    )
    place = find(os.environ, request)
    secret = token(os.environ)
    store = None
    if place.task == 0:
        store = Store.open(None, place.master_port, place.run, secret, place.tasks)
    tries = ports(None, place.master_port) or (store.port if store else 0,)
    client = StoreClient.connect(
        place.master_host, tries, place.run, secret, SECONDS, Who(place.task)
    )
    seen = {"here": os.uname().nodename, "address": client.local_address, "pid": os.getpid()}
    client.set(f"task/{place.task}", {**builtins(place), **seen})
    over: list[object] = []
    client.get("over", SECONDS, over.append)
    end = time.monotonic() + SECONDS
    while not over and not client.lost and time.monotonic() < end:
        client.pump()
        time.sleep(0.01)
        if store and len(store.under("task/")) == place.tasks:
            store.put("over", 1)
    if store:
        kept = store.under("task/")
        sys.stdout.write(
            json.dumps([json.loads(kept[key]) for key in sorted(kept, key=int)]) + "\n"
        )
        time.sleep(0.3)  # for the others to hear that it is over
        store.close()
    client.close()


if __name__ == "__main__":
    main(sys.argv[1:])
