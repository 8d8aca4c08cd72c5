"""The functions of a Python file, parsed and never executed, and what follows from their text.

Only texts, numbers, lists and dictionaries are evaluated, with a few operations that cannot take
long or change anything. Everything else is ``UNKNOWN``.
"""

import ast
import operator
import re
from collections.abc import Callable
from typing import Any, Final

from gpucheck.language import say
from gpucheck.probes.reading.torch_files import parsed

Values = dict[str, Any]
"""The variables of a function and their values."""

LOAD = "_load_global_deps"
"""The function of torch that loads libraries."""
_FUNCTION = re.compile(r"^def (\w+)\(", re.MULTILINE)
_END_OF_FUNCTION = re.compile(r"^[^\s#)\]}]", re.MULTILINE)
_OPENING = "CDLL"
_MOST_WORK = 100_000
"""Nodes of the syntax tree that are followed in all; the forms of torch need up to 18,000."""


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
MAPS: Final = _Unknown()
"""The text of ``/proc/self/maps``."""
_MAPS_FILE = "/proc/self/maps"
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, many: item in many, ast.NotIn: lambda item, many: item not in many,
}  # fmt: skip
# Chosen: paths and lists of libraries are far shorter. Without a limit, a damaged source could
# build texts without end.
_LONGEST = 4096
_MOST_ITEMS = 256


def value_of(node: ast.expr, values: Values) -> Any:  # noqa: ANN401  # the text decides
    """Return what the expression gives; UNKNOWN if that does not follow from the text."""
    read = _READERS.get(type(node))
    try:
        found = read(node, values) if read is not None else UNKNOWN
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return UNKNOWN
    return UNKNOWN if _is_large(found) else found


def _is_large(found: object) -> bool:
    if isinstance(found, str):
        return len(found) > _LONGEST
    return isinstance(found, list | dict) and len(found) > _MOST_ITEMS


def known(*found: object) -> bool:
    """Whether all of these values are known."""
    return not any(isinstance(value, _Unknown) for value in found)


def assign(node: ast.stmt, values: Values, cuda: str | None) -> None:
    """Note the values that a statement gives to variables; ``cuda`` is ``torch.version.cuda``."""
    if isinstance(node, ast.ImportFrom) and node.module == "torch.version":
        for alias in node.names:
            values[alias.asname or alias.name] = cuda if alias.name == "cuda" else UNKNOWN
        return
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    value = getattr(node, "value", None)
    if len(targets) != 1 or value is None:
        forget(node, values)
        return
    target = targets[0]
    if isinstance(target, ast.Name):
        values[target.id] = value_of(value, values)
    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        of, at = values.get(target.value.id), value_of(target.slice, values)
        added = value_of(value, values)
        fits = isinstance(of, dict) and isinstance(at, str) and known(added)
        grown = {**of, at: added} if of is not None and fits else UNKNOWN
        values[target.value.id] = UNKNOWN if _is_large(grown) else grown
    else:
        forget(node, values)


