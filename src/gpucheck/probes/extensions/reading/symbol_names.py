"""Names of C++ symbols: which ones belong to PyTorch, and how a person would write them."""

import re

# Only namespaces that no other project uses; functions of C (THP...) without one.
_OF_TORCH = re.compile(
    r"_Z(?:T[VISTCW]|GV)?N[rVKRO]{0,3}(?:3c10|2at|5torch|6caffe2)|_Z[0-9]{1,3}THPVariable"
)
_C_NAMES = ("aoti_torch_", "torch_", "THPVariable")
"""Prefixes of PyTorch's C functions, including its stable interface, and its Python types."""
_SPECIAL = {"TV": "virtual table of ", "TI": "type information of ", "TS": "type name of "}
_NEW_STRING = "7__cxx11"
_OLD_STRING = r"(?:R?K?)Ss$"  # std::string before C++11 as the last parameter of a mangled name
_LENGTH = re.compile(r"[1-9][0-9]{0,3}")
_PLAIN = r"[A-Za-z_][A-Za-z0-9_]{0,200}"
_LONGEST = 160  # chosen: templates may be endless, and the beginning names the function


def is_of_torch(symbol: str) -> bool:
    """Whether only PyTorch's own libraries define a symbol of this name."""
    return symbol.startswith(_C_NAMES) or _OF_TORCH.match(symbol) is not None


def string_abi(symbols: list[str]) -> bool | None:
    """Return True if the symbols use C++11 strings, False for older ones, None for neither."""
    if any(_NEW_STRING in symbol for symbol in symbols):
        return True
    return False if any(re.search(_OLD_STRING, symbol) for symbol in symbols) else None


def short_name(symbol: str) -> str:
    """Return a symbol in C++ notation without parameters: ``c10::TensorImpl::decref_pyobject``.

    A symbol that is not understood is returned as it is.
    """
    if symbol.startswith("?"):
        return (_of_msvc(symbol) or symbol)[:_LONGEST]
    if not symbol.startswith("_Z"):
        return symbol[:_LONGEST]
    rest, prefix = symbol[2:], ""
    for mark, words in _SPECIAL.items():
        if rest.startswith(mark):
            rest, prefix = rest[2:], words
    parts = _nested(rest[1:].lstrip("rVKRO")) if rest.startswith("N") else _source_names(rest)[:1]
    return (prefix + "::".join(parts))[:_LONGEST] if parts else symbol[:_LONGEST]


def _of_msvc(symbol: str) -> str:
    """Return a name of Microsoft's compiler in C++ notation; "" if it is not a plain one.

    The innermost scope comes first: ``?sizes@TensorImpl@c10@@QEBA...``. The name of a constructor
    begins with ``?0``, that of a destructor with ``?1``.
    """
    mark = symbol[1:3]
    inner = symbol[3:] if mark in ("?0", "?1") else symbol[1:]
    parts = inner.partition("@@")[0].split("@")[::-1]
    if not all(re.fullmatch(_PLAIN, part) for part in parts):
        return ""
    if mark in ("?0", "?1"):
        parts.append(("~" if mark == "?1" else "") + parts[-1])
    return "::".join(parts)


def _nested(rest: str) -> list[str]:
    """Return the parts of a nested name; a constructor gets the name of its class."""
    parts = _source_names(rest)
    ending = rest[sum(len(part) + len(str(len(part))) for part in parts) :][:2]
    if parts and ending[:1] == "C" and ending[1:].isdecimal():
        parts.append(parts[-1])
    elif parts and ending[:1] == "D" and ending[1:].isdecimal():
        parts.append(f"~{parts[-1]}")
    elif parts and ending[:1].islower():
        parts.append("operator")
    return parts


def _source_names(rest: str) -> list[str]:
    """Return the names at the start of the text, each encoded as its length and the name."""
    parts = []
    at = 0
    while (match := _LENGTH.match(rest, at)) is not None:
        end = match.end() + int(match[0])
        if end > len(rest):
            break
        parts.append(rest[match.end() : end])
        at = end
    return parts
