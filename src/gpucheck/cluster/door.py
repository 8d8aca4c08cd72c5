"""How one task opens the store of its run, or finds it."""

import secrets

from gpucheck.cluster.launchers import secret
from gpucheck.cluster.launchers.entrance import TaskPlace
from gpucheck.cluster.launchers.variables import Env
from gpucheck.cluster.store.attempt import Who
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.wire import mark, ports

_OWN = 5.0
"""Seconds for task 0 to connect to its own store."""


class Door:
    """The way of a task to the store.

    Args:
        env: the environment.
        place: what the launcher says.
        port: that of ``--port``, None without one.
        token: what the user has set; "" if nothing.
    """

    def __init__(self, env: Env, place: TaskPlace, port: int | None, token: str) -> None:
        self.place = place
        self._port = port
        self._secrets = secret.find(env, place, token)
        self._process = secrets.token_hex(8)

    @property
    def mark(self) -> str:
        """What others may know of the mark of this process."""
        return mark(self._process)

    def open_store(self) -> Store:
        """Open the store, in task 0.

        Raises:
            StoreError: that is impossible, and the sentence says why.
        """
        place = self.place
        token = self._secrets.of_store()
        if place.tasks == 1 and self._port is None:
            token = secrets.token_hex(16)
            self._secrets = secret.always(token)
            return Store.alone(place.run, token)
        return Store.open(
            self._port, place.master_port, place.run, token, place.tasks,
            here=place.stays_here,
        )  # fmt: skip

    def connect(self, own: Store | None, patience: float) -> StoreClient:
        """Return a connection to the store; ``own`` is that of this task itself.

        Raises:
            ConnectError: it was not found in time.
        """
        place = self.place
        who = Who(place.task, self._process)
        if own is not None:
            # Whoever else is on its node sees the same, and others replace it by the way they came.
            return StoreClient.connect(
                "127.0.0.1", (own.port,), place.run, self._secrets.of_client, _OWN, who
            )
        wanted = ports(self._port, place.master_port)
        return StoreClient.connect(
            place.master_host, wanted, place.run, self._secrets.of_client, patience, who
        )
