"""The gate of a cluster job: which rank, GPU, node or link is broken, in bounded time."""
