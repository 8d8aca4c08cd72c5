"""Starts workers in the target interpreter, reads their messages, ends them and cleans up.

The owner of the pool decides what a worker does and what its answers mean.
"""
