"""The range of time limits in seconds, for a program and on the command line alike."""

# Chosen; docs/architecture.md, 1.1, promises them. With less nothing could be answered: a self-test
# imports torch first (some seconds), and the tasks of a job have to meet as well.
LEAST, LEAST_OF_SELF_TESTS, LEAST_OF_A_JOB = 0.1, 1, 10
MOST = 1_000_000
"""Whatever is as long as this is a mistake."""
