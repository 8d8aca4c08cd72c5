"""How a process ends after a signal, as a shell says it."""

ENDING = ("SIGTERM", "SIGHUP", "SIGINT")
"""The signals that end gpucheck; Windows lacks some of them."""
BY_SIGNAL = 128
"""The exit status after a signal, without its number."""
