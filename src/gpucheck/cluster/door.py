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
        entrance: what the launcher says.
        port: that of ``--port``, None without one.
        token: what the user has set; "" if nothing.
    """

    def __init__(self, env: Env, entrance: TaskPlace, port: int | None, token: str) -> None:
        self._entrance = entrance
        self._port = port
        self._secrets = secret.find(env, entrance, token)
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
        entrance = self._entrance
        token = self._secrets.of_store()
        if entrance.tasks == 1 and self._port is None:
            token = secrets.token_hex(16)
            self._secrets = secret.always(token)
            return Store.alone(entrance.run, token)
        return Store.open(
            self._port, entrance.master_port, entrance.run, token, entrance.tasks,
            here=entrance.stays_here,
        )  # fmt: skip

    def connect(self, own: Store | None, patience: float) -> StoreClient:
        """Return a connection to the store; ``own`` is that of this task itself.

        Raises:
            ConnectError: it was not found in time.
        """
        entrance = self._entrance
        who = Who(entrance.task, self._process)
        if own is not None:
            # Whoever else is on its node sees the same, and others replace it by the way they came.
            return StoreClient.connect(
                "127.0.0.1", (own.port,), entrance.run, self._secrets.of_client, _OWN, who
            )
        wanted = ports(self._port, entrance.master_port)
        return StoreClient.connect(
            entrance.master_host, wanted, entrance.run, self._secrets.of_client, patience, who
        )
