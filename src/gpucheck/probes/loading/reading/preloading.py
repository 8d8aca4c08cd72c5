"""The libraries that ``torch/__init__.py`` loads by path before its own, read from its source.

Only the functions that load libraries are parsed; nothing is executed. They have had several forms
since torch 1.13. If a form is not understood, the answer is unknown.
"""

import ast
import re
from collections.abc import Iterable, Iterator

import msgspec

_FUNCTION = re.compile(
    r"^def (?:_load_global_deps|_preload_cuda_\w+|_get_cuda_dep_paths)\(", re.MULTILINE
)
_END_OF_FUNCTION = re.compile(r"^[^\s#)\]}]", re.MULTILINE)
_LOAD = "_load_global_deps"
_RUNTIME = "libcudart.so"
"""The newer forms check whether this library is loaded before they load anything."""
_GLOBAL_DEPS = "libtorch_global_deps"


class Entry(msgspec.Struct, frozen=True):
    """One library that is loaded by path: the first file of the pattern in a folder of sys.path."""

    folder: str
    pattern: str
    required: bool


class Preloading(msgspec.Struct, frozen=True, kw_only=True):
    """The libraries loaded before or after ``libtorch_global_deps``, which torch loads first."""

    always: tuple[Entry, ...] = ()
    """Loaded afterwards if it loaded libcudart; a failure silently ends this."""
    on_error: tuple[Entry, ...] = ()
    """Loaded if it could not be loaded, before a second attempt; a failure ends the import."""
    error_names: tuple[str, ...] = ()
    """The second attempt is made only if the error message contains one of these."""
    places: tuple[str, ...] = ()
    """Paths below an entry of sys.path: ``nvidia/{folder}/lib``, ``nvidia/cu{major}/lib`` ..."""
    together: bool = False
    """Whether all must be below one entry of sys.path (torch 1.13)."""

    def words(self) -> str:
        """Return in a few words what is loaded and when; "" for nothing."""
        parts = []
        if self.always:
            parts.append(f"{_stems(self.always)} after {_GLOBAL_DEPS}")
        if self.on_error:
            parts.append(f"{_stems(self.on_error)} when {_GLOBAL_DEPS} cannot be loaded")
        return "; ".join(parts)


def understand(text: str) -> Preloading:
    """Parse the functions of a ``torch/__init__.py``.

    Raises:
        ValueError: a function is missing or has an unknown form.
    """
    functions = {node.name: node for node in _functions(text)}
    load = functions.get(_LOAD)
    if load is None:
        raise ValueError(f"torch/__init__.py has no function {_LOAD} of a known form")
    attempt = next((node for node in load.body if isinstance(node, ast.Try)), None)
    if attempt is None or len(attempt.handlers) != 1 or not _loads(attempt.body[0]):
        raise ValueError(f"{_LOAD} has a form that is not understood")
    reader = _Reader(functions)
    handler = attempt.handlers[0].body
    always = tuple(reader.entries(attempt.body[1:], {}))
    if always and _RUNTIME not in _texts(attempt.body[1:]):
        raise ValueError(f"{_LOAD} preloads under a condition that is not understood")
    on_error = tuple(reader.entries(handler, {}))
    places = tuple(dict.fromkeys(reader.places))
    if (always or on_error) and not reader.together and not places:
        raise ValueError("where torch looks for the libraries is not understood")
    return Preloading(
        always=always,
        on_error=on_error,
        error_names=_error_names(handler, on_error),
        places=places,
        together=reader.together,
    )


