"""Where a function of ``torch/__init__.py`` looks for a library, read from its source."""

import ast
from typing import Final

from gpucheck.language import say
from gpucheck.probes.loading.reading.source_functions import Functions, name_of
from gpucheck.probes.loading.reading.source_values import (
    UNKNOWN,
    Values,
    assign,
    forget,
    known,
    value_of,
)

_ENTRY: Final = "{entry}"
"""Stands for one entry of ``sys.path``."""
_DEEPEST = 8


class Search:
    """What a function looks for below each entry of sys.path, in source order."""

    def __init__(self, functions: Functions, cuda: str | None) -> None:
        self._functions = functions
        self._cuda = cuda
        self._depth = 0
        self.patterns: list[str] = []
        self.beside = ""

    def read(self, body: list[ast.stmt], values: Values) -> None:
        """Read the statements of a function, or of a block in it.

        Raises:
            ValueError: a place does not follow from the text.
        """
        for node in body:
            self._functions.spend(node)
            if isinstance(node, ast.For):
                forget(node.target, values)
                if ast.unparse(node.iter) == "sys.path" and isinstance(node.target, ast.Name):
                    values[node.target.id] = _ENTRY
                self._calls(node.iter, values)
                self.read(node.body, values)
            elif isinstance(node, ast.If):
                self._if(node, values)
            else:
                self._calls(node, values)
                if not isinstance(node, ast.AugAssign):
                    assign(node, values, self._cuda)

    def _if(self, node: ast.If, values: Values) -> None:
        holds = value_of(node.test, values)
        if known(holds):
            self.read(node.body if holds else node.orelse, values)
            return
        guard = node.test.operand if isinstance(node.test, ast.UnaryOp) else None
        if isinstance(guard, ast.Call) and isinstance(node.body[0], ast.Continue) and guard.args:
            path = value_of(guard.args[0], values)
            if name_of(guard.func) in ("exists", "isdir") and isinstance(path, str):
                self.beside = below(path)
        self.read(node.body, values)
        self.read(node.orelse, values)

    def _calls(self, node: ast.AST, values: Values) -> None:
        """Note the patterns of a statement, also of the helpers that it calls."""
        for call in self._functions.calls(node):
            helper = self._functions.get(name_of(call.func))
            if name_of(call.func) in ("glob", "iglob"):
                pattern = value_of(call.args[0], values) if call.args else UNKNOWN
                self.patterns.append(below(pattern))
            elif helper is not None and self._depth < _DEEPEST:
                self._functions.spend(helper)
                self._depth += 1
                self.read(helper.body, bound(helper, call, values))
                self._depth -= 1


def bound(function: ast.FunctionDef, call: ast.Call, values: Values) -> Values:
    """Return the values of the parameters of a function that is called."""
    parameters = [argument.arg for argument in function.args.args]
    defaults = function.args.defaults
    first = len(parameters) - len(defaults)
    given = {
        name: value_of(expression, {})
        for name, expression in zip(parameters[first:], defaults, strict=True)
    }
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        given[argument.arg] = value_of(default, {}) if default is not None else UNKNOWN
    given |= {
        name: value_of(expression, values)
        for name, expression in zip(parameters, call.args, strict=False)
    }
    given |= {
        keyword.arg: value_of(keyword.value, values) for keyword in call.keywords if keyword.arg
    }
    return given


def below(path: object) -> str:
    """Return the part of a path after the entry of sys.path."""
    if not isinstance(path, str) or not path.startswith(f"{_ENTRY}/"):
        raise ValueError(say("gpucheck does not understand where torch looks for the libraries"))
    return path.removeprefix(f"{_ENTRY}/")
