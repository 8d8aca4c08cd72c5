"""The libraries that ``torch/__init__.py`` loads by path before its own, read from its source.

The functions that load libraries have had a dozen forms since torch 1.12. gpucheck looks for none
of them. It follows the statements with the values that their text gives, and executes nothing. If
the text does not show what is loaded, the answer is unknown.
"""

import ast
from typing import Final

import msgspec

from gpucheck.language import Sentence, say
from gpucheck.probes.reading.source_values import (
    LOAD,
    MAPS,
    UNKNOWN,
    Functions,
    Values,
    assign,
    forget,
    known,
    name_of,
    value_of,
)

_GLOBAL_DEPS = "libtorch_global_deps"
# Calls; enough for torch 1.13 to 2.15 in the tests; functions that call each other have no end.
_DEEPEST = 8

_ENTRY: Final = "{entry}"
"""Stands for one entry of ``sys.path``."""


class Entry(msgspec.Struct, frozen=True):
    """One library that is loaded by path."""

    patterns: tuple[str, ...]
    """Where it may lie below an entry of sys.path; the first file that is there is loaded."""
    required: bool = True
    beside: str = ""
    """A folder without which an entry of sys.path is passed over; "" for any entry."""

    @property
    def name(self) -> str:
        """The pattern of its file name: ``libcublas.so.*[0-9]``."""
        return self.patterns[0].rpartition("/")[2]


class Preloading(msgspec.Struct, frozen=True, kw_only=True):
    """The libraries loaded before or after ``libtorch_global_deps``, which torch loads first."""

    always: tuple[Entry, ...] = ()
    """Loaded afterwards if all of ``mapped`` is met; a failure silently ends this."""
    mapped: tuple[str, ...] = ()
    """Each must be part of the path of a loaded file: ``libcudart.so``."""
    on_error: tuple[Entry, ...] = ()
    """Loaded if it could not be loaded, before a second attempt; a failure ends the import."""
    error_names: tuple[str, ...] = ()
    """The second attempt is made only if the error message contains one of these."""
    together: bool = False
    """Whether all must be below one entry of sys.path (torch 1.13)."""

    def words(self) -> str:
        """Return in a few words what is loaded and when; "" if nothing is."""
        parts = []
        if self.always:
            parts.append(f"{_stems(self.always)} after {_GLOBAL_DEPS}")
        if self.on_error:
            parts.append(f"{_stems(self.on_error)} when {_GLOBAL_DEPS} cannot be loaded")
        return "; ".join(parts)


def understand(text: str, cuda: str | None = None) -> Preloading:
    """Follow the functions of a ``torch/__init__.py`` that load libraries.

    Args:
        text: the file.
        cuda: the CUDA of this build, on which parts of it depend; None for a CPU build.

    Raises:
        ValueError: a function is missing, or what it loads does not follow from its text.
    """
    try:
        return _understand(Functions(text), cuda)
    except RecursionError as error:
        raise ValueError(
            say("{function} is nested too deeply to be understood", function=LOAD)
        ) from error


def _not_understood() -> Sentence:
    return say(
        "gpucheck cannot tell from {function} which libraries this PyTorch loads", function=LOAD
    )


def _understand(functions: Functions, cuda: str | None) -> Preloading:
    load = functions.get(LOAD)
    if load is None:
        raise ValueError(
            say("torch/__init__.py has no function {function} of a known form", function=LOAD)
        )
    loading = [node for node in load.body if functions.opens(node)]
    if len(loading) != 1:
        raise ValueError(_not_understood())
    attempt = loading[0]
    if _is_opening(attempt):  # until torch 1.13.0 nothing else was loaded
        return Preloading()
    if not isinstance(attempt, ast.Try) or len(attempt.handlers) != 1 or not _is_opening(
        attempt.body[0]
    ):  # fmt: skip
        raise ValueError(_not_understood())
    after = _Reader(functions, cuda)
    after.follow([*attempt.body[1:], *attempt.orelse], {})
    handler = attempt.handlers[0].body
    instead = _Reader(functions, cuda, after_error=True)
    instead.follow(handler, {})
    return Preloading(
        always=tuple(after.found),
        mapped=tuple(after.mapped),
        on_error=tuple(instead.found),
        error_names=_error_names(handler, instead.found),
        together=after.together or instead.together,
    )


