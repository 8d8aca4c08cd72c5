"""What all views have in common."""


class View:
    """Base of the views: ``__init__`` names what it is made of by its parameter types."""
