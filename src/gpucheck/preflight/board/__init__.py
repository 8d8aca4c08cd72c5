"""The board: the key-value server by which the tasks of a job know each other, and its client."""
