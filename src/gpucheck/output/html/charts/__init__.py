"""Plots as inline SVG, drawn by ourselves: each has a text beside it and its figures as a table.

``svg`` has what all plots share. Each other module but ``of_selftests`` and ``of_preflight`` draws
one kind of plot; these two decide which plots a report has the data for.
"""
