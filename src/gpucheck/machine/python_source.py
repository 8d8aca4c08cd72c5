"""Python of the machine that is examined: it is parsed, and never executed."""

import ast
import warnings


def parsed(text: str) -> ast.Module:
    """Parse a file without a word of Python's own about it, such as a SyntaxWarning.

    Raises:
        ValueError: it is not Python, or nested too deeply.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(str(error) or type(error).__name__) from error
