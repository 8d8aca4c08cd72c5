"""The functions of a Python file, parsed one by one and never executed.

Parsing the whole of ``torch/__init__.py`` takes 50 ms, the few functions that load libraries 2 ms.
"""

import ast
import re

from gpucheck.language import say
from gpucheck.machine.python_source import parsed

_FUNCTION = re.compile(r"^def (\w+)\(", re.MULTILINE)
_END_OF_FUNCTION = re.compile(r"^[^\s#)\]}]", re.MULTILINE)
_OPENING = "CDLL"


class Functions:
    """The functions at the top level of a file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = {found[1]: found.span() for found in _FUNCTION.finditer(text)}
        self._parsed: dict[str, ast.FunctionDef] = {}
        self._opening: dict[str, bool] = {}

    def get(self, name: str) -> ast.FunctionDef | None:
        """Return the function; None if the file has none of that name.

        Raises:
            ValueError: it is not Python.
        """
        if name not in self._starts:
            return None
        if name not in self._parsed:
            self._parsed[name] = self._parse(*self._starts[name])
        return self._parsed[name]

    def opens(self, node: ast.AST) -> bool:
        """Whether a statement opens a library, itself or through a function that it calls.

        A function that is only defined there does nothing yet.
        """
        if isinstance(node, ast.FunctionDef):
            return False
        return bool(openings(node)) or any(self._opens(name) for name in called(node))

    def _opens(self, name: str) -> bool:
        if name not in self._opening:
            self._opening[name] = False  # of functions that call each other, one looks further
            function = self.get(name)
            if function is not None:
                self._opening[name] = any(self.opens(node) for node in function.body)
        return self._opening[name]

    def _parse(self, start: int, end_of_name: int) -> ast.FunctionDef:
        end = _END_OF_FUNCTION.search(self._text, end_of_name)
        source = self._text[start : end.start() if end is not None else len(self._text)]
        try:
            node = parsed(source).body[0]
        except (ValueError, IndexError) as error:
            raise ValueError(
                say("torch/__init__.py is not Python: {error}", error=error)
            ) from error
        if not isinstance(node, ast.FunctionDef):
            raise ValueError(say("torch/__init__.py is not Python"))  # noqa: TRY004  # of the text
        return node


def openings(node: ast.AST) -> list[ast.Call]:
    """Return the calls that open a library, in source order."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    return sorted(
        (one for one in calls if name_of(one.func) == _OPENING), key=lambda one: one.lineno
    )


def called(node: ast.AST) -> list[str]:
    """Return the names of everything that is called, without what they belong to."""
    return [name_of(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)]


def name_of(node: ast.expr) -> str:
    """Return ``glob`` of ``glob`` and of ``glob.glob``; "" of anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
