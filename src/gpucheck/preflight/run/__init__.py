"""The run of a task: supervisor, workers, steps; in task 0 the conductor."""
