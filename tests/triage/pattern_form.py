"""What a pattern is made of: whether its form is linear in time, and a text that it matches."""

import sys
from collections.abc import Iterator
from typing import Any

# The parser of patterns.
if sys.version_info >= (3, 11):
    from re import _constants as codes
    from re import _parser as parser
else:
    import sre_constants as codes
    import sre_parse as parser

_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
_ZERO_WIDTH = (codes.AT, codes.ASSERT, codes.ASSERT_NOT)


def faults(tree: Any, *, inside: bool = False) -> Iterator[str]:  # noqa: ANN401  # a parse tree
    """Yield nested and adjacent repeats without a bound, across groups too, and back-references."""
    before = False
    for operation, argument in flat(tree):
        begins, ends = edges(operation, argument)
        if before and begins:
            yield "adjacent repeats without a bound"
        if operation not in _ZERO_WIDTH:
            before = ends
        if operation in _REPEATS:
            _, most, repeated = argument
            unbounded = most is codes.MAXREPEAT
            if unbounded and inside:
                yield "nested repeats without a bound"
            yield from faults(repeated, inside=inside or unbounded)
        elif operation is codes.BRANCH:
            for branch in argument[1]:
                yield from faults(branch, inside=inside)
        elif operation in (codes.ASSERT, codes.ASSERT_NOT):
            yield from faults(argument[1], inside=inside)
        elif operation is codes.GROUPREF:
            yield "a back-reference"


def flat(tree: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
    """Yield the parts of a pattern as if its groups were not there."""
    for operation, argument in tree:
        if operation is codes.SUBPATTERN:
            yield from flat(argument[3])
        else:
            yield operation, argument


def edges(operation: Any, argument: Any) -> tuple[bool, bool]:  # noqa: ANN401
    """Return whether a part begins, and whether it ends, with a repeat without a bound."""
    if operation in _REPEATS:
        if argument[1] is codes.MAXREPEAT:
            return True, True
        return _edges_of(argument[2])
    if operation is codes.BRANCH:
        found = [_edges_of(branch) for branch in argument[1]]
        return any(begins for begins, _ in found), any(ends for _, ends in found)
    return False, False


def _edges_of(tree: Any) -> tuple[bool, bool]:  # noqa: ANN401
    parts = list(flat(tree))
    return (edges(*parts[0])[0], edges(*parts[-1])[1]) if parts else (False, False)


def example(tree: Any, longest: int = 40) -> str:  # noqa: ANN401
    """Return a text that a pattern goes through as far as possible; assertions are not minded."""
    parts = []
    for operation, argument in flat(tree):
        if operation is codes.LITERAL:
            parts.append(chr(argument))
        elif operation is codes.IN:
            parts.append(_member(argument))
        elif operation in (codes.ANY, codes.NOT_LITERAL):
            parts.append("a")
        elif operation is codes.BRANCH:
            parts.append(example(argument[1][-1], longest))
        elif operation in _REPEATS:
            parts.append(example(argument[2], longest) * max(1, min(int(argument[1]), longest)))
    return "".join(parts)[:4096]


def _member(members: Any) -> str:  # noqa: ANN401
    operation, argument = members[0]
    if operation is codes.LITERAL:
        return chr(argument)
    if operation is codes.RANGE:
        return chr(argument[0])
    digits, blanks = codes.CATEGORY_DIGIT, codes.CATEGORY_SPACE
    return "1" if argument is digits else " " if argument is blanks else "a"


def parsed(pattern: str | bytes, flags: int = 0) -> Any:  # noqa: ANN401
    """Return the parse tree of a pattern."""
    return parser.parse(pattern, flags)  # type: ignore[arg-type]  # it takes bytes too
