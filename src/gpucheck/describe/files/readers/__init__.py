"""Readers of project files: one module for each kind of file."""