class _Reader:
    """Follows the calls between functions and collects what is loaded, in order."""

    def __init__(self, functions: dict[str, ast.FunctionDef]) -> None:
        self._functions = functions
        self.places: list[str] = []
        self.together = False

    def entries(self, body: list[ast.stmt], required: dict[str, bool]) -> Iterator[Entry]:
        """Return what the statements load.

        Raises:
            ValueError: one of them loads something in an unknown way.
        """
        lists: dict[str, list[tuple[str, str]]] = {}
        for node in body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                pairs = _pairs(node.value)
                if pairs and isinstance(target, ast.Name):
                    lists[target.id] = pairs
                    continue
            if isinstance(node, ast.Try):
                yield from self.entries(node.body, required)
            elif isinstance(node, ast.For) and self._called(node):
                yield from self._each(node, lists, required)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                yield from self._call(node.value, required)
            elif self._called(node):
                raise ValueError("a form of preloading that is not understood")

    def _each(
        self, node: ast.For, lists: dict[str, list[tuple[str, str]]], required: dict[str, bool]
    ) -> Iterator[Entry]:
        names = [name.id for name in ast.walk(node.iter) if isinstance(name, ast.Name)]
        pairs = next((lists[name] for name in names if name in lists), None)
        only = node.body[0] if len(node.body) == 1 else None
        if pairs is None or not isinstance(only, ast.Expr) or not isinstance(only.value, ast.Call):
            raise ValueError("a loop of preloading that is not understood")
        leaf = self._leaf(only.value)
        for folder, pattern in pairs:
            yield Entry(folder, pattern, self._required(only.value, leaf, required))

    def _call(self, call: ast.Call, required: dict[str, bool]) -> Iterator[Entry]:
        name = _name(call.func)
        function = self._functions.get(name)
        if name == "CDLL" and not call.keywords:
            raise ValueError("a library is loaded by a path that is not understood")
        if function is None:
            return  # a call with a mode is the second attempt at libtorch_global_deps
        parameters = [argument.arg for argument in function.args.args]
        if parameters[:2] == ["lib_folder", "lib_name"]:
            words = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
            if len(words) != 2 or not all(isinstance(word, str) for word in words):  # noqa: PLR2004
                raise ValueError("a call of preloading that is not understood")
            leaf = self._leaf(call)
            yield Entry(str(words[0]), str(words[1]), self._required(call, leaf, required))
        elif _opens(function):
            yield from self._by_names(function)
        else:
            given = {"required": self._required(call, function, required)}
            yield from self.entries(function.body, given)

    def _leaf(self, call: ast.Call) -> ast.FunctionDef:
        """Return the function that loads one library, and note where it searches."""
        leaf = self._functions.get(_name(call.func))
        if leaf is None or not _opens(leaf):
            raise ValueError("a helper of preloading that is not understood")
        helpers = [self._functions[name] for name in _calls(leaf) if name in self._functions]
        for function in (*helpers, leaf):
            self.places += _places(function)
        return leaf

    def _by_names(self, function: ast.FunctionDef) -> Iterator[Entry]:
        """Parse the form of torch 1.13: paths of fixed names, all below one entry."""
        paths: dict[str, tuple[str, str]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                words = [
                    argument.value
                    for argument in getattr(node.value, "args", [])
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                ]
                if len(words) == 3 and words[1] == "lib":  # noqa: PLR2004  # folder, lib, name
                    paths[node.targets[0].id] = (words[0], words[2])
        opened = [argument.id for call in _opens(function) for argument in call.args
                  if isinstance(argument, ast.Name)]  # fmt: skip
        if not opened or not set(opened) <= set(paths):
            raise ValueError("a list of libraries that is not understood")
        self.together = True
        for name in opened:
            yield Entry(*paths[name], required=True)

    def _required(self, call: ast.Call, function: ast.FunctionDef, outer: dict[str, bool]) -> bool:
        for keyword in call.keywords:
            if keyword.arg == "required":
                if isinstance(keyword.value, ast.Constant):
                    return bool(keyword.value.value)
                return outer.get("required", True)
        defaults = function.args.defaults
        names = [argument.arg for argument in function.args.args][-len(defaults) :]
        for name, default in zip(names, defaults, strict=False):
            if name == "required" and isinstance(default, ast.Constant):
                return bool(default.value)
        return True

    def _called(self, node: ast.AST) -> bool:
        return bool(_opens(node)) or any(name in self._functions for name in _calls(node))


def _functions(text: str) -> Iterator[ast.FunctionDef]:
    """Parse the functions one by one: parsing the whole module takes 50 ms."""
    for start in _FUNCTION.finditer(text):
        end = _END_OF_FUNCTION.search(text, start.end())
        source = text[start.start() : end.start() if end is not None else len(text)]
        try:
            node = ast.parse(source).body[0]
        except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError) as error:
            raise ValueError(f"torch/__init__.py is not Python: {error}") from error
        if isinstance(node, ast.FunctionDef):
            yield node


def _places(function: ast.FunctionDef) -> list[str]:
    """Return the patterns that the function searches for, in source order."""
    found = []
    variables = {"nvidia_path": "nvidia"}
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        if _name(call.func) != "glob":
            continue
        pattern = call.args[0] if call.args else None
        parts = []
        if isinstance(pattern, ast.Call) and _name(pattern.func) == "join":
            parts = [_part(argument, variables) for argument in pattern.args]
        if parts[-1:] != ["lib_name"] or "" in parts:
            raise ValueError("a place of libraries that is not understood")
        place = "/".join(part for part in parts[:-1] if part != "path")
        found.append((call.lineno, call.col_offset, place.replace("lib_folder", "{folder}")))
    return [place for _, _, place in sorted(found)]


def _part(node: ast.expr, variables: dict[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return variables.get(node.id, node.id)
    if isinstance(node, ast.JoinedStr) and len(node.values) == 2:  # noqa: PLR2004  # cu{major}
        first = node.values[0]
        if isinstance(first, ast.Constant) and first.value == "cu":
            return "cu{major}"
    return ""


def _pairs(node: ast.expr) -> list[tuple[str, str]]:
    """Return the folders and patterns of a literal dictionary or list of pairs."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return []
    items: Iterable[object] = value.items() if isinstance(value, dict) else value or ()
    if not isinstance(value, dict | list | tuple):
        return []
    pairs = [item for item in items if isinstance(item, tuple) and len(item) == 2]  # noqa: PLR2004
    if not all(isinstance(word, str) for pair in pairs for word in pair):
        return []
    return [(str(pair[0]), str(pair[1])) for pair in pairs]


def _error_names(handler: list[ast.stmt], on_error: tuple[Entry, ...]) -> tuple[str, ...]:
    """Return what the message of the first attempt must contain: one library, or any of them."""
    for node in handler:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare):
            left = node.test.left
            if isinstance(left, ast.Constant) and isinstance(left.value, str):
                return (left.value,)
    return tuple(dict.fromkeys(
        entry.pattern.split(".")[0] for entry in on_error if entry.required
    ))  # fmt: skip


def _opens(node: ast.AST) -> list[ast.Call]:
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    return sorted((one for one in calls if _name(one.func) == "CDLL"), key=lambda one: one.lineno)


def _loads(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and bool(_opens(node))


def _calls(node: ast.AST) -> list[str]:
    return [_name(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)]


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _texts(body: list[ast.stmt]) -> set[object]:
    return {
        node.value for stmt in body for node in ast.walk(stmt) if isinstance(node, ast.Constant)
    }


def _stems(entries: tuple[Entry, ...]) -> str:
    return ", ".join(dict.fromkeys(entry.pattern.partition(".so")[0] for entry in entries))
