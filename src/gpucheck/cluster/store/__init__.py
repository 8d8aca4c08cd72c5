"""The key-value store by which the tasks of a job know each other: server, client, messages."""
