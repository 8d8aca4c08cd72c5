"""Faces of a report: one file = one format, and what the formats share."""