class _Reader:
    """Follows statements, and the functions that they call, and notes what is loaded, in order."""

    def __init__(
        self, functions: Functions, cuda: str | None, *, after_error: bool = False
    ) -> None:
        self._functions = functions
        self._cuda = cuda
        self._after_error = after_error
        self._depth = 0
        self.found: list[Entry] = []
        self.mapped: list[str] = []
        self.together = False

    def follow(self, body: list[ast.stmt], values: Values) -> bool:
        """Follow the statements; return whether what comes after them is reached.

        Raises:
            ValueError: one of them loads something in a way that does not follow from the text.
        """
        opening = [at for at, node in enumerate(body) if self._functions.opens(node)]
        for at, node in enumerate(body):
            self._functions.spend(node)
            if isinstance(node, ast.Return | ast.Raise):
                return False
            if isinstance(node, ast.If):
                if not self._branch(node, values, last=not opening or at >= opening[-1]):
                    return False
            elif not self._statement(node, values):
                return False
        return True

    def _statement(self, node: ast.stmt, values: Values) -> bool:
        if isinstance(node, ast.Try):
            return self.follow([*node.body, *node.orelse, *node.finalbody], values)
        if isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    values[item.optional_vars.id] = value_of(item.context_expr, values)
            return self.follow(node.body, values)
        if not self._functions.opens(node):
            assign(node, values, self._cuda)
        elif isinstance(node, ast.For):
            self._loop(node, values)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._call(node.value, values)
        else:
            raise ValueError(
                say("gpucheck does not understand a statement that preloads libraries")
            )
        return True

    def _branch(self, node: ast.If, values: Values, *, last: bool) -> bool:
        """Follow one branch of a condition; ``last`` says that nothing is loaded after it."""
        holds = value_of(node.test, values)
        if known(holds):
            return self.follow(node.body if holds else node.orelse, values)
        needed, negated = _mapped(node.test, values)
        if needed and negated and not node.orelse and isinstance(node.body[-1], ast.Return):
            self.mapped.append(needed)
            return True
        if needed and not negated and not node.orelse and last:
            self.mapped.append(needed)
            return self.follow(node.body, values)
        if self._functions.opens(node) or (not last and self._may_end(node)):
            raise ValueError(
                say(
                    "{function} preloads under a condition that gpucheck does not understand",
                    function=LOAD,
                )
            )
        forget(node, values)
        return True

    def _may_end(self, node: ast.If) -> bool:
        """Whether a condition may end the function; after an error it may raise it again."""
        ends = (ast.Return,) if self._after_error else (ast.Return, ast.Raise)
        return any(isinstance(inner, ends) for inner in ast.walk(node))

    def _loop(self, node: ast.For, values: Values) -> None:
        items = value_of(node.iter, values)
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        if not isinstance(items, list | dict) or node.orelse:
            raise ValueError(say("gpucheck does not understand a loop that preloads libraries"))
        for item in items:
            parts = item if isinstance(node.target, ast.Tuple) else [item]
            if not isinstance(parts, list) or len(parts) != len(targets):
                raise ValueError(say("gpucheck does not understand a loop that preloads libraries"))
            for target, part in zip(targets, parts, strict=True):
                if isinstance(target, ast.Name):
                    values[target.id] = part
            if not self.follow(node.body, values):
                return

    def _call(self, call: ast.Call, values: Values) -> None:
        function = self._functions.get(name_of(call.func))
        if function is None:
            # With a mode it is the second attempt at libtorch_global_deps.
            if not _is_opening(ast.Expr(call)) or not call.keywords:
                raise ValueError(
                    say("gpucheck does not understand the path by which a library is loaded")
                )
            return
        self._functions.spend(function)
        given = _bound(function, call, values)
        if self._functions.openings(function):
            self._leaf(function, given)
            return
        if self._depth == _DEEPEST:
            raise ValueError(say("gpucheck does not understand a function that preloads libraries"))
        self._depth += 1
        self.follow(function.body, given)
        self._depth -= 1

    def _leaf(self, function: ast.FunctionDef, values: Values) -> None:
        """Note what a function loads that searches sys.path itself."""
        search = PreloadSearch(self._functions, self._cuda)
        search.read(function.body, values)
        required = values.get("required") is not False
        opened = self._functions.openings(function)
        paths = [value_of(call.args[0], values) for call in opened if call.args]
        if search.patterns:
            self.found.append(Entry(tuple(search.patterns), required, search.beside))
        elif paths and all(isinstance(path, str) for path in paths):
            self.together = True
            self.found += [Entry((_below(path),), required, search.beside) for path in paths]
        else:
            raise ValueError(
                say("gpucheck does not understand where torch looks for the libraries")
            )


def _mapped(test: ast.expr, values: Values) -> tuple[str, bool]:
    """Return the text that a condition searches the maps for, and whether it must be absent."""
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    if isinstance(test, ast.UnaryOp) and negated:
        test = test.operand
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return "", False
    text, where = value_of(test.left, values), value_of(test.comparators[0], values)
    if where is not MAPS or not isinstance(text, str):
        return "", False
    if isinstance(test.ops[0], ast.In | ast.NotIn):
        return text, negated is not isinstance(test.ops[0], ast.NotIn)
    return "", False


def _error_names(handler: list[ast.stmt], on_error: list[Entry]) -> tuple[str, ...]:
    """Return what the first attempt's message must contain: one library's name, or any name."""
    for node in handler:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare):
            left = node.test.left
            if isinstance(left, ast.Constant) and isinstance(left.value, str):
                return (left.value,)
    return tuple(dict.fromkeys(
        entry.name.partition(".")[0] for entry in on_error if entry.required
    ))  # fmt: skip


def _is_opening(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and name_of(node.value.func) == "CDLL"
    )


def _stems(entries: tuple[Entry, ...]) -> str:
    return ", ".join(dict.fromkeys(entry.name.partition(".so")[0] for entry in entries))


class PreloadSearch:
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
                self.beside = _below(path)
        self.read(node.body, values)
        self.read(node.orelse, values)

    def _calls(self, node: ast.AST, values: Values) -> None:
        """Note the patterns of a statement, also of the helpers that it calls."""
        for call in self._functions.calls(node):
            helper = self._functions.get(name_of(call.func))
            if name_of(call.func) in ("glob", "iglob"):
                pattern = value_of(call.args[0], values) if call.args else UNKNOWN
                self.patterns.append(_below(pattern))
            elif helper is not None and self._depth < _DEEPEST:
                self._functions.spend(helper)
                self._depth += 1
                self.read(helper.body, _bound(helper, call, values))
                self._depth -= 1


def _bound(function: ast.FunctionDef, call: ast.Call, values: Values) -> Values:
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


def _below(path: object) -> str:
    """Return the part of a path after the entry of sys.path."""
    if not isinstance(path, str) or not path.startswith(f"{_ENTRY}/"):
        raise ValueError(say("gpucheck does not understand where torch looks for the libraries"))
    return path.removeprefix(f"{_ENTRY}/")
