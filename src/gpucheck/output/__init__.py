"""Renderers of a report: one file is one format; the rest is what the formats share."""
