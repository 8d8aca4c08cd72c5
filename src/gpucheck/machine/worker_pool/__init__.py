"""Workers in the target interpreter: starts, listens to, ends and cleans up after them.

The owner of the pool decides what a worker does and what its answers mean.
"""
