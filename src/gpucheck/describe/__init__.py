"""A machine that somebody describes, judged by the same findings."""
