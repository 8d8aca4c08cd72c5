"""Parses ``Requires-Dist`` lines: name, extras, specifier, and whether the marker holds.

The ``packaging`` library could do this too. Importing ``packaging.requirements`` in the process
that reads torch's metadata was measured: it took 50 ms of CPU time, a tenth of a whole static
check, and the check went from 1/11 to 1/9 of the wall time of ``collect_env`` on the same busy
machine; at most 1/12 is allowed. The tests compare the results with those of ``packaging``.
"""

import re
from collections.abc import Callable, Mapping

import msgspec

from gpucheck.language import say
from gpucheck.probes.torch.reading.dist_info import normalise

_NAME = r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?"
_TOKEN = re.compile(
    r"\s*(?:(===|==|~=|!=|<=|>=|<|>)|([()])|'([^']*)'|\"([^\"]*)\"|([A-Za-z_][A-Za-z0-9_.]*))"
)
_VERSION = r"[0-9]+(?:\.[0-9]+)*"
_MAX_TOKENS = 400
_MAX_DEPTH = 20
_OPERATORS = ("===", "==", "~=", "!=", "<=", ">=", "<", ">", "in", "not in")


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement; the specifier contains no blanks: ``<14,>=13.0.3``."""

    project: str
    extras: tuple[str, ...] = ()
    specifier: str = ""
    marker: str = ""


def parse(text: str) -> Requirement:
    """Parse a requirement.

    Raises:
        ValueError: the text does not begin with a name.
    """
    found = re.match(_NAME, text)
    if found is None:
        raise ValueError(say("{text} is not a requirement", text=repr(text[:80])))
    rest, _, marker = text[found.end() :].partition(";")
    specifier = "".join(rest.split()).removeprefix("(").removesuffix(")")
    extras = [
        normalise(extra.strip()) for extra in (found.group(2) or "").split(",") if extra.strip()
    ]
    return Requirement(
        project=normalise(found.group(1)),
        extras=tuple(extras),
        specifier=specifier,
        marker=marker.strip(),
    )


def torch_requirement(lines: list[str]) -> str | None:
    """Return the specifier of torch among requirements: "" for any version, None if not required.

    Requirements of extras do not count.
    """
    for line in lines:
        if not line.lower().startswith("torch"):
            continue
        requirement = parse(line)
        if requirement.project == "torch" and "extra" not in requirement.marker:
            return requirement.specifier
    return None


def specifiers(
    lines: list[str], environment: Mapping[str, str], matters: Callable[[str], bool]
) -> dict[str, str]:
    """Return which versions the requirements demand of the projects that matter, by project.

    A requirement whose marker does not hold is left out, and so is one that cannot be parsed.
    """
    found: dict[str, str] = {}
    extra = environment.get("extra")
    for line in lines:
        if not extra and "extra" in line.partition(";")[2]:
            continue  # most lines of large packages; to parse them all takes too long
        try:
            requirement = parse(line)
            if (
                requirement.specifier
                and matters(requirement.project)
                and holds(requirement.marker, environment)
            ):
                before = found.get(requirement.project)
                found[requirement.project] = (
                    f"{before},{requirement.specifier}" if before else requirement.specifier
                )
        except ValueError:
            continue
    return found


def holds(marker: str, environment: Mapping[str, str]) -> bool:
    """Whether the marker holds in the environment; an empty marker does.

    Raises:
        ValueError: the marker is not understood, or it uses a variable that the environment lacks.
    """
    if not marker:
        return True
    reader = _Reader(_tokens(marker), environment)
    answer = reader.either(0)
    if not reader.at_end():
        raise ValueError(f"marker not understood: {marker[:80]}")
    return answer


def _tokens(marker: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    end = len(marker.rstrip())
    while at < end:
        token = _TOKEN.match(marker, at)
        if token is None or len(found) > _MAX_TOKENS:
            raise ValueError(f"marker not understood: {marker[:80]}")
        operator, bracket, single, double, word = token.groups()
        if operator or bracket:
            found.append(("sign", operator or bracket))
        elif word is not None:
            found.append(("word", word))
        else:
            found.append(("text", single if single is not None else double))
        at = token.end()
    return found


class _Reader:
    """Parses a marker by its grammar: ``or`` of ``and`` of comparisons and parentheses."""

    def __init__(self, tokens: list[tuple[str, str]], environment: Mapping[str, str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._environment = environment

    def at_end(self) -> bool:
        return self._at >= len(self._tokens)

    def either(self, depth: int) -> bool:
        if depth > _MAX_DEPTH:
            raise ValueError("marker with too many brackets")
        answer = self._both(depth)
        while self._take("word", "or"):
            answer = self._both(depth) or answer
        return answer

    def _both(self, depth: int) -> bool:
        answer = self._one(depth)
        while self._take("word", "and"):
            answer = self._one(depth) and answer
        return answer

    def _one(self, depth: int) -> bool:
        if self._take("sign", "("):
            answer = self.either(depth + 1)
            if not self._take("sign", ")"):
                raise ValueError("marker with an open bracket")
            return answer
        left, left_name = self._operand()
        operator = self._operator()
        right, right_name = self._operand()
        if "extra" in (left_name, right_name):
            left, right = normalise(left), normalise(right)
        as_versions = any("version" in side for side in (left_name, right_name))
        return _compare_versions(left, operator, right) if as_versions else _compare(
            left, operator, right
        )  # fmt: skip

    def _take(self, kind: str, text: str) -> bool:
        taken = not self.at_end() and self._tokens[self._at] == (kind, text)
        self._at += taken
        return taken

    def _next(self) -> tuple[str, str]:
        if self.at_end():
            raise ValueError("marker that ends early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _operand(self) -> tuple[str, str]:
        """Return the value, and the name of the variable that it comes from ("" for a literal)."""
        kind, text = self._next()
        if kind == "text":
            return text, ""
        if kind != "word" or text not in self._environment:
            raise ValueError(f"marker asks for {text}")
        return self._environment[text], text

    def _operator(self) -> str:
        _kind, text = self._next()
        if text == "not":
            text = f"not {self._next()[1]}"
        if text not in _OPERATORS:
            raise ValueError(f"marker has no operator {text}")
        return text


def _compare(left: str, operator: str, right: str) -> bool:
    if operator == "in":
        return left in right
    if operator == "not in":
        return left not in right
    if operator in ("==", "==="):
        return left == right
    if operator == "!=":
        return left != right
    raise ValueError(f"{operator} between words")


def _compare_versions(left: str, operator: str, right: str) -> bool:
    if operator in ("in", "not in", "==="):
        return _compare(left, operator, right)
    ours, theirs = _numbers(left), _numbers(right)
    if operator == "~=":
        return (
            ours >= theirs
            and ours[: len(right.split(".")) - 1] == theirs[: len(right.split(".")) - 1]
        )
    answers = {
        "==": ours == theirs,
        "!=": ours != theirs,
        "<": ours < theirs,
        "<=": ours <= theirs,
        ">": ours > theirs,
        ">=": ours >= theirs,
    }
    return answers[operator]


def _numbers(version: str) -> list[int]:
    """Return the numbers of a plain version, padded so that 3.10 and 3.10.0 are equal."""
    if not re.fullmatch(_VERSION, version):
        raise ValueError(f"marker with the version {version[:40]}")
    numbers = [int(part) for part in version.split(".")]
    return numbers + [0] * (4 - len(numbers))
