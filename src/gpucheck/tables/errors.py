"""The one error that reading the compatibility tables can raise."""


class TablesError(Exception):
    """A table cannot be read; the message is one sentence with the file and, if any, the row."""
