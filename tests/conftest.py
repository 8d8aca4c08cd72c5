"""Tiers of tests, what a fast test may do, and ``--finding``."""

pytest_plugins = ["plugin_tiers", "plugin_fast", "plugin_finding", "pytester"]
collect_ignore = ["machines"]  # data, not tests
