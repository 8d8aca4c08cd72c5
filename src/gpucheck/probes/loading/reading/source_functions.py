"""The functions of a Python file, parsed one by one and never executed.

Parsing the whole of ``torch/__init__.py`` takes 50 ms, the few functions that load libraries 2 ms.
"""

import ast
import re

from gpucheck.language import say
from gpucheck.machine.python_source import parsed

LOAD = "_load_global_deps"
"""The function of torch that loads libraries."""
_FUNCTION = re.compile(r"^def (\w+)\(", re.MULTILINE)
_END_OF_FUNCTION = re.compile(r"^[^\s#)\]}]", re.MULTILINE)
_OPENING = "CDLL"
_MOST_WORK = 100_000
"""Nodes of the syntax tree that are followed in all; the forms of torch need up to 18,000."""


class Functions:
    """The functions at the top level of a file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = {found[1]: found.span() for found in _FUNCTION.finditer(text)}
        self._parsed: dict[str, ast.FunctionDef] = {}
        self._opening: dict[str, bool] = {}
        self._sizes: dict[ast.AST, int] = {}
        self._calls: dict[ast.AST, list[ast.Call]] = {}
        self._work = 0

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

    def spend(self, node: ast.AST) -> None:
        """Count a node that is about to be followed: functions that call each other multiply.

        Raises:
            ValueError: too many have been followed.
        """
        self._walk(node)
        self._work += self._sizes[node]
        if self._work > _MOST_WORK:
            raise ValueError(say("{function} takes too many steps to be understood", function=LOAD))

    def opens(self, node: ast.AST) -> bool:
        """Whether a statement opens a library, itself or through a function that it calls.

        A function that is only defined there does nothing yet.
        """
        if isinstance(node, ast.FunctionDef):
            return False
        names = [name_of(call.func) for call in self.calls(node)]
        return _OPENING in names or any(self._opens(name) for name in names)

    def openings(self, node: ast.AST) -> list[ast.Call]:
        """Return the calls that open a library, in source order."""
        return [call for call in self.calls(node) if name_of(call.func) == _OPENING]

    def calls(self, node: ast.AST) -> list[ast.Call]:
        """Return every call in a node, in source order."""
        self._walk(node)
        return self._calls[node]

    def _walk(self, node: ast.AST) -> None:
        if node not in self._sizes:
            nodes = list(ast.walk(node))
            self._sizes[node] = len(nodes)
            calls = (inner for inner in nodes if isinstance(inner, ast.Call))
            self._calls[node] = sorted(calls, key=lambda call: (call.lineno, call.col_offset))

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


def name_of(node: ast.expr) -> str:
    """Return ``glob`` of ``glob`` and of ``glob.glob``; "" of anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