def forget(node: ast.AST, values: Values) -> None:
    """Make every variable unknown that is assigned anywhere in the node."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            values[inner.id] = UNKNOWN


def _constant(node: ast.Constant, _values: Values) -> object:
    return node.value


def _name(node: ast.Name, values: Values) -> object:
    return values.get(node.id, UNKNOWN)


def _attribute(node: ast.Attribute, _values: Values) -> object:
    # Only Linux has the loader that this is about.
    return "linux" if ast.unparse(node) == "sys.platform" else UNKNOWN


def _formatted(node: ast.JoinedStr, values: Values) -> object:
    parts = [
        value_of(part.value if isinstance(part, ast.FormattedValue) else part, values)
        for part in node.values
    ]
    return _joined("", [_text(part) for part in parts])


def _text(value: object) -> object:
    """Return ``str(value)``: a list may contain itself many times, so its text may have no end."""
    return str(value) if _is_plain(value) else UNKNOWN


def _joined(between: str, parts: list[Any]) -> object:
    if not known(*parts) or sum(map(len, parts)) > _LONGEST:
        return UNKNOWN
    return between.join(parts)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _binary(node: ast.BinOp, values: Values) -> object:
    left, right = value_of(node.left, values), value_of(node.right, values)
    if isinstance(left, str) and isinstance(right, str):
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Div):
            return f"{left}/{right}"
    return UNKNOWN


def _not(node: ast.UnaryOp, values: Values) -> object:
    found = value_of(node.operand, values)
    return not found if isinstance(node.op, ast.Not) and known(found) else UNKNOWN


def _and_or(node: ast.BoolOp, values: Values) -> object:
    decides = isinstance(node.op, ast.Or)
    found = [value_of(operand, values) for operand in node.values]
    if any(known(value) and bool(value) is decides for value in found):
        return decides
    return (not decides) if known(*found) else UNKNOWN


def _comparison(node: ast.Compare, values: Values) -> object:
    left, right = value_of(node.left, values), value_of(node.comparators[0], values)
    if len(node.ops) > 1 or not known(left, right):
        return UNKNOWN
    inner = right if isinstance(right, list | dict) else [right]
    if not all(map(_is_plain, [left, *inner])):
        return UNKNOWN
    return _COMPARISONS[type(node.ops[0])](left, right)


def _sequence(node: ast.List | ast.Tuple, values: Values) -> object:
    found = [value_of(element, values) for element in node.elts]
    return found if known(*found) else UNKNOWN


def _dictionary(node: ast.Dict, values: Values) -> object:
    keys = [value_of(key, values) if key is not None else UNKNOWN for key in node.keys]
    found = [value_of(value, values) for value in node.values]
    return dict(zip(keys, found, strict=True)) if known(*keys, *found) else UNKNOWN


def _element(node: ast.Subscript, values: Values) -> object:
    of, at = value_of(node.value, values), value_of(node.slice, values)
    return of[at] if known(of, at) else UNKNOWN


def _call(node: ast.Call, values: Values) -> object:
    name = name_of(node.func)
    given = [value_of(argument, values) for argument in node.args]
    if name == "system" and not given:
        return "Linux"
    if name in ("read", "read_text") and isinstance(node.func, ast.Attribute):
        return MAPS if value_of(node.func.value, values) == _MAPS_FILE else UNKNOWN
    if not known(*given) or node.keywords:
        return UNKNOWN
    # A method of a text or a dictionary comes before a function of a module: both have a join.
    if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value, values):
        return _method(value_of(node.func.value, values), name, given)
    if name == "join":
        return _joined("/", given)
    if name in ("str", "Path", "open", "fspath"):
        return _text(given[0])
    return int(given[0]) if name == "int" else UNKNOWN


def _is_module(node: ast.expr, values: Values) -> bool:
    """Whether this is a module such as ``os.path``, not a value."""
    if isinstance(node, ast.Attribute):
        return _is_module(node.value, values)
    return isinstance(node, ast.Name) and node.id not in values


def _method(of: Any, name: str, given: list[Any]) -> object:  # noqa: ANN401  # the text decides
    if isinstance(of, str) and name in ("split", "partition", "startswith", "endswith"):
        return getattr(of, name)(*given)
    if isinstance(of, dict) and name in ("items", "values", "keys") and not given:
        return [list(entry) if name == "items" else entry for entry in getattr(of, name)()]
    return UNKNOWN


_READERS: dict[type[ast.expr], Callable[[Any, Values], object]] = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.JoinedStr: _formatted,
    ast.BinOp: _binary, ast.UnaryOp: _not, ast.BoolOp: _and_or, ast.Compare: _comparison,
    ast.List: _sequence, ast.Tuple: _sequence, ast.Dict: _dictionary, ast.Subscript: _element,
    ast.Call: _call,
}  # fmt: skip


# Parsing the whole of ``torch/__init__.py`` takes 50 ms, the few functions that load libraries
# take 2 ms.
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
