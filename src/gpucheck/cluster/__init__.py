"""The gate of a cluster job: it finds the broken rank, GPU, node or link in bounded time."""
