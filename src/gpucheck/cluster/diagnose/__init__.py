"""Which rank, node or link is broken: pure functions of the results of the steps."""
